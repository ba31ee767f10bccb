//! Adding rows to an archive: they become files by the UTC month of receipt, and the list names them all at once.

use std::path::PathBuf;

use headcount_domain::ids::ProjectId;
use headcount_domain::intake::event::Position;
use headcount_domain::intake::fields::MetadataPath;
use headcount_domain::time::{Day, Instant, MS_PER_DAY, Month};

use crate::archive::Archive;
use crate::error::{ArchiveError, Refusal};
use crate::file::{FileEntry, FileWriter, WriterOptions};
use crate::row::Row;

/// A file ends at so many rows: what a reader holds of its footer stays within a few megabytes.
pub const MAX_FILE_ROWS: u64 = 1 << 21;

/// How rows become files.
#[derive(Debug, Clone, Copy)]
pub struct SealOptions {
    /// How files are written.
    pub writer: WriterOptions,
    /// The most rows of a file.
    pub file_rows: u64,
}

impl Default for SealOptions {
    fn default() -> Self {
        Self { writer: WriterOptions::default(), file_rows: MAX_FILE_ROWS }
    }
}

/// Rows on their way into the archive. Until [`Sealer::finish`] has succeeded, the archive is what it was.
pub struct Sealer<'a> {
    archive: &'a mut Archive,
    files: FilesWriter,
}

impl<'a> Sealer<'a> {
    /// Begins to add rows behind those that are sealed.
    #[must_use]
    pub fn new(archive: &'a mut Archive, options: SealOptions) -> Self {
        let manifest = archive.manifest();
        let month = manifest.files().last().map_or(Month(i32::MIN), |file| file.name.month);
        let files = FilesWriter::new(archive.dir().to_owned(), manifest.project(), month, None, options);
        Self { archive, files }
    }

    /// Takes the next row.
    ///
    /// # Errors
    /// [`ArchiveError::Refused`] leaves all as it was; after any other error the sealer is of no use, and another one begins again.
    pub fn push(&mut self, row: &Row) -> Result<(), ArchiveError> {
        let last = self.archive.manifest().sealed_until();
        if row.position <= last {
            return Err(ArchiveError::Refused { position: row.position, reason: Refusal::Order(last) });
        }
        self.files.push(row)
    }

    /// Makes the files durable and lists them: every event up to `sealed_until` is in the archive, but for those that were left out on
    /// purpose.
    ///
    /// # Errors
    /// [`ArchiveError::Io`]. The archive is what it was, or, if the list could not be made durable, what it should be.
    pub fn finish(self, sealed_until: Position) -> Result<(), ArchiveError> {
        let added = self.files.finish()?;
        let manifest = self.archive.manifest();
        if added.is_empty() && sealed_until == manifest.sealed_until() {
            return Ok(());
        }
        let files = manifest.files().iter().cloned().chain(added).collect();
        self.archive.publish(sealed_until, files)
    }
}

/// Writes rows into as many files as they need.
pub(crate) struct FilesWriter {
    dir: PathBuf,
    project: ProjectId,
    /// The month of the file before the next one. A clock that is set back sends no row to an earlier one, so that the order of the
    /// files is that of the positions.
    month: Month,
    paths: Option<Vec<MetadataPath>>,
    options: SealOptions,
    open: Option<FileWriter>,
    done: Vec<FileEntry>,
    last: Option<Position>,
}

impl FilesWriter {
    /// `paths` become columns of every file; `None`: the most frequent ones of each.
    pub(crate) fn new(
        dir: PathBuf,
        project: ProjectId,
        month: Month,
        paths: Option<Vec<MetadataPath>>,
        options: SealOptions,
    ) -> Self {
        Self { dir, project, month, paths, options, open: None, done: Vec::new(), last: None }
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
                none.insert(FileWriter::create(&self.dir, self.project, month, paths, self.options.writer)?)
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

    /// The files, which are durable.
    pub(crate) fn finish(mut self) -> Result<Vec<FileEntry>, ArchiveError> {
        self.end_file()?;
        Ok(self.done)
    }
}

/// The UTC month of a moment.
#[must_use]
pub fn month_of(at: Instant) -> Month {
    let day = at.0.div_euclid(MS_PER_DAY);
    Day(i32::try_from(day).unwrap_or(if day < 0 { i32::MIN } else { i32::MAX })).month()
}
