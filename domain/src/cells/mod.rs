//! The storage of rollups: rows whose values are sums of the contributions of entities.
//!
//! A late event, a link, a refund and an erasure are the same operation: take out the old
//! contribution, change the facts, and add the new contribution. A rollup only defines the
//! contribution of one entity's facts; it never sees an event.
//!
//! Rows are sorted by key. Clients choose parts of the keys (days, groups, sources), so a rollup
//! may have millions of rows. They are stored in [`parts`] of bounded size, each [`packed`] and
//! saved separately.

mod count;
mod difference;
mod journal;
mod keys;
pub mod packed;
mod part_index;
pub mod parts;
mod rows;
mod stored;
#[cfg(test)]
mod tests;

pub use count::{count_of, negative_counts};
pub use difference::{CellDifference, VisitDifference};
pub use keys::{Key, Value, signed, unsigned};
pub use rows::Cells;
pub use stored::{Room, StoredCells, StoredRows};
