//! Keys of the brokers that only the owner of a partition changes, by compare-and-set. An owner writes its epoch into the value before it reads it, so that a former owner changes nothing
//! afterwards.

use std::fmt::Debug;
use std::time::Duration;

use async_nats::jetstream::kv::Store;
use async_nats::jetstream::stream::LastRawMessageErrorKind;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::timeout;

/// How long brokers may take to answer. A change without an answer may have been made.
pub(crate) const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// How often a change is tried whose outcome is not known, and the pause before.
const ATTEMPTS: u32 = 3;
const PAUSE: Duration = Duration::from_millis(200);

/// The value of such a key.
pub(crate) trait OwnedValue: Debug + Clone + Default + PartialEq + Serialize + DeserializeOwned {
    /// The epoch of the owner that may change it.
    fn epoch(&self) -> u64;

    /// Returns the same of an owner. `change` tells a change of an owner from another one.
    fn of(self, epoch: u64, change: u64) -> Self;
}

/// Why a value is not read or changed.
#[derive(Debug)]
pub(crate) enum OwnedKeyError {
    /// A later owner has the key.
    NotOwner(u16),
    /// Brokers do not answer, or the value can't be read. A change may have been made.
    Unavailable(String),
}

/// A key of a partition.
#[derive(Debug)]
pub(crate) struct OwnedKey<'s> {
    pub(crate) store: &'s Store,
    pub(crate) partition: u16,
    pub(crate) name: String,
}

/// A value that this node may change.
#[derive(Debug, Clone)]
pub(crate) struct Owned<V> {
    pub(crate) value: V,
    pub(crate) revision: u64,
}

impl OwnedKey<'_> {
    /// Makes the owner of `epoch` the only one that may change the value.
    ///
    /// # Errors
    /// [`OwnedKeyError::NotOwner`] if a later owner did so, and [`OwnedKeyError::Unavailable`].
    pub(crate) async fn take_over<V: OwnedValue>(&self, epoch: u64) -> Result<Owned<V>, OwnedKeyError> {
        loop {
            let (value, revision) = self.read::<V>().await?.unwrap_or_default();
            if value.epoch() > epoch {
                return Err(OwnedKeyError::NotOwner(self.partition));
            }
            let value = value.of(epoch, fastrand::u64(..));
            if let Some(revision) = self.write(&value, revision).await? {
                return Ok(Owned { value, revision });
            }
        }
    }

    /// Changes the value. `change` is called again if an earlier change of this owner, whose outcome was not known, was made.
    ///
    /// # Errors
    /// That of `change`; [`OwnedKeyError::NotOwner`]: the value is what it was, and [`OwnedKeyError::Unavailable`]: it may be either.
    pub(crate) async fn change<V: OwnedValue, E: From<OwnedKeyError>>(
        &self,
        own: &mut Owned<V>,
        change: impl Fn(&mut V) -> Result<(), E>,
    ) -> Result<(), E> {
        loop {
            let epoch = own.value.epoch();
            let mut value = own.value.clone().of(epoch, fastrand::u64(..));
            change(&mut value)?;
            if let Some(revision) = self.write(&value, own.revision).await? {
                *own = Owned { value, revision };
                return Ok(());
            }
            match self.read::<V>().await? {
                Some((value, revision)) if value.epoch() == epoch && revision > own.revision => *own = Owned { value, revision },
                _ => return Err(OwnedKeyError::NotOwner(self.partition).into()),
            }
        }
    }

    /// Returns the value and its revision, as the leader says it.
    pub(crate) async fn read<V: OwnedValue>(&self) -> Result<Option<(V, u64)>, OwnedKeyError> {
        let Some((bytes, revision)) = get(self.store, &self.name).await.map_err(OwnedKeyError::Unavailable)? else {
            return Ok(None);
        };
        match serde_json::from_slice(&bytes) {
            Ok(value) => Ok(Some((value, revision))),
            Err(error) => Err(OwnedKeyError::Unavailable(format!("the key {} can't be read: {error}", self.name))),
        }
    }

    /// Changes the value whose revision is `revision`, 0 if there is none. Returns the new revision; `None` if it was another one.
    async fn write<V: OwnedValue>(&self, value: &V, revision: u64) -> Result<Option<u64>, OwnedKeyError> {
        let bytes = serde_json::to_vec(value).map_err(|error| OwnedKeyError::Unavailable(error.to_string()))?;
        let mut reason = String::new();
        for _ in 0..ATTEMPTS {
            match timeout(ANSWER_TIMEOUT, self.store.update(&self.name, bytes.clone().into(), revision)).await {
                Ok(Ok(revision)) => return Ok(Some(revision)),
                Ok(Err(error)) => reason = error.to_string(),
                Err(elapsed) => reason = elapsed.to_string(),
            }
            // It may have been made all the same. Each value is written once.
            match self.read::<V>().await? {
                Some((found, revision)) if found == *value => return Ok(Some(revision)),
                Some((_, found)) if found > revision => return Ok(None),
                _ => tokio::time::sleep(PAUSE).await,
            }
        }
        Err(OwnedKeyError::Unavailable(reason))
    }
}

/// Returns the value of any key of a bucket and its revision, as the leader says it. The error says why nobody does.
pub(crate) async fn get(store: &Store, key: &str) -> Result<Option<(Vec<u8>, u64)>, String> {
    let subject = format!("{}{key}", store.prefix);
    match timeout(ANSWER_TIMEOUT, store.stream.get_last_raw_message_by_subject(&subject)).await {
        Ok(Ok(message)) => Ok(Some((message.payload.to_vec(), message.sequence))),
        Ok(Err(error)) if error.kind() == LastRawMessageErrorKind::NoMessageFound => Ok(None),
        Ok(Err(error)) => Err(error.to_string()),
        Err(elapsed) => Err(elapsed.to_string()),
    }
}
