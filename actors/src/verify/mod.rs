//! Recomputes the state of each project from its recorded events, and compares it with the stored one.
//!
//! The recomputation is a shard of its own, which replays history into a temporary store, with memory of its own and at the lowest
//! priority. It stops at the position that the stored state reflects, so that events may be recorded meanwhile.
//!
//! A node of a cluster verifies the partitions that it has, one after the other: each has an archive and a log of its own, and may move to another node meanwhile.

mod apart;
mod comparison;
mod error;
mod file_checks;
mod index_comparison;
mod report;
mod run;

pub use error::VerifyError;
pub use report::{DamagedFile, DifferingCell, UnverifiedPartition, VerifiedProject, VerifyReport, VerifyStatus};
pub(crate) use run::{HeldCheck, StoredPlaces, VerifiedEvents, VerifySources, verify};
