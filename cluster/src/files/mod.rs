//! The archives of partitions, kept where all nodes reach them: in a bucket of S3, or in a directory that all nodes have mounted.
//!
//! The archive of a partition is a *list* of what is in it, and objects that never change: the lists of its projects, and the files that these name. Objects are written
//! first, then the list, and at last the *pointer* to it, which is a key of the brokers and is changed by compare-and-set. So an archive is published in one step, and
//! a former owner, whose epoch the pointer no longer has, publishes nothing. What no list names any more is deleted by the owner.
//!
//! A node's disk has what lists the archive of each of its partitions, and those files that it has written or read.

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

use headcount_archive::error::ArchiveError;
use headcount_common::SharedArchiveError;
use headcount_domain::ids::ProjectId;

/// Why the archive of a partition can't be taken over or published.
#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    /// A node with a later epoch has it.
    #[error("the archive of partition {0} is another node's")]
    NotOwner(u16),
    /// The bucket.
    #[error(transparent)]
    Bucket(#[from] BucketError),
    /// The list of an archive can't be read.
    #[error(transparent)]
    List(#[from] ListError),
    /// The archive on this machine.
    #[error(transparent)]
    Local(#[from] ArchiveError),
    /// The brokers do not answer.
    #[error("the brokers can't answer: {0}")]
    Brokers(String),
    /// The other nodes keep files elsewhere.
    #[error("the nodes of this cluster keep files at {theirs}, and this one is to keep them at {own}: all need the same --files")]
    Elsewhere {
        /// Where this node was to keep files.
        own: String,
        /// Where the others keep them.
        theirs: String,
    },
    /// The published archive has the project that is to be removed from it.
    #[error("the published archive still has the project {0}")]
    StillListed(ProjectId),
    /// The work was no longer wanted.
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
