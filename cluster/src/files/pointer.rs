//! The pointer to the list of a partition's archive: a key of the brokers, changed by
//! compare-and-set.

use async_nats::jetstream::kv::{CreateErrorKind, Store};
use serde::{Deserialize, Serialize};

use super::FilesError;
use crate::connection::Connection;
use crate::owned_key::{self, Owned, OwnedKey, OwnedKeyError, OwnedValue};
use crate::record::BUCKET;

/// The key with the place of the cluster's files.
const PLACE: &str = "files";

/// The value of a partition's pointer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Pointer {
    /// The epoch of the owner that may change the pointer.
    pub(crate) epoch: u64,
    /// A number that distinguishes the changes of one owner.
    change: u64,
    /// The list of the archive; `None` if nothing is published.
    pub(crate) list: Option<ListName>,
}

/// The name of the object with a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ListName {
    pub(crate) name: String,
    pub(crate) sha256: String,
}

/// The pointers of all partitions.
#[derive(Debug, Clone)]
pub(crate) struct Pointers {
    store: Store,
    /// The kind of lists that they point to: the prefix of their keys.
    kind: &'static str,
}

/// The pointer of a partition that this node owns.
pub(crate) type OwnPointer = Owned<Pointer>;

impl OwnedValue for Pointer {
    fn epoch(&self) -> u64 {
        self.epoch
    }

    fn of(self, epoch: u64, change: u64) -> Self {
        Self { epoch, change, ..self }
    }
}

impl From<OwnedKeyError> for FilesError {
    fn from(error: OwnedKeyError) -> Self {
        match error {
            OwnedKeyError::NotOwner(partition) => Self::NotOwner(partition),
            OwnedKeyError::Unavailable(why) => Self::Brokers(why),
        }
    }
}

impl Pointers {
    /// Opens the pointers to lists of a `kind`.
    pub(crate) async fn open(connection: &Connection, kind: &'static str) -> Result<Self, FilesError> {
        let store = connection.context.get_key_value(BUCKET).await.map_err(FilesError::brokers)?;
        Ok(Self { store, kind })
    }

    /// Returns the key of a partition's pointer.
    pub(super) fn address_of(&self, partition: u16) -> String {
        format!("{BUCKET}/{}", self.key_of(partition).name)
    }

    fn key_of(&self, partition: u16) -> OwnedKey<'_> {
        OwnedKey { store: &self.store, partition, name: format!("{}.{partition:03}", self.kind) }
    }

    /// Makes the owner of `epoch` the only node that may change the pointer of a partition.
    ///
    /// # Errors
    /// Returns [`FilesError::NotOwner`] if a later owner has taken it over, and
    /// [`FilesError::Brokers`].
    pub(crate) async fn take_over(&self, partition: u16, epoch: u64) -> Result<OwnPointer, FilesError> {
        Ok(self.key_of(partition).take_over(epoch).await?)
    }

    /// Points a partition to another list, or to none.
    ///
    /// # Errors
    /// Returns [`FilesError::NotOwner`] if another node has taken the pointer over: it still names
    /// the former list. [`FilesError::Brokers`]: it may name either list.
    pub(crate) async fn publish(&self, partition: u16, own: &mut OwnPointer, list: Option<ListName>) -> Result<(), FilesError> {
        let change = |pointer: &mut Pointer| {
            pointer.list.clone_from(&list);
            Ok(())
        };
        self.key_of(partition).change(own, change).await
    }

    /// Records `place` as the place of this cluster's files unless one is recorded, and returns the
    /// recorded place.
    pub(super) async fn agree(&self, place: &str) -> Result<String, FilesError> {
        match self.store.create(PLACE, place.to_owned().into()).await {
            Ok(_) => Ok(place.to_owned()),
            Err(error) if error.kind() == CreateErrorKind::AlreadyExists => {
                self.place().await?.ok_or_else(|| FilesError::brokers("the place of files was removed"))
            }
            Err(error) => Err(FilesError::brokers(error)),
        }
    }

    /// Records `place` as the place of files of a new cluster.
    pub(super) async fn move_to(&self, place: &str) -> Result<(), FilesError> {
        self.store.put(PLACE, place.to_owned().into()).await.map(drop).map_err(FilesError::brokers)
    }

    /// Returns the place where the nodes of this cluster keep files, if there is one.
    pub(super) async fn place(&self) -> Result<Option<String>, FilesError> {
        let place = owned_key::get(&self.store, PLACE).await.map_err(FilesError::Brokers)?;
        Ok(place.map(|(value, _)| String::from_utf8_lossy(&value).into_owned()))
    }

    /// Returns the list that the pointer of a partition names.
    ///
    /// # Errors
    /// Returns [`FilesError::Brokers`].
    pub(super) async fn named(&self, partition: u16) -> Result<Option<ListName>, FilesError> {
        Ok(self.key_of(partition).read::<Pointer>().await?.and_then(|(pointer, _)| pointer.list))
    }
}
