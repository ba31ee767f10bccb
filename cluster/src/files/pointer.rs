//! The pointer to the list of a partition's archive: a key of the brokers, changed by
//! compare-and-set.

use serde::{Deserialize, Serialize};

use super::{FilesError, Result};
use crate::cells::{KvCells, Owned, PartitionCells, Unanswered};
use crate::connection::Connection;
use crate::record::BUCKET;

/// The key with the place of the cluster's files.
const PLACE: &str = "files";

/// The value of a partition's pointer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Pointer {
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
pub(crate) struct Pointers(PartitionCells<Pointer>);

/// The pointer of a partition that this node owns.
pub(crate) type OwnPointer = Owned<Pointer>;

impl From<Unanswered> for FilesError {
    fn from(Unanswered(why): Unanswered) -> Self {
        Self::Brokers(why)
    }
}

impl Pointers {
    /// Opens the pointers to lists of a `kind`.
    pub(crate) async fn open(connection: &Connection, kind: &'static str) -> Result<Self> {
        let cells = KvCells::existing(connection, BUCKET);
        cells.open().await?;
        Ok(Self(PartitionCells::new(cells, kind)))
    }

    /// Returns the key of a partition's pointer.
    pub(super) fn address_of(&self, partition: u16) -> String {
        format!("{BUCKET}/{}", self.0.key_of(partition))
    }

    /// Makes the owner of `epoch` the only node that may change the pointer of a partition.
    ///
    /// # Errors
    /// Returns [`FilesError::NotOwner`] if a later owner has taken it over, and
    /// [`FilesError::Brokers`].
    pub(crate) async fn take_over(&self, partition: u16, epoch: u64) -> Result<OwnPointer> {
        self.0.take_over(partition, epoch).await?.ok_or(FilesError::NotOwner(partition))
    }

    /// Points a partition to another list, or to none.
    ///
    /// # Errors
    /// Returns [`FilesError::NotOwner`] if another node has taken the pointer over: it still names
    /// the former list. [`FilesError::Brokers`]: it may name either list.
    pub(crate) async fn publish(&self, partition: u16, own: &mut OwnPointer, list: Option<ListName>) -> Result<()> {
        let change = |pointer: &mut Pointer| {
            pointer.list.clone_from(&list);
            Ok::<_, FilesError>(())
        };
        if self.0.change(partition, own, change).await? { Ok(()) } else { Err(FilesError::NotOwner(partition)) }
    }

    /// Records `place` as the place of this cluster's files unless one is recorded, and returns the
    /// recorded place.
    pub(super) async fn agree(&self, place: &str) -> Result<String> {
        Ok(text(&self.0.cells.offer(PLACE, place.to_owned()).await?))
    }

    /// Records `place` as the place of files of a new cluster.
    pub(super) async fn move_to(&self, place: &str) -> Result<()> {
        Ok(self.0.cells.put(PLACE, place.to_owned()).await.map(drop)?)
    }

    /// Returns the place where the nodes of this cluster keep files, if there is one.
    pub(super) async fn place(&self) -> Result<Option<String>> {
        Ok(self.0.cells.read(PLACE).await?.map(|cell| text(&cell.value)))
    }

    /// Returns the list that the pointer of a partition names.
    ///
    /// # Errors
    /// Returns [`FilesError::Brokers`].
    pub(super) async fn named(&self, partition: u16) -> Result<Option<ListName>> {
        Ok(self.0.read(partition).await?.and_then(|pointer| pointer.list))
    }
}

fn text(value: &[u8]) -> String {
    String::from_utf8_lossy(value).into_owned()
}
