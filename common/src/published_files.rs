//! Archives that all nodes can reach. On a machine's disk, the directory of a partition's archive
//! is then a cache.

use std::fmt::Debug;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use headcount_archive::{FileSource, ListedFile};
use headcount_domain::{Position, ProjectId};
use headcount_storage::log::LogTrimmer;

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

/// The store of archives for all nodes, and the removal of sealed events from the log. Its
/// functions block, so tasks must not call them. Where all files are on this machine's disk, most
/// of them do nothing.
pub trait SharedArchive: Debug + Send + Sync {
    /// Whether events are sealed.
    fn seals(&self) -> bool {
        true
    }

    /// Publishes the archive in the directory `root` as the archive of an owned partition: first
    /// its files, then their lists. On return, any later owner of the partition begins with it.
    /// Stops soon after `is_stopping` returns true.
    ///
    /// # Errors
    /// Returns a [`SharedArchiveError`]. The partition has its former archive or this one then.
    fn publish(&self, _partition: u16, _root: &Path, _is_stopping: &dyn Fn() -> bool) -> Result<(), SharedArchiveError> {
        Ok(())
    }

    /// Allows the log of the partitions with one archive to remove events up to the position
    /// `until`, if the published archive has them. Returns whether it removed any now.
    ///
    /// # Errors
    /// Returns a [`SharedArchiveError`].
    fn trim(&self, partitions: Range<u16>, until: Position) -> Result<bool, SharedArchiveError>;

    /// Removes all objects of a project that the published archive of its partition does not have,
    /// including objects of failed publications.
    ///
    /// # Errors
    /// Returns a [`SharedArchiveError`]. Some objects may be left; the call can be repeated.
    fn remove(&self, _partition: u16, _project: ProjectId) -> Result<(), SharedArchiveError> {
        Ok(())
    }

    /// Removes every object of a project that its published archive does not name: its former
    /// files, and objects of failed publications.
    ///
    /// # Errors
    /// Returns a [`SharedArchiveError`]. Some objects may be left; the call can be repeated.
    fn keep_listed(&self, _partition: u16, _project: ProjectId) -> Result<(), SharedArchiveError> {
        Ok(())
    }

    /// Whether the log of a partition is so full that its events should be sealed early. Asks the
    /// brokers.
    fn needs_room(&self, _partition: u16) -> bool {
        false
    }

    /// Removes the published state of a partition, because it may have deleted or erased data, and
    /// another engine could begin from it. A later one is published in time.
    ///
    /// # Errors
    /// Returns a [`SharedArchiveError`]. The state may still exist.
    fn withdraw_state(&self, _partition: u16) -> Result<(), SharedArchiveError> {
        Ok(())
    }

    /// Whether bases may be published, because every engine that may take the partition over can
    /// read their fold version.
    fn may_have_bases(&self) -> bool {
        true
    }

    /// Reads every object of a partition's published archive, and returns the missing and damaged
    /// ones. Stops soon after `is_stopping` returns true.
    ///
    /// # Errors
    /// Returns a [`SharedArchiveError`]: not everything could be read.
    fn damaged_objects(
        &self,
        _partition: u16,
        _is_stopping: &dyn Fn() -> bool,
    ) -> Result<Vec<DamagedObject>, SharedArchiveError> {
        Ok(Vec::new())
    }

    /// Returns the files of a project in the published archive of an owned partition; none if this
    /// engine doesn't own it.
    fn published_files(&self, _partition: u16, _project: ProjectId) -> Vec<ListedFile> {
        Vec::new()
    }

    /// Returns the source of the files of a partition's published archive; `None` if files that are
    /// not on this machine are nowhere.
    fn source(&self, _partition: u16) -> Option<Arc<dyn FileSource>> {
        None
    }
}

/// The log on this machine's disk is trimmed for all partitions at once, in whole segments.
impl SharedArchive for LogTrimmer {
    fn trim(&self, _: Range<u16>, until: Position) -> Result<bool, SharedArchiveError> {
        let removed = self.remove_before(until + 1).map_err(|error| SharedArchiveError::Unavailable(error.to_string()))?;
        if removed.segments > 0 {
            let (segments, first_position) = (removed.segments, removed.first_position);
            tracing::info!(segments, first_position, "sealed segments of the log are removed");
        }
        Ok(removed.segments > 0)
    }
}

/// A node without a place for files: its events stay on the brokers.
#[derive(Debug)]
pub struct NoFiles;

impl SharedArchive for NoFiles {
    fn seals(&self) -> bool {
        false
    }

    fn trim(&self, _: Range<u16>, _: Position) -> Result<bool, SharedArchiveError> {
        Ok(false)
    }
}

impl From<SharedArchiveError> for io::Error {
    fn from(error: SharedArchiveError) -> Self {
        Self::other(error)
    }
}
