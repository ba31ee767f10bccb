//! PartitionArchives that several engines keep where all of them reach them. The directory of a partition's archive on a machine's disk is a cache then.

use std::fmt::Debug;
use std::io;
use std::path::Path;
use std::sync::Arc;

use headcount_archive::source::{FileSource, ListedFile};
use headcount_domain::ids::ProjectId;
use headcount_domain::intake::event::Position;

/// Why an archive is not published, or the log not trimmed. Nothing is lost: it is done later, or by the next owner of the partition.
#[derive(Debug, thiserror::Error)]
pub enum SharedArchiveError {
    /// The partition is no longer this engine's.
    #[error("the archive of partition {0} is another node's now")]
    NotOwner(u16),
    /// What is listed can't be read on this machine.
    #[error("the archive can't be read: {0}")]
    Local(String),
    /// The place where all engines reach archives does not answer, or refuses.
    #[error("{0}")]
    Unavailable(String),
    /// The caller wanted it no longer.
    #[error("the work was stopped")]
    Stopped,
}

/// An object of a published archive that is missing, or not what was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DamagedObject {
    /// Where it is.
    pub address: String,
    /// What is wrong with it.
    pub reason: String,
}

/// Where archives are kept for all members. Its functions block, and must not be called by tasks.
pub trait SharedArchive: Debug + Send + Sync {
    /// Makes the archive in the directory `root` that of a partition of this engine: its files first, then what lists them. When this returns, whoever takes the
    /// partition over begins with it. Gives up soon when `is_stopping`.
    ///
    /// # Errors
    /// [`SharedArchiveError`]. The partition has its former archive then, or this one.
    fn publish(&self, partition: u16, root: &Path, is_stopping: &dyn Fn() -> bool) -> Result<(), SharedArchiveError>;

    /// Allows the log of a partition to remove events up to the position `until`, if the published archive has them.
    ///
    /// # Errors
    /// [`SharedArchiveError`].
    fn trim(&self, partition: u16, until: Position) -> Result<(), SharedArchiveError>;

    /// Removes everything of a project that the published archive of its partition does not have: also what attempts to publish have left.
    ///
    /// # Errors
    /// [`SharedArchiveError`]. Some may be left; it may be repeated.
    fn remove(&self, partition: u16, project: ProjectId) -> Result<(), SharedArchiveError>;

    /// Removes every object of a project that its published archive does not name: as its files were before, and what attempts to publish have left.
    ///
    /// # Errors
    /// [`SharedArchiveError`]. Some may be left; it may be repeated.
    fn keep_listed(&self, partition: u16, project: ProjectId) -> Result<(), SharedArchiveError>;

    /// Whether the log of a partition is so full that what is in it is to be sealed before its time. Asks the brokers.
    fn needs_room(&self, partition: u16) -> bool;

    /// Removes the published state of a partition, from which another engine may begin when it takes the partition over: it may have what was deleted or erased. A later
    /// one is published in time.
    ///
    /// # Errors
    /// [`SharedArchiveError`]. It may then still be there.
    fn withdraw_state(&self, partition: u16) -> Result<(), SharedArchiveError>;

    /// Whether bases may be published: other engines that take the partition over can read them. They have what events are folded into.
    fn may_have_bases(&self) -> bool;

    /// Reads everything that the published archive of a partition consists of, and returns what is missing, or not what was written. Gives up soon when `is_stopping`.
    ///
    /// # Errors
    /// [`SharedArchiveError`]: not everything could be read.
    fn damaged_objects(&self, partition: u16, is_stopping: &dyn Fn() -> bool) -> Result<Vec<DamagedObject>, SharedArchiveError>;

    /// Returns the files of a project that the published archive of a partition of this engine names. None if the partition is not this engine's.
    fn published_files(&self, partition: u16, project: ProjectId) -> Vec<ListedFile>;

    /// Returns what has the files of a partition's published archive.
    fn source(&self, partition: u16) -> Arc<dyn FileSource>;
}

impl From<SharedArchiveError> for io::Error {
    fn from(error: SharedArchiveError) -> Self {
        Self::other(error)
    }
}
