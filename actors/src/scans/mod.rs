//! Answers that no rollup keeps: recomputed from the recorded events, by the domain's rules.
//!
//! A scan reads a project's events up to the position that its shard had applied when the query
//! came: it sees everything that was acknowledged before, and one state of the links. It takes a
//! bounded amount of memory: it asks the index of external ids for duplicates, and sorts
//! identities, sessions and groups on disk. It ends when nobody waits for it any more.

mod accounts;
mod active_identities;
mod active_users;
mod aggregate;
mod ask;
mod carried;
mod condition_counts;
mod decided;
mod error;
mod events;
mod explain;
mod export;
mod external_sort;
mod first_after;
mod group_ids;
mod group_table;
mod helpers;
mod identities;
mod identity_sort;
mod kept;
mod kept_figures;
mod latest;
mod live_events;
mod matching;
mod metadata_fields;
mod page;
mod page_events;
mod part_columns;
mod people;
mod record_sort;
mod sealed_group;
mod session_buffer;
mod session_events;
mod sessions;
mod shared;
mod spill_dir;
mod subject;
#[cfg(test)]
mod tests;
mod top_identities;
mod turns;
mod unique_users;
mod user_marks;
mod views;
mod visits;

pub(crate) use active_identities::{ACTIVE, ActiveQuestion};
pub use explain::ExplainError;
pub use export::ExportSink;
pub use first_after::FirstEvents;
pub use page::{EventsPage, PageOrder, PageQuestion, PagedEvent};
pub use record_sort::{RecordSorter, SortedRecords};
pub(crate) use shared::ScanSettings;
pub use shared::Scans;
pub use spill_dir::{SpillDir, SpillWriter};
pub use views::ViewFigures;
