//! Merges the files of a month, so that small projects have few files.

use headcount_domain::time::Month;

use crate::archive::Archive;
use crate::error::ArchiveError;
use crate::file::FileEntry;
use crate::manifest::Manifest;
use crate::metadata::PathCounts;
use crate::seal::{FilesWriter, MAX_FILE_ROWS, SealOptions};

/// Options of merging.
#[derive(Debug, Clone, Copy)]
pub struct CompactOptions {
    /// The maximum number of files of the current month before it is merged.
    pub month_files: usize,
    /// Options of the merged files.
    pub seal: SealOptions,
}

impl Default for CompactOptions {
    fn default() -> Self {
        Self { month_files: 32, seal: SealOptions::default() }
    }
}

/// A file is small if it has fewer rows than a full file divided by this. Headers and footers take
/// about nine kilobytes per file, which matters only in small files.
const SMALL_ONE_IN: u64 = 8;

/// Returns the files to merge next: adjacent files of one month with at most as many rows as one
/// full file. `now` is the current month.
///
/// A month is due if it is over or has too many files. In a due month, adjacent small files are
/// merged. Only the last merged file of a series can be small, so a row is rewritten only a few
/// times, and merging terminates.
pub fn next_merge<'m>(manifest: &'m Manifest, now: Month, options: &CompactOptions) -> Option<&'m [FileEntry]> {
    let full = options.seal.file_rows.min(MAX_FILE_ROWS);
    let months = manifest.files().chunk_by(|one, next| one.name.month == next.name.month);
    let due = months.filter(|files| files[0].name.month < now || files.len() > options.month_files);
    let is_small = |file: &FileEntry| file.rows < full.div_ceil(SMALL_ONE_IN);
    let series = due.flat_map(|files| files.chunk_by(move |one, next| is_small(one) && is_small(next)));
    series.map(|files| &files[..fitting(files, full)]).find(|files| files.len() > 1)
}

/// The number of files from the beginning that have at most `rows` rows together.
fn fitting(files: &[FileEntry], rows: u64) -> usize {
    let sums = files.iter().scan(0_u64, |sum, file| {
        *sum += file.rows;
        Some(*sum)
    });
    sums.take_while(|sum| *sum <= rows).count()
}

/// Merges the files that [`next_merge`] returns, as long as `is_wanted` returns true. Returns false
/// if there are none.
///
/// The merged files are durable before the list names them; the sources become leftovers. A failed
/// call can be repeated, and writes the same files again.
///
/// # Errors
/// Same as [`Archive::file`], [`ArchiveError::Io`], and [`ArchiveError::Stopped`]. The archive is
/// unchanged, unless only the last sync of the list failed.
pub fn merge_next(
    archive: &mut Archive,
    now: Month,
    options: &CompactOptions,
    is_wanted: &dyn Fn() -> bool,
) -> Result<bool, ArchiveError> {
    let manifest = archive.manifest();
    let Some(sources) = next_merge(manifest, now, options) else { return Ok(false) };
    let mut counts = PathCounts::default();
    for entry in sources {
        archive.file(entry)?.count_paths(&mut counts);
    }
    let month = sources[0].name.month;
    let project = manifest.project();
    let rewrites = sources.iter().map(|entry| entry.name.rewrites).max().unwrap_or(0);
    let mut writer =
        FilesWriter::new(archive.dir().to_owned(), project, month, Some(counts.columns()), options.seal).after_rewrites(rewrites);
    for entry in sources {
        let file = archive.file(entry)?;
        file.rows(0).try_for_each(|row| if is_wanted() { writer.push(&row?) } else { Err(ArchiveError::Stopped) })?;
    }
    let merged = writer.finish()?;
    let range = sources[0].name.first..=sources[sources.len() - 1].name.last;
    let (before, rest): (Vec<_>, Vec<_>) = manifest.files().iter().cloned().partition(|file| file.name.last < *range.start());
    let after = rest.into_iter().filter(|file| file.name.first > *range.end());
    let files = before.into_iter().chain(merged).chain(after).collect();
    archive.publish(manifest.sealed_until(), files)?;
    Ok(true)
}
