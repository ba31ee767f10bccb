//! Recomputes the state of each project from its recorded events, and compares it with the stored
//! state.
//!
//! The recomputation is a separate shard, which replays history into a temporary store, with its
//! own memory and at the lowest priority. It stops at the position that the stored state reflects,
//! so events may be recorded meanwhile.
//!
//! Partitions with an archive in common are verified together: all of a machine without others,
//! or a single one of a node, which may move to another node meanwhile (`range`).

mod comparison;
mod error;
mod file_checks;
mod index_comparison;
mod range;
mod report;
mod run;

pub use error::VerifyError;
pub use report::{DamagedFile, DifferingCell, UnverifiedPartition, VerifiedProject, VerifyReport, VerifyStatus};
pub(crate) use run::{StoredPlaces, VerifiedRange, VerifySources, verify};
