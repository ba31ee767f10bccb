//! Writing a file: rows with rising positions become row groups, and the file gets its name once it is whole and durable.

use std::path::{Path, PathBuf};

use headcount_domain::ids::ProjectId;
use headcount_domain::intake::event::Position;
use headcount_domain::intake::fields::MetadataPath;
use headcount_domain::time::{Day, Month};
use headcount_storage::files::{self, File};
use sha2::{Digest, Sha256};

use super::buffers::Buffers;
use super::name::{FileEntry, FileName, folder_of};
use super::row_group::Encoder;
use crate::error::{ArchiveError, Refusal};
use crate::row::Row;

/// The largest amount of a `DECIMAL(38, 6)`, in millionths.
const MAX_DECIMAL: u128 = 10_u128.pow(38) - 1;
/// A row group ends at so many rows, so that a reader can skip what it does not need.
const ROW_GROUP_ROWS: usize = 1 << 16;

/// How files are written.
#[derive(Debug, Clone, Copy)]
pub struct WriterOptions {
    /// The level of zstd.
    pub level: i32,
    /// A row group ends when its values take so many bytes. Writing takes up to four times as much memory, since metadata stands there twice
    /// and buffers grow by doubling, and reading less.
    pub row_group_bytes: usize,
}

impl Default for WriterOptions {
    fn default() -> Self {
        Self { level: 3, row_group_bytes: 8 << 20 }
    }
}

/// A file that is being written. Dropped before [`FileWriter::finish`], it leaves nothing.
pub struct FileWriter {
    folder: PathBuf,
    tmp: PathBuf,
    month: Month,
    project: ProjectId,
    options: WriterOptions,
    /// The columns of paths; until the first row group is full they may be open.
    paths: Option<Vec<MetadataPath>>,
    buffers: Buffers,
    encoder: Option<Encoder>,
    file: File,
    hash: Sha256,
    bytes: u64,
    rows: u64,
    positions: Option<(Position, Position)>,
    days: (Day, Day),
    is_finished: bool,
}

impl FileWriter {
    /// Begins a file of `project` in the folder of `month` below `dir`. `paths` become columns; `None`: the most frequent ones of the
    /// first row group.
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
            project,
            options,
            paths,
            buffers: Buffers::new(),
            encoder: None,
            file,
            hash: Sha256::new(),
            bytes: 0,
            rows: 0,
            positions: None,
            days: (Day(i32::MAX), Day(i32::MIN)),
            is_finished: false,
        })
    }

    /// Takes the next row.
    ///
    /// # Errors
    /// [`ArchiveError::Refused`] leaves the file as it was; after any other error it is of no use.
    pub fn push(&mut self, row: &Row) -> Result<(), ArchiveError> {
        self.check(row).map_err(|reason| ArchiveError::Refused { position: row.position, reason })?;
        self.buffers.push(row);
        self.rows += 1;
        let first = self.positions.map_or(row.position, |(first, _)| first);
        self.positions = Some((first, row.position));
        self.days = (self.days.0.min(row.event.day), self.days.1.max(row.event.day));
        let is_full = self.buffers.rows() >= ROW_GROUP_ROWS || self.buffers.bytes() >= self.options.row_group_bytes;
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

    /// How many rows it has.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows
    }

    fn end_row_group(&mut self) -> Result<(), ArchiveError> {
        let buffers = std::mem::replace(&mut self.buffers, Buffers::new());
        let encoder = match &mut self.encoder {
            Some(encoder) => encoder,
            none => {
                let paths = self.paths.take().unwrap_or_else(|| buffers.path_counts().columns());
                none.insert(Encoder::new(paths, self.options.level).map_err(ArchiveError::encode)?)
            }
        };
        let bytes = encoder.row_group(buffers).map_err(ArchiveError::encode)?;
        self.write(&bytes)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), ArchiveError> {
        self.file.write_all_at(bytes, self.bytes).map_err(ArchiveError::io("write", &self.tmp))?;
        self.hash.update(bytes);
        self.bytes += bytes.len() as u64;
        Ok(())
    }

    /// Completes the file, makes it durable and gives it its name; its folder's name is durable once the list of files is. A file of the
    /// same name, which an earlier attempt left, is replaced. `None`: no row came, and there is no file.
    ///
    /// # Errors
    /// [`ArchiveError::Io`], and then there is no file but one that no list names.
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
        let name = FileName { first, last, month: self.month };
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
        // On a full disk the half of it would take the room that others need.
        if !self.is_finished
            && let Err(error) = files::remove_file(&self.tmp)
        {
            tracing::debug!(path = %self.tmp.display(), %error, "an unfinished archive file is not removed");
        }
    }
}
