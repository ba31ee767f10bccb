//! The sizes at which state is cut into pages and parts, attribution is deferred, and queries ask in several steps.

/// Sizes that bound the work of one step. They change no answer, so tests choose small ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Items that a page of a list holds before it is cut. A checkpoint writes the last page of every list that changed, so smaller pages
    /// are cheaper to write; each takes some 50 to 100 bytes in the list of pages.
    pub page_items: usize,
    /// Bytes of rows that a part of a rollup holds before it is split.
    pub part_bytes: usize,
    /// Orders of an entity that are moved one by one when its first touch changes; more of them are deferred under one key.
    pub max_inline_orders: usize,
    /// Orders between two touches that are moved one by one when their last touch changes; more of them become a run.
    pub max_inline_run: usize,
    /// Items of a history that moves to a user who has fewer, so that most users keep their own key.
    pub short_history: usize,
    /// Groups that each project reports first for a top list, beyond what the list holds.
    pub top_margin: usize,
    /// Users of a group that a project lists before it is known whether other projects know the group, too.
    pub listed_users: u64,
    /// Member days that a query goes through in one message.
    pub member_days: usize,
}

impl Limits {
    /// The limits that the program runs with.
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
