//! Records and cells between the domain's types and the store's bytes.

use std::ops::ControlFlow;

use headcount_domain::fold::{AccountSlot, Person, Position, Project, Source};
use headcount_domain::ids::{ProjectId, RecordKey};
use headcount_domain::rollup::Cell;
use headcount_domain::rollups::{CellReader, CellWriter};
use headcount_domain::table::Fault;
use headcount_storage::codec;
use headcount_storage::keys::{Key, Partition, Prefix};
use headcount_storage::store::Store;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::entries::Entries;

/// The version of every value written here. A change of any shape is a new one, and the old one stays readable.
pub(crate) const RECORD_VERSION: u8 = 1;

/// The key space of [`Person`] records.
const PEOPLE: u8 = 0;
/// The key space of [`AccountSlot`] records.
const ACCOUNTS: u8 = 1;
/// The key space of [`ProjectMeta`]; one record, with the id 0.
const PROJECTS: u8 = 2;

/// Where a project stands; saved with every checkpoint that changed it.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct ProjectMeta {
    /// The position of its last event that counted.
    pub(crate) last: Position,
}

/// Where a partition stands; the last entry of each of its checkpoints.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct Standing {
    /// The position that the checkpoint reflects.
    pub(crate) position: Position,
    /// How many external ids were known then.
    pub(crate) external_ids: u64,
}

/// Reads one project's records from the store.
pub(crate) struct StoreSource<'s> {
    pub(crate) store: &'s dyn Store,
    pub(crate) partition: u16,
    pub(crate) project: ProjectId,
}

impl StoreSource<'_> {
    fn record<T: DeserializeOwned>(&self, space: u8, key: RecordKey) -> Result<Option<T>, Fault> {
        read(self.store, &record_key(self.partition, self.project, space, key))
    }
}

impl Source for StoreSource<'_> {
    fn person(&self, key: RecordKey) -> Result<Option<Person>, Fault> {
        self.record(PEOPLE, key)
    }

    fn account(&self, key: RecordKey) -> Result<Option<AccountSlot>, Fault> {
        self.record(ACCOUNTS, key)
    }
}

/// Reads one value.
pub(crate) fn read<T: DeserializeOwned>(store: &dyn Store, key: &[u8]) -> Result<Option<T>, Fault> {
    match store.get(key).map_err(fault)? {
        Some(bytes) => codec::decode(RECORD_VERSION, &bytes).map(Some).map_err(fault),
        None => Ok(None),
    }
}

/// Reads the cells of a project.
pub(crate) fn load_cells(store: &dyn Store, partition: u16, project: ProjectId, into: &mut Project) -> Result<(), Fault> {
    let mut problem = None;
    store
        .scan(&Prefix::cells(Partition(partition), project.0), &mut |key, bytes| {
            match restore(key, bytes, into) {
                Ok(()) => return ControlFlow::Continue(()),
                Err(fault) => problem = Some(fault),
            }
            ControlFlow::Break(())
        })
        .map_err(fault)?;
    problem.map_or(Ok(()), Err)
}

fn restore(key: &[u8], bytes: &[u8], into: &mut Project) -> Result<(), Fault> {
    let Ok(Key::Cells { rollup, bucket, .. }) = Key::decode(key) else {
        return Err(Fault("a key among the cells is none".into()));
    };
    match into.rollups.restore(rollup, bucket, &mut Decode(bytes))? {
        true => Ok(()),
        false => Err(Fault(format!("cells of an unknown rollup {rollup}"))),
    }
}

struct Decode<'b>(&'b [u8]);

impl CellReader for Decode<'_> {
    type Error = Fault;

    fn read<C: Cell>(&mut self) -> Result<C, Fault> {
        codec::decode(RECORD_VERSION, self.0).map_err(fault)
    }
}

/// Collects what a checkpoint of one project writes.
pub(crate) struct Collect<'e> {
    pub(crate) partition: u16,
    pub(crate) project: ProjectId,
    pub(crate) entries: &'e mut Entries,
}

impl Collect<'_> {
    pub(crate) fn person(&mut self, key: RecordKey, person: &Person) -> Result<(), Fault> {
        self.put(&record_key(self.partition, self.project, PEOPLE, key), person)
    }

    pub(crate) fn account(&mut self, key: RecordKey, account: &AccountSlot) -> Result<(), Fault> {
        self.put(&record_key(self.partition, self.project, ACCOUNTS, key), account)
    }

    pub(crate) fn meta(&mut self, meta: ProjectMeta) -> Result<(), Fault> {
        self.put(&meta_key(self.partition, self.project), &meta)
    }

    pub(crate) fn standing(&mut self, standing: Standing) -> Result<(), Fault> {
        self.put(&position_key(self.partition), &standing)
    }

    fn put<T: Serialize>(&mut self, key: &[u8], value: &T) -> Result<(), Fault> {
        self.entries.put(key, |bytes| codec::encode_into(RECORD_VERSION, value, bytes)).map_err(fault)
    }
}

impl CellWriter for Collect<'_> {
    type Error = Fault;

    fn write<C: Cell>(&mut self, tag: u8, bucket: i32, cell: Option<&C>) -> Result<(), Fault> {
        let key = Key::Cells { partition: Partition(self.partition), project: self.project.0, rollup: tag, bucket }.encode();
        match cell {
            Some(cell) => self.put(&key, cell),
            None => {
                self.entries.delete(&key);
                Ok(())
            }
        }
    }
}

/// Where a project's [`ProjectMeta`] is.
pub(crate) fn meta_key(partition: u16, project: ProjectId) -> Vec<u8> {
    record_key(partition, project, PROJECTS, RecordKey(0))
}

/// Where a partition's [`Standing`] is.
pub(crate) fn position_key(partition: u16) -> Vec<u8> {
    Key::Position { partition: Partition(partition) }.encode()
}

fn record_key(partition: u16, project: ProjectId, space: u8, key: RecordKey) -> Vec<u8> {
    Key::Record { partition: Partition(partition), project: project.0, space, id: key.0 }.encode()
}

/// Any failure of the store, as the domain sees it.
pub(crate) fn fault(error: impl std::fmt::Display) -> Fault {
    Fault(error.to_string())
}
