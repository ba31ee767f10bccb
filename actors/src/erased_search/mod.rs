//! The search for what is left of erased identities in a data directory that no process has open.
//!
//! Two things are looked for. The keyed hashes of suppressed ids and addresses, in everything that is decoded: events of log, archive, dead letters and exports, and pairs of
//! the store. And texts that the operator names, in the same and in the bytes of every file. `needles` is what is looked for, `events`, `pairs` and `files` look.

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
