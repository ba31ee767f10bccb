//! Reads selected columns of the row groups that can match.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use bytes::{Buf, Bytes};
use headcount_domain::{Day, Position, ProjectId};
use headcount_storage::files::File;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder, RowSelection,
};
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData};
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::statistics::Statistics;

use super::footer;
use super::name::{FileEntry, FileName};
use crate::checksum;
use crate::error::{ArchiveError, Damage};
use crate::metadata::PathCounts;
use crate::schema::{COLUMNS, DAY, METADATA, METADATA_PREFIX, POSITION, SCHEMA_VERSION};

/// The number of batches of a row group, so that one with large rows is not decoded at once,
const BATCHES: usize = 16;
/// within these bounds of rows per batch.
const BATCH_ROWS: RangeInclusive<usize> = 64..=1_024;

/// A row group, as the footer describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowGroup {
    /// The number of rows.
    pub rows: u64,
    /// The first and the last position.
    pub positions: RangeInclusive<Position>,
    /// The earliest and the latest day.
    pub days: RangeInclusive<Day>,
}

/// The columns to read.
#[derive(Debug, Clone, Copy)]
pub enum Columns<'c> {
    /// All columns.
    All,
    /// The columns of a [`Row`](crate::row::Row): all columns except those of metadata paths.
    Row,
    /// The columns with these names. Names that the file lacks are ignored; only columns of
    /// metadata paths may be missing.
    Named(&'c [&'c str]),
}

/// A selection of columns and rows. Row groups without selected rows are skipped; others are
/// returned as a whole.
#[derive(Debug, Clone)]
pub struct Selection<'c> {
    /// The columns.
    pub columns: Columns<'c>,
    /// The positions.
    pub positions: RangeInclusive<Position>,
    /// The days of the events.
    pub days: RangeInclusive<Day>,
}

impl<'c> Selection<'c> {
    /// Selects columns of all rows.
    pub fn all(columns: Columns<'c>) -> Self {
        Self { columns, positions: 0..=Position::MAX, days: Day(i32::MIN)..=Day(i32::MAX) }
    }
}

/// An open archive file, with a verified footer.
#[derive(Debug)]
pub struct ArchiveFile {
    file: File,
    name: FileName,
    path: PathBuf,
    project: ProjectId,
    metadata: ArrowReaderMetadata,
    /// The same metadata, with texts as codes.
    coded: OnceLock<Option<ArrowReaderMetadata>>,
    row_groups: Vec<RowGroup>,
    /// The CRC-32C of each column chunk, row group by row group.
    checksums: Vec<u32>,
}

impl ArchiveFile {
    /// Opens the file `entry` of the list of `project` in the folder `dir`.
    ///
    /// # Errors
    /// [`ArchiveError::Damaged`] if the file is damaged or a different one, and
    /// [`ArchiveError::Io`].
    pub fn open(dir: &Path, project: ProjectId, entry: &FileEntry) -> Result<Self, ArchiveError> {
        let damaged = |reason| ArchiveError::damaged(entry.name.base(), reason);
        let (file, path) = open(dir, entry)?;
        let footer = read_footer(&file, entry.bytes).map_err(ArchiveError::io("read", &path))?.ok_or(damaged(Damage::Footer))?;
        let contents = |error: ParquetError| damaged(Damage::Contents(error.to_string()));
        let metadata = ParquetMetaDataReader::decode_metadata(&footer).map_err(contents)?;
        let checksums = check_entries(&metadata, project).map_err(damaged)?;
        let row_groups = metadata.row_groups().iter().map(describe).collect::<Option<Vec<_>>>();
        let row_groups = row_groups.ok_or_else(|| damaged(Damage::Contents("a row group has no statistics".into())))?;
        check_listed(&row_groups, entry).map_err(damaged)?;
        let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
        let metadata = ArrowReaderMetadata::try_new(Arc::new(metadata), options).map_err(contents)?;
        Ok(Self { file, name: entry.name, path, project, metadata, coded: OnceLock::new(), row_groups, checksums })
    }

    /// The name of the file.
    pub fn name(&self) -> FileName {
        self.name
    }

    /// The project of its events.
    pub fn project(&self) -> ProjectId {
        self.project
    }

    /// The row groups, in order.
    pub fn row_groups(&self) -> &[RowGroup] {
        &self.row_groups
    }

    /// Whether the file has this column. If a metadata path has no column, the metadata must be
    /// read instead.
    pub fn has_column(&self, name: &str) -> bool {
        self.column_names().any(|column| column == name)
    }

    fn column_names(&self) -> impl Iterator<Item = &str> {
        self.metadata.parquet_schema().columns().iter().map(|column| column.name())
    }

    /// Adds the number of rows with each of the file's metadata paths, from the footer.
    pub(crate) fn count_paths(&self, counts: &mut PathCounts) {
        for group in self.metadata.metadata().row_groups() {
            for column in group.columns() {
                let nulls = column.statistics().and_then(Statistics::null_count_opt).unwrap_or_default();
                let present = column.num_values().cast_unsigned().saturating_sub(nulls);
                let name = column.column_descr().name();
                match name.strip_prefix(METADATA_PREFIX) {
                    Some(path) => counts.add_column(path, present),
                    None if name == METADATA => counts.add_rows(present),
                    None => {}
                }
            }
        }
    }

    /// Returns the batches of `selection`, in the order of positions.
    pub fn batches(&self, selection: &Selection<'_>) -> Batches<'_> {
        let overlaps = |group: &RowGroup| {
            group.positions.end() >= selection.positions.start()
                && group.positions.start() <= selection.positions.end()
                && group.days.end() >= selection.days.start()
                && group.days.start() <= selection.days.end()
        };
        let groups = (0..self.row_groups.len()).filter(|group| overlaps(&self.row_groups[*group])).rev().collect();
        Batches { file: self, columns: self.numbers(selection.columns), groups, open: None }
    }

    /// The numbers of columns.
    fn numbers(&self, columns: Columns<'_>) -> Vec<usize> {
        let is_wanted = |name: &str| match columns {
            Columns::All => true,
            Columns::Row => COLUMNS.iter().any(|column| column.name == name),
            Columns::Named(names) => names.contains(&name),
        };
        self.column_names().enumerate().filter(|(_, name)| is_wanted(name)).map(|(number, _)| number).collect()
    }

    /// Reads and verifies column chunks of a row group. Adjacent chunks take one read.
    fn chunks(&self, group: usize, columns: &[usize]) -> Result<Chunks, ArchiveError> {
        let metadata = self.metadata.metadata().row_group(group);
        let start = |column: &usize| metadata.column(*column).byte_range().0;
        let end = |column: &usize| start(column) + metadata.column(*column).byte_range().1;
        let mut chunks = Vec::new();
        for run in columns.chunk_by(|one, next| end(one) == start(next)) {
            let (from, to) = (start(&run[0]), end(&run[run.len() - 1]));
            let mut bytes = vec![0; usize::try_from(to - from).unwrap_or(usize::MAX)];
            self.file.read_exact_at(&mut bytes, from).map_err(ArchiveError::io("read", &self.path))?;
            for column in run {
                let chunk = &bytes[(start(column) - from) as usize..(end(column) - from) as usize];
                if self.checksums.get(group * metadata.num_columns() + column) != Some(&crc32c::crc32c(chunk)) {
                    let column = metadata.column(*column).column_descr().name().to_owned();
                    return Err(self.damaged(Damage::Chunk { row_group: group, column }));
                }
            }
            chunks.push((from, Bytes::from(bytes)));
        }
        Ok(Chunks::new(chunks))
    }

    /// Returns batches of the rows of a row group with these ascending numbers.
    pub(super) fn batches_at(&self, group: usize, numbers: &[u32]) -> Result<ParquetRecordBatchReader, ArchiveError> {
        let runs = numbers.chunk_by(|one, next| next.checked_sub(*one) == Some(1));
        let ranges = runs.map(|run| run[0] as usize..run[run.len() - 1] as usize + 1);
        let rows = usize::try_from(self.row_groups[group].rows).unwrap_or(usize::MAX);
        let selection = RowSelection::from_consecutive_ranges(ranges, rows);
        let builder = self.open_group(group, &self.numbers(Columns::Row))?.with_row_selection(selection);
        builder.build().map_err(|error| self.contradiction(error))
    }

    fn open_group(&self, group: usize, columns: &[usize]) -> Result<ParquetRecordBatchReaderBuilder<Chunks>, ArchiveError> {
        let chunks = self.chunks(group, columns)?;
        let rows = usize::try_from(self.row_groups[group].rows).unwrap_or(usize::MAX);
        let mask = ProjectionMask::leaves(self.metadata.parquet_schema(), columns.iter().copied());
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(chunks, self.metadata.clone());
        let batch_rows = (rows / BATCHES).clamp(*BATCH_ROWS.start(), *BATCH_ROWS.end());
        Ok(builder.with_projection(mask).with_row_groups(vec![group]).with_batch_size(batch_rows))
    }

    /// The number of a column, and its chunk in a row group.
    pub(super) fn column(&self, group: usize, name: &str) -> Option<(usize, &ColumnChunkMetaData)> {
        let number = self.column_names().position(|column| column == name)?;
        Some((number, self.metadata.metadata().row_group(group).column(number)))
    }

    /// Reads one column of a row group, texts as codes if `is_coded`.
    pub(super) fn read_column(&self, group: usize, column: usize, is_coded: bool) -> Result<ArrayRef, ArchiveError> {
        let metadata = if is_coded { self.coded()? } else { &self.metadata };
        let rows = usize::try_from(self.row_groups[group].rows).unwrap_or(usize::MAX);
        let mut reader = ParquetRecordBatchReaderBuilder::new_with_metadata(self.chunks(group, &[column])?, metadata.clone())
            .with_projection(ProjectionMask::leaves(self.metadata.parquet_schema(), [column]))
            .with_row_groups(vec![group])
            .with_batch_size(rows)
            .build()
            .map_err(|error| self.contradiction(error))?;
        let batch = reader.next().ok_or_else(|| self.contradiction("a column has no rows"))?;
        let batch = batch.map_err(|error| self.contradiction(error))?;
        Ok(Arc::clone(batch.column(0)))
    }

    fn coded(&self) -> Result<&ArrowReaderMetadata, ArchiveError> {
        let code = || {
            let texts = |field: &Arc<Field>| match field.data_type() {
                DataType::Utf8 => {
                    let coded = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
                    Arc::new(field.as_ref().clone().with_data_type(coded))
                }
                _ => Arc::clone(field),
            };
            let fields: Vec<_> = self.metadata.schema().fields().iter().map(texts).collect();
            let options = ArrowReaderOptions::new().with_schema(Arc::new(Schema::new(fields)));
            ArrowReaderMetadata::try_new(Arc::clone(self.metadata.metadata()), options).ok()
        };
        self.coded.get_or_init(code).as_ref().ok_or_else(|| self.contradiction("its texts can't be read as codes"))
    }

    pub(super) fn contradiction(&self, error: impl ToString) -> ArchiveError {
        self.damaged(Damage::Contents(error.to_string()))
    }

    fn damaged(&self, reason: Damage) -> ArchiveError {
        ArchiveError::damaged(self.name.base(), reason)
    }
}

/// Opens a file and checks its length.
fn open(dir: &Path, entry: &FileEntry) -> Result<(File, PathBuf), ArchiveError> {
    let path = dir.join(entry.name.to_string());
    let file = File::open(&path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => ArchiveError::damaged(entry.name.base(), Damage::Missing),
        _ => ArchiveError::io("open", &path)(error),
    })?;
    let found = file.len().map_err(ArchiveError::io("read", &path))?;
    if found != entry.bytes {
        return Err(ArchiveError::damaged(entry.name.base(), Damage::Length { expected: entry.bytes, found }));
    }
    Ok((file, path))
}

/// Checks the SHA-256 and the footer of a file.
///
/// # Errors
/// Same as [`ArchiveFile::open`].
pub(crate) fn verify(dir: &Path, project: ProjectId, entry: &FileEntry) -> Result<(), ArchiveError> {
    let (file, path) = open(dir, entry)?;
    if checksum::sha256(&file, &path, entry.bytes)? != entry.sha256 {
        return Err(ArchiveError::damaged(entry.name.base(), Damage::Hash));
    }
    ArchiveFile::open(dir, project, entry).map(drop)
}

/// Reads the footer of a file of `bytes` bytes; `None` if it is damaged.
fn read_footer(file: &File, bytes: u64) -> std::io::Result<Option<Vec<u8>>> {
    let Some(end) = bytes.checked_sub(footer::TRAILER_BYTES as u64) else { return Ok(None) };
    let mut trailer = [0; footer::TRAILER_BYTES];
    file.read_exact_at(&mut trailer, end)?;
    let length = footer::length(trailer).filter(|length| *length <= end);
    let Some((length, start)) = length.and_then(|length| Some((usize::try_from(length).ok()?, end - length))) else {
        return Ok(None);
    };
    let mut footer = vec![0; length];
    file.read_exact_at(&mut footer, start)?;
    Ok(footer::is_intact(&footer).then_some(footer))
}

/// Checks the format and the project. Returns the checksums of the column chunks.
fn check_entries(metadata: &ParquetMetaData, project: ProjectId) -> Result<Vec<u32>, Damage> {
    let entries = metadata.file_metadata().key_value_metadata();
    let value = |key: &str| entries?.iter().find(|entry| entry.key == key)?.value.as_deref();
    match value(footer::FORMAT) {
        Some(SCHEMA_VERSION) => {}
        other => return Err(Damage::Format(other.unwrap_or_default().to_owned())),
    }
    if value(footer::PROJECT) != Some(&project.to_string()) {
        return Err(Damage::OtherFile("project"));
    }
    let checksums = value(footer::CHUNKS).and_then(footer::parse_chunks);
    checksums.ok_or_else(|| Damage::Contents("its checksums are unreadable".into()))
}

/// Compares the row groups with the list.
fn check_listed(groups: &[RowGroup], entry: &FileEntry) -> Result<(), Damage> {
    let positions = (groups.first().map(|group| *group.positions.start()), groups.last().map(|group| *group.positions.end()));
    if positions != (Some(entry.name.first), Some(entry.name.last)) {
        return Err(Damage::OtherFile("positions"));
    }
    if groups.iter().map(|group| group.rows).sum::<u64>() != entry.rows {
        return Err(Damage::OtherFile("rows"));
    }
    let first_day = groups.iter().map(|group| *group.days.start()).min();
    let last_day = groups.iter().map(|group| *group.days.end()).max();
    if (first_day, last_day) != (Some(entry.first_day), Some(entry.last_day)) {
        return Err(Damage::OtherFile("days"));
    }
    if groups.windows(2).any(|pair| pair[0].positions.end() >= pair[1].positions.start()) {
        return Err(Damage::Contents("its positions don't rise".into()));
    }
    Ok(())
}

fn describe(group: &RowGroupMetaData) -> Option<RowGroup> {
    let column = |name: &str| group.columns().iter().find(|column| column.column_descr().name() == name)?.statistics();
    let Statistics::Int64(positions) = column(POSITION)? else { return None };
    let Statistics::Int32(days) = column(DAY)? else { return None };
    Some(RowGroup {
        rows: group.num_rows().cast_unsigned(),
        positions: positions.min_opt()?.cast_unsigned()..=positions.max_opt()?.cast_unsigned(),
        days: Day(*days.min_opt()?)..=Day(*days.max_opt()?),
    })
}

/// Column chunks of a row group, with their offsets in the file. Adjacent chunks are one entry.
pub(super) struct Chunks(Arc<Vec<(u64, Bytes)>>);

impl Chunks {
    pub(super) fn new(chunks: Vec<(u64, Bytes)>) -> Self {
        Self(Arc::new(chunks))
    }

    fn from(&self, start: u64) -> parquet::errors::Result<Bytes> {
        let mut offsets =
            self.0.iter().filter_map(|(first, bytes)| Some((usize::try_from(start.checked_sub(*first)?).ok()?, bytes)));
        let found = offsets.find(|(offset, bytes)| *offset < bytes.len());
        let found = found.map(|(offset, bytes)| bytes.slice(offset..));
        found.ok_or_else(|| ParquetError::EOF("a page lies in no chunk".into()))
    }
}

impl Length for Chunks {
    fn len(&self) -> u64 {
        self.0.iter().map(|(start, bytes)| start + bytes.len() as u64).max().unwrap_or_default()
    }
}

impl ChunkReader for Chunks {
    type T = bytes::buf::Reader<Bytes>;

    fn get_read(&self, start: u64) -> parquet::errors::Result<Self::T> {
        Ok(self.from(start)?.reader())
    }

    fn get_bytes(&self, start: u64, length: usize) -> parquet::errors::Result<Bytes> {
        let bytes = self.from(start)?;
        if length > bytes.len() {
            return Err(ParquetError::EOF("a page ends behind its chunk".into()));
        }
        Ok(bytes.slice(..length))
    }
}

/// An iterator over the batches of a selection. It keeps the column chunks of one row group in
/// memory.
#[derive(Debug)]
pub struct Batches<'f> {
    file: &'f ArchiveFile,
    columns: Vec<usize>,
    /// The remaining row groups, in reverse order.
    groups: Vec<usize>,
    open: Option<OpenGroup>,
}

struct OpenGroup(ParquetRecordBatchReader);

impl std::fmt::Debug for OpenGroup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("OpenGroup")
    }
}

impl Iterator for Batches<'_> {
    type Item = Result<RecordBatch, ArchiveError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(OpenGroup(reader)) = &mut self.open {
                if let Some(batch) = reader.next() {
                    return Some(batch.map_err(|error| self.file.contradiction(error)));
                }
                self.open = None;
            }
            let reader = self.file.open_group(self.groups.pop()?, &self.columns);
            match reader.and_then(|reader| reader.build().map_err(|error| self.file.contradiction(error))) {
                Ok(reader) => self.open = Some(OpenGroup(reader)),
                Err(error) => return Some(Err(error)),
            }
        }
    }
}
