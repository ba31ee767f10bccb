//! What is known of one thing over all time, as an ordered list that is cut into pages, so that a record of a million items is
//! never read or written as a whole.
//!
//! Every item has a *number* that orders the list: a day and a key, or a moment. The pages cover all numbers without gaps: each
//! from its first item up to the next one's, and the *recent* part covers the rest. The recent part changes all the time and is
//! kept with the record itself; sealed pages are records of their own, which come and go by themselves.

mod item;
mod list;
mod sealed;
#[cfg(test)]
mod tests;

pub use item::{Item, SortKey, day_sort_key, first_in_day, last_in_day, record_sort_key, sort_key_in_day};
pub(crate) use item::{insert_tight, place_near_end};
pub use list::Paged;
