//! An ordered list divided into pages, so that a record with a million items is never read or
//! written as a whole.
//!
//! Every item has a *sort key* that orders the list: a day and a key, or a moment. The pages cover
//! all sort keys without gaps: each page from its first item to the first of the next, and the
//! *recent* part covers the rest. The recent part changes all the time and is stored with the
//! record itself; sealed pages are separate records, loaded and evicted independently.

mod item;
mod list;
mod rare;
mod sealed;
#[cfg(test)]
mod tests;

pub use item::{Item, SortKey, day_sort_key, first_in_day, last_in_day, record_sort_key, sort_key_in_day};
pub(crate) use item::{insert_tight, item_of_page, place_by_spread, place_near_end};
pub use list::Paged;
pub use rare::Rare;
