//! Companies and groups as they were told: who was active in them, and when. Read organization-wide.
//!
//! A company is kept here under each key that it was told by; that several of these are one company is only decided when
//! an answer is put together, since another project may have told it.
//!
//! A group has three lists: what it counted each day, its members by key (the roster), and its members' days. Most windows
//! end today, and a member was active in such a one if its last day is not before it: so users are counted from the roster,
//! or from the number of members by last day, and their days are read only where a window ends in the past.

mod pages;
mod record;
mod sums;
#[cfg(test)]
mod tests;
mod window;

pub use pages::{GroupPage, LoadGroupPage};
pub use record::{CompanyById, Group};
pub use sums::{GroupSums, MemberDay};
