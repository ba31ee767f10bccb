//! Writes a file. It gets its name when it is complete and durable.

use std::path::{Path, PathBuf};

use headcount_domain::intake::fields::MetadataPath;
use headcount_domain::time::Month;
use headcount_domain::{Day, Position, ProjectId};
use headcount_storage::background;
use headcount_storage::files::{self, File};
use sha2::{Digest, Sha256};

use super::buffers::Buffers;
use super::name::{FileEntry, FileName, folder_of};
use super::row_group::Encoder;
use crate::error::{ArchiveError, Refusal};
use crate::row::Row;
use crate::schema::COLUMNS;

/// The greatest value of `DECIMAL(38, 6)`, in millionths.
pub(super) const MAX_DECIMAL: u128 = 10_u128.pow(38) - 1;
/// The maximum number of rows of a row group, which is the unit that readers skip.
pub(super) const ROW_GROUP_ROWS: usize = 1 << 16;

/// The number of bytes between two syncs of background work.
const SYNCED_TOGETHER: usize = 1 << 20;

/// Options of writing files.
#[derive(Debug, Clone, Copy)]
pub struct WriterOptions {
    /// The compression level of zstd.
    pub level: i32,
    /// The size of values at which a row group ends. Writing takes up to four times as much memory,
    /// reading takes less.
    pub row_group_bytes: usize,
}

impl Default for WriterOptions {
    fn default() -> Self {
        Self { level: 3, row_group_bytes: 8 << 20 }
    }
}

/// Writes a file. If it is dropped before [`FileWriter::finish`], it removes its file.
pub struct FileWriter {
    folder: PathBuf,
    tmp: PathBuf,
    month: Month,
    rewrites: u32,
    project: ProjectId,
    options: WriterOptions,
    /// The paths that become columns; `None` until the first row group selects them.
    paths: Option<Vec<MetadataPath>>,
    buffers: Buffers,
    encoder: Option<Encoder>,
    file: File,
    hash: Sha256,
    bytes: u64,
    /// How many of the bytes are synced.
    synced: u64,
    rows: u64,
    positions: Option<(Position, Position)>,
    days: (Day, Day),
    is_finished: bool,
}

impl FileWriter {
    /// Begins a file of `project` in the folder of `month` in `dir`. `paths` become columns; `None`
    /// selects the most frequent paths of the first row group. A folder can have only one writer at
    /// a time.
    ///
    /// # Errors
    /// [`ArchiveError::Io`].
    pub fn create(
        dir: &Path,
        project: ProjectId,
        month: Month,
        paths: Option<Vec<MetadataPath>>,
        options: WriterOptions,
    ) -> Result<Self, ArchiveError> {
        let folder = dir.join(folder_of(month));
        files::create_private_dir(&folder).map_err(ArchiveError::io("create", &folder))?;
        let tmp = folder.join("new.parquet.tmp");
        let file = File::create(&tmp).map_err(ArchiveError::io("create", &tmp))?;
        Ok(Self {
            folder,
            tmp,
            month,
            rewrites: 0,
            project,
            options,
            paths,
            buffers: Buffers::new(COLUMNS),
            encoder: None,
            file,
            hash: Sha256::new(),
            bytes: 0,
            synced: 0,
            rows: 0,
            positions: None,
            days: (Day(i32::MAX), Day(i32::MIN)),
            is_finished: false,
        })
    }

    /// Sets how often rows were removed from the sources of the file.
    pub(crate) fn after_rewrites(mut self, rewrites: u32) -> Self {
        self.rewrites = rewrites;
        self
    }

    /// Adds the next row. Its position must be greater than the previous one.
    ///
    /// # Errors
    /// [`ArchiveError::Refused`]: the row was not added. After any other error, the writer must be
    /// dropped.
    pub fn push(&mut self, row: &Row) -> Result<(), ArchiveError> {
        background::give_way();
        self.check(row).map_err(|reason| ArchiveError::Refused { position: row.position, reason })?;
        self.buffers.push(row);
        self.rows += 1;
        let first = self.positions.map_or(row.position, |(first, _)| first);
        self.positions = Some((first, row.position));
        self.days = (self.days.0.min(row.event.day), self.days.1.max(row.event.day));
        let is_full = self.buffers.rows() >= ROW_GROUP_ROWS || self.buffers.bytes >= self.options.row_group_bytes;
        if is_full { self.end_row_group() } else { Ok(()) }
    }

    fn check(&self, row: &Row) -> Result<(), Refusal> {
        if let Some((_, last)) = self.positions.filter(|(_, last)| *last >= row.position) {
            return Err(Refusal::Order(last));
        }
        if row.event.project != self.project {
            return Err(Refusal::Project);
        }
        if i64::try_from(row.position).is_err() {
            return Err(Refusal::Position);
        }
        let money = row.event.money.as_ref();
        let amounts = money.into_iter().flat_map(|money| [Some(money.amount), money.in_project, money.in_organization]);
        let fits = amounts.flatten().all(|amount| amount.0.unsigned_abs() <= MAX_DECIMAL);
        if fits { Ok(()) } else { Err(Refusal::Amount) }
    }

    /// The number of rows so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    fn end_row_group(&mut self) -> Result<(), ArchiveError> {
        let buffers = std::mem::replace(&mut self.buffers, Buffers::new(COLUMNS));
        let encoder = match &mut self.encoder {
            Some(encoder) => encoder,
            none => {
                let paths = self.paths.take().unwrap_or_else(|| buffers.path_counts().columns());
                none.insert(Encoder::new(COLUMNS, paths, self.options.level).map_err(ArchiveError::encode)?)
            }
        };
        let bytes = encoder.row_group(buffers).map_err(ArchiveError::encode)?;
        for part in bytes.chunks(SYNCED_TOGETHER) {
            self.write(part)?;
            if self.bytes - self.synced >= SYNCED_TOGETHER as u64 && background::gives_way() {
                self.synced = self.bytes;
                self.file.sync_data().map_err(ArchiveError::io("sync", &self.tmp))?;
            }
        }
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), ArchiveError> {
        self.file.write_all_at(bytes, self.bytes).map_err(ArchiveError::io("write", &self.tmp))?;
        self.hash.update(bytes);
        self.bytes += bytes.len() as u64;
        Ok(())
    }

    /// Completes the file, makes it durable and renames it. Replaces a file of the same name from a
    /// failed attempt. Returns `None`, and leaves no file, without rows. The name of the month's
    /// folder becomes durable with the list of files.
    ///
    /// # Errors
    /// [`ArchiveError::Io`]. A file that is not in the list may remain.
    pub fn finish(mut self) -> Result<Option<FileEntry>, ArchiveError> {
        let Some((first, last)) = self.positions else { return Ok(None) };
        if self.buffers.rows() > 0 {
            self.end_row_group()?;
        }
        if let Some(encoder) = self.encoder.take() {
            let footer = encoder.finish(self.project).map_err(ArchiveError::encode)?;
            self.write(&footer)?;
        }
        self.file.sync_all().map_err(ArchiveError::io("sync", &self.tmp))?;
        let name = FileName { first, last, month: self.month, rewrites: self.rewrites };
        let path = self.folder.join(name.base());
        files::rename(&self.tmp, &path).map_err(ArchiveError::io("rename", &self.tmp))?;
        self.is_finished = true;
        files::sync_dir(&self.folder).map_err(ArchiveError::io("sync", &self.folder))?;
        let sha256 = format!("{:x}", self.hash.finalize_reset());
        let (first_day, last_day) = self.days;
        Ok(Some(FileEntry { name, rows: self.rows, first_day, last_day, bytes: self.bytes, sha256 }))
    }
}

impl Drop for FileWriter {
    fn drop(&mut self) {
        // On a full disk, other files need the space.
        if !self.is_finished
            && let Err(error) = files::remove_file(&self.tmp)
        {
            tracing::debug!(path = %self.tmp.display(), %error, "an unfinished archive file is not removed");
        }
    }
}
