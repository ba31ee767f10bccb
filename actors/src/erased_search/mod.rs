//! The search for data of erased identities in a data directory that no process has open.
//!
//! It searches for two things:
//!
//! - The keyed hashes of suppressed ids and addresses, in all decoded data: events of log, archive,
//!   dead letters and exports, and pairs of the store.
//! - Texts that the operator names, in the same data and in the bytes of every file.
//!
//! `needles` has the hashes and texts to find; `events`, `pairs` and `files` search for them.

mod events;
mod files;
mod needles;
mod pairs;
mod report;

pub(crate) use events::{search_archive, search_dead_letters, search_exports, search_log};
pub(crate) use files::search_files;
pub(crate) use needles::Needles;
pub(crate) use pairs::search_pairs;
pub use report::{ErasedFinding, ErasedSearch};

/// The directory of the artifacts of exports in a data directory.
pub const EXPORTS_DIR: &str = "exports";
