//! The archive of all projects, as its readers see it.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use headcount_archive::archive::Archive;
use headcount_archive::catalog::Catalog;
use headcount_archive::error::{ArchiveError, Damage};
use headcount_archive::file::{ArchiveFile, FileEntry};
use headcount_archive::manifest::MANIFEST_NAME;
use headcount_domain::ids::ProjectId;
use headcount_domain::intake::event::{Event, Position};
use headcount_domain::time::{Day, Window};
use parking_lot::{Mutex, MutexGuard, RwLock, RwLockWriteGuard};

use super::bases::Bases;
use super::{HistoryPart, HistoryPiece, PartVisitor, PieceOrigin, SealedColumns, Wanted};
use crate::deleted_projects::DeletedProjects;

/// How many events are passed on together.
const PIECE_EVENTS: usize = 256;
/// About how many bytes an event takes without its longest texts.
const EVENT_BYTES: usize = 200;

/// See the module. Shared by its readers and by the thread that seals.
#[derive(Debug)]
pub(crate) struct SealedEvents {
    root: PathBuf,
    shared: Mutex<Shared>,
    /// The files that were found damaged, and not intact since.
    damaged: Mutex<BTreeSet<(ProjectId, String)>>,
    deleted: Arc<DeletedProjects>,
    /// Read-locked by replays, which need the bases and all events after them as they were when they began.
    bases: RwLock<()>,
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
    /// Opens the archive in the directory `root`. It need not exist. `deleted` projects are being removed from it.
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
            bases: RwLock::default(),
        })
    }

    /// The directory of the archive.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Whether a project is being deleted.
    pub(crate) fn is_deleted(&self, project: ProjectId) -> bool {
        self.deleted.contains(project)
    }

    /// See [`History::bases`](super::History::bases).
    pub(super) fn bases(&self) -> Bases<'_> {
        // Nobody waits to write, so a thread can hold it twice.
        Bases::new(self, self.bases.read_recursive())
    }

    /// Allows to replace bases and to remove events that they have, while the result exists. `None`: a replay needs them as they are.
    pub(crate) fn change_bases(&self) -> Option<RwLockWriteGuard<'_, ()>> {
        self.bases.try_write()
    }

    /// The current catalog.
    pub(crate) fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.lock().catalog)
    }

    /// Uses a catalog that is durable.
    pub(crate) fn publish(&self, catalog: Catalog) {
        self.lock().catalog = Arc::new(catalog);
    }

    /// The position up to which nobody reads the log any more.
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

    /// Passes the wanted events of a project to `visit`. Its last sealed event has the position `last`.
    pub(super) fn read(
        &self,
        project: ProjectId,
        last: Position,
        wanted: &Wanted,
        visit: &mut dyn FnMut(HistoryPiece) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, ArchiveError> {
        let after = Cell::new(wanted.after);
        let mut pass = SealedRead { wanted: *wanted, events: Vec::new(), bytes: 0, visit };
        let days = wanted.days.map_or(Day(i32::MIN)..=Day(i32::MAX), |days| days.start..=days.end);
        let visit_file = &mut |file: &ArchiveFile| {
            for row in file.rows_of_groups(after.get() + 1, days.clone()) {
                let row = row?;
                if row.position > pass.wanted.until {
                    break;
                }
                after.set(row.position);
                if !row.set_aside && pass.take(row.position, row.event).is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            Ok(pass.hand_over())
        };
        // A replay has loaded the bases.
        let with_base = wanted.project.is_some();
        self.for_each_file(project, last, (&after, wanted.until), Selected { days: wanted.days, with_base }, visit_file)
    }

    /// Passes the row groups with wanted events of a project to `visit`.
    pub(super) fn read_columns(
        &self,
        project: ProjectId,
        last: Position,
        wanted: &Wanted,
        visit: &mut PartVisitor<'_>,
    ) -> Result<ControlFlow<()>, ArchiveError> {
        let after = Cell::new(wanted.after);
        let Wanted { until, days, .. } = *wanted;
        self.for_each_file(project, last, (&after, until), Selected { days, with_base: true }, &mut |file| {
            for reader in file.groups() {
                let (positions, is_on) = (reader.positions(), overlaps(days, *reader.days().start(), *reader.days().end()));
                if !is_on || *positions.end() <= after.get() || *positions.start() > until {
                    continue;
                }
                if visit(HistoryPart::Columns(SealedColumns { reader, after: after.get(), until }))?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
                after.set(*positions.end());
            }
            Ok(ControlFlow::Continue(()))
        })
    }

    /// Passes the files with positions after `after`, which `visit` advances, up to `until`, and with selected events.
    fn for_each_file(
        &self,
        project: ProjectId,
        last: Position,
        (after, until): (&Cell<Position>, Position),
        selected: Selected,
        visit: &mut dyn FnMut(&ArchiveFile) -> Result<ControlFlow<()>, ArchiveError>,
    ) -> Result<ControlFlow<()>, ArchiveError> {
        loop {
            let archive = self.list(project, last)?;
            if let Some(base) = archive.manifest().base().filter(|_| !selected.with_base) {
                after.set(after.get().max(base.position));
            }
            let is_wanted = |entry: &&FileEntry| {
                let is_on = overlaps(selected.days, entry.first_day, entry.last_day);
                is_on && entry.name.last > after.get() && entry.name.first <= until
            };
            match self.read_files(&archive, project, &is_wanted, visit) {
                // A merge has removed it: the files of the new list have its events.
                Err(ArchiveError::Damaged { reason: Damage::Missing, .. })
                    if Archive::existing(&self.root, project)?.manifest() != archive.manifest() => {}
                outcome => return outcome,
            }
        }
    }

    /// Opens the archive of a project that has sealed events up to the position `last`.
    ///
    /// # Errors
    /// [`ArchiveError::Damaged`] if the list of files is missing, damaged or a former one; [`ArchiveError::Io`].
    pub(crate) fn list(&self, project: ProjectId, last: Position) -> Result<Archive, ArchiveError> {
        self.note(project, MANIFEST_NAME, self.read_list(project, last))
    }

    fn read_list(&self, project: ProjectId, last: Position) -> Result<Archive, ArchiveError> {
        let archive = Archive::existing(&self.root, project)?;
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
        is_wanted: &dyn Fn(&&FileEntry) -> bool,
        visit: &mut dyn FnMut(&ArchiveFile) -> Result<ControlFlow<()>, ArchiveError>,
    ) -> Result<ControlFlow<()>, ArchiveError> {
        for entry in archive.manifest().files().iter().filter(is_wanted) {
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

/// Whether a day of the window, if one is given, lies between two days.
fn overlaps(days: Option<Window>, first: Day, last: Day) -> bool {
    days.is_none_or(|window| last >= window.start && first <= window.end)
}

/// Which files of a project are read.
#[derive(Debug, Clone, Copy)]
struct Selected {
    /// Files without events on these days are skipped.
    days: Option<Window>,
    /// Whether events that the base has are read, too.
    with_base: bool,
}

/// Reading of one project's events.
struct SealedRead<'v> {
    wanted: Wanted,
    events: Vec<(Position, Box<Event>)>,
    bytes: usize,
    visit: &'v mut dyn FnMut(HistoryPiece) -> ControlFlow<()>,
}

impl SealedRead<'_> {
    fn take(&mut self, position: Position, event: Event) -> ControlFlow<()> {
        let texts = [&event.details.metadata, &event.details.url, &event.details.message, &event.details.referrer];
        self.bytes += EVENT_BYTES + texts.into_iter().flatten().map(|text| text.len()).sum::<usize>();
        self.events.push((position, Box::new(event)));
        if self.events.len() < PIECE_EVENTS { ControlFlow::Continue(()) } else { self.hand_over() }
    }

    fn hand_over(&mut self) -> ControlFlow<()> {
        let (events, bytes) = (std::mem::take(&mut self.events), std::mem::take(&mut self.bytes));
        (self.visit)(HistoryPiece { partition: self.wanted.partition, events, bytes, origin: PieceOrigin::Archive })
    }
}
