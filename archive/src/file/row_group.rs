//! Encodes column chunks, row groups and the footer.

use std::sync::Arc;

use bytes::Bytes;
use headcount_domain::ProjectId;
use headcount_domain::intake::fields::MetadataPath;
use headcount_storage::background;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::column::writer::{ColumnCloseResult, ColumnWriter, get_column_writer};
use parquet::data_type::{ByteArray, FixedLenByteArray};
use parquet::errors::{ParquetError, Result};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesPtr, WriterVersion};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnDescPtr, ColumnPath};
use zstd::bulk::Compressor;

use super::buffers::{Buffer, Buffers, Sparse};
use super::footer;
use super::page::ChunkPages;
use crate::schema::{Access, COLUMNS, Column, message};

/// The size of a page before compression.
const PAGE_BYTES: usize = 256 << 10;
/// The maximum size of a column chunk's dictionary. Further values are stored without one.
const DICTIONARY_BYTES: usize = 512 << 10;
/// The length to which the footer truncates the smallest and the greatest text of a column chunk.
const STATISTICS_BYTES: usize = 16;

/// Encodes a file in memory, one row group at a time.
pub(super) struct Encoder {
    paths: Vec<MetadataPath>,
    /// Writes to a buffer that is emptied after each row group.
    writer: SerializedFileWriter<Vec<u8>>,
    chunks: ChunkEncoder,
    /// The CRC-32C of each column chunk.
    checksums: Vec<u32>,
}

impl Encoder {
    /// Creates an encoder of rows with these columns of the table.
    pub(super) fn new(columns: &[Column], paths: Vec<MetadataPath>, level: i32) -> Result<Self> {
        let props = properties();
        let writer = SerializedFileWriter::new(Vec::new(), message(columns, &paths)?, props.clone())?;
        Ok(Self { paths, writer, chunks: ChunkEncoder::new(props, level)?, checksums: Vec::new() })
    }

    /// Encodes a row group. Returns the next bytes of the file.
    pub(super) fn row_group(&mut self, buffers: Buffers) -> Result<Vec<u8>> {
        let rows = buffers.rows();
        let columns = buffers.into_columns(&self.paths);
        let descriptors = self.writer.schema_descr().columns().to_vec();
        let mut group = self.writer.next_row_group()?;
        for (buffer, descriptor) in columns.into_iter().zip(descriptors) {
            background::give_way();
            let chunk = self.chunks.encode(buffer, rows, descriptor)?;
            self.checksums.push(crc32c::crc32c(&chunk.bytes));
            group.append_column(&chunk.bytes, chunk.close)?;
        }
        group.close()?;
        self.take()
    }

    fn take(&mut self) -> Result<Vec<u8>> {
        self.writer.flush()?;
        Ok(std::mem::take(self.writer.inner_mut()))
    }

    /// Returns the last bytes of the file: the footer and the trailer.
    pub(super) fn finish(mut self, project: ProjectId) -> Result<Vec<u8>> {
        for entry in footer::entries(&project.to_string(), &self.checksums) {
            self.writer.append_key_value_metadata(entry);
        }
        self.writer.finish()?;
        let mut end = self.take()?;
        let trailer = end.len().saturating_sub(footer::TRAILER_BYTES);
        if footer::seal(&mut end[..trailer]) {
            Ok(end)
        } else {
            Err(ParquetError::General("the footer has no place for a checksum".into()))
        }
    }
}

/// The properties of the writer. They disable compression, since [`ChunkEncoder`] compresses, and
/// page indexes, since readers read row groups as a whole.
fn properties() -> WriterPropertiesPtr {
    let mut builder = WriterProperties::builder()
        .set_created_by(concat!("headcount version ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_writer_version(WriterVersion::PARQUET_1_0)
        .set_data_page_size_limit(PAGE_BYTES)
        .set_dictionary_page_size_limit(DICTIONARY_BYTES)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_statistics_truncate_length(Some(STATISTICS_BYTES))
        .set_offset_index_disabled(true);
    for column in COLUMNS {
        if let Access::Integer(..) | Access::Timestamp(..) = column.access {
            let path = ColumnPath::from(column.name);
            builder = builder.set_column_dictionary_enabled(path.clone(), false);
            builder = builder.set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
        }
    }
    Arc::new(builder.build())
}

/// Encodes the column chunks of a file.
struct ChunkEncoder {
    props: WriterPropertiesPtr,
    level: ZstdLevel,
    zstd: Compressor<'static>,
}

/// An encoded chunk.
pub(super) struct Chunk {
    pub(super) bytes: Bytes,
    pub(super) close: ColumnCloseResult,
}

impl ChunkEncoder {
    /// Creates an encoder. `props` must disable compression, since [`ChunkPages`] compresses the
    /// pages.
    pub(super) fn new(props: WriterPropertiesPtr, level: i32) -> Result<Self> {
        let zstd = Compressor::new(level).map_err(|error| ParquetError::External(Box::new(error)))?;
        Ok(Self { props, level: ZstdLevel::try_new(level)?, zstd })
    }

    /// Encodes a column of `rows` rows.
    pub(super) fn encode(&mut self, buffer: Buffer, rows: usize, descr: ColumnDescPtr) -> Result<Chunk> {
        let mut bytes = Vec::new();
        let is_required = descr.max_def_level() == 0;
        let pages = Box::new(ChunkPages { out: &mut bytes, zstd: &mut self.zstd });
        let mut writer = get_column_writer(descr, self.props.clone(), pages);
        let levels = |rows_with_value: &[u32]| levels(rows_with_value, rows).filter(|_| !is_required);
        match (&mut writer, buffer) {
            (ColumnWriter::Int64ColumnWriter(writer), Buffer::Int64(Sparse { rows, values })) => {
                writer.write_batch(&values, levels(&rows).as_deref(), None)?;
            }
            (ColumnWriter::Int32ColumnWriter(writer), Buffer::Int32(Sparse { rows, values })) => {
                writer.write_batch(&values, levels(&rows).as_deref(), None)?;
            }
            (ColumnWriter::BoolColumnWriter(writer), Buffer::Boolean(Sparse { rows, values })) => {
                writer.write_batch(&values, levels(&rows).as_deref(), None)?;
            }
            (ColumnWriter::FixedLenByteArrayColumnWriter(writer), Buffer::Fixed16(Sparse { rows, values })) => {
                let all = Bytes::from(values.as_flattened().to_vec());
                let value = |at: usize| FixedLenByteArray::from(ByteArray::from(all.slice(at * 16..(at + 1) * 16)));
                let values: Vec<_> = (0..values.len()).map(value).collect();
                writer.write_batch(&values, levels(&rows).as_deref(), None)?;
            }
            (ColumnWriter::ByteArrayColumnWriter(writer), Buffer::Texts(texts)) => {
                let Sparse { rows, values: ends } = texts.ends;
                let all = Bytes::from(texts.bytes);
                let starts = std::iter::once(&0).chain(&ends);
                let values: Vec<_> =
                    starts.zip(&ends).map(|(start, end)| all.slice(*start as usize..*end as usize).into()).collect();
                writer.write_batch(&values, levels(&rows).as_deref(), None)?;
            }
            _ => return Err(ParquetError::General("a column has another type than its buffer".into())),
        }
        let mut close = writer.close()?;
        close.metadata = close.metadata.into_builder().set_compression(Compression::ZSTD(self.level)).build()?;
        Ok(Chunk { bytes: bytes.into(), close })
    }
}

/// The definition levels: 1 for each row with a value.
fn levels(rows_with_value: &[u32], rows: usize) -> Option<Vec<i16>> {
    let mut levels = vec![0; rows];
    for row in rows_with_value {
        levels[*row as usize] = 1;
    }
    Some(levels)
}
