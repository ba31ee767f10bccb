//! Encodes column chunks.

use bytes::Bytes;
use parquet::basic::{Compression, ZstdLevel};
use parquet::column::writer::{ColumnCloseResult, ColumnWriter, get_column_writer};
use parquet::data_type::{ByteArray, FixedLenByteArray};
use parquet::errors::{ParquetError, Result};
use parquet::file::properties::WriterPropertiesPtr;
use parquet::schema::types::ColumnDescPtr;
use zstd::bulk::Compressor;

use super::buffers::{Buffer, Sparse};
use super::page::ChunkPages;

/// Encodes the column chunks of a file.
pub(super) struct ChunkEncoder {
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
