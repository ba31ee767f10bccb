//! Which events of a partition were set aside: a key of the brokers, `dead.<partition>`, which only the owner changes (ADR 58).
//!
//! An owner writes its epoch into it before it reads it, so that what a former owner sets aside afterwards fails: nobody counts without an event that the next owner counts. The value has
//! positions alone; the events are in the partition's log.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use async_nats::jetstream::kv::Store;
use async_nats::jetstream::stream::LastRawMessageErrorKind;
use headcount_actors::{SharedLetters, SharedLettersError};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::runtime::Handle;
use tokio::sync::OnceCell;
use tokio::time::timeout;

use crate::connection::Connection;
use crate::record::BUCKET;

/// How long brokers may take to answer. A change without an answer may have been made.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// How often a change is tried whose outcome is not known, and the pause before.
const ATTEMPTS: u32 = 3;
const PAUSE: Duration = Duration::from_millis(200);
/// The most events of a partition that can be set aside: so many fit into a message with room to spare.
const MAX_LETTERS: usize = 20_000;

/// The value of a partition's key.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct LetterList {
    /// The epoch of the owner that may change it.
    epoch: u64,
    /// Tells one change of an owner from another one.
    change: u64,
    /// The positions of the events.
    positions: BTreeSet<u64>,
}

/// The list of a partition that this node has, and its revision.
#[derive(Debug, Clone)]
struct OwnList {
    list: LetterList,
    revision: u64,
}

/// The lists of the partitions that this node has.
#[derive(Debug)]
pub(crate) struct LetterLists {
    runtime: Handle,
    connection: Connection,
    bucket: OnceCell<Store>,
    own: Mutex<BTreeMap<u16, OwnList>>,
}

fn key_of(partition: u16) -> String {
    format!("dead.{partition:03}")
}

fn unavailable(error: impl std::fmt::Display) -> SharedLettersError {
    SharedLettersError::Unavailable(error.to_string())
}

impl LetterLists {
    /// Uses the bucket of a cluster, once it is asked.
    pub(crate) fn new(runtime: &Handle, connection: &Connection) -> Self {
        let own = Mutex::default();
        Self { runtime: runtime.clone(), connection: connection.clone(), bucket: OnceCell::new(), own }
    }

    /// Makes the owner of `epoch` the only one that may set events of a partition aside. Returns those that were.
    ///
    /// # Errors
    /// [`SharedLettersError::NotOwner`] if a later owner did so, and [`SharedLettersError::Unavailable`].
    pub(crate) async fn take_over(&self, partition: u16, epoch: u64) -> Result<BTreeSet<u64>, SharedLettersError> {
        self.own.lock().remove(&partition);
        loop {
            let (list, revision) = self.read(partition).await?.unwrap_or_default();
            if list.epoch > epoch {
                return Err(SharedLettersError::NotOwner(partition));
            }
            let list = LetterList { epoch, change: fastrand::u64(..), ..list };
            if let Some(revision) = self.write(partition, &list, revision).await? {
                let positions = list.positions.clone();
                self.own.lock().insert(partition, OwnList { list, revision });
                return Ok(positions);
            }
        }
    }

    /// Forgets a partition that is given up.
    pub(crate) fn release(&self, partition: u16) {
        self.own.lock().remove(&partition);
    }

    async fn add(&self, partition: u16, positions: &BTreeSet<u64>) -> Result<(), SharedLettersError> {
        let known = self.own.lock().get(&partition).cloned().ok_or(SharedLettersError::NotOwner(partition))?;
        let mut own = known.clone();
        let (list, revision) = loop {
            let mut list = LetterList { change: fastrand::u64(..), ..own.list.clone() };
            list.positions.extend(positions);
            let count = list.positions.len();
            if count > MAX_LETTERS {
                return Err(SharedLettersError::TooMany { partition, count });
            }
            if let Some(revision) = self.write(partition, &list, own.revision).await? {
                break (list, revision);
            }
            // An earlier change of this owner, whose outcome was not known, may have been made.
            match self.read(partition).await? {
                Some((list, revision)) if list.epoch == own.list.epoch && revision > own.revision => {
                    own = OwnList { list, revision };
                }
                _ => return Err(SharedLettersError::NotOwner(partition)),
            }
        };
        let former = known.revision;
        let mut lists = self.own.lock();
        // It may have been given up and taken over again meanwhile.
        if let Some(known) = lists.get_mut(&partition).filter(|known| known.revision == former) {
            *known = OwnList { list, revision };
        }
        Ok(())
    }

    async fn bucket(&self) -> Result<&Store, SharedLettersError> {
        let open = async || self.connection.context.get_key_value(BUCKET).await.map_err(unavailable);
        timeout(ANSWER_TIMEOUT, self.bucket.get_or_try_init(open)).await.map_err(unavailable)?
    }

    /// Returns a list and its revision, as the leader says it.
    async fn read(&self, partition: u16) -> Result<Option<(LetterList, u64)>, SharedLettersError> {
        let bucket = self.bucket().await?;
        let (key, prefix) = (key_of(partition), &bucket.prefix);
        let subject = format!("{prefix}{key}");
        match timeout(ANSWER_TIMEOUT, bucket.stream.get_last_raw_message_by_subject(&subject)).await.map_err(unavailable)? {
            Ok(message) => match serde_json::from_slice(&message.payload) {
                Ok(list) => Ok(Some((list, message.sequence))),
                Err(error) => Err(unavailable(format!("the key {key} can't be read: {error}"))),
            },
            Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => Ok(None),
            Err(error) => Err(unavailable(error)),
        }
    }

    /// Changes a key whose revision is `revision`, 0 if there is none. Returns the new revision; `None` if it was another one.
    async fn write(&self, partition: u16, list: &LetterList, revision: u64) -> Result<Option<u64>, SharedLettersError> {
        let (key, bytes) = (key_of(partition), serde_json::to_vec(list).map_err(unavailable)?);
        let bucket = self.bucket().await?;
        let mut reason = String::new();
        for _ in 0..ATTEMPTS {
            match timeout(ANSWER_TIMEOUT, bucket.update(&key, bytes.clone().into(), revision)).await {
                Ok(Ok(revision)) => return Ok(Some(revision)),
                Ok(Err(error)) => reason = error.to_string(),
                Err(elapsed) => reason = elapsed.to_string(),
            }
            // It may have been made all the same. Each value is written once.
            match self.read(partition).await? {
                Some((found, revision)) if found == *list => return Ok(Some(revision)),
                Some((_, found)) if found > revision => return Ok(None),
                _ => tokio::time::sleep(PAUSE).await,
            }
        }
        Err(SharedLettersError::Unavailable(reason))
    }
}

impl SharedLetters for LetterLists {
    fn set_aside(&self, partition: u16, positions: &BTreeSet<u64>) -> Result<(), SharedLettersError> {
        self.runtime.block_on(self.add(partition, positions))
    }
}
