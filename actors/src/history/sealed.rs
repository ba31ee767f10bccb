//! The archive of all projects, for its readers.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use headcount_archive::{Archive, ArchiveError, ArchiveFile, Catalog, Damage, FileEntry, GroupReader, MANIFEST_NAME, Source};
use headcount_domain::{Day, Event, FloorMove, Position, ProjectId, Window};
use headcount_storage::background;
use parking_lot::{ArcRwLockReadGuard, Mutex, MutexGuard, RawRwLock, RwLock, RwLockWriteGuard};

use super::first_bases::FirstBases;
use super::{HistoryPart, HistoryPiece, LatestVisitor, PartVisitor, PieceOrigin, SealedColumns, Wanted};
use crate::deleted_projects::DeletedProjects;

/// The number of events passed on together.
const PIECE_EVENTS: usize = 256;
/// The approximate size of an event without its longest texts, in bytes.
const EVENT_BYTES: usize = 200;

/// The archive of all projects. Its readers and the sealing thread share it.
#[derive(Debug)]
pub(crate) struct SealedEvents {
    /// The directory of the archive.
    pub(crate) root: PathBuf,
    shared: Mutex<Shared>,
    /// The files that were found damaged, and not intact since.
    damaged: Mutex<BTreeSet<(ProjectId, String)>>,
    deleted: Arc<DeletedProjects>,
    /// Read-locked by replays: the bases and all events after them must not change from the start
    /// of a replay on.
    bases: Arc<RwLock<()>>,
    /// Whether projects may get their first bases.
    pub(crate) first_bases: FirstBases,
    /// The source of files that are not in `root`.
    source: Source,
}

#[derive(Debug)]
struct Shared {
    catalog: Arc<Catalog>,
    /// The position after which each reader reads the log.
    readers: BTreeMap<u64, Position>,
    next_reader: u64,
}

/// A reader's hold on the log: segments with events after the end of its catalog are kept.
pub(super) struct Hold<'s> {
    sealed: &'s SealedEvents,
    number: u64,
    /// The archive's catalog when the reader began.
    pub(super) catalog: Arc<Catalog>,
}

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        self.sealed.lock().readers.remove(&self.number);
    }
}

impl SealedEvents {
    /// Opens the archive in the directory `root`, which need not exist. `deleted` projects are
    /// being removed from it.
    ///
    /// # Errors
    /// The catalog is damaged, or can't be read.
    pub(crate) fn open(root: &Path, deleted: Arc<DeletedProjects>) -> Result<Self, ArchiveError> {
        let shared = Shared { catalog: Arc::new(Catalog::read(root)?), readers: BTreeMap::new(), next_reader: 0 };
        Ok(Self {
            root: root.to_owned(),
            shared: Mutex::new(shared),
            damaged: Mutex::default(),
            deleted,
            bases: Arc::default(),
            first_bases: FirstBases::default(),
            source: None,
        })
    }

    /// Fetches files that are not in the directory from `source`.
    pub(crate) fn with_source(self, source: Source) -> Self {
        Self { source, ..self }
    }

    /// The source of files that are not in the directory.
    pub(crate) fn source(&self) -> Source {
        self.source.clone()
    }

    /// Whether a project is being deleted.
    pub(crate) fn is_deleted(&self, project: ProjectId) -> bool {
        self.deleted.contains(project)
    }

    /// Keeps bases and their events from changing while the result exists.
    pub(super) fn keep_bases(&self) -> ArcRwLockReadGuard<RawRwLock, ()> {
        // No writer waits, so a thread can lock it twice.
        self.bases.read_arc_recursive()
    }

    /// Allows to replace bases and to remove their events, while the result exists. Returns `None`
    /// if a replay needs them unchanged.
    pub(crate) fn change_bases(&self) -> Option<RwLockWriteGuard<'_, ()>> {
        self.bases.try_write()
    }

    /// The current catalog.
    pub(crate) fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.lock().catalog)
    }

    /// Uses a durable catalog.
    pub(crate) fn publish(&self, catalog: Catalog) {
        self.lock().catalog = Arc::new(catalog);
    }

    /// The position up to which no reader reads the log any more.
    pub(crate) fn unread_until(&self) -> Position {
        let shared = self.lock();
        let logged_after = shared.catalog.logged_after();
        shared.readers.values().copied().min().map_or(logged_after, |reader| reader.min(logged_after))
    }

    /// The number of files that were found damaged.
    pub(crate) fn damaged_files(&self) -> usize {
        self.damaged.lock().len()
    }

    /// The projects with files that were found damaged.
    pub(crate) fn damaged_projects(&self) -> BTreeSet<ProjectId> {
        self.damaged.lock().iter().map(|(project, _)| *project).collect()
    }

    /// Records which files of a project are damaged.
    pub(crate) fn set_damaged(&self, project: ProjectId, files: BTreeSet<String>) {
        let mut damaged = self.damaged.lock();
        damaged.retain(|(other, _)| *other != project);
        damaged.extend(files.into_iter().map(|file| (project, file)));
    }

    /// Records the outcome of using a file of a project.
    pub(crate) fn note<T>(&self, project: ProjectId, file: &str, outcome: Result<T, ArchiveError>) -> Result<T, ArchiveError> {
        let mut damaged = self.damaged.lock();
        match &outcome {
            Ok(_) => drop(damaged.remove(&(project, file.to_owned()))),
            Err(ArchiveError::Damaged { file, .. }) if !self.is_deleted(project) => {
                if damaged.insert((project, file.clone())) {
                    let error = outcome.as_ref().err().map(ToString::to_string);
                    tracing::error!(%project, error, "a file of the archive is damaged: restore it from a copy");
                }
            }
            Err(_) => {}
        }
        outcome
    }

    pub(super) fn hold(&self) -> Hold<'_> {
        let mut shared = self.lock();
        let (number, catalog) = (shared.next_reader, Arc::clone(&shared.catalog));
        shared.next_reader += 1;
        shared.readers.insert(number, catalog.logged_after());
        Hold { sealed: self, number, catalog }
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock()
    }

    /// Passes the wanted events of a project to `visit`. Its last sealed event has the position
    /// `last`.
    pub(super) fn read(
        &self,
        project: ProjectId,
        last: Position,
        wanted: &Wanted,
        visit: &mut dyn FnMut(HistoryPiece) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, ArchiveError> {
        let archive = self.list(project, last)?;
        // A replay has loaded the base, which does not change until its end.
        let base = archive.manifest().base().filter(|_| wanted.project.is_none()).map_or(0, |base| base.position());
        let (after, until) = (Cell::new(wanted.after.max(base)), Cell::new(wanted.until));
        // Later lists have the same floors up to `last`.
        let floors = archive.manifest().floors().iter().copied();
        let floors = floors.filter(|(position, _)| *position > after.get() && *position <= wanted.until);
        let floors = floors.map(|(position, day)| (position, FloorMove { project, day })).collect();
        let mut pass = SealedRead { wanted: *wanted, events: Vec::new(), floors, bytes: 0, visit };
        let days = wanted.days.map_or(Day(i32::MIN)..=Day(i32::MAX), |days| days.start..=days.end);
        let is_wanted = |entry: &FileEntry| overlaps(wanted.days, entry.first_day, entry.last_day);
        let read = self.for_each_file(project, last, Order::FirstFirst, (&after, &until), &is_wanted, &mut |file| {
            for row in file.rows_of_groups(after.get() + 1, days.clone()) {
                let row = row?;
                if row.position > pass.wanted.until {
                    break;
                }
                after.set(row.position);
                if (!row.set_aside || row.event.is_remainder()) && pass.take(row.position, row.event).is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            Ok(pass.hand_over(None))
        })?;
        Ok(if read.is_break() { read } else { pass.floors_before(Position::MAX) })
    }

    /// Passes the row groups with wanted events of a project to `visit`, those of a file together.
    pub(super) fn read_columns(
        &self,
        project: ProjectId,
        last: Position,
        wanted: &Wanted,
        visit: &mut PartVisitor<'_>,
    ) -> Result<ControlFlow<()>, ArchiveError> {
        let (after, until) = (Cell::new(wanted.after), Cell::new(wanted.until));
        let days = wanted.days;
        let is_wanted = |entry: &FileEntry| overlaps(days, entry.first_day, entry.last_day);
        self.for_each_file(project, last, Order::FirstFirst, (&after, &until), &is_wanted, &mut |file| {
            let groups = wanted_groups(file, days, after.get(), until.get());
            let flow = if groups.is_empty() { ControlFlow::Continue(()) } else { visit(HistoryPart::Columns(groups))? };
            after.set(file.name().last);
            Ok(flow)
        })
    }

    /// Passes the row groups of a project's files to `visitor`, those of a file together, the last
    /// file first. Skips files that it does not want.
    pub(super) fn read_latest(
        &self,
        project: ProjectId,
        last: Position,
        wanted: &Wanted,
        visitor: &mut dyn LatestVisitor,
    ) -> Result<ControlFlow<()>, ArchiveError> {
        let (after, until) = (Cell::new(wanted.after), Cell::new(wanted.until));
        let visitor = RefCell::new(visitor);
        let is_wanted = |entry: &FileEntry| visitor.borrow().wants(entry.first_day, entry.last_day);
        self.for_each_file(project, last, Order::LastFirst, (&after, &until), &is_wanted, &mut |file| {
            let groups = wanted_groups(file, wanted.days, after.get(), until.get());
            let flow = match groups.is_empty() {
                true => ControlFlow::Continue(()),
                false => visitor.borrow_mut().visit(HistoryPart::Columns(groups))?,
            };
            until.set(file.name().first.saturating_sub(1));
            Ok(flow)
        })
    }

    /// Passes each file that `is_wanted` selects, with positions after `after` and up to `until`,
    /// to `visit`, which advances one of them.
    fn for_each_file(
        &self,
        project: ProjectId,
        last: Position,
        order: Order,
        (after, until): (&Cell<Position>, &Cell<Position>),
        is_wanted: &dyn Fn(&FileEntry) -> bool,
        visit: &mut dyn FnMut(&ArchiveFile) -> Result<ControlFlow<()>, ArchiveError>,
    ) -> Result<ControlFlow<()>, ArchiveError> {
        loop {
            let archive = self.list(project, last)?;
            let mut entries: Vec<&FileEntry> = archive.manifest().files().iter().collect();
            if order == Order::LastFirst {
                entries.reverse();
            }
            let is_left = |entry: &FileEntry| entry.name.last > after.get() && entry.name.first <= until.get();
            match self.read_files(&archive, project, &entries, &|entry| is_left(entry) && is_wanted(entry), visit) {
                // A merge has removed the file. The files of the new list have its events.
                Err(ArchiveError::Damaged { reason: Damage::Missing, .. })
                    if Archive::existing(&self.root, project)?.manifest() != archive.manifest() => {}
                outcome => return outcome,
            }
        }
    }

    /// Opens the archive of a project that has sealed events up to the position `last`.
    ///
    /// # Errors
    /// Returns [`ArchiveError::Damaged`] if the list of files is missing, damaged or a former one;
    /// [`ArchiveError::Io`].
    pub(crate) fn list(&self, project: ProjectId, last: Position) -> Result<Archive, ArchiveError> {
        self.note(project, MANIFEST_NAME, self.read_list(project, last))
    }

    fn read_list(&self, project: ProjectId, last: Position) -> Result<Archive, ArchiveError> {
        let archive = Archive::existing(&self.root, project)?.with_source(self.source.clone());
        if archive.manifest().sealed_until() >= last {
            return Ok(archive);
        }
        let reason = Damage::Manifest(format!("the project has sealed events up to position {last}"));
        Err(ArchiveError::Damaged { file: MANIFEST_NAME.to_owned(), reason })
    }

    fn read_files(
        &self,
        archive: &Archive,
        project: ProjectId,
        entries: &[&FileEntry],
        is_wanted: &dyn Fn(&FileEntry) -> bool,
        visit: &mut dyn FnMut(&ArchiveFile) -> Result<ControlFlow<()>, ArchiveError>,
    ) -> Result<ControlFlow<()>, ArchiveError> {
        for entry in entries.iter().filter(|entry| is_wanted(entry)) {
            let read = archive.file(entry).and_then(|file| visit(&file));
            if matches!(read, Err(ArchiveError::Damaged { reason: Damage::Missing, .. }))
                && Archive::existing(&self.root, project)?.manifest() != archive.manifest()
            {
                return read;
            }
            if self.note(project, &entry.name.base(), read)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// The order in which files are read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    FirstFirst,
    LastFirst,
}

/// The row groups of a file with positions after `after` and up to `until`, and with events on
/// `days`.
fn wanted_groups(file: &ArchiveFile, days: Option<Window>, after: Position, until: Position) -> Vec<SealedColumns<'_>> {
    let is_wanted = |reader: &GroupReader<'_>| {
        let (positions, on) = (reader.positions(), reader.days());
        overlaps(days, *on.start(), *on.end()) && *positions.end() > after && *positions.start() <= until
    };
    file.groups().filter(is_wanted).map(|reader| SealedColumns { reader, after, until }).collect()
}

/// Whether a day of the window, if one is given, lies between two days.
fn overlaps(days: Option<Window>, first: Day, last: Day) -> bool {
    days.is_none_or(|window| last >= window.start && first <= window.end)
}

/// A read of one project's events.
struct SealedRead<'v> {
    wanted: Wanted,
    events: Vec<(Position, Box<Event>)>,
    /// The wanted floors that were not passed on yet.
    floors: VecDeque<(Position, FloorMove)>,
    bytes: usize,
    visit: &'v mut dyn FnMut(HistoryPiece) -> ControlFlow<()>,
}

impl SealedRead<'_> {
    fn take(&mut self, position: Position, event: Event) -> ControlFlow<()> {
        if self.floors_before(position).is_break() {
            return ControlFlow::Break(());
        }
        let texts = [&event.details.metadata, &event.details.url, &event.details.message, &event.details.referrer];
        self.bytes += EVENT_BYTES + texts.into_iter().flatten().map(|text| text.len()).sum::<usize>();
        self.events.push((position, Box::new(event)));
        if self.events.len() < PIECE_EVENTS { ControlFlow::Continue(()) } else { self.hand_over(None) }
    }

    /// Passes on the floors before a position, and the events before them.
    fn floors_before(&mut self, position: Position) -> ControlFlow<()> {
        while let Some(floor) = self.floors.front().copied().filter(|(floor, _)| *floor < position) {
            self.floors.pop_front();
            if self.hand_over(Some(floor)).is_break() {
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    }

    fn hand_over(&mut self, floor: Option<(Position, FloorMove)>) -> ControlFlow<()> {
        background::give_way();
        let (events, bytes) = (std::mem::take(&mut self.events), std::mem::take(&mut self.bytes));
        (self.visit)(HistoryPiece { partition: self.wanted.partition, events, floor, bytes, origin: PieceOrigin::Archive })
    }
}
