//! Merging the files of a month, so that small projects have few files.

use headcount_domain::time::Month;

use crate::archive::Archive;
use crate::error::ArchiveError;
use crate::file::FileEntry;
use crate::manifest::Manifest;
use crate::metadata::PathCounts;
use crate::seal::{FilesWriter, MAX_FILE_ROWS, SealOptions};

/// When files are merged.
#[derive(Debug, Clone, Copy)]
pub struct CompactOptions {
    /// A month that is not over is merged when it has more files.
    pub month_files: usize,
    /// How the merged files are written.
    pub seal: SealOptions,
}

impl Default for CompactOptions {
    fn default() -> Self {
        Self { month_files: 32, seal: SealOptions::default() }
    }
}

/// The files to merge next, all of one month and next to each other; `None`: there is nothing to merge. `now`: the month of today.
///
/// Of a month that is over, or has too many files, each series of files that are less than half full. Such a series becomes fewer files,
/// of which at most the last is less than half full, so that a row is rewritten a few times at most and merging comes to an end.
#[must_use]
pub fn next_merge<'m>(manifest: &'m Manifest, now: Month, options: &CompactOptions) -> Option<&'m [FileEntry]> {
    let months = manifest.files().chunk_by(|one, next| one.name.month == next.name.month);
    let due = months.filter(|files| files[0].name.month < now || files.len() > options.month_files);
    let is_small = |file: &FileEntry| file.rows < options.seal.file_rows.min(MAX_FILE_ROWS).div_ceil(2);
    due.flat_map(|files| files.chunk_by(move |one, next| is_small(one) && is_small(next))).find(|series| series.len() > 1)
}

/// Merges what [`next_merge`] names. Returns whether there was anything; until there is not, another call merges more.
///
/// The merged files are durable before the list names them in the place of the others, which become left-overs. A call that failed can be
/// repeated: it makes the same files again.
///
/// # Errors
/// As [`Archive::file`], and [`ArchiveError::Io`]: the archive is what it was, or, if the list could not be made durable, what it should be.
pub fn merge_next(archive: &mut Archive, now: Month, options: &CompactOptions) -> Result<bool, ArchiveError> {
    let manifest = archive.manifest();
    let Some(sources) = next_merge(manifest, now, options) else { return Ok(false) };
    let mut counts = PathCounts::default();
    for entry in sources {
        archive.file(entry)?.count_paths(&mut counts);
    }
    let month = sources[0].name.month;
    let project = manifest.project();
    let mut writer = FilesWriter::new(archive.dir().to_owned(), project, month, Some(counts.columns()), options.seal);
    for entry in sources {
        let file = archive.file(entry)?;
        file.rows(0).try_for_each(|row| writer.push(&row?))?;
    }
    let merged = writer.finish()?;
    let range = sources[0].name.first..=sources[sources.len() - 1].name.last;
    let (before, rest): (Vec<_>, Vec<_>) = manifest.files().iter().cloned().partition(|file| file.name.last < *range.start());
    let after = rest.into_iter().filter(|file| file.name.first > *range.end());
    let files = before.into_iter().chain(merged).chain(after).collect();
    archive.publish(manifest.sealed_until(), files)?;
    Ok(true)
}
