//! Companies and groups under their reported keys: who was active in them, and when. Read organization-wide.
//!
//! A company has one record for each of its keys. Which keys are one company is decided when an answer is merged, since another
//! project may have recorded the link.
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
