//! The archives of partitions, published where all nodes can reach them: in an S3 bucket, or in a
//! directory that all nodes have mounted.
//!
//! The archive of a partition is a *list* of its contents, and objects that never change: the
//! projects' lists, and the files that these lists name. An owner writes the objects first, then
//! the list, and at last the *pointer* to the list. The pointer is a key of the brokers, changed by
//! compare-and-set. So an archive is published in one step, and a former owner, whose epoch is not
//! in the pointer, can't publish. The owner deletes objects that no list names any more.
//!
//! Each node's disk has the lists of its partitions' archives, and the files that the node has
//! written or read.

mod archive;
mod bucket;
mod check;
mod http;
mod list;
mod pointer;
mod states;
mod sync;
mod unnamed;

pub use archive::SharedFiles;
pub use bucket::{Bucket, BucketError};
pub use list::ListError;
pub use states::StateTiming;
pub(crate) use states::{SharedStates, copy_dir, remove_copies, remove_copy};

use headcount_archive::ArchiveError;
use headcount_common::SharedArchiveError;
use headcount_domain::ProjectId;

/// What the shared files return.
pub type Result<T, E = FilesError> = std::result::Result<T, E>;

/// The reason why the archive of a partition can't be taken over or published.
#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    /// A node with a later epoch owns the archive.
    #[error("the archive of partition {0} is another node's")]
    NotOwner(u16),
    /// The bucket failed.
    #[error(transparent)]
    Bucket(#[from] BucketError),
    /// The list of an archive can't be read.
    #[error(transparent)]
    List(#[from] ListError),
    /// The archive on this machine failed.
    #[error(transparent)]
    Local(#[from] ArchiveError),
    /// The brokers don't answer.
    #[error("the brokers can't answer: {0}")]
    Brokers(String),
    /// The other nodes keep files at another place.
    #[error("the nodes of this cluster keep files at {theirs}, and this one is to keep them at {own}: all need the same --files")]
    Elsewhere {
        /// The place that this node was given.
        own: String,
        /// The place of the other nodes.
        theirs: String,
    },
    /// The project to remove is still in the published archive.
    #[error("the published archive still has the project {0}")]
    StillListed(ProjectId),
    /// The caller stopped the work.
    #[error("the work was stopped")]
    Stopped,
}

impl FilesError {
    fn brokers(error: impl std::fmt::Display) -> Self {
        Self::Brokers(error.to_string())
    }
}

impl From<FilesError> for SharedArchiveError {
    fn from(error: FilesError) -> Self {
        match error {
            FilesError::NotOwner(partition) => Self::NotOwner(partition),
            FilesError::Local(error) => Self::Local(error.to_string()),
            FilesError::Stopped => Self::Stopped,
            error @ (FilesError::Bucket(_)
            | FilesError::List(_)
            | FilesError::Brokers(_)
            | FilesError::Elsewhere { .. }
            | FilesError::StillListed(_)) => Self::Unavailable(error.to_string()),
        }
    }
}
