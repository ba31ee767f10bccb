//! Which list is that of a partition's archive: a key of the brokers, changed by compare-and-set.

use std::time::Duration;

use async_nats::jetstream::kv::{CreateErrorKind, Store};
use async_nats::jetstream::stream::LastRawMessageErrorKind;
use serde::{Deserialize, Serialize};
use tokio::time::timeout;

use super::FilesError;
use crate::connection::Connection;
use crate::record::BUCKET;

/// How long brokers may take to answer. A change without an answer may have been made.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// How often a change is tried whose outcome is not known.
const ATTEMPTS: u32 = 3;
/// The key that says where the files of the cluster are.
const PLACE: &str = "files";

/// The value of a partition's key.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Pointer {
    /// The epoch of the owner that may change it.
    pub(crate) epoch: u64,
    /// Tells one change of an owner from another one.
    change: u64,
    /// The list of the archive; `None`: nothing is published.
    pub(crate) list: Option<ListName>,
}

/// The object that is a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ListName {
    pub(crate) name: String,
    pub(crate) sha256: String,
}

/// The keys of all partitions.
#[derive(Debug, Clone)]
pub(crate) struct Pointers {
    store: Store,
    /// What they point to: the beginning of their keys.
    kind: &'static str,
}

/// The pointer of a partition that this node has.
#[derive(Debug, Clone)]
pub(crate) struct OwnPointer {
    pub(crate) value: Pointer,
    revision: u64,
}

impl Pointers {
    /// Opens those to lists of a `kind`.
    pub(crate) async fn open(connection: &Connection, kind: &'static str) -> Result<Self, FilesError> {
        let store = connection.context.get_key_value(BUCKET).await.map_err(FilesError::brokers)?;
        Ok(Self { store, kind })
    }

    /// Returns where the pointer of a partition is.
    pub(super) fn address_of(&self, partition: u16) -> String {
        format!("{BUCKET}/{}", self.key_of(partition))
    }

    fn key_of(&self, partition: u16) -> String {
        format!("{}.{partition:03}", self.kind)
    }

    /// Makes the owner of `epoch` the only one that may change the pointer of a partition.
    ///
    /// # Errors
    /// [`FilesError::NotOwner`] if a later owner did so, and [`FilesError::Brokers`].
    pub(crate) async fn take_over(&self, partition: u16, epoch: u64) -> Result<OwnPointer, FilesError> {
        loop {
            let found = self.read(partition).await?;
            let (pointer, revision) = found.unwrap_or_default();
            if pointer.epoch > epoch {
                return Err(FilesError::NotOwner(partition));
            }
            let value = Pointer { epoch, change: fastrand::u64(..), ..pointer };
            if let Some(revision) = self.write(partition, &value, revision).await? {
                return Ok(OwnPointer { value, revision });
            }
        }
    }

    /// Has the pointer of a partition name another list; `None`: none.
    ///
    /// # Errors
    /// [`FilesError::NotOwner`] if another node has taken it over: it names the former list. [`FilesError::Brokers`]: it may name either.
    pub(crate) async fn publish(&self, partition: u16, own: &mut OwnPointer, list: Option<ListName>) -> Result<(), FilesError> {
        loop {
            let value = Pointer { change: fastrand::u64(..), list: list.clone(), ..own.value.clone() };
            if let Some(revision) = self.write(partition, &value, own.revision).await? {
                *own = OwnPointer { value, revision };
                return Ok(());
            }
            // An earlier change of this owner, whose outcome was not known, may have been made.
            match self.read(partition).await? {
                Some((value, revision)) if value.epoch == own.value.epoch && revision > own.revision => {
                    *own = OwnPointer { value, revision };
                }
                _ => return Err(FilesError::NotOwner(partition)),
            }
        }
    }

    /// Returns where the nodes of this cluster keep files, after it was recorded that it is at `place`, if nothing was before.
    pub(super) async fn agree(&self, place: &str) -> Result<String, FilesError> {
        match self.store.create(PLACE, place.to_owned().into()).await {
            Ok(_) => Ok(place.to_owned()),
            Err(error) if error.kind() == CreateErrorKind::AlreadyExists => {
                self.place().await?.ok_or_else(|| FilesError::brokers("the place of files was removed"))
            }
            Err(error) => Err(FilesError::brokers(error)),
        }
    }

    /// Returns where the nodes of this cluster keep files; `None`: nowhere.
    pub(super) async fn place(&self) -> Result<Option<String>, FilesError> {
        Ok(self.get(PLACE).await?.map(|(value, _)| String::from_utf8_lossy(&value).into_owned()))
    }

    /// Returns the list that the pointer of a partition names.
    ///
    /// # Errors
    /// [`FilesError::Brokers`].
    pub(super) async fn named(&self, partition: u16) -> Result<Option<ListName>, FilesError> {
        Ok(self.read(partition).await?.and_then(|(pointer, _)| pointer.list))
    }

    async fn read(&self, partition: u16) -> Result<Option<(Pointer, u64)>, FilesError> {
        let Some((value, revision)) = self.get(&self.key_of(partition)).await? else { return Ok(None) };
        let pointer = serde_json::from_slice(&value);
        let pointer =
            pointer.map_err(|error| FilesError::Brokers(format!("the key {} can't be read: {error}", self.key_of(partition))))?;
        Ok(Some((pointer, revision)))
    }

    /// Returns a value and its revision, as the leader says it.
    async fn get(&self, key: &str) -> Result<Option<(Vec<u8>, u64)>, FilesError> {
        let subject = format!("{}{key}", self.store.prefix);
        match timeout(ANSWER_TIMEOUT, self.store.stream.get_last_raw_message_by_subject(&subject)).await {
            Ok(Ok(message)) => Ok(Some((message.payload.to_vec(), message.sequence))),
            Ok(Err(error)) if error.kind() == LastRawMessageErrorKind::NoMessageFound => Ok(None),
            Ok(Err(error)) => Err(FilesError::brokers(error)),
            Err(elapsed) => Err(FilesError::brokers(elapsed)),
        }
    }

    /// Changes a key whose revision is `revision`, 0 if there is none. Returns the new revision; `None` if it was another one.
    async fn write(&self, partition: u16, value: &Pointer, revision: u64) -> Result<Option<u64>, FilesError> {
        let (key, bytes) = (self.key_of(partition), serde_json::to_vec(value).map_err(FilesError::brokers)?);
        let mut reason = String::new();
        for _ in 0..ATTEMPTS {
            match timeout(ANSWER_TIMEOUT, self.store.update(&key, bytes.clone().into(), revision)).await {
                Ok(Ok(revision)) => return Ok(Some(revision)),
                Ok(Err(error)) => reason = error.to_string(),
                Err(elapsed) => reason = elapsed.to_string(),
            }
            // It may have been made all the same. Each value is written once.
            match self.read(partition).await? {
                Some((found, revision)) if found == *value => return Ok(Some(revision)),
                Some((_, found)) if found > revision => return Ok(None),
                _ => tokio::time::sleep(Duration::from_millis(200)).await,
            }
        }
        Err(FilesError::Brokers(reason))
    }
}
