//! Recomputes the state of each project from its recorded events, and compares it with the stored
//! state.
//!
//! The recomputation is a separate shard, which replays history into a temporary store, with its
//! own memory and at the lowest priority. It stops at the position that the stored state reflects,
//! so events may be recorded meanwhile.
//!
//! A node of a cluster verifies its partitions one after the other: each has its own archive and
//! log, and may move to another node meanwhile.

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
