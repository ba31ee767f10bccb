//! One pass over the log, which writes the events of all projects to their archives.
//!
//! Events are collected by project within a budget. When it is used up, the events of the largest
//! project go to a file. The file stays open until another project's events are written; until
//! then, its project's later events follow soon. So a large project gets one file, and many small
//! ones take little memory.
//!
//! A project whose list of files can't be used waits. Its events stay in the log, and a later pass
//! seals them after the list is restored.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;

use headcount_archive::{Archive, ArchiveError, Catalog, Currencies, MANIFEST_NAME, Row, Sealer};
use headcount_common::partition_of;
use headcount_domain::{Day, Event, FloorMove, Position, ProjectId};
use headcount_storage::external_ids::ExternalIdsView;

use super::error::SealingError;
use super::sources::Sources;
use crate::erasures::erase_row;
use crate::history::{HistoryPiece, Wanted};

/// The maximum bytes of waiting rows while the file of their project is open.
const OPEN_WAITING_BYTES: usize = 256 << 10;
/// The minimum bytes of waiting rows before the first file is begun.
const FIRST_WAITING_BYTES: usize = 4 << 20;

/// Rows and floors that wait to be written.
#[derive(Default)]
struct WaitingRows {
    rows: Vec<WaitingRow>,
    bytes: usize,
}

enum WaitingRow {
    Event(Box<Row>),
    Floor(Position, Day),
}

impl WaitingRow {
    fn position(&self) -> Position {
        match self {
            Self::Event(row) => row.position,
            Self::Floor(position, _) => *position,
        }
    }
}

/// The project whose file is open.
struct Open {
    project: ProjectId,
    sealer: Sealer<Archive>,
    /// The last position that was written, or was sealed before.
    last: Position,
}

/// The result of a pass.
#[derive(Debug)]
pub(super) struct Passed {
    /// The last sealed position of each project that got events.
    pub(super) last: BTreeMap<ProjectId, Position>,
    /// The waiting projects, each with the position up to which its events are sealed.
    pub(super) waiting: BTreeMap<ProjectId, Position>,
    /// The number of sealed events.
    pub(super) events: u64,
}

/// A pass over the log, in progress.
pub(super) struct SealingPass<'s> {
    sources: &'s Sources,
    catalog: &'s Catalog,
    until: Position,
    /// The projects that waited and whose lists are intact again, each with the position up to
    /// which its events are sealed.
    resumed: BTreeMap<ProjectId, Position>,
    /// The waiting projects.
    held: BTreeMap<ProjectId, Position>,
    waiting: BTreeMap<ProjectId, WaitingRows>,
    waiting_bytes: usize,
    /// The project of the last row added.
    latest: Option<ProjectId>,
    open: Option<Open>,
    ids: HashMap<u16, ExternalIdsView>,
    currencies: HashMap<ProjectId, Currencies>,
    /// The floors of projects at the current position.
    floors: HashMap<ProjectId, Option<Day>>,
    /// The last sealed position of each project that was written.
    last: BTreeMap<ProjectId, Position>,
    events: u64,
}

impl<'s> SealingPass<'s> {
    /// Prepares to seal the events up to `until` that `catalog` lacks. They are in durable
    /// checkpoints.
    pub(super) fn new(sources: &'s Sources, catalog: &'s Catalog, until: Position) -> Self {
        let (waiting, ids, currencies, floors, last) = Default::default();
        let can_go_on = |project: &ProjectId| sources.existing_archive(catalog, *project).is_none_or(|opened| opened.is_ok());
        let (resumed, held) = catalog.waiting().iter().partition(|(project, _)| can_go_on(project));
        Self {
            sources,
            catalog,
            until,
            resumed,
            held,
            waiting,
            waiting_bytes: 0,
            latest: None,
            open: None,
            ids,
            currencies,
            floors,
            last,
            events: 0,
        }
    }

    /// Whether there is nothing to seal.
    pub(super) fn is_empty(&self) -> bool {
        self.until <= self.catalog.sealed_until() && self.resumed.is_empty()
    }

    /// Writes the events.
    pub(super) fn run(mut self) -> Result<Passed, SealingError> {
        let resumed = |partition| self.resumed.iter().filter(move |(project, _)| partition_of(**project) == partition);
        let after =
            |partition| resumed(partition).map(|(_, until)| *until).chain([self.catalog.sealed_until()]).min().unwrap_or(0);
        let all = |partition| Wanted { until: self.until, ..Wanted::partition(partition, after(partition)) };
        let wanted: Vec<Wanted> = self.sources.partitions.clone().map(all).collect();
        let logged = self.sources.logged.clone();
        let mut result = Ok(());
        logged.read(&wanted, &mut |piece: HistoryPiece| {
            result = self.take(piece);
            if result.is_err() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        result?;
        while let Some(project) = self.largest() {
            self.write(project)?;
        }
        self.close()?;
        Ok(Passed { last: self.last, waiting: self.held, events: self.events })
    }

    fn take(&mut self, piece: HistoryPiece) -> Result<(), SealingError> {
        if self.sources.is_stopping() {
            return Err(ArchiveError::Stopped.into());
        }
        let event_bytes = size_of::<Row>() + 2 * piece.bytes / piece.events.len().max(1);
        for (position, event) in piece.events {
            if !self.is_wanted(position, event.project) || self.is_dropped(position, &event) {
                continue;
            }
            // The remainder of an erased event came with the history of another installation.
            let set_aside = self.sources.scans.dead.contains(piece.partition, position) || event.is_remainder();
            if !set_aside && self.is_duplicate(piece.partition, position, &event)? {
                continue;
            }
            let currencies = event.money.is_some().then(|| self.currencies(event.project)).transpose()?;
            let project = event.project;
            let row = Row { position, event: *event, currencies, set_aside };
            let row = match self.sources.erasures.keys(project) {
                Some(keys) => erase_row(row, &keys, self.sources.hasher()),
                None => Some(row),
            };
            if let Some(row) = row {
                self.wait(project, WaitingRow::Event(Box::new(row)), event_bytes);
            }
        }
        if let Some((position, FloorMove { project, day })) = piece.floor.filter(|(_, floor)| !floor.is_mark())
            && self.is_wanted(position, project)
            && let Some(floor) = self.floor(position, project)
            && floor < Some(day)
        {
            self.floors.insert(project, Some(day));
            self.wait(project, WaitingRow::Floor(position, day), event_bytes);
        }
        // Rows written soon are still in the processor's caches, and their memory is reused.
        while let Some(project) = self.at_hand() {
            self.write(project)?;
        }
        while self.waiting_bytes > self.sources.buffer_bytes()
            && let Some(project) = self.largest()
        {
            self.write(project)?;
        }
        Ok(())
    }

    fn wait(&mut self, project: ProjectId, row: WaitingRow, bytes: usize) {
        let waiting = self.waiting.entry(project).or_default();
        waiting.rows.push(row);
        waiting.bytes += bytes;
        self.waiting_bytes += bytes;
        self.latest = Some(project);
    }

    /// The floor of a project before a position, unless its list of files can't be used: the
    /// project waits from that position on then.
    fn floor(&mut self, position: Position, project: ProjectId) -> Option<Option<Day>> {
        if let Some(known) = self.floors.get(&project) {
            return Some(*known);
        }
        let floor = match self.sources.existing_archive(self.catalog, project) {
            None => None,
            Some(Ok(archive)) => archive.manifest().floors().last().map(|(_, day)| *day),
            Some(Err(error)) => {
                self.hold(project, position - 1, &error);
                return None;
            }
        };
        self.floors.insert(project, floor);
        Some(floor)
    }

    /// Whether the event did not count because its day was below the floor, or waits with its
    /// project.
    fn is_dropped(&mut self, position: Position, event: &Event) -> bool {
        self.floor(position, event.project).is_none_or(|floor| floor.is_some_and(|floor| event.day < floor))
    }

    /// Leaves the events of a project after a position in the log.
    fn hold(&mut self, project: ProjectId, until: Position, error: &ArchiveError) {
        tracing::error!(%project, %error, "the events of a project can't be sealed; they stay in the log");
        self.held.insert(project, until);
    }

    /// Whether this pass seals the event.
    fn is_wanted(&self, position: Position, project: ProjectId) -> bool {
        let sealed_until = self.resumed.get(&project).copied().unwrap_or(self.catalog.sealed_until());
        position > sealed_until && !self.held.contains_key(&project) && !self.sources.deleted.contains(project)
    }

    /// Whether an earlier event has the same external id.
    fn is_duplicate(&mut self, partition: u16, position: Position, event: &Event) -> Result<bool, SealingError> {
        let Some(external_id) = &event.external_id else { return Ok(false) };
        let ids = match self.ids.entry(partition) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => unknown.insert(self.sources.shards.known_ids(partition).ok_or(SealingError::NoAnswer)?),
        };
        let first = ids.get(self.sources.hasher().external_id(event.project, external_id))?;
        match first {
            Some(first) if first <= position => Ok(first < position),
            // A checkpoint reflects the event, so its id is known.
            _ => Err(SealingError::UnknownId(position)),
        }
    }

    fn currencies(&mut self, project: ProjectId) -> Result<Currencies, SealingError> {
        if let Some(known) = self.currencies.get(&project) {
            return Ok(*known);
        }
        let keyed = self.sources.registry.policy(project).ok_or(SealingError::UnknownProject(project))?;
        let currencies = Currencies { project: keyed.policy.currency, organization: keyed.policy.organization_currency };
        self.currencies.insert(project, currencies);
        Ok(currencies)
    }

    /// Returns the project to write next: the project whose file is open, if enough of its rows
    /// wait, or, without an open file, the latest project, if most waiting rows are its own. Only
    /// its own rows can make a project the largest, so no other project is checked.
    fn at_hand(&self) -> Option<ProjectId> {
        let (project, least) = match &self.open {
            Some(open) => (open.project, OPEN_WAITING_BYTES),
            None => (self.latest?, FIRST_WAITING_BYTES.max(self.waiting_bytes / 2)),
        };
        self.waiting.get(&project).is_some_and(|waiting| waiting.bytes > least).then_some(project)
    }

    /// The project with the most waiting bytes.
    fn largest(&self) -> Option<ProjectId> {
        self.waiting.iter().max_by_key(|(_, waiting)| waiting.bytes).map(|(project, _)| *project)
    }

    /// Writes the waiting rows of a project.
    fn write(&mut self, project: ProjectId) -> Result<(), SealingError> {
        let Some(WaitingRows { rows, bytes }) = self.waiting.remove(&project) else { return Ok(()) };
        self.waiting_bytes -= bytes;
        let mut open = match self.open.take_if(|open| open.project == project) {
            Some(open) => open,
            None => {
                self.close()?;
                match self.open_archive(project)? {
                    Some(open) => open,
                    None => {
                        self.held.insert(project, rows.first().map_or(self.until, |row| row.position() - 1));
                        return Ok(());
                    }
                }
            }
        };
        self.sources.done("file begun");
        for row in rows {
            if self.sources.is_stopping() {
                return Err(ArchiveError::Stopped.into());
            }
            // An earlier attempt, which failed later, may have sealed it.
            if row.position() > open.last {
                open.last = row.position();
                match row {
                    WaitingRow::Event(row) => {
                        open.sealer.push(&row)?;
                        self.events += 1;
                    }
                    WaitingRow::Floor(position, day) => open.sealer.raise_floor(position, day),
                }
            }
        }
        self.open = Some(open);
        Ok(())
    }

    /// Opens the archive of a project. Returns `None` if its list of files can't be used.
    fn open_archive(&self, project: ProjectId) -> Result<Option<Open>, SealingError> {
        let opened = match self.sources.existing_archive(self.catalog, project) {
            // Only its list was read, so a failure concerns this project alone.
            Some(opened) => opened.map(Some).or_else(|error| {
                tracing::error!(%project, %error, "the events of a project can't be sealed; they stay in the log");
                Ok(None)
            }),
            None => {
                let (root, source) = (&self.sources.sealed.root, self.sources.sealed.source());
                let opened = Archive::open(root, project).map(|archive| archive.with_source(source));
                match self.sources.sealed.note(project, MANIFEST_NAME, opened) {
                    Err(error) if error.is_damage() => Ok(None),
                    opened => opened.map(Some),
                }
            }
        };
        Ok(opened?.map(|archive| {
            let last = archive.manifest().sealed_until();
            Open { project, sealer: Sealer::new(archive, self.sources.seal_options()), last }
        }))
    }

    /// Completes the open file and lists it.
    fn close(&mut self) -> Result<(), SealingError> {
        let Some(Open { project, sealer, last }) = self.open.take() else { return Ok(()) };
        sealer.finish(last)?;
        self.last.insert(project, last);
        self.sources.done("project listed");
        Ok(())
    }
}
