//! The state of one project, and the list of its tables.

use std::ops::ControlFlow;

use crate::cache::bytes::Bytes;
use crate::cache::table::Table;
use crate::cells::packed::Packed;
use crate::cells::parts::FrozenPart;
use crate::cells::{StoredCells, StoredRows, VisitDifference};
use crate::company::AccountSlot;
use crate::company::group::{CompanyById, Group};
use crate::identity::{EmailOwners, IdentitySlot};
use crate::ids::{KeyHasher, RecordKey};
use crate::indexes::dictionary::{Dictionary, TermCounts, TermId, TermText};
use crate::limits::Limits;
use crate::records::Record;
use crate::rollups::{KeptSums, Rollups, STORED_ROWS};
use crate::time::Day;
use crate::versions::{DayVersions, Touched};

/// The state of one project. It depends only on the recorded events.
#[derive(Debug)]
pub struct Project {
    /// The sizes that bound the work of one step.
    pub limits: Limits,
    /// Identities and linked anonymous ids.
    pub people: Table<IdentitySlot>,
    /// Accounts: companies, merged by the links that this project knows.
    pub accounts: Table<AccountSlot>,
    /// Companies and groups under their reported keys.
    pub groups: Table<Group>,
    /// Companies by the hash that their public ids show.
    pub company_ids: Table<CompanyById>,
    /// Identities by e-mail address.
    pub emails: Table<EmailOwners>,
    /// The dictionary.
    pub dictionary: Dictionary,
    /// The rollups and indexes.
    pub rollups: Rollups,
    /// Sums of rollups that questions used lately.
    pub kept_sums: KeptSums,
    /// The versions of its days, which show whether an answer may have changed.
    pub versions: DayVersions,
    /// The first day whose figures still change. [`Project::restore_floor`] also sets the floor of
    /// the rollups.
    pub(crate) floor: Option<Day>,
    /// The figures and days that the current event touched.
    pub(crate) touched: Touched,
    /// Pages of removed records, by key space and key, until a checkpoint deletes them.
    pub orphans: Vec<(u8, RecordKey)>,
    /// The parts of rollups that the running checkpoint has not written yet.
    frozen_parts: Vec<(StoredRows, FrozenPart)>,
}

/// The number of distinct items of each kind in a project.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cardinality {
    /// Companies. A company with several keys counts once per key.
    pub companies: usize,
    /// Groups of other types.
    pub groups: usize,
    /// Sources, mediums, campaigns and referrers. A text that was a page before counts as a page.
    pub sources: usize,
    /// Pages. A text that was a source before counts as a source.
    pub pages: usize,
}

/// Receives the contents of a checkpoint, one by one.
pub trait RecordVisitor {
    /// Receives one record; its dirty pages can be read from it.
    fn visit<T: Record>(&mut self, key: RecordKey, record: &T);

    /// Receives one part of some rows; `None` if the part was removed.
    fn visit_part(&mut self, rows: StoredRows, number: u32, part: Option<&Packed>);

    /// Whether the visitor has enough for now. The rest comes with the next call.
    fn is_full(&self) -> bool {
        false
    }
}

/// The list of tables. A new kind of record is one more line here.
macro_rules! for_each_table {
    ($project:expr, $table:ident => $body:expr) => {{
        let project = $project;
        {
            let $table = &mut project.people;
            $body
        }
        {
            let $table = &mut project.accounts;
            $body
        }
        {
            let $table = &mut project.groups;
            $body
        }
        {
            let $table = &mut project.company_ids;
            $body
        }
        {
            let $table = &mut project.emails;
            $body
        }
        {
            let $table: &mut Table<TermId> = &mut project.dictionary.ids;
            $body
        }
        {
            let $table: &mut Table<TermText> = &mut project.dictionary.texts;
            $body
        }
    }};
}

impl Default for Project {
    fn default() -> Self {
        Self::new(Limits::DEFAULT)
    }
}

impl Project {
    /// Creates an empty project.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            people: Table::default(),
            accounts: Table::default(),
            groups: Table::default(),
            company_ids: Table::default(),
            emails: Table::default(),
            dictionary: Dictionary::default(),
            rollups: Rollups::new(&limits),
            kept_sums: KeptSums::default(),
            versions: DayVersions::default(),
            floor: None,
            touched: Touched::default(),
            orphans: Vec::new(),
            frozen_parts: Vec::new(),
        }
    }

    /// Returns the stored types in order, one line per kind of records and rows. A store with a
    /// different list was written by another version.
    pub fn stored_types() -> Vec<String> {
        let (mut project, mut types) = (Self::default(), STORED_ROWS.iter().map(StoredRows::to_string).collect::<Vec<_>>());
        for_each_table!(&mut project, table => types.push(table.stored_type()));
        types.sort_unstable();
        types
    }

    /// Begins a checkpoint of all changes so far. The cost does not depend on the number of
    /// records.
    pub fn freeze(&mut self) {
        debug_assert!(self.frozen_parts.is_empty(), "one checkpoint at a time");
        self.frozen_parts = self.rollups.freeze();
        let versions = self.versions.freeze();
        self.frozen_parts.extend(versions.into_iter().map(|part| (DayVersions::STORED, part)));
        for_each_table!(self, table => table.freeze());
    }

    /// Restores a saved part of the rows `tag`. Returns `false` if there are no such rows, or if
    /// the part does not fit.
    #[must_use]
    pub fn restore_part(&mut self, tag: u8, number: u32, part: Packed) -> bool {
        match tag {
            DayVersions::TAG => self.versions.restore(&part),
            _ => self.rollups.restore(tag, number, part),
        }
    }

    /// Passes the cells that differ from `recomputed` to `visit`. Returns the number of compared
    /// cells.
    pub fn compare_cells(&self, recomputed: &Self, visit: &mut VisitDifference<'_>) -> u64 {
        self.rollups.compare(&recomputed.rollups, visit)
            + self.versions.compare(&recomputed.versions, visit)
            + self.kept_sums.compare(&recomputed.rollups.group_activity, visit)
    }

    /// Passes parts of rollups and records to `visitor`, as they were at [`Project::freeze`], until
    /// it is full. Returns `false` after the last one.
    pub fn drain_frozen(&mut self, visitor: &mut impl RecordVisitor) -> bool {
        while !visitor.is_full()
            && let Some((rows, (number, part))) = self.frozen_parts.pop()
        {
            visitor.visit_part(rows, number, part.as_deref());
        }
        let mut more = !self.frozen_parts.is_empty();
        for_each_table!(self, table => {
            if visitor.is_full() {
                more |= table.has_frozen();
            } else {
                more |= table.drain_frozen(|key, record| {
                    visitor.visit(key, record);
                    if visitor.is_full() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                });
            }
        });
        more
    }

    /// Returns the number of records and parts of the frozen state that were not passed yet.
    pub fn frozen(&mut self) -> usize {
        let mut frozen = self.frozen_parts.len();
        for_each_table!(self, table => frozen += table.frozen());
        frozen
    }

    /// Records that the last collected checkpoint is in the store.
    pub fn mark_durable(&mut self) {
        for_each_table!(self, table => table.mark_durable());
    }

    /// Returns the number of distinct items of each kind. Does not iterate over them, not even
    /// after a start.
    pub fn cardinality(&self, hasher: &KeyHasher) -> Cardinality {
        let numbers = &self.rollups.group_numbers;
        let companies = numbers.count(hasher.group_type(crate::ids::COMPANY_TYPE));
        let TermCounts { pages, sources } = self.dictionary.counts;
        Cardinality { companies, groups: numbers.len() - companies, sources: sources as usize, pages: pages as usize }
    }

    /// Returns the bytes in memory. Rollups are never evicted, and saving them frees nothing, so
    /// they count as resident but never as unsaved.
    pub fn bytes(&mut self) -> Bytes {
        let mut bytes = Bytes { resident: self.rollup_bytes(), unsaved: 0 };
        for_each_table!(self, table => bytes += table.bytes());
        bytes
    }

    /// Returns the bytes of rollups, their kept sums, and versions. They are never evicted.
    pub fn rollup_bytes(&self) -> usize {
        self.rollups.weight() + self.versions.weight() + self.kept_sums.weight()
    }

    /// Returns the largest number of resident records of one kind.
    pub fn most_of_a_kind(&mut self) -> usize {
        let mut most = 0;
        for_each_table!(self, table => most = most.max(table.resident()));
        most
    }

    /// Evicts saved records that are not in use, until `enough` bytes are freed or `most` records
    /// of each kind were examined. Returns the number of bytes freed.
    pub fn evict(&mut self, enough: usize, most: usize) -> usize {
        self.kept_sums.evict();
        let mut freed = 0;
        for_each_table!(self, table => freed += table.evict(enough.saturating_sub(freed), most));
        freed
    }
}
