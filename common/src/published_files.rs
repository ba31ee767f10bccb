//! Archives that all nodes can reach. On a machine's disk, the directory of a partition's archive
//! is then a cache.

use std::fmt::Debug;
use std::io;
use std::path::Path;
use std::sync::Arc;

use headcount_archive::source::{FileSource, ListedFile};
use headcount_domain::ids::ProjectId;
use headcount_domain::intake::event::Position;

/// The reason why an archive is not published, or the log not trimmed. Nothing is lost: it is done
/// later, or by the next owner of the partition.
#[derive(Debug, thiserror::Error)]
pub enum SharedArchiveError {
    /// This engine no longer owns the partition.
    #[error("the archive of partition {0} is another node's now")]
    NotOwner(u16),
    /// A listed file can't be read on this machine.
    #[error("the archive can't be read: {0}")]
    Local(String),
    /// The shared place of archives does not answer, or refuses the request.
    #[error("{0}")]
    Unavailable(String),
    /// The caller stopped the work.
    #[error("the work was stopped")]
    Stopped,
}

/// A missing or damaged object of a published archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DamagedObject {
    /// The address of the object.
    pub address: String,
    /// The damage.
    pub reason: String,
}

/// The store of archives for all nodes. Its functions block, so tasks must not call them.
pub trait SharedArchive: Debug + Send + Sync {
    /// Publishes the archive in the directory `root` as the archive of an owned partition: first
    /// its files, then their lists. On return, any later owner of the partition begins with it.
    /// Stops soon after `is_stopping` returns true.
    ///
    /// # Errors
    /// Returns a [`SharedArchiveError`]. The partition has its former archive or this one then.
    fn publish(&self, partition: u16, root: &Path, is_stopping: &dyn Fn() -> bool) -> Result<(), SharedArchiveError>;

    /// Allows the log of a partition to remove events up to the position `until`, if the published
    /// archive has them.
    ///
    /// # Errors
    /// Returns a [`SharedArchiveError`].
    fn trim(&self, partition: u16, until: Position) -> Result<(), SharedArchiveError>;

    /// Removes all objects of a project that the published archive of its partition does not have,
    /// including objects of failed publications.
    ///
    /// # Errors
    /// Returns a [`SharedArchiveError`]. Some objects may be left; the call can be repeated.
    fn remove(&self, partition: u16, project: ProjectId) -> Result<(), SharedArchiveError>;

    /// Removes every object of a project that its published archive does not name: its former
    /// files, and objects of failed publications.
    ///
    /// # Errors
    /// Returns a [`SharedArchiveError`]. Some objects may be left; the call can be repeated.
    fn keep_listed(&self, partition: u16, project: ProjectId) -> Result<(), SharedArchiveError>;

    /// Whether the log of a partition is so full that its events should be sealed early. Asks the
    /// brokers.
    fn needs_room(&self, partition: u16) -> bool;

    /// Removes the published state of a partition, because it may have deleted or erased data, and
    /// another engine could begin from it. A later one is published in time.
    ///
    /// # Errors
    /// Returns a [`SharedArchiveError`]. The state may still exist.
    fn withdraw_state(&self, partition: u16) -> Result<(), SharedArchiveError>;

    /// Whether bases may be published, because every engine that may take the partition over can
    /// read their fold version.
    fn may_have_bases(&self) -> bool;

    /// Reads every object of a partition's published archive, and returns the missing and damaged
    /// ones. Stops soon after `is_stopping` returns true.
    ///
    /// # Errors
    /// Returns a [`SharedArchiveError`]: not everything could be read.
    fn damaged_objects(&self, partition: u16, is_stopping: &dyn Fn() -> bool) -> Result<Vec<DamagedObject>, SharedArchiveError>;

    /// Returns the files of a project in the published archive of an owned partition; none if this
    /// engine doesn't own it.
    fn published_files(&self, partition: u16, project: ProjectId) -> Vec<ListedFile>;

    /// Returns the source of the files of a partition's published archive.
    fn source(&self, partition: u16) -> Arc<dyn FileSource>;
}

impl From<SharedArchiveError> for io::Error {
    fn from(error: SharedArchiveError) -> Self {
        Self::other(error)
    }
}
