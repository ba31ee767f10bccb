//! A store of bytes for one project: checkpoints that are written while events come in, and starts
//! from nothing but these.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use headcount_domain::cache::table::Table;
use headcount_domain::cells::CellDifference;
use headcount_domain::cells::StoredRows;
use headcount_domain::cells::packed::Packed;
use headcount_domain::company::AccountSlot;
use headcount_domain::indexes::dictionary::TermCounts;
use headcount_domain::limits::Limits;
use headcount_domain::records::{Record, page_key};
use headcount_domain::records::{SavedRecords, Source};
use headcount_domain::rollups::{Rollups, SUMS};
use headcount_domain::{Day, Fault, IdentitySlot, Project, RecordKey, RecordVisitor};
use headcount_storage::codec;
use serde::Serialize;
use serde::de::DeserializeOwned;

const VERSION: u8 = 1;

type Records = HashMap<(u8, RecordKey), Vec<u8>>;

/// What a stop leaves behind.
#[derive(Clone, Default, PartialEq)]
pub(crate) struct Saved {
    records: Records,
    pub(crate) cells: BTreeMap<(u8, u32), Vec<u8>>,
    names: TermCounts,
    floor: Option<Day>,
    running: Option<Checkpoint>,
}

/// A checkpoint that is being written: it counts once all of it is there.
#[derive(Clone, Default, PartialEq)]
struct Checkpoint {
    records: Records,
    cells: BTreeMap<(u8, u32), Option<Vec<u8>>>,
    names: TermCounts,
    floor: Option<Day>,
    orphans: Vec<(u8, RecordKey)>,
    /// How much more it takes for now.
    room: usize,
}

fn encoded<T: Serialize>(value: &T) -> Vec<u8> {
    codec::encode(VERSION, value).unwrap()
}

fn decoded<T: DeserializeOwned>(bytes: &[u8]) -> T {
    codec::decode(VERSION, bytes).unwrap()
}

impl Saved {
    /// Begins a checkpoint.
    pub(crate) fn begin(&mut self, state: &mut Project) {
        state.freeze();
        let (names, floor, orphans) = (state.dictionary.counts, state.floor(), std::mem::take(&mut state.orphans));
        self.running = Some(Checkpoint { names, floor, orphans, ..Checkpoint::default() });
    }

    pub(crate) fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// Writes up to `most` more parts and records of the checkpoint. `true`: that was all, and it
    /// counts.
    pub(crate) fn go_on(&mut self, state: &mut Project, most: usize) -> bool {
        let Some(checkpoint) = &mut self.running else { return true };
        checkpoint.room = most;
        if state.drain_frozen(checkpoint) {
            return false;
        }
        let Checkpoint { records, cells, names, floor, orphans, room: _ } = self.running.take().unwrap();
        self.records.extend(records);
        for orphan in orphans {
            self.records.remove(&orphan);
        }
        for (place, cell) in cells {
            match cell {
                Some(bytes) => drop(self.cells.insert(place, bytes)),
                None => drop(self.cells.remove(&place)),
            }
        }
        (self.names, self.floor) = (names, floor);
        state.mark_durable();
        true
    }

    /// Saves everything.
    pub(crate) fn save(&mut self, state: &mut Project) {
        while !self.go_on(state, 1) {}
        self.begin(state);
        while !self.go_on(state, 1) {}
    }

    /// Saves everything, and looks whether that is what it should be.
    pub(crate) fn stop(&mut self, mut state: Project) {
        self.save(&mut state);
        assert_eq!(dirty_pages(&state.people) + dirty_pages(&state.accounts) + dirty_pages(&state.groups), 0, "all is saved");
        assert!(self.start(state.limits).rollups == state.rollups, "cells are saved as they are");
        let mut differing = Vec::new();
        state.rollups.compare(&self.recounted(&state), &mut |describe| differing.push(describe()));
        let floor = state.floor().map(|floor| floor.to_string());
        // What is frozen is as it was.
        let is_live = |cell: &CellDifference| match (&floor, cell.key.get(..10).filter(|day| Day::parse(day).is_some())) {
            (Some(floor), Some(day)) => day >= floor.as_str(),
            _ => true,
        };
        differing.retain(is_live);
        assert!(differing.is_empty(), "rollups say what the facts do: {differing:#?}");
        self.look_for_orphans();
    }

    /// The state of the last checkpoint that counts.
    pub(crate) fn start(&mut self, limits: Limits) -> Project {
        self.running = None;
        let mut restored = Project::new(limits);
        restored.dictionary.counts = self.names;
        restored.restore_floor(self.floor);
        for ((tag, number), bytes) in &self.cells {
            assert!(restored.restore_part(*tag, *number, decoded(bytes)));
        }
        restored
    }

    /// Everything that is saved: keys and values of records, and rows.
    pub(crate) fn bytes(&self) -> impl Iterator<Item = Vec<u8>> {
        let records = self.records.iter().map(|((_, key), value)| [&{ key.0 }.to_be_bytes()[..], value].concat());
        let row = |(key, columns): (_, [u128; 4])| {
            let numbers = columns.map(|column| [column.to_le_bytes(), column.to_be_bytes()].concat()).concat();
            [AsRef::<[u8]>::as_ref(&key), &numbers].concat()
        };
        let rows = self.cells.values().flat_map(move |part| decoded::<Packed>(part).iter().map(row).collect::<Vec<_>>());
        records.chain(rows)
    }

    /// The saved identities and links.
    pub(crate) fn people(&self) -> BTreeMap<RecordKey, IdentitySlot> {
        let theirs = self.records.iter().filter(|((space, _), _)| *space == IdentitySlot::SPACE);
        theirs.map(|((_, key), bytes)| (*key, decoded(bytes))).collect()
    }

    /// What the saved facts contribute, all at once.
    fn recounted(&self, state: &Project) -> Rollups {
        let mut recounted = Project::default();
        // These are not sums over facts.
        recounted.rollups.group_activity = state.rollups.group_activity.clone();
        recounted.rollups.company_links = state.rollups.company_links.clone();
        recounted.rollups.receipts = state.rollups.receipts.clone();
        recounted.rollups.group_numbers = state.rollups.group_numbers.clone();
        recounted.rollups.group_names = state.rollups.group_names.clone();
        recounted.rollups.member_aliases = state.rollups.member_aliases.clone();
        let tags: Vec<u8> = SUMS.iter().map(|rows| rows.tag).collect();
        recounted.fill_rollups(&tags, self).unwrap();
        recounted.rollups
    }

    /// Pages that no record knows would stay for ever.
    fn look_for_orphans(&self) {
        let mut known = BTreeSet::new();
        for ((space, key), bytes) in &self.records {
            match *space {
                IdentitySlot::SPACE => {
                    if let IdentitySlot::Canonical(identity) = decoded(bytes) {
                        known.extend(identity.facts.serials().map(|serial| page_key(identity.history_key, serial)));
                    }
                }
                AccountSlot::SPACE => {
                    if let AccountSlot::Canonical(account) = decoded(bytes) {
                        known.extend(account.facts.serials().map(|serial| page_key(*key, serial)));
                    }
                }
                _ => {}
            }
        }
        let is_page = |space: u8| space == IdentitySlot::PAGE_SPACE || space == AccountSlot::PAGE_SPACE;
        let orphans = self.records.keys().filter(|(space, key)| is_page(*space) && !known.contains(key));
        assert_eq!(orphans.count(), 0, "pages that no record knows");
    }
}

/// Lets go of all that was saved. Twice, since the first time everything has just been in use.
pub(crate) fn let_go(state: &mut Project) {
    state.evict(usize::MAX, usize::MAX);
    state.evict(usize::MAX, usize::MAX);
}

fn dirty_pages<T: Record>(table: &Table<T>) -> usize {
    let mut pages = 0;
    table.iter().for_each(|(key, record)| record.dirty_pages(key, &mut |_, _| pages += 1));
    pages
}

impl RecordVisitor for Checkpoint {
    fn visit<T: Record>(&mut self, key: RecordKey, record: &T) {
        self.room -= 1;
        let twice = self.records.insert((T::SPACE, key), encoded(record));
        assert!(twice.is_none(), "a checkpoint has each record once");
        record.dirty_pages(key, &mut |page, chunk| drop(self.records.insert((T::PAGE_SPACE, page), encoded(chunk))));
    }

    fn visit_part(&mut self, rows: StoredRows, number: u32, part: Option<&Packed>) {
        self.room -= 1;
        let twice = self.cells.insert((rows.tag, number), part.map(encoded));
        assert!(twice.is_none(), "a checkpoint has each part once");
    }

    fn is_full(&self) -> bool {
        self.room == 0
    }
}

impl SavedRecords for Saved {
    fn each_record<T: Record>(&self, visit: &mut dyn FnMut(RecordKey, T) -> Result<(), Fault>) -> Result<(), Fault> {
        let mut theirs: Vec<_> = self.records.iter().filter(|((space, _), _)| *space == T::SPACE).collect();
        theirs.sort_unstable_by_key(|(place, _)| **place);
        theirs.into_iter().try_for_each(|((_, key), bytes)| visit(*key, decoded(bytes)))
    }

    fn each_page<T: Record>(&self, visit: &mut dyn FnMut(T::Page) -> Result<(), Fault>) -> Result<(), Fault> {
        let theirs = self.records.iter().filter(|((space, _), _)| *space == T::PAGE_SPACE);
        theirs.into_iter().try_for_each(|(_, bytes)| visit(decoded(bytes)))
    }
}

impl Source for Saved {
    fn record<T: Record>(&self, key: RecordKey) -> Result<Option<T>, Fault> {
        Ok(self.records.get(&(T::SPACE, key)).map(|bytes| decoded(bytes)))
    }

    fn page<T: Record>(&self, key: RecordKey) -> Result<T::Page, Fault> {
        let bytes = self.records.get(&(T::PAGE_SPACE, key)).ok_or_else(|| Fault::damaged_store(format!("no page {key:?}")))?;
        Ok(decoded(bytes))
    }
}
