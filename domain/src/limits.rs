//! The sizes that bound one step of work: of pages and parts, of deferred attribution, and of the
//! steps of queries.

/// The sizes that bound the work of one step. They change no answer, so tests use small ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The maximum number of items of a page. A checkpoint writes the last page of every changed
    /// list, so smaller pages are cheaper to write; but each page takes 50 to 100 bytes in the list
    /// of pages.
    pub page_items: usize,
    /// The maximum size of a part of a rollup, in bytes of rows.
    pub part_bytes: usize,
    /// The maximum number of an entity's orders that a new first touch moves one by one; more
    /// orders are deferred under one key.
    pub max_inline_orders: usize,
    /// The maximum number of orders between two touches that a new last touch moves one by one;
    /// more orders become a run.
    pub max_inline_run: usize,
    /// The size of a history that always moves to the user, even if the user has fewer items, so
    /// that most users keep their own key.
    pub short_history: usize,
    /// The number of groups that each project reports for a top list, in addition to the length of
    /// the list.
    pub top_margin: usize,
    /// The number of a group's users that a project lists before it knows whether other projects
    /// know the group, too.
    pub listed_users: u64,
    /// The number of member days that a query processes in one message.
    pub member_days: usize,
}

impl Limits {
    /// The limits of the program.
    pub const DEFAULT: Self = Self {
        page_items: 64,
        part_bytes: 4096,
        max_inline_orders: 32,
        max_inline_run: 256,
        short_history: 64,
        top_margin: 40,
        listed_users: 1024,
        member_days: 32_768,
    };
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}
