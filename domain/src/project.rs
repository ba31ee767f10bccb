//! The state of one project, and the list of what it keeps by key.

use crate::cache::table::{Bytes, Table};
use crate::cells::packed::Packed;
use crate::cells::parts::FrozenPart;
use crate::company;
use crate::company::AccountSlot;
use crate::company::group::{CompanyById, Group};
use crate::identity::EmailOwners;
use crate::identity::IdentitySlot;
use crate::ids::{KeyHasher, RecordKey};
use crate::indexes::dictionary::{Dictionary, TermCounts, TermId, TermText};
use crate::records::Record;
use crate::rollups::{self, Rollups};

/// The state of one project: a function of its recorded events, and of nothing else.
#[derive(Debug, Default)]
pub struct Project {
    /// Identities and linked anonymous ids.
    pub people: Table<IdentitySlot>,
    /// Companies, as this project knows which are one.
    pub accounts: Table<AccountSlot>,
    /// Companies and groups, as they were told.
    pub groups: Table<Group>,
    /// Companies by the hash that their public ids show.
    pub company_ids: Table<CompanyById>,
    /// Identities by e-mail address.
    pub emails: Table<EmailOwners>,
    /// The dictionary.
    pub dictionary: Dictionary,
    /// The maintained figures.
    pub rollups: Rollups,
    /// Pages of records that are no more: their key spaces and keys, until a checkpoint takes them.
    pub orphans: Vec<(u8, RecordKey)>,
    /// The parts of rollups that the checkpoint under way is still to write.
    frozen_parts: Vec<(u8, FrozenPart)>,
}

/// How many different things of each kind a project was told of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cardinality {
    /// Companies; one that is known by several keys counts once for each.
    pub companies: usize,
    /// Groups of other types.
    pub groups: usize,
    /// Sources, mediums, campaigns and referrers. A text that was a page before is among the pages.
    pub sources: usize,
    /// Pages. A text that was a source before is among the sources.
    pub pages: usize,
}

/// Takes what a checkpoint writes, one by one.
pub trait RecordVisitor {
    /// Takes one record, and its pages that changed.
    fn visit<T: Record>(&mut self, key: RecordKey, record: &T);

    /// Takes one part of the rollup `tag`; `None`: it is no more.
    fn visit_part(&mut self, tag: u8, number: u32, part: Option<&Packed>);
}

/// The list: a new kind of record is one line here.
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

impl Project {
    /// What a saved project consists of, in order: each kind of record and of rows, in one line each. A store that consists of anything
    /// else was made by another version.
    #[must_use]
    pub fn stored_types() -> Vec<String> {
        let (mut project, mut types) = (Self::default(), rollups::stored_types());
        for_each_table!(&mut project, table => types.push(table.stored_type()));
        types.sort_unstable();
        types
    }

    /// Begins a checkpoint: what has changed so far is its content. Cheap, whatever the number of records.
    pub fn freeze(&mut self) {
        debug_assert!(self.frozen_parts.is_empty(), "one checkpoint at a time");
        self.frozen_parts = self.rollups.freeze();
        for_each_table!(self, table => table.freeze());
    }

    /// Hands up to `most` parts of rollups and records of each kind to `visitor`, as they were at [`Project::freeze`]. `false`:
    /// that was all.
    pub fn drain_frozen(&mut self, most: usize, visitor: &mut impl RecordVisitor) -> bool {
        for _ in 0..most {
            let Some((tag, (number, part))) = self.frozen_parts.pop() else { break };
            visitor.visit_part(tag, number, part.as_deref());
        }
        let mut more = !self.frozen_parts.is_empty();
        for_each_table!(self, table => more |= table.drain_frozen(most, |key, record| visitor.visit(key, record)));
        more
    }

    /// The checkpoint that was collected last is in the store.
    pub fn mark_durable(&mut self) {
        for_each_table!(self, table => table.mark_durable());
    }

    /// How many different things it was told of. Known without looking at them, also right after a start.
    #[must_use]
    pub fn cardinality(&self, hasher: &KeyHasher) -> Cardinality {
        let numbers = &self.rollups.group_numbers;
        let companies = numbers.count(hasher.group_type(company::GROUP_TYPE));
        let TermCounts { pages, sources } = self.dictionary.counts;
        Cardinality { companies, groups: numbers.len() - companies, sources: sources as usize, pages: pages as usize }
    }

    /// How much of it is in memory. Rollups can't be let go of, and saving them frees nothing: they count as resident, but
    /// never as unsaved.
    pub fn bytes(&mut self) -> Bytes {
        let mut bytes = Bytes { resident: self.rollups.weight(), unsaved: 0 };
        for_each_table!(self, table => bytes += table.bytes());
        bytes
    }

    /// How many bytes of it can't be let go of.
    #[must_use]
    pub fn rollup_bytes(&self) -> usize {
        self.rollups.weight()
    }

    /// How many records of one kind are in memory at most.
    pub fn most_of_a_kind(&mut self) -> usize {
        let mut most = 0;
        for_each_table!(self, table => most = most.max(table.resident()));
        most
    }

    /// Lets go of saved records that are not in use, until `enough` bytes are freed or `most` records of each kind were looked
    /// at. Answers how many bytes were freed.
    pub fn evict(&mut self, enough: usize, most: usize) -> usize {
        let mut freed = 0;
        for_each_table!(self, table => freed += table.evict(enough.saturating_sub(freed), most));
        freed
    }
}
