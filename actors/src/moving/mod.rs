//! Reads an installation that moves into a cluster: its control data as records, and the events of
//! each partition in order.
//!
//! The source is a backup, or the data directory of a stopped server. Neither is changed: files
//! that opening would write are copied to a scratch directory first. If a project has lost events,
//! its sealed events move as files (`retained`).

mod documents;
mod error;
mod retained;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use headcount_common::{PARTITIONS, partition_of, secrets};
use headcount_control::{CONTROL_DIR, Registry, RegistryError};
use headcount_domain::{KeyHasher, Position, ProjectId};
use headcount_storage::backup::Backup;
use headcount_storage::codec::CodecError;
use headcount_storage::files;
use headcount_storage::format::Format;
use headcount_storage::lock::DirLock;
use headcount_storage::log::{Log, LogOptions};
use sha2::{Digest as _, Sha256};

use crate::copied_records::copy_records;
use crate::dead_letters::DeadLetters;
use crate::deleted_projects::DeletedProjects;
use crate::erasures::Erasures;
use crate::feature::{MovedDocument, MovedKind};
use crate::history::{History as _, HistoryPiece, LoggedEvents, PartitionArchives, Past, SealedEvents, Wanted};
use crate::position_map::PositionMap;
pub use documents::{LeftBehind, plain_documents};
use documents::{MovedKinds, read_documents};
pub use error::MovingError;
use retained::RetainedProjects;

const LOG_DIR: &str = "log";
const ARCHIVE_DIR: &str = "archive";
/// The directory of the scratch directory with the archives of partitions.
const LAID_OUT_DIR: &str = "archives";
/// The file that marks a directory as a backup.
const BACKUP_NAME: &str = "manifest.json";
/// The maximum bytes of events encoded together, unless a single event has more.
const TOGETHER_BYTES: usize = 256 << 10;

/// Events of a partition, or a floor, in the format of the partition's log.
#[derive(Debug)]
pub struct MovedEvents {
    /// The partition.
    pub partition: u16,
    /// Their project.
    pub project: ProjectId,
    /// Their former positions.
    pub positions: Vec<Position>,
    /// The number of positions that they take.
    pub count: u32,
    /// The encoded events.
    pub payload: Vec<u8>,
}

/// An installation that moves into a cluster.
pub struct MovingSource {
    from: PathBuf,
    registry: Registry,
    past: Past,
    dead: DeadLetters,
    digest: String,
    documents: MovedKinds,
    left: LeftBehind,
    retained: RetainedProjects,
    scratch: PathBuf,
    /// The lock of a data directory.
    _lock: Option<DirLock>,
}

impl MovingSource {
    /// Opens a backup, checking all of its files, or a data directory that no process has open.
    /// `scratch` must be an empty directory that exists as long as the result. `kinds` are those of
    /// the features.
    ///
    /// # Errors
    /// Returns a [`MovingError`]. Nothing has been written, except to `scratch`.
    pub fn open(from: &Path, scratch: &Path, kinds: &[MovedKind]) -> Result<Self, MovingError> {
        let (lock, mut digest) = identify(from)?;
        copy_parts(from, scratch)?;
        Format::open(scratch)?;
        let registry = Registry::open(scratch)?;
        let log = Log::open(scratch.join(LOG_DIR), LogOptions { prepare_ahead: false, ..LogOptions::default() })?.0;
        refuse_unfinished(&registry)?;
        let sealed = SealedEvents::open(&from.join(ARCHIVE_DIR), Arc::new(DeletedProjects::new(Vec::new())))?;
        let retained = RetainedProjects::of(&sealed)?;
        digest.update(log.last_position().to_le_bytes());
        digest.update(sealed.catalog().logged_after().to_le_bytes());
        let path = from.join("dead-letters.ndjson");
        let dead = DeadLetters::open(&path).map_err(MovingError::io("read", &path))?;
        let (documents, unreadable) = read_documents(from, kinds)?;
        let left = LeftBehind { set_aside: dead.count(), ..unreadable };
        // No erasure is unfinished, so nothing is hashed with this key.
        let erasures = Arc::new(Erasures::none(KeyHasher::new([0; 16])));
        let past = Past::new(Arc::new(PartitionArchives::new(Arc::new(sealed))), LoggedEvents::new(log.reader()), erasures);
        let digest = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        let (from, scratch) = (from.to_owned(), scratch.to_owned());
        Ok(Self { from, registry, past, dead, digest, documents, left, retained, scratch, _lock: lock })
    }

    /// Identifies the current contents of this backup or directory.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// The data that do not move.
    pub fn left_behind(&self) -> &LeftBehind {
        &self.left
    }

    /// The numbers of organizations and projects.
    ///
    /// # Errors
    /// Returns [`MovingError::Control`].
    pub fn counts(&self) -> Result<(usize, usize), MovingError> {
        let organizations = self.registry.organizations();
        let projects = organizations.iter().map(|one| Ok(self.registry.projects(one.id)?.len()));
        Ok((organizations.len(), projects.sum::<Result<usize, RegistryError>>()?))
    }

    /// Returns the control data as the records of an empty control log, in order. Every call
    /// returns the same.
    ///
    /// # Errors
    /// Returns [`MovingError::Control`].
    pub fn control_records(&self) -> Result<Vec<Vec<u8>>, MovingError> {
        Ok(self.registry.as_records()?)
    }

    /// Copies the keys to a data directory, which must not have others.
    ///
    /// # Errors
    /// Returns [`MovingError::Secrets`].
    pub fn bring_keys(&self, data_dir: &Path) -> Result<(), MovingError> {
        Ok(secrets::bring(&self.from, data_dir)?)
    }

    /// Passes all events and floors that do not move as files to `visit`: those of each project in
    /// the order of their positions. Every call passes the same.
    ///
    /// # Errors
    /// Returns a [`MovingError`]. Events before the failure have been visited.
    pub fn events(&self, visit: &mut dyn FnMut(MovedEvents) -> ControlFlow<()>) -> Result<(), MovingError> {
        let wanted: Vec<Wanted> = (0..PARTITIONS).map(|partition| Wanted::partition(partition, 0)).collect();
        let mut failure = None;
        self.past.read(&wanted, &mut |piece| {
            self.encode(piece, visit).unwrap_or_else(|error| {
                failure = Some(error);
                ControlFlow::Break(())
            })
        })?;
        failure.map_or(Ok(()), |error| Err(error.into()))
    }

    fn encode(
        &self,
        piece: HistoryPiece,
        visit: &mut dyn FnMut(MovedEvents) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, CodecError> {
        let partition = piece.partition;
        let moves = |position, project| !self.dead.contains(partition, position) && !self.retained.have(project, position);
        copy_records(piece, TOGETHER_BYTES, moves, &mut |project, positions, payload| {
            // A piece has some hundred events.
            let count = u32::try_from(positions.len()).unwrap_or(u32::MAX);
            visit(MovedEvents { partition, project, positions, count, payload })
        })
    }
}

impl MovingSource {
    /// Returns a map that collects the positions for [`Self::documents`] while events move.
    pub fn positions(&self) -> PositionMap {
        let mut positions = PositionMap::default();
        self.retained.all().for_each(|(project, until)| positions.keep(project, until));
        self.documents.iter().for_each(|(_, documents)| documents.want(&mut positions));
        positions
    }

    /// Returns the documents of each kind with the new positions of events. A value has at most
    /// `max_bytes`.
    ///
    /// # Errors
    /// Returns [`MovingError::Io`].
    pub fn documents(
        &self,
        positions: &PositionMap,
        max_bytes: usize,
    ) -> Result<Vec<(&'static str, Vec<MovedDocument>)>, MovingError> {
        let all = self.documents.iter().map(|(kind, documents)| Ok((*kind, documents.documents(positions, max_bytes)?)));
        let all: io::Result<Vec<_>> = all.collect();
        all.map_err(MovingError::io("encode the documents of", &self.from))
    }
}

impl MovingSource {
    /// Returns the projects that have lost events, whose files move.
    pub fn projects_with_files(&self) -> impl Iterator<Item = ProjectId> {
        self.retained.all().map(|(project, _)| project)
    }

    /// Returns the partitions with such projects, each with the last position of their files. The
    /// log of such a partition must begin after it.
    pub fn partitions_with_files(&self) -> BTreeMap<u16, Position> {
        let mut partitions = BTreeMap::new();
        for (project, in_files) in self.retained.all() {
            let until = partitions.entry(partition_of(project)).or_insert(0);
            *until = in_files.max(*until);
        }
        partitions
    }

    /// Creates a directory with the archive of a partition, with everything up to `sealed_until`
    /// sealed, in the scratch directory. It has the lists, and links to the files.
    ///
    /// # Errors
    /// Returns [`MovingError::Archive`] or [`MovingError::Io`]. The call can be repeated.
    pub fn lay_out_archive(&self, partition: u16, sealed_until: Position) -> Result<PathBuf, MovingError> {
        let root = self.scratch.join(LAID_OUT_DIR).join(format!("{partition:02}"));
        self.retained.lay_out(&self.from.join(ARCHIVE_DIR), &root, (partition, sealed_until))?;
        Ok(root)
    }
}

impl std::fmt::Debug for MovingSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MovingSource").field("from", &self.from).finish_non_exhaustive()
    }
}

/// Identifies the kind of a directory, checks it, and begins its digest.
fn identify(from: &Path) -> Result<(Option<DirLock>, Sha256), MovingError> {
    let mut digest = Sha256::new();
    let list = from.join(BACKUP_NAME);
    if list.exists() {
        Backup::open(from)?.check()?;
        digest.update(files::read(&list).map_err(MovingError::io("read", &list))?);
        return Ok((None, digest));
    }
    if !Format::is_in(from) {
        return Err(MovingError::Neither(from.to_owned()));
    }
    let lock = DirLock::acquire(from)?;
    let format = Format::open(from)?;
    digest.update(format.incarnation.number().to_le_bytes());
    Ok((Some(lock), digest))
}

/// Copies the files that opening may write: the format file, the control data, and the last segment
/// of the log. The other segments become links.
fn copy_parts(from: &Path, scratch: &Path) -> Result<(), MovingError> {
    copy(&from.join("FORMAT"), &scratch.join("FORMAT"))?;
    let control = from.join(CONTROL_DIR);
    for name in ["", "log", "audit"] {
        let (dir, to) = (control.join(name), scratch.join(CONTROL_DIR).join(name));
        copy_dir(&dir, &to, name == "audit")?;
    }
    let (log, to) = (from.join(LOG_DIR), scratch.join(LOG_DIR));
    files::create_private_dir(&to).map_err(MovingError::io("create", &to))?;
    let mut segments = entries(&log)?;
    segments.sort();
    let last = segments.iter().rfind(|path| path.extension().is_some_and(|extension| extension == "seg")).cloned();
    for path in &segments {
        let Some(name) = path.file_name() else { continue };
        if path.extension().is_some_and(|extension| extension == "seg") && last.as_ref() != Some(path) {
            let whole = path.canonicalize().map_err(MovingError::io("find", path))?;
            std::os::unix::fs::symlink(whole, to.join(name)).map_err(MovingError::io("link", path))?;
        } else {
            copy(path, &to.join(name))?;
        }
    }
    Ok(())
}

fn copy_dir(from: &Path, to: &Path, deep: bool) -> Result<(), MovingError> {
    files::create_private_dir(to).map_err(MovingError::io("create", to))?;
    for path in entries(from)? {
        let Some(name) = path.file_name() else { continue };
        match path.is_dir() {
            true if deep => copy_dir(&path, &to.join(name), deep)?,
            true => {}
            false => copy(&path, &to.join(name))?,
        }
    }
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result<(), MovingError> {
    std::fs::copy(from, to).map(drop).map_err(MovingError::io("copy", from))
}

/// The entries of a directory; none if it does not exist.
fn entries(dir: &Path) -> Result<Vec<PathBuf>, MovingError> {
    match files::list(dir) {
        Ok(entries) => Ok(entries),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(MovingError::io("list", dir)(error)),
    }
}

/// Refuses unfinished deletions and erasures, since a cluster would not continue them.
fn refuse_unfinished(registry: &Registry) -> Result<(), MovingError> {
    match registry.deletions().len() {
        0 => {}
        deleting => return Err(MovingError::Deleting(deleting)),
    }
    match registry.erasures().iter().filter(|erasure| !erasure.is_done).count() {
        0 => Ok(()),
        erasing => Err(MovingError::Erasing(erasing)),
    }
}
