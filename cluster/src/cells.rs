//! Keys of the brokers whose values change by compare-and-set. No other file asks a bucket.
//!
//! The value of a partition's key has the epoch of the owner that may change it. An owner writes
//! its epoch before it reads the value, so that no former owner can change it afterwards.

use std::fmt::{Debug, Display};
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::kv::{Config, CreateErrorKind, Store, UpdateErrorKind};
use async_nats::jetstream::stream::LastRawMessageErrorKind;
use bytes::Bytes;
use futures_util::TryStreamExt as _;
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::time::timeout;

use crate::connection::{Connection, TIMEOUT};

/// How often a change is tried whose outcome is not known, and the pause before.
const ATTEMPTS: u32 = 3;
const PAUSE: Duration = Duration::from_millis(200);

/// The brokers do not answer, or refuse. A change may have been made.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Unanswered(pub(crate) String);

fn unanswered(error: impl Display) -> Unanswered {
    Unanswered(error.to_string())
}

/// The value of a key; of a key that was deleted, nothing.
#[derive(Debug, Clone)]
pub(crate) struct Cell {
    pub(crate) value: Bytes,
    pub(crate) revision: u64,
}

/// The keys of a bucket, which is opened when it is first asked.
#[derive(Debug, Clone)]
pub(crate) struct KvCells {
    connection: Connection,
    bucket: Config,
    /// Whether the bucket is created unless it is there.
    is_created: bool,
    store: Arc<Mutex<Option<Arc<Store>>>>,
    timeout: Duration,
}

impl KvCells {
    /// Uses a bucket that exists.
    pub(crate) fn existing(connection: &Connection, bucket: &str) -> Self {
        Self::of(connection, Config { bucket: bucket.to_owned(), ..Config::default() }, false)
    }

    /// Uses a bucket with one value for each key. Creates it on `replicas` brokers if it is
    /// missing.
    pub(crate) fn created(connection: &Connection, replicas: usize, bucket: Config) -> Self {
        Self::of(connection, Config { history: 1, num_replicas: replicas, ..bucket }, true)
    }

    fn of(connection: &Connection, bucket: Config, is_created: bool) -> Self {
        Self { connection: connection.clone(), bucket, is_created, store: Arc::default(), timeout: TIMEOUT }
    }

    /// Waits only so long for an answer.
    pub(crate) fn within(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// Opens the bucket, unless it is open. Waits until enough brokers are there.
    pub(crate) async fn open(&self) -> Result<(), Unanswered> {
        self.store().await.map(drop)
    }

    /// Like [`Self::open`], within the time limit of an answer. Nothing was changed after an error.
    pub(crate) async fn ready(&self) -> Result<(), Unanswered> {
        self.in_time(self.open()).await
    }

    /// Makes the next access open the bucket again: it may be gone with the memory of the brokers.
    pub(crate) fn close(&self) {
        self.store.lock().take();
    }

    async fn store(&self) -> Result<Arc<Store>, Unanswered> {
        let known = self.store.lock().clone();
        if let Some(store) = known {
            return Ok(store);
        }
        let opened = match self.is_created {
            true => self.connection.bucket(self.bucket.clone()).await.map_err(unanswered)?,
            false => self.connection.context.get_key_value(&self.bucket.bucket).await.map_err(unanswered)?,
        };
        Ok(Arc::clone(self.store.lock().insert(Arc::new(opened))))
    }

    async fn in_time<T>(&self, asked: impl Future<Output = Result<T, Unanswered>>) -> Result<T, Unanswered> {
        timeout(self.timeout, asked).await.map_err(unanswered)?
    }

    /// Returns the value of a key; `None` if it never had one.
    pub(crate) async fn read(&self, key: &str) -> Result<Option<Cell>, Unanswered> {
        let asked = async {
            let store = self.store().await?;
            // From the leader, whose answer is seldom out of date. Then, the next change fails.
            match store.stream.get_last_raw_message_by_subject(&format!("{}{key}", store.prefix)).await {
                Ok(message) => Ok(Some(Cell { value: message.payload, revision: message.sequence })),
                Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => Ok(None),
                Err(error) => Err(unanswered(error)),
            }
        };
        self.in_time(asked).await
    }

    /// Changes the value whose revision is `revision`, or 0 if there is none. Returns the new
    /// revision; `None` if the revision was another one.
    pub(crate) async fn change(&self, key: &str, value: impl Into<Bytes>, revision: u64) -> Result<Option<u64>, Unanswered> {
        let asked = async {
            match self.store().await?.update(key, value.into(), revision).await {
                Ok(revision) => Ok(Some(revision)),
                Err(error) if error.kind() == UpdateErrorKind::WrongLastRevision => Ok(None),
                Err(error) => Err(unanswered(error)),
            }
        };
        self.in_time(asked).await
    }

    /// Gives a key a value, unless it has one. Returns the value that the key has then.
    pub(crate) async fn offer(&self, key: &str, value: impl Into<Bytes>) -> Result<Bytes, Unanswered> {
        let value = value.into();
        let asked = async {
            match self.store().await?.create(key, value.clone()).await {
                Ok(_) => Ok(true),
                Err(error) if error.kind() == CreateErrorKind::AlreadyExists => Ok(false),
                Err(error) => Err(unanswered(error)),
            }
        };
        if self.in_time(asked).await? {
            return Ok(value);
        }
        self.read(key).await?.map(|cell| cell.value).ok_or_else(|| unanswered("an answer is out of date"))
    }

    /// Replaces the value of a key. Returns the revision, which is later than all earlier ones.
    pub(crate) async fn put(&self, key: &str, value: impl Into<Bytes>) -> Result<u64, Unanswered> {
        self.in_time(async { self.store().await?.put(key, value.into()).await.map_err(unanswered) }).await
    }

    /// Deletes a key. An empty value stays.
    pub(crate) async fn delete(&self, key: &str) -> Result<(), Unanswered> {
        self.in_time(async { self.store().await?.delete(key).await.map_err(unanswered) }).await
    }

    /// Removes a key completely, unless its revision is later than `until`.
    pub(crate) async fn purge(&self, key: &str, until: Option<u64>) -> Result<(), Unanswered> {
        let asked = async {
            let store = self.store().await?;
            let purge = store.stream.purge().filter(format!("{}{key}", store.prefix));
            let purged = match until {
                Some(until) => purge.sequence(until + 1).await,
                None => purge.await,
            };
            purged.map(drop).map_err(unanswered)
        };
        self.in_time(asked).await
    }

    /// Returns the keys that begin so and a dot, without that.
    pub(crate) async fn keys(&self, prefix: &str) -> Result<Vec<String>, Unanswered> {
        let asked = async {
            let store = self.store().await?;
            let prefix = format!("{}{prefix}", store.prefix);
            let subjects = store.stream.info_with_subjects(format!("{prefix}>")).await.map_err(unanswered)?;
            let subjects: Vec<(String, usize)> = subjects.try_collect().await.map_err(unanswered)?;
            Ok(subjects.iter().filter_map(|(subject, _)| subject.strip_prefix(&prefix)).map(str::to_owned).collect())
        };
        self.in_time(asked).await
    }
}

/// The keys of all partitions for values `V`.
#[derive(Debug, Clone)]
pub(crate) struct PartitionCells<V> {
    pub(crate) cells: KvCells,
    /// The beginning of the keys.
    kind: &'static str,
    value: PhantomData<fn() -> V>,
}

/// What a partition's key has.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Stamped<V> {
    epoch: u64,
    /// Tells one change of an owner from another one.
    change: u64,
    #[serde(flatten)]
    value: V,
}

/// A value that this node may change.
#[derive(Debug, Clone)]
pub(crate) struct Owned<V> {
    /// The epoch of the owner, which is this node.
    pub(crate) epoch: u64,
    pub(crate) value: V,
    pub(crate) revision: u64,
}

impl<V: Clone + Default + PartialEq + Serialize + DeserializeOwned> PartitionCells<V> {
    pub(crate) fn new(cells: KvCells, kind: &'static str) -> Self {
        Self { cells, kind, value: PhantomData }
    }

    /// Returns the key of a partition.
    pub(crate) fn key_of(&self, partition: u16) -> String {
        format!("{}.{partition:03}", self.kind)
    }

    /// Makes the owner of `epoch` the only node that may change the value of a partition. Returns
    /// `None` if a later owner has taken it over.
    pub(crate) async fn take_over(&self, partition: u16, epoch: u64) -> Result<Option<Owned<V>>, Unanswered> {
        loop {
            let (found, revision) = self.content(partition).await?.unwrap_or_default();
            if found.epoch > epoch {
                return Ok(None);
            }
            let taken = Owned { epoch, value: found.value, revision };
            if let Some(revision) = self.write(partition, &taken).await? {
                return Ok(Some(Owned { revision, ..taken }));
            }
        }
    }

    /// Changes the value. Calls `change` again if an earlier change of this owner, whose outcome
    /// was unknown, was made. Returns `false` if another node has the key.
    ///
    /// # Errors
    /// The error of `change`, and [`Unanswered`]: the key may have either value.
    pub(crate) async fn change<E: From<Unanswered>>(
        &self,
        partition: u16,
        own: &mut Owned<V>,
        change: impl Fn(&mut V) -> Result<(), E>,
    ) -> Result<bool, E> {
        loop {
            let mut changed = own.clone();
            change(&mut changed.value)?;
            if let Some(revision) = self.write(partition, &changed).await? {
                *own = Owned { revision, ..changed };
                return Ok(true);
            }
            match self.content(partition).await? {
                Some((Stamped { epoch, value, .. }, revision)) if epoch == own.epoch && revision > own.revision => {
                    *own = Owned { epoch, value, revision };
                }
                _ => return Ok(false),
            }
        }
    }

    /// Returns the value of a partition of any owner.
    pub(crate) async fn read(&self, partition: u16) -> Result<Option<V>, Unanswered> {
        Ok(self.content(partition).await?.map(|(content, _)| content.value))
    }

    async fn content(&self, partition: u16) -> Result<Option<(Stamped<V>, u64)>, Unanswered> {
        let key = self.key_of(partition);
        let Some(Cell { value, revision }) = self.cells.read(&key).await? else { return Ok(None) };
        let content = serde_json::from_slice(&value);
        Ok(Some((content.map_err(|error| Unanswered(format!("the key {key} can't be read: {error}")))?, revision)))
    }

    /// Writes an owner's value in place of its revision. Returns the new revision; `None` if the
    /// key had another one.
    async fn write(&self, partition: u16, own: &Owned<V>) -> Result<Option<u64>, Unanswered> {
        let content = Stamped { epoch: own.epoch, change: fastrand::u64(..), value: own.value.clone() };
        let bytes = Bytes::from(serde_json::to_vec(&content).map_err(unanswered)?);
        let mut reason = unanswered("an answer is out of date");
        for _ in 0..ATTEMPTS {
            match self.cells.change(&self.key_of(partition), bytes.clone(), own.revision).await {
                Ok(Some(revision)) => return Ok(Some(revision)),
                Ok(None) => {}
                Err(error) => reason = error,
            }
            // It may have been made all the same. Each value is written once.
            match self.content(partition).await? {
                Some((found, revision)) if found == content => return Ok(Some(revision)),
                Some((_, found)) if found > own.revision => return Ok(None),
                _ => tokio::time::sleep(PAUSE).await,
            }
        }
        Err(reason)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    struct Positions {
        positions: BTreeSet<u64>,
    }

    /// Nodes of other versions read it.
    #[test]
    fn the_text_is_fixed() {
        let content = Stamped { epoch: 7, change: u64::MAX, value: Positions { positions: [1, u64::MAX].into() } };
        let text = r#"{"epoch":7,"change":18446744073709551615,"positions":[1,18446744073709551615]}"#;
        assert_eq!(serde_json::to_string(&content).unwrap(), text);
        assert_eq!(serde_json::from_str::<Stamped<Positions>>(text).unwrap(), content);
    }
}
