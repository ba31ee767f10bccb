//! What a rollup is: rows that hold a sum over entities of what each contributes.
//!
//! A late event, a link, a refund and an erasure are one move: the old contribution is taken out, the facts change, and
//! the new contribution is put in. A rollup says what one entity's facts contribute; it never sees an event.
//!
//! Rows are sorted by key. What an outsider chooses (days, groups, sources) is part of keys, so a rollup may have millions of
//! rows: they are kept in [`parts`] of bounded size, each [`packed`] and saved by itself.

mod count;
mod keys;
pub mod packed;
pub mod parts;
mod rows;
mod stored;
#[cfg(test)]
mod tests;

pub use count::{count_of, negative_counts};
pub use keys::{Key, Value, signed, unsigned};
pub use rows::Cells;
pub use stored::StoredCells;
