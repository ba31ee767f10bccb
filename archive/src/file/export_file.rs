//! Reads Parquet files that [`StreamWriter`](super::StreamWriter) wrote, from untrusted sources.
//!
//! Unlike a file of the archive, such a file may be malicious. So everything that makes the Parquet
//! library allocate memory is checked first: the lists of the footer, the sizes and encodings of
//! pages, and the texts that a dictionary repeats.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use arrow_array::RecordBatch;
use bytes::Bytes;
use headcount_domain::ProjectId;
use headcount_storage::files::File;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use parquet::file::metadata::{
    ColumnChunkMetaData, ParquetMetaDataOptions, ParquetMetaDataReader, ParquetStatisticsPolicy, RowGroupMetaData,
};
use zstd::bulk::Decompressor;

use super::footer;
use super::reader::Chunks;
use super::thrift::ThriftReader;
use super::writer::ROW_GROUP_ROWS;
use crate::row::Row;
use crate::schema::{Access, Column, EXPORT_COLUMNS, SCHEMA_VERSION, decode_export, message};

/// The maximum size of a footer: enough for some hundred million events.
const MAX_FOOTER_BYTES: u64 = 64 << 20;
/// The maximum number of row groups. Each takes some tens of kilobytes of memory.
const MAX_ROW_GROUPS: u64 = 1 << 14;
/// The maximum size of a row group, compressed and uncompressed. An export ends a row group at 2
/// MiB.
const MAX_GROUP_BYTES: usize = 32 << 20;
/// The maximum size of a page before compression.
const MAX_PAGE_BYTES: usize = 4 << 20;
/// The maximum length of a text: metadata has at most 64 KiB.
const MAX_TEXT_BYTES: usize = 128 << 10;
/// The approximate maximum size of a batch of rows if a dictionary repeats its longest texts.
const BATCH_BYTES: usize = 8 << 20;
const MAX_BATCH_ROWS: usize = 1_024;
/// The encodings in exports (parquet.thrift, `Encoding`). Others can repeat parts of texts.
const PLAIN: i64 = 0;
const RLE: i64 = 3;
const DELTA_BINARY_PACKED: i64 = 5;
const RLE_DICTIONARY: i64 = 8;
/// The maximum number of values of a block of packed numbers, and of its parts. Exports have blocks
/// of 256 values.
const MAX_BLOCK_VALUES: u64 = 1 << 12;

/// The reason why a file can't be read as an export.
#[derive(Debug, thiserror::Error)]
pub enum ExportFileError {
    /// It is another Parquet file.
    #[error("it is not a Parquet file from `export`: {0}")]
    Foreign(String),
    /// It is truncated or changed.
    #[error("it is damaged: {0}")]
    Damaged(String),
    /// The file system failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl ExportFileError {
    fn damaged(error: impl ToString) -> Self {
        Self::Damaged(error.to_string())
    }
}

/// The rows of an export in Parquet, in order. It keeps one row group in memory, and ends after an
/// error.
pub struct ExportFile {
    file: File,
    project: ProjectId,
    metadata: ArrowReaderMetadata,
    /// The CRC-32C of each column chunk, row group by row group.
    checksums: Vec<u32>,
    next_group: usize,
    batches: Option<ParquetRecordBatchReader>,
    rows: std::vec::IntoIter<Row>,
    has_failed: bool,
    /// The number of bytes of row groups that were read.
    pub read_bytes: u64,
}

impl ExportFile {
    /// Opens a file.
    ///
    /// # Errors
    /// [`ExportFileError`].
    pub fn open(path: &Path) -> Result<Self, ExportFileError> {
        let file = File::open(path)?;
        let footer = read_footer(&file)?;
        let too_much =
            || ExportFileError::Foreign(format!("its footer has more than {MAX_ROW_GROUPS} row groups, or too many columns"));
        ThriftReader::new(&footer).footer(MAX_ROW_GROUPS).ok_or_else(too_much)?;
        let options = ParquetMetaDataOptions::new()
            .with_column_stats_policy(ParquetStatisticsPolicy::SkipAll)
            .with_encoding_stats_policy(ParquetStatisticsPolicy::SkipAll)
            .with_size_stats_policy(ParquetStatisticsPolicy::SkipAll);
        let metadata = careful(|| ParquetMetaDataReader::decode_metadata_with_options(&footer, Some(&options)))?;
        let entries = metadata.file_metadata().key_value_metadata();
        let value = |key: &str| entries?.iter().find(|entry| entry.key == key)?.value.as_deref();
        if value(footer::FORMAT) != Some(SCHEMA_VERSION) {
            let found = value(footer::FORMAT).unwrap_or_default();
            return Err(ExportFileError::Foreign(format!("its format is {found:?}, and this program reads {SCHEMA_VERSION:?}")));
        }
        let project = value(footer::PROJECT).and_then(|id| id.parse().ok());
        let project = project.ok_or_else(|| ExportFileError::damaged("its project is unreadable"))?;
        let checksums = value(footer::CHUNKS).and_then(footer::parse_chunks);
        let checksums = checksums.ok_or_else(|| ExportFileError::damaged("its checksums are unreadable"))?;
        let schema = message(EXPORT_COLUMNS, &[]).map_err(ExportFileError::damaged)?;
        if *metadata.file_metadata().schema() != *schema {
            return Err(ExportFileError::Foreign("its columns are not those of an export".into()));
        }
        let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
        let metadata = careful(|| ArrowReaderMetadata::try_new(Arc::new(metadata), options))?;
        let rows = Vec::new().into_iter();
        Ok(Self { file, project, metadata, checksums, next_group: 0, batches: None, rows, has_failed: false, read_bytes: 0 })
    }

    fn next_row(&mut self) -> Result<Option<Row>, ExportFileError> {
        loop {
            if let Some(row) = self.rows.next() {
                return Ok(Some(row));
            }
            if let Some(batches) = &mut self.batches {
                match careful(|| batches.next().transpose())? {
                    Some(batch) => self.rows = self.decode(&batch)?,
                    None => self.batches = None,
                }
            } else if self.next_group < self.metadata.metadata().num_row_groups() {
                self.batches = Some(self.open_group(self.next_group)?);
                let group = self.metadata.metadata().row_group(self.next_group);
                self.read_bytes += u64::try_from(group.compressed_size()).unwrap_or_default();
                self.next_group += 1;
            } else {
                return Ok(None);
            }
        }
    }

    fn decode(&self, batch: &RecordBatch) -> Result<std::vec::IntoIter<Row>, ExportFileError> {
        Ok(careful(|| decode_export(batch, self.project))?.into_iter())
    }

    fn open_group(&self, number: usize) -> Result<ParquetRecordBatchReader, ExportFileError> {
        let group = self.metadata.metadata().row_group(number);
        let of_group = |reason: String| ExportFileError::Damaged(format!("row group {number}: {reason}"));
        let (chunks, widest) = self.chunks(number, group).map_err(|error| match error {
            ExportFileError::Damaged(reason) => of_group(reason),
            other => other,
        })?;
        careful(|| {
            ParquetRecordBatchReaderBuilder::new_with_metadata(chunks, self.metadata.clone())
                .with_row_groups(vec![number])
                .with_batch_size((BATCH_BYTES / widest.max(1)).clamp(1, MAX_BATCH_ROWS))
                .build()
        })
    }

    /// Reads and checks the column chunks of a row group. Also returns the maximum size of a row
    /// from the dictionaries.
    fn chunks(&self, number: usize, group: &RowGroupMetaData) -> Result<(Chunks, usize), ExportFileError> {
        let damaged = |reason: &str| ExportFileError::Damaged(reason.to_owned());
        let rows = u64::try_from(group.num_rows()).ok().filter(|rows| *rows <= ROW_GROUP_ROWS as u64);
        let rows = rows.ok_or_else(|| damaged("its number of rows is not that of an export"))?;
        let (mut left, mut widest) = (MAX_GROUP_BYTES, 0);
        let mut budget = MAX_GROUP_BYTES;
        let mut inflate = Decompressor::new()?;
        let mut chunks = Vec::with_capacity(EXPORT_COLUMNS.len());
        for ((place, column), description) in EXPORT_COLUMNS.iter().enumerate().zip(group.columns()) {
            let (start, length) = place_of(description).ok_or_else(|| damaged("a column has no pages"))?;
            left = left.checked_sub(length).ok_or_else(|| damaged("it is larger than that of any export"))?;
            let mut bytes = vec![0; length];
            self.file.read_exact_at(&mut bytes, start)?;
            if self.checksums.get(number * EXPORT_COLUMNS.len() + place) != Some(&crc32c::crc32c(&bytes)) {
                return Err(ExportFileError::Damaged(format!("column {} does not match its checksum", column.name)));
            }
            let check = ChunkCheck { column, rows, budget: &mut budget, inflate: &mut inflate };
            let widest_text = check.run(&bytes);
            widest += widest_text
                .ok_or_else(|| ExportFileError::Damaged(format!("column {} has no pages of an export", column.name)))?;
            chunks.push((start, Bytes::from(bytes)));
        }
        Ok((Chunks::new(chunks), widest))
    }
}

/// The offset and the length of a column chunk.
fn place_of(chunk: &ColumnChunkMetaData) -> Option<(u64, usize)> {
    let start = chunk.dictionary_page_offset().unwrap_or_else(|| chunk.data_page_offset());
    let length = usize::try_from(chunk.compressed_size()).ok().filter(|length| *length <= MAX_GROUP_BYTES)?;
    Some((u64::try_from(start).ok()?, length))
}

impl Iterator for ExportFile {
    type Item = Result<Row, ExportFileError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.has_failed {
            return None;
        }
        let row = self.next_row().transpose();
        self.has_failed = matches!(row, Some(Err(_)));
        row
    }
}

/// Checks the pages of a column chunk.
struct ChunkCheck<'c> {
    column: &'c Column,
    rows: u64,
    /// The remaining size of the row group's pages before compression.
    budget: &'c mut usize,
    inflate: &'c mut Decompressor<'static>,
}

impl ChunkCheck<'_> {
    /// Returns the length of the longest text that a dictionary can repeat; `None` if the pages
    /// don't come from an export.
    fn run(self, chunk: &[u8]) -> Option<usize> {
        let mut pages = ThriftReader::new(chunk);
        let (mut values, mut longest) = (0_u64, 0);
        let is_text = matches!(self.column.access, Access::Text(..));
        while !pages.rest.is_empty() {
            let header = pages.page()?;
            let data = pages.bytes(header.compressed)?;
            if header.uncompressed > MAX_PAGE_BYTES {
                return None;
            }
            *self.budget = self.budget.checked_sub(header.uncompressed)?;
            match (header.is_dictionary, header.encoding) {
                (true, PLAIN) if header.values <= header.uncompressed as u64 => {
                    if is_text {
                        longest = longest.max(longest_text(&self.inflate.decompress(data, header.uncompressed).ok()?)?);
                    }
                    continue;
                }
                (false, PLAIN | RLE | RLE_DICTIONARY) => {}
                (false, DELTA_BINARY_PACKED) if self.column.required => {
                    let page = self.inflate.decompress(data, header.uncompressed).ok()?;
                    let mut numbers = ThriftReader::new(&page);
                    let (block, parts) = (numbers.varint()?, numbers.varint()?);
                    if block > MAX_BLOCK_VALUES || parts > block {
                        return None;
                    }
                }
                _ => return None,
            }
            values = values.checked_add(header.values).filter(|values| *values <= self.rows)?;
        }
        (values == self.rows).then_some(longest)
    }
}

/// The length of the longest text in a dictionary.
fn longest_text(page: &[u8]) -> Option<usize> {
    let (mut texts, mut longest) = (ThriftReader::new(page), 0);
    while !texts.rest.is_empty() {
        let length = u32::from_le_bytes(texts.bytes(4)?.try_into().ok()?);
        longest = longest.max(texts.bytes(usize::try_from(length).ok()?)?.len());
    }
    (longest <= MAX_TEXT_BYTES).then_some(longest)
}

fn read_footer(file: &File) -> Result<Vec<u8>, ExportFileError> {
    let cut = || ExportFileError::damaged("it ends before its footer does, or it is not a Parquet file");
    let end = file.len()?.checked_sub(footer::TRAILER_BYTES as u64).ok_or_else(cut)?;
    let mut trailer = [0; footer::TRAILER_BYTES];
    file.read_exact_at(&mut trailer, end)?;
    let length = footer::length(trailer).filter(|length| *length <= end).ok_or_else(cut)?;
    if length > MAX_FOOTER_BYTES {
        let message = format!("its footer has {length} bytes, and at most {MAX_FOOTER_BYTES} are read; export it in parts");
        return Err(ExportFileError::Foreign(message));
    }
    let mut footer = vec![0; usize::try_from(length).unwrap_or_default()];
    file.read_exact_at(&mut footer, end - length)?;
    if !footer::has_checksum(&footer) {
        return Err(ExportFileError::Foreign("another program wrote it".into()));
    }
    if footer::is_intact(&footer) { Ok(footer) } else { Err(ExportFileError::damaged("its footer does not match its checksum")) }
}

/// Calls the Parquet library, which may panic on malicious data.
fn careful<T, E: ToString>(call: impl FnOnce() -> Result<T, E>) -> Result<T, ExportFileError> {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(result) => result.map_err(ExportFileError::damaged),
        Err(_) => Err(ExportFileError::damaged("its contents contradict each other")),
    }
}

#[cfg(test)]
mod tests;
