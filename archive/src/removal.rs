//! Removes the rows of early days: whole files, and rows of files that also have later days.
//!
//! A row may be removed once the project's base contains its effect, since no rebuild reads it any
//! more.

use headcount_domain::{Day, Position};

use crate::archive::Archive;
use crate::error::ArchiveError;
use crate::file::FileEntry;
use crate::manifest::Manifest;
use crate::metadata::PathCounts;
use crate::row::Row;
use crate::seal::{FilesWriter, SealOptions};

/// The files with rows of early days.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OldFiles {
    /// The files that the base covers, with only such rows. They can be removed.
    pub whole: Vec<FileEntry>,
    /// The files that the base covers, with rows of later days, too. They can be rewritten.
    pub mixed: Vec<FileEntry>,
    /// The last position of the files that the base does not cover; `None` if there are none.
    pub beyond_base: Option<Position>,
}

impl OldFiles {
    /// Finds the files with rows of days before `from`.
    pub fn of(manifest: &Manifest, from: Day) -> Self {
        let base = manifest.base().map_or(0, |base| base.position());
        let mut old = Self::default();
        for entry in manifest.files().iter().filter(|entry| entry.first_day < from) {
            match (entry.name.last <= base, entry.last_day < from) {
                (false, _) => old.beyond_base = Some(entry.name.last),
                (true, true) => old.whole.push(entry.clone()),
                (true, false) => old.mixed.push(entry.clone()),
            }
        }
        old
    }

    /// The number of files.
    pub fn count(&self) -> usize {
        self.whole.len() + self.mixed.len() + usize::from(self.beyond_base.is_some())
    }
}

/// Removes files from the list, which makes them leftovers. Needs no disk space except for the
/// list.
///
/// # Errors
/// [`ArchiveError::Io`]. The folder then has either the old or the new list.
pub fn remove_files(archive: &mut Archive, files: &[FileEntry]) -> Result<(), ArchiveError> {
    let kept = archive.manifest().files().iter().filter(|entry| !files.contains(entry)).cloned().collect();
    archive.publish(archive.manifest().sealed_until(), kept)
}

/// Rewrites a file with only the rows of days from `from` on, as long as `is_wanted` returns true.
/// Returns the new files, which are durable but not in the list yet: see [`replace_file`]. A failed
/// call can be repeated, and writes the same files again.
///
/// # Errors
/// Same as [`Archive::file`], [`ArchiveError::Io`], and [`ArchiveError::Stopped`]. The archive is
/// unchanged.
pub fn rewrite_file(
    archive: &Archive,
    entry: &FileEntry,
    from: Day,
    options: SealOptions,
    is_wanted: &dyn Fn() -> bool,
) -> Result<Vec<FileEntry>, ArchiveError> {
    rewrite_rows(archive, entry, options, &mut |row| match (is_wanted(), row.event.day < from) {
        (false, _) => Err(ArchiveError::Stopped),
        (true, true) => Ok(None),
        (true, false) => Ok(Some(row)),
    })
}

/// Rewrites a file with the result of `change` for each row; `None` leaves the row out. Returns the
/// new files, like [`rewrite_file`].
///
/// # Errors
/// Same as [`rewrite_file`], and the errors of `change`.
pub fn rewrite_rows(
    archive: &Archive,
    entry: &FileEntry,
    options: SealOptions,
    change: &mut dyn FnMut(Row) -> Result<Option<Row>, ArchiveError>,
) -> Result<Vec<FileEntry>, ArchiveError> {
    let file = archive.file(entry)?;
    let mut counts = PathCounts::default();
    file.count_paths(&mut counts);
    let (dir, project, month) = (archive.dir().to_owned(), archive.manifest().project(), entry.name.month);
    let writer = FilesWriter::new(dir, project, month, Some(counts.columns()), options);
    let mut writer = writer.after_rewrites(entry.name.rewrites.saturating_add(1));
    file.rows(0).try_for_each(|row| change(row?)?.map_or(Ok(()), |row| writer.push(&row)))?;
    writer.finish()
}

/// Lists the files that [`rewrite_file`] wrote in place of `entry`, which becomes a leftover.
///
/// # Errors
/// [`ArchiveError::Io`]. The folder then has either the old or the new list.
pub fn replace_file(archive: &mut Archive, entry: &FileEntry, rewritten: &[FileEntry]) -> Result<(), ArchiveError> {
    let in_place = |listed: &FileEntry| if listed == entry { rewritten.to_vec() } else { vec![listed.clone()] };
    let files = archive.manifest().files().iter().flat_map(in_place).collect();
    archive.publish(archive.manifest().sealed_until(), files)
}
