//! A store of bytes for one project, and a restart from nothing but these.

use std::collections::{BTreeMap, HashMap};

use headcount_domain::fold::{Fault, Project, Source};
use headcount_domain::ids::RecordKey;
use headcount_domain::project::RecordVisitor;
use headcount_domain::records::Record;
use headcount_domain::rollup::Cell;
use headcount_domain::rollups::{CellReader, CellWriter};
use headcount_storage::codec;
use serde::Serialize;
use serde::de::DeserializeOwned;

const VERSION: u8 = 1;

#[derive(Clone, Default, PartialEq)]
pub(crate) struct Saved {
    records: HashMap<(u8, RecordKey), Vec<u8>>,
    /// What a checkpoint under way has collected.
    collected: HashMap<(u8, RecordKey), Vec<u8>>,
    orphans: Vec<(u8, RecordKey)>,
    pub(crate) cells: BTreeMap<(u8, i32), Vec<u8>>,
    names: u32,
}

impl Saved {
    fn read<T: DeserializeOwned>(&self, space: u8, key: RecordKey) -> Option<T> {
        self.records.get(&(space, key)).map(|bytes| codec::decode(VERSION, bytes).unwrap())
    }

    fn put<T: Serialize>(&mut self, space: u8, key: RecordKey, value: &T) {
        self.collected.insert((space, key), codec::encode(VERSION, value).unwrap());
    }

    /// A step of the checkpoints that go on all the time: begun, collected bit by bit while events come in, and, once all is
    /// in the store, everything that is not in use let go of.
    pub(crate) fn go_on(&mut self, state: &mut Project, step: u64) {
        match step % 7 {
            0 => self.begin(state),
            1..5 => drop(state.drain_frozen(1, &mut Visitor(self))),
            5 => {
                while self.step(state, 2) {}
                // Twice: the first time everything has just been in use.
                state.evict(usize::MAX, usize::MAX);
                state.evict(usize::MAX, usize::MAX);
            }
            _ => {}
        }
    }

    /// Begins a checkpoint: what `state` holds now is its content, also if it changes before all [steps](Saved::step) are done.
    pub(crate) fn begin(&mut self, state: &mut Project) {
        state.freeze();
        self.orphans = std::mem::take(&mut state.orphans);
        state.rollups.save(&mut Writer(&mut self.cells)).unwrap();
        self.names = state.names.count;
    }

    /// Collects up to `most` records of each kind. `false`: that was all, and it is in the store now.
    pub(crate) fn step(&mut self, state: &mut Project, most: usize) -> bool {
        let more = state.drain_frozen(most, &mut Visitor(self));
        if !more {
            self.commit();
        }
        more
    }

    /// What was collected becomes visible as a whole.
    fn commit(&mut self) {
        self.records.extend(self.collected.drain());
        for orphan in self.orphans.drain(..) {
            self.records.remove(&orphan);
        }
    }

    /// The state that was saved.
    pub(crate) fn restored(&self) -> Project {
        let mut restored = Project::default();
        restored.names.count = self.names;
        for ((tag, bucket), bytes) in &self.cells {
            assert!(restored.rollups.restore(*tag, *bucket, &mut Decode(bytes)).unwrap());
        }
        restored
    }

    /// The state after a stop and a start.
    pub(crate) fn restart(&mut self, mut state: Project) -> Project {
        while self.step(&mut state, 16) {}
        self.begin(&mut state);
        while self.step(&mut state, 16) {}
        let restored = self.restored();
        assert!(restored.rollups == state.rollups, "cells are saved as they are");
        restored
    }
}

struct Visitor<'s>(&'s mut Saved);

impl RecordVisitor for Visitor<'_> {
    fn visit<T: Record>(&mut self, key: RecordKey, record: &T) {
        self.0.put(T::SPACE, key, record);
        record.dirty_pages(key, &mut |page, chunk| self.0.put(T::PAGE_SPACE, page, chunk));
    }
}

struct Writer<'s>(&'s mut BTreeMap<(u8, i32), Vec<u8>>);

impl CellWriter for Writer<'_> {
    type Error = Fault;

    fn write<C: Cell>(&mut self, tag: u8, bucket: i32, cell: Option<&C>) -> Result<(), Fault> {
        match cell {
            Some(cell) => drop(self.0.insert((tag, bucket), codec::encode(VERSION, cell).unwrap())),
            None => drop(self.0.remove(&(tag, bucket))),
        }
        Ok(())
    }
}

struct Decode<'b>(&'b [u8]);

impl CellReader for Decode<'_> {
    type Error = Fault;

    fn read<C: Cell>(&mut self) -> Result<C, Fault> {
        Ok(codec::decode(VERSION, self.0).unwrap())
    }
}

impl Source for Saved {
    fn record<T: Record>(&self, key: RecordKey) -> Result<Option<T>, Fault> {
        Ok(self.read(T::SPACE, key))
    }

    fn page<T: Record>(&self, key: RecordKey) -> Result<T::Page, Fault> {
        self.read(T::PAGE_SPACE, key).ok_or_else(|| Fault(format!("no page {key:?}")))
    }
}
