//! The form of an input: lines, CSV or Parquet, compressed or not. Its first bytes decide.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;
use headcount_archive::export::VERSION_FIELD;

use super::tables::Tables;

const GZIP_MAGIC: &[u8] = &[0x1f, 0x8b];
const ZSTD_MAGIC: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
const PARQUET_MAGIC: &[u8] = b"PAR1";
/// The length of the longest signature.
const MAGIC_BYTES: usize = 4;
/// The maximum number of bytes of the first line that are examined.
const FIRST_LINE_BYTES: usize = 16 << 10;
/// The binary logarithm of the largest zstd window, which bounds the memory of decompression.
const MAX_WINDOW_LOG: u32 = 27;

/// The form of an input after decompression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Lines.
    Lines,
    /// CSV from `export`.
    Csv,
    /// Parquet.
    Parquet,
}

/// A decompressed input and its recognized form.
pub(crate) struct Recognized {
    /// The input from its beginning.
    pub(crate) reader: Box<dyn BufRead + Send>,
    /// Whether the input was compressed.
    pub(crate) is_packed: bool,
    /// The first bytes after decompression, up to the end of the first line.
    first_line: Vec<u8>,
}

impl Recognized {
    /// Decompresses an input. Blocks until it has its first line.
    pub(crate) fn of(source: impl BufRead + Send + 'static) -> io::Result<Self> {
        let (magic, source) = peek(source, MAGIC_BYTES, |_| false)?;
        let (is_packed, reader): (bool, Box<dyn BufRead + Send>) = if magic.starts_with(GZIP_MAGIC) {
            (true, Box::new(BufReader::new(MultiGzDecoder::new(source))))
        } else if magic.starts_with(ZSTD_MAGIC) {
            let mut decoder = zstd::stream::read::Decoder::with_buffer(source)?;
            decoder.window_log_max(MAX_WINDOW_LOG)?;
            (true, Box::new(BufReader::new(decoder)))
        } else {
            (false, Box::new(source))
        };
        let (first_line, reader) = match peek(reader, FIRST_LINE_BYTES, |bytes| bytes.contains(&b'\n')) {
            Ok(peeked) => peeked,
            // The reader reports data that ends within its first line.
            Err(error) => (Vec::new(), Peeked::broken(error)),
        };
        Ok(Self { reader: Box::new(reader), is_packed, first_line })
    }

    /// Opens a file.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Self::of(BufReader::new(File::open(path)?))
    }

    /// The form.
    ///
    /// # Errors
    /// The input is a table that `export` did not write.
    pub(crate) fn form(&self) -> io::Result<Form> {
        if self.first_line.starts_with(PARQUET_MAGIC) {
            return Ok(Form::Parquet);
        }
        let line = self.first_line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&self.first_line);
        let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default().trim_ascii();
        let names: Vec<&[u8]> = line.split(|byte| *byte == b',').map(unquoted).collect();
        if names.contains(&VERSION_FIELD.as_bytes()) {
            return Ok(Form::Csv);
        }
        if names.len() > 1 && names.iter().all(|name| is_name(name)) {
            return Err(io::Error::other(format!(
                "its first line is a CSV header without `{VERSION_FIELD}`: `import` reads the CSV and Parquet files that `export` \
                 writes, lines of JSON as for `POST /track`, and with --format access logs and the CSV of Umami and GoatCounter"
            )));
        }
        Ok(Form::Lines)
    }

    /// The form of an input that may be a table of these kinds.
    ///
    /// # Errors
    /// The input is an unknown table.
    pub(crate) fn form_among(&self, tables: Tables) -> io::Result<Form> {
        match tables {
            Tables::Exports => self.form(),
            Tables::Never => Ok(Form::Lines),
            Tables::Foreign(_) => Ok(Form::Csv),
        }
    }

    /// Whether places in the input are places in the file: true for plain lines.
    pub(crate) fn is_plain(&self) -> bool {
        !self.is_packed && !matches!(self.form(), Ok(Form::Csv | Form::Parquet))
    }
}

fn unquoted(name: &[u8]) -> &[u8] {
    let name = name.trim_ascii();
    name.strip_prefix(b"\"").and_then(|name| name.strip_suffix(b"\"")).unwrap_or(name)
}

fn is_name(name: &[u8]) -> bool {
    let is_of_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b' ' | b'-');
    name.first().is_some_and(u8::is_ascii_alphabetic) && name.iter().all(is_of_name)
}

/// Bytes that were read ahead, then the rest: a reader, or the error that ended it.
struct Peeked {
    head: Cursor<Vec<u8>>,
    rest: Result<Box<dyn BufRead + Send>, Option<io::Error>>,
}

impl Peeked {
    fn broken(error: io::Error) -> Self {
        Self { head: Cursor::default(), rest: Err(Some(error)) }
    }
}

impl Read for Peeked {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.head.read(buffer)? {
            0 => match &mut self.rest {
                Ok(rest) => rest.read(buffer),
                Err(error) => error.take().map_or(Ok(0), Err),
            },
            read => Ok(read),
        }
    }
}

impl BufRead for Peeked {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if !self.head.get_ref().is_empty() && self.head.position() < self.head.get_ref().len() as u64 {
            return self.head.fill_buf();
        }
        match &mut self.rest {
            Ok(rest) => rest.fill_buf(),
            Err(error) => error.take().map_or(Ok(&[]), Err),
        }
    }

    fn consume(&mut self, amount: usize) {
        let ahead = self.head.get_ref().len() as u64 - self.head.position();
        match &mut self.rest {
            Ok(rest) if ahead == 0 => rest.consume(amount),
            _ => self.head.consume(amount),
        }
    }
}

/// Reads ahead up to `most` bytes, fewer if they are `enough` or the input ends.
fn peek(mut source: impl BufRead + Send + 'static, most: usize, enough: impl Fn(&[u8]) -> bool) -> io::Result<(Vec<u8>, Peeked)> {
    let mut head = Vec::new();
    while head.len() < most && !enough(&head) {
        let available = source.fill_buf()?;
        if available.is_empty() {
            break;
        }
        let taken = available.len().min(most - head.len());
        head.extend_from_slice(&available[..taken]);
        source.consume(taken);
    }
    Ok((head.clone(), Peeked { head: Cursor::new(head), rest: Ok(Box::new(source)) }))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn recognized(bytes: &[u8]) -> (io::Result<Form>, bool, Vec<u8>) {
        // One byte at a time, as a slow pipe gives them.
        let mut recognized = Recognized::of(BufReader::with_capacity(1, Cursor::new(bytes.to_vec()))).unwrap();
        let mut all = Vec::new();
        recognized.reader.read_to_end(&mut all).unwrap();
        (recognized.form(), recognized.is_packed, all)
    }

    #[test]
    fn inputs_are_recognized_by_their_first_bytes() {
        let table: [(&[u8], Form); 10] = [
            (b"", Form::Lines),
            (b"{\"name\":\"a\",\"b\":1}\n{}", Form::Lines),
            (b"\n{}", Form::Lines),
            (b"nonsense", Form::Lines),
            (b"1.2.3.4 - - [17/May/2015:10:05:03 +0000] \"GET / HTTP/1.1\" 200 5, 6\n", Form::Lines),
            (b"_v,position,name\r\n1,2,a\r\n", Form::Csv),
            (b"\xef\xbb\xbf\"_v\",\"name\"\n", Form::Csv),
            (b"name,_v", Form::Csv),
            (b"PAR1 and so on", Form::Parquet),
            (b"PA", Form::Lines),
        ];
        for (bytes, form) in table {
            let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            gzip.write_all(bytes).unwrap();
            let packed = [gzip.finish().unwrap(), zstd::stream::encode_all(bytes, 1).unwrap()];
            let text = String::from_utf8_lossy(bytes);
            let (found, is_packed, all) = recognized(bytes);
            assert_eq!((found.unwrap(), is_packed, &all[..]), (form, false, bytes), "{text}");
            for packed in packed {
                let (found, is_packed, all) = recognized(&packed);
                assert_eq!((found.unwrap(), is_packed, &all[..]), (form, true, bytes), "{text}, compressed");
            }
        }
        for foreign in ["name,user_id\na,b\n", "\"Event name\",time\n"] {
            let (form, ..) = recognized(foreign.as_bytes());
            assert!(form.unwrap_err().to_string().contains("CSV header without `_v`"), "{foreign}");
        }
    }
}
