//! Encodes row groups and the footer.

use std::sync::Arc;

use headcount_domain::ids::ProjectId;
use headcount_domain::intake::fields::MetadataPath;
use headcount_storage::background;
use parquet::basic::Encoding;
use parquet::errors::{ParquetError, Result};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesPtr, WriterVersion};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::ColumnPath;

use super::buffers::Buffers;
use super::chunk::ChunkEncoder;
use super::footer;
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
