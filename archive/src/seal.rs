//! Adds rows to an archive: writes them to files by the UTC month of receipt, then lists the files
//! in one step.

use std::borrow::BorrowMut;
use std::path::PathBuf;

use headcount_domain::intake::fields::MetadataPath;
use headcount_domain::time::{MS_PER_DAY, Month};
use headcount_domain::{Day, Instant, Position, ProjectId};

use crate::archive::Archive;
use crate::error::{ArchiveError, Refusal};
use crate::file::{FileEntry, FileWriter, WriterOptions};
use crate::row::Row;

/// The maximum number of rows of a file. Its footer then takes a few megabytes of a reader's
/// memory.
pub const MAX_FILE_ROWS: u64 = 1 << 21;

/// Options of sealing and merging.
#[derive(Debug, Clone, Copy)]
pub struct SealOptions {
    /// Options of each file.
    pub writer: WriterOptions,
    /// The maximum number of rows of a file.
    pub file_rows: u64,
}

impl Default for SealOptions {
    fn default() -> Self {
        Self { writer: WriterOptions::default(), file_rows: MAX_FILE_ROWS }
    }
}

/// Adds rows to an archive, which stays unchanged until [`Sealer::finish`].
pub struct Sealer<A> {
    archive: A,
    files: FilesWriter,
    floors: Vec<(Position, Day)>,
}

impl<A: BorrowMut<Archive>> Sealer<A> {
    /// Begins to add rows to `archive`.
    pub fn new(archive: A, options: SealOptions) -> Self {
        let manifest = archive.borrow().manifest();
        let month = manifest.files().last().map_or(Month(i32::MIN), |file| file.name.month);
        let files = FilesWriter::new(archive.borrow().dir().to_owned(), manifest.project(), month, None, options);
        Self { archive, files, floors: Vec::new() }
    }

    /// Adds the next row. Its position must be greater than that of every sealed row.
    ///
    /// # Errors
    /// [`ArchiveError::Refused`]: the row was not added. After any other error, begin again with a
    /// new sealer.
    pub fn push(&mut self, row: &Row) -> Result<(), ArchiveError> {
        let last = self.archive.borrow().manifest().sealed_until();
        if row.position <= last {
            return Err(ArchiveError::Refused { position: row.position, reason: Refusal::Order(last) });
        }
        self.files.push(row)
    }

    /// Adds the next floor, from a record after every row so far. Ignores a floor that is not
    /// higher than the last.
    pub fn raise_floor(&mut self, position: Position, day: Day) {
        let last = self.floors.last().or(self.archive.borrow().manifest().floors().last());
        if last.is_none_or(|last| position > last.0 && day > last.1) {
            self.floors.push((position, day));
        }
    }

    /// Makes the files durable and lists them. The archive then has every event up to the position
    /// `sealed_until`.
    ///
    /// # Errors
    /// [`ArchiveError::Io`]. The archive is unchanged, unless only the last sync of the list
    /// failed.
    pub fn finish(mut self, sealed_until: Position) -> Result<(), ArchiveError> {
        let added = self.files.finish()?;
        let archive = self.archive.borrow_mut();
        let manifest = archive.manifest();
        if added.is_empty() && sealed_until == manifest.sealed_until() {
            return Ok(());
        }
        let files = manifest.files().iter().cloned().chain(added).collect();
        let floors = manifest.floors().iter().copied().chain(self.floors).collect();
        archive.publish_with(sealed_until, files, floors)
    }
}

/// Writes rows to files, one after the other.
pub(crate) struct FilesWriter {
    dir: PathBuf,
    project: ProjectId,
    /// The month of the latest file. A row never goes to an earlier month, even if the clock was
    /// set back, so that files are in the order of positions.
    month: Month,
    /// How often rows were removed from the sources of the files.
    rewrites: u32,
    paths: Option<Vec<MetadataPath>>,
    options: SealOptions,
    open: Option<FileWriter>,
    done: Vec<FileEntry>,
    last: Option<Position>,
}

impl FilesWriter {
    /// `paths` become columns of each file; `None` selects the most frequent paths of each file.
    pub(crate) fn new(
        dir: PathBuf,
        project: ProjectId,
        month: Month,
        paths: Option<Vec<MetadataPath>>,
        options: SealOptions,
    ) -> Self {
        Self { dir, project, month, rewrites: 0, paths, options, open: None, done: Vec::new(), last: None }
    }

    /// Sets how often rows were removed from the sources of the files.
    pub(crate) fn after_rewrites(mut self, rewrites: u32) -> Self {
        self.rewrites = rewrites;
        self
    }

    pub(crate) fn push(&mut self, row: &Row) -> Result<(), ArchiveError> {
        let month = month_of(row.event.received).max(self.month);
        let is_full = |open: &FileWriter| month != self.month || open.rows() >= self.options.file_rows;
        if let Some(last) = self.last.filter(|last| *last >= row.position) {
            return Err(ArchiveError::Refused { position: row.position, reason: Refusal::Order(last) });
        }
        if self.open.as_ref().is_some_and(is_full) {
            self.end_file()?;
        }
        self.month = month;
        let writer = match &mut self.open {
            Some(writer) => writer,
            none => {
                let paths = self.paths.clone();
                let writer = FileWriter::create(&self.dir, self.project, month, paths, self.options.writer)?;
                none.insert(writer.after_rewrites(self.rewrites))
            }
        };
        writer.push(row)?;
        self.last = Some(row.position);
        Ok(())
    }

    fn end_file(&mut self) -> Result<(), ArchiveError> {
        if let Some(writer) = self.open.take() {
            self.done.extend(writer.finish()?);
        }
        Ok(())
    }

    /// Completes the last file. Returns all files, which are durable.
    pub(crate) fn finish(mut self) -> Result<Vec<FileEntry>, ArchiveError> {
        self.end_file()?;
        Ok(self.done)
    }
}

/// The UTC month of a moment.
pub fn month_of(at: Instant) -> Month {
    let day = at.0.div_euclid(MS_PER_DAY);
    Day(i32::try_from(day).unwrap_or(if day < 0 { i32::MIN } else { i32::MAX })).month()
}
