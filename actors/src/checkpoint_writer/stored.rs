//! Conversion of records and rollups between the domain's types and the store's bytes.

use std::ops::ControlFlow;

use headcount_common::is_next;
use headcount_domain::cells::packed::Packed;
use headcount_domain::cells::{self, StoredRows};
use headcount_domain::indexes::dictionary::TermCounts;
use headcount_domain::records::Record;
use headcount_domain::records::{SavedRecords, Source};
use headcount_domain::rollups::{STORED_ROWS, SUMS};
use headcount_domain::{Day, Fault, IdentitySlot, Position, Project, ProjectId, RecordKey, RecordVisitor};
use headcount_storage::codec;
use headcount_storage::keyspace::{Key, PartitionId, Room, Space};
use headcount_storage::log::LogMark;
use headcount_storage::store::Store;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::entries::Entries;
use crate::fault;

/// Versions of the values beside the domain's records, and of the fingerprints in the index of
/// external ids. Raise one when its shape changes: stores of an earlier version are rebuilt.
const META_VERSION: u8 = 1;
pub(super) const PART_VERSION: u8 = 1;
const FINGERPRINT_VERSION: u8 = 1;

/// Returns the version of positions of partitions and projects.
pub(super) fn meta_version() -> u8 {
    if is_next() { META_VERSION + 1 } else { META_VERSION }
}

/// Lists the kinds of values in a store, with their versions. A store with another list was made by
/// another program version.
pub(crate) fn stored_types() -> Vec<String> {
    let mut types = Project::stored_types();
    types.extend(Space::ALL.iter().map(Space::to_string));
    let mut rows = STORED_ROWS.to_vec();
    rows.sort_unstable_by_key(|rows| (rows.room, rows.tag));
    types.extend(rows.iter().map(line_of_rows));
    types.push(format!("meta of partitions and projects version {}", meta_version()));
    types.push(format!("parts of rows version {PART_VERSION}"));
    types.push(format!("fingerprints of external ids version {FINGERPRINT_VERSION}"));
    types
}

/// Returns the tags of the rollups that a saved state with this list of stored types lacks, because
/// an earlier program version saved it. Returns `None` if the list differs in other ways, too.
pub(crate) fn lacking_rollups(listed: &[String]) -> Option<Vec<u8>> {
    let mut types = stored_types();
    let lacking: Vec<_> = SUMS.iter().filter(|rows| !listed.contains(&rows.to_string())).collect();
    types.retain(|line| !lacking.iter().any(|rows| *line == rows.to_string() || *line == line_of_rows(rows)));
    (types == listed).then(|| lacking.iter().map(|rows| rows.tag).collect())
}

fn line_of_rows(rows: &StoredRows) -> String {
    room_of(rows).line_of_rows(rows.tag, rows.name, rows.version)
}

/// The room of some rows in the store.
fn room_of(rows: &StoredRows) -> Room {
    match rows.room {
        cells::Room::Sled => Room::Sled,
        cells::Room::Tables => Room::Tables,
    }
}

/// The key space of [`ProjectMeta`], which has a single record with the id 0. All other spaces
/// belong to the domain's [`Record`]s.
pub(super) const PROJECTS: u8 = 2;

/// The saved position of a project. Every checkpoint that changes the project has it.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct ProjectMeta {
    /// The position of its last event that counted.
    pub(crate) last: Position,
    /// The number of terms in its dictionary.
    pub(crate) names: TermCounts,
    /// The number of different external ids of its events.
    pub(crate) external_ids: u64,
    /// The first day whose figures still change, if the project has a floor.
    pub(crate) floor: Option<Day>,
}

/// The saved position of a partition. Each of its checkpoints ends with it.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct PartitionMeta {
    /// The position up to which the checkpoint reflects all events.
    pub(crate) position: Position,
    /// The number of different external ids of the events that it reflects.
    pub(crate) external_ids: u64,
    /// The serial number of the checkpoint. Its position may equal that of the one before.
    pub(crate) serial: u64,
}

/// Reads one project's records from the store.
#[derive(Clone, Copy)]
pub(crate) struct StoreSource<'s> {
    pub(crate) store: &'s dyn Store,
    pub(crate) partition: u16,
    pub(crate) project: ProjectId,
    /// Whether every record is in memory, so that unknown ones need no lookup in the store.
    pub(crate) complete: bool,
}

impl Source for StoreSource<'_> {
    fn record<T: Record>(&self, key: RecordKey) -> Result<Option<T>, Fault> {
        if self.complete {
            return Ok(None);
        }
        decoded(self.store, &record_key(self.partition, self.project, T::SPACE, key), T::VERSION)
    }

    fn page<T: Record>(&self, key: RecordKey) -> Result<T::Page, Fault> {
        let page = decoded(self.store, &record_key(self.partition, self.project, T::PAGE_SPACE, key), T::VERSION)?;
        page.ok_or_else(|| Fault::damaged_store(format!("a page of key space {} is missing", T::PAGE_SPACE)))
    }
}

impl SavedRecords for StoreSource<'_> {
    fn each_record<T: Record>(&self, visit: &mut dyn FnMut(RecordKey, T) -> Result<(), Fault>) -> Result<(), Fault> {
        self.each(T::SPACE, T::VERSION, visit)
    }

    fn each_page<T: Record>(&self, visit: &mut dyn FnMut(T::Page) -> Result<(), Fault>) -> Result<(), Fault> {
        self.each(T::PAGE_SPACE, T::VERSION, &mut |_, page| visit(page))
    }
}

impl StoreSource<'_> {
    /// Passes the values under the keys of a space to `visit`.
    fn each<T: DeserializeOwned>(
        &self,
        space: u8,
        version: u8,
        visit: &mut dyn FnMut(RecordKey, T) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let mut visited = Ok(());
        let each = &mut |key: &[u8], bytes: &[u8]| {
            visited = match (Key::decode(key), codec::decode(version, bytes)) {
                (Ok(Key::Record { id, .. }), Ok(value)) => visit(RecordKey(id), value),
                (_, Err(error)) => Err(fault::of_stored(error)),
                (_, Ok(_)) => Err(Fault::damaged_store("a key among the records is not that of one")),
            };
            if visited.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        let prefix = Key::records_of(PartitionId(self.partition), self.project.0, space);
        self.store.scan(&prefix, each).map_err(fault::of_store)?;
        visited
    }
}

/// Reads the meta of a partition or a project.
pub(crate) fn read_meta<T: DeserializeOwned>(store: &dyn Store, key: &[u8]) -> Result<Option<T>, Fault> {
    decoded(store, key, meta_version())
}

fn decoded<T: DeserializeOwned>(store: &dyn Store, key: &[u8], version: u8) -> Result<Option<T>, Fault> {
    match store.get(key).map_err(fault::of_store)? {
        Some(bytes) => codec::decode(version, &bytes).map(Some).map_err(fault::of_stored),
        None => Ok(None),
    }
}

/// Reads the serial number of a partition's last checkpoint; 0 if there is none.
pub(crate) fn saved_serial(store: &dyn Store, partition: u16) -> Result<u64, Fault> {
    let meta: Option<PartitionMeta> = read_meta(store, &position_key(partition))?;
    Ok(meta.unwrap_or_default().serial)
}

/// Adds a partition's meta to a checkpoint that a test makes.
#[cfg(test)]
pub(crate) fn partition_meta_entry(entries: &mut Entries, partition: u16, serial: u64) -> Result<(), Fault> {
    Collect { partition, project: ProjectId(0), entries }.partition_meta(PartitionMeta {
        position: serial,
        external_ids: 0,
        serial,
    })
}

/// Reads the rollups of a project.
pub(crate) fn load_cells(store: &dyn Store, partition: u16, project: ProjectId, into: &mut Project) -> Result<(), Fault> {
    let mut problem = None;
    for prefix in Key::cells_of(PartitionId(partition), project.0) {
        let visit = &mut |key: &[u8], bytes: &[u8]| match restore(key, bytes, into) {
            Ok(()) => ControlFlow::Continue(()),
            Err(fault) => {
                problem = Some(fault);
                ControlFlow::Break(())
            }
        };
        store.scan(&prefix, visit).map_err(fault::of_store)?;
    }
    problem.map_or(Ok(()), Err)
}

/// Passes the saved records of a project's identities to `visit`.
pub(crate) fn for_each_identity(
    store: &dyn Store,
    stored_as: PartitionId,
    project: ProjectId,
    visit: &mut dyn FnMut(RecordKey, IdentitySlot) -> ControlFlow<()>,
) -> Result<(), Fault> {
    let mut problem = None;
    let prefix = Key::records_of(stored_as, project.0, IdentitySlot::SPACE);
    let each = &mut |key: &[u8], bytes: &[u8]| match (Key::decode(key), codec::decode(IdentitySlot::VERSION, bytes)) {
        (Ok(Key::Record { id, .. }), Ok(slot)) => visit(RecordKey(id), slot),
        (_, Err(error)) => {
            problem = Some(fault::of_stored(error));
            ControlFlow::Break(())
        }
        (_, Ok(_)) => {
            problem = Some(Fault::damaged_store("a key among the identities is not that of one"));
            ControlFlow::Break(())
        }
    };
    store.scan(&prefix, each).map_err(fault::of_store)?;
    problem.map_or(Ok(()), Err)
}

fn restore(key: &[u8], bytes: &[u8], into: &mut Project) -> Result<(), Fault> {
    let Ok(Key::Cells { room, tag, part, .. }) = Key::decode(key) else {
        return Err(Fault::damaged_store("a key among the rollups is not that of a rollup"));
    };
    if STORED_ROWS.iter().any(|rows| rows.tag == tag && room_of(rows) != room) {
        return Err(Fault::damaged_store(format!("the rows {tag} lie in the wrong room")));
    }
    let rows: Packed = codec::decode(PART_VERSION, bytes).map_err(fault::of_stored)?;
    match into.restore_part(tag, part, rows) {
        true => Ok(()),
        false => Err(Fault::damaged_store(format!("part {part} of the rows {tag} is not one of its own"))),
    }
}

/// Collects the entries of a checkpoint of one project.
pub(crate) struct Collect<'e> {
    pub(crate) partition: u16,
    pub(crate) project: ProjectId,
    pub(crate) entries: &'e mut Entries,
}

impl Collect<'_> {
    /// Deletes a page that no record refers to any more.
    pub(crate) fn orphan(&mut self, space: u8, key: RecordKey) {
        self.entries.delete(&record_key(self.partition, self.project, space, key));
    }

    /// Deletes the meta of a deleted project.
    pub(crate) fn no_meta(&mut self) {
        self.entries.delete(&meta_key(self.partition, self.project));
    }

    pub(crate) fn meta(&mut self, meta: ProjectMeta) -> Result<(), Fault> {
        self.put(&meta_key(self.partition, self.project), meta_version(), &meta)
    }

    /// Adds the highest position that the checkpoint reflects.
    pub(crate) fn highest(&mut self, position: Position) -> Result<(), Fault> {
        self.put(&highest_key(self.partition), meta_version(), &position)
    }

    /// Adds the mark of the log at the highest position that the checkpoint reflects. Without it,
    /// the mark of an earlier checkpoint stays, which has another position.
    pub(crate) fn mark(&mut self, mark: LogMark) -> Result<(), Fault> {
        self.put(&mark_key(self.partition), meta_version(), &mark)
    }

    pub(crate) fn partition_meta(&mut self, meta: PartitionMeta) -> Result<(), Fault> {
        self.put(&position_key(self.partition), meta_version(), &meta)
    }

    fn put<T: Serialize>(&mut self, key: &[u8], version: u8, value: &T) -> Result<(), Fault> {
        self.entries.put(key, |bytes| codec::encode_into(version, value, bytes)).map_err(fault::of_encoding)
    }
}

/// Collects parts and records. The first one that can't be encoded ends the collection.
pub(crate) struct Records<'c, 'e> {
    collect: &'c mut Collect<'e>,
    result: Result<(), Fault>,
    /// The number of entries at which it is full.
    most: usize,
}

impl<'c, 'e> Records<'c, 'e> {
    /// Collects until there are about `most` more entries, since pages come with their record.
    pub(crate) fn up_to(most: usize, collect: &'c mut Collect<'e>) -> Self {
        let most = collect.entries.len().saturating_add(most);
        Self { collect, result: Ok(()), most }
    }

    /// Ends the collection.
    pub(crate) fn end(self) -> Result<(), Fault> {
        self.result
    }
}

impl RecordVisitor for Records<'_, '_> {
    fn visit<T: Record>(&mut self, key: RecordKey, record: &T) {
        let Records { collect, result, .. } = self;
        let (partition, project) = (collect.partition, collect.project);
        let mut put = |collected: Result<(), Fault>| {
            if result.is_ok() {
                *result = collected;
            }
        };
        put(collect.put(&record_key(partition, project, T::SPACE, key), T::VERSION, record));
        record.dirty_pages(key, &mut |page, chunk| {
            put(collect.put(&record_key(partition, project, T::PAGE_SPACE, page), T::VERSION, chunk));
        });
    }

    fn visit_part(&mut self, rows: StoredRows, number: u32, part: Option<&Packed>) {
        let Records { collect, result, .. } = self;
        let (partition, project) = (PartitionId(collect.partition), collect.project.0);
        let key = Key::Cells { partition, project, room: room_of(&rows), tag: rows.tag, part: number }.encode();
        match part {
            Some(_) if result.is_err() => {}
            Some(part) => *result = collect.put(&key, PART_VERSION, part),
            None => collect.entries.delete(&key),
        }
    }

    fn is_full(&self) -> bool {
        self.collect.entries.len() >= self.most
    }
}

/// The key of a project's [`ProjectMeta`].
pub(crate) fn meta_key(partition: u16, project: ProjectId) -> Vec<u8> {
    record_key(partition, project, PROJECTS, RecordKey(0))
}

/// The key of the highest position that a partition's checkpoint reflects. No project has the id 0.
/// Checkpoints of earlier versions lack it: they reflect all events up to their position, and none
/// after it.
pub(crate) fn highest_key(partition: u16) -> Vec<u8> {
    record_key(partition, ProjectId(0), PROJECTS, RecordKey(1))
}

/// The key of the mark of the log at the highest position that a partition's checkpoint reflects.
pub(crate) fn mark_key(partition: u16) -> Vec<u8> {
    record_key(partition, ProjectId(0), PROJECTS, RecordKey(2))
}

/// The key of a partition's [`PartitionMeta`].
pub(crate) fn position_key(partition: u16) -> Vec<u8> {
    Key::Position { partition: PartitionId(partition) }.encode()
}

fn record_key(partition: u16, project: ProjectId, space: u8, key: RecordKey) -> Vec<u8> {
    Key::Record { partition: PartitionId(partition), project: project.0, space, id: key.0 }.encode()
}

#[cfg(test)]
mod tests {
    use headcount_domain::FaultKind;
    use headcount_domain::cache::table::Table;

    use super::*;

    fn pages<T: Record>(_: &Table<T>) -> String {
        format!("record {} {} version {}", T::PAGE_SPACE, T::NAME, T::VERSION)
    }

    /// The keyspace has each record of the domain exactly once, in its version.
    #[test]
    fn the_keyspace_lists_each_record_once() {
        let mut stored: Vec<String> = Project::stored_types().into_iter().filter(|line| line.starts_with("record ")).collect();
        let project = Project::default();
        stored.extend([pages(&project.people), pages(&project.accounts), pages(&project.groups), pages(&project.emails)]);
        stored.push("record 2 project version 1".to_owned());
        let of_record = |space: &Space| space.to_string().strip_prefix("space 3 ").map(|rest| format!("record {rest}"));
        let mut listed: Vec<String> = Space::ALL.iter().filter_map(of_record).collect();
        stored.sort_unstable();
        listed.sort_unstable();
        assert_eq!(listed, stored);
    }

    #[test]
    fn a_base_that_lacks_more_than_rollups_is_one_of_another_version() {
        let without = |name: &str| {
            let mut types = stored_types();
            types.retain(|line| !line.contains(&format!(" {name} version")));
            types
        };
        assert_eq!(lacking_rollups(&stored_types()), Some(vec![]));
        assert_eq!(lacking_rollups(&without("traffic")), Some(vec![10]));
        assert_eq!(lacking_rollups(&without("receipts")), None, "events make them, not facts");
        assert_eq!(lacking_rollups(&without("email")), None);
        let mut later = stored_types();
        later.iter_mut().for_each(|line| *line = line.replace("traffic version 1", "traffic version 2"));
        assert_eq!(lacking_rollups(&later), None);
    }

    #[test]
    fn rows_in_the_wrong_room_are_damage() {
        let (mut project, rows) = (Project::default(), Packed::new(8, &[0; 24], &[3, 0, 0, 0]));
        let bytes = codec::encode(PART_VERSION, &rows).unwrap();
        let mut restored = |room| {
            let key = Key::Cells { partition: PartitionId(1), project: 2, room, tag: 1, part: 0 };
            restore(&key.encode(), &bytes, &mut project)
        };
        restored(Room::Sled).unwrap();
        assert_eq!(restored(Room::Tables).unwrap_err().kind, FaultKind::DamagedStore);
    }
}
