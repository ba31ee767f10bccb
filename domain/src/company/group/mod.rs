//! Companies and groups under their reported keys, with their active members. Organization-wide
//! queries read them.
//!
//! A company has one record per key. The keys of one company are only joined when partial answers
//! are merged, because another project may have recorded the link.
//!
//! A group has three lists: its daily sums, its members by key (the roster), and its members' days.
//! Most windows end today. Then the active members are those whose last day is not before the
//! window, and they are counted from the roster, or from the number of members by last day. Member
//! days are only read for windows that end in the past.

mod pages;
mod record;
#[cfg(test)]
mod tests;
mod window;

pub use pages::{GroupPage, GroupSums, LoadGroupPage, MemberDay};
pub use record::{CompanyById, FormerMembers, Group};
