//! Writes pages with the checksum that Parquet defines but the library does not write.

use bytes::Bytes;
use parquet::basic::{Encoding, PageType};
use parquet::column::page::{CompressedPage, Page, PageWriteSpec, PageWriter};
use parquet::errors::{ParquetError, Result};
use zstd::bulk::Compressor;

/// Compresses the pages of a column chunk and appends them to a buffer. All columns share one
/// compressor, which takes more than a megabyte; the library would use one per column.
pub(super) struct ChunkPages<'a> {
    pub(super) out: &'a mut Vec<u8>,
    pub(super) zstd: &'a mut Compressor<'static>,
}

impl PageWriter for ChunkPages<'_> {
    fn write_page(&mut self, page: CompressedPage) -> Result<PageWriteSpec> {
        let data = self.zstd.compress(page.data()).map_err(|error| ParquetError::External(Box::new(error)))?;
        let header = header(page.compressed_page(), page.uncompressed_size(), &data)?;
        let offset = self.out.len() as u64;
        self.out.extend_from_slice(&header);
        self.out.extend_from_slice(&data);
        let mut spec = PageWriteSpec::new();
        spec.page_type = page.page_type();
        spec.num_values = page.num_values();
        spec.uncompressed_size = page.uncompressed_size() + header.len();
        spec.compressed_size = data.len() + header.len();
        spec.offset = offset;
        spec.bytes_written = spec.compressed_size as u64;
        Ok(spec)
    }

    fn close(&mut self) -> Result<()> {
        Ok(())
    }
}

/// The header of a page (parquet.thrift, `PageHeader`) in Thrift's compact protocol.
fn header(page: &Page, uncompressed: usize, data: &[u8]) -> Result<Bytes> {
    let mut out = Thrift::default();
    let (number, page_type) = match page {
        Page::DataPage { .. } => (5, PageType::DATA_PAGE),
        Page::DictionaryPage { .. } => (7, PageType::DICTIONARY_PAGE),
        Page::DataPageV2 { .. } => return Err(ParquetError::NYI("pages of version 2".into())),
    };
    out.int(1, page_type as i64);
    out.int(2, size(uncompressed)?);
    out.int(3, size(data.len())?);
    out.int(4, i64::from(crc32fast::hash(data).cast_signed()));
    out.begin(number);
    out.int(1, size(page.num_values() as usize)?);
    out.int(2, encoding(page.encoding())?);
    match page {
        Page::DataPage { def_level_encoding, rep_level_encoding, .. } => {
            out.int(3, encoding(*def_level_encoding)?);
            out.int(4, encoding(*rep_level_encoding)?);
        }
        Page::DictionaryPage { is_sorted, .. } => out.boolean(3, *is_sorted),
        Page::DataPageV2 { .. } => {}
    }
    out.end();
    out.end();
    Ok(out.bytes.into())
}

fn size(bytes: usize) -> Result<i64> {
    i32::try_from(bytes).map(i64::from).map_err(|_| ParquetError::General("a page is too large".into()))
}

/// The number of an encoding (parquet.thrift, `Encoding`).
fn encoding(encoding: Encoding) -> Result<i64> {
    Ok(match encoding {
        Encoding::PLAIN => 0,
        Encoding::PLAIN_DICTIONARY => 2,
        Encoding::RLE => 3,
        Encoding::DELTA_BINARY_PACKED => 5,
        Encoding::DELTA_LENGTH_BYTE_ARRAY => 6,
        Encoding::DELTA_BYTE_ARRAY => 7,
        Encoding::RLE_DICTIONARY => 8,
        Encoding::BYTE_STREAM_SPLIT => 9,
        other => return Err(ParquetError::NYI(format!("the encoding {other}"))),
    })
}

/// A struct in Thrift's compact protocol: fields of 32-bit integers, booleans and structs.
#[derive(Default)]
struct Thrift {
    bytes: Vec<u8>,
    /// The last field number of each enclosing struct.
    outer: Vec<u8>,
    last: u8,
}

impl Thrift {
    const TRUE: u8 = 1;
    const FALSE: u8 = 2;
    const I32: u8 = 5;
    const STRUCT: u8 = 12;

    /// Begins a field. Its number must exceed the last one by less than 16.
    fn field(&mut self, number: u8, kind: u8) {
        self.bytes.push((number - self.last) << 4 | kind);
        self.last = number;
    }

    fn int(&mut self, number: u8, value: i64) {
        self.field(number, Self::I32);
        let mut zigzag = ((value << 1) ^ (value >> 63)).cast_unsigned();
        while zigzag >= 0x80 {
            self.bytes.push((zigzag & 0x7f) as u8 | 0x80);
            zigzag >>= 7;
        }
        self.bytes.push(zigzag as u8);
    }

    fn boolean(&mut self, number: u8, value: bool) {
        self.field(number, if value { Self::TRUE } else { Self::FALSE });
    }

    fn begin(&mut self, number: u8) {
        self.field(number, Self::STRUCT);
        self.outer.push(std::mem::take(&mut self.last));
    }

    fn end(&mut self) {
        self.bytes.push(0);
        self.last = self.outer.pop().unwrap_or_default();
    }
}
