//! Converts tables of `export` and other products to lines of JSON. Each row of Parquet becomes a
//! line. Each record of CSV (RFC 4180) becomes a line with the number of its first line in the
//! file.

use std::borrow::Cow;
use std::io::{self, BufRead, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use headcount_archive::ExportFile;
use headcount_archive::export::{ExportFormat, RowEncoder, VERSION_FIELD, columns, restored};
use headcount_archive::schema::{Access, METADATA};
use headcount_domain::ProjectId;
use serde_json::value::RawValue;

use super::foreign::ForeignTable;
use super::progress::Progress;

/// The length limit of a line, far above the 64 KiB of an event.
pub(crate) const MAX_LINE_BYTES: usize = 16 << 20;
/// The first byte of a line with the reason why a record could not be converted. No JSON begins
/// with this byte.
pub(crate) const REFUSED: u8 = 1;
/// The maximum number of columns of CSV. Every export has fewer.
const MAX_COLUMNS: usize = 256;

/// The kinds of tables that a file may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tables {
    /// None: the file has lines.
    Never,
    /// A table from `export`, recognized by its content.
    Exports,
    /// The CSV of another product.
    Foreign(ForeignTable),
}

/// A source of lines.
pub(crate) trait LineSource {
    /// Writes the next lines, with their ends. Returns false at the end.
    fn next_lines(&mut self, out: &mut Vec<u8>) -> io::Result<bool>;
}

/// Reads the lines of a source.
pub(crate) struct AsJson<S> {
    source: S,
    out: Vec<u8>,
    /// The number of bytes of `out` that were read.
    at: usize,
}

impl<S> AsJson<S> {
    pub(crate) fn new(source: S) -> Self {
        Self { source, out: Vec::new(), at: 0 }
    }
}

impl<S: LineSource> Read for AsJson<S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.at == self.out.len() {
            self.out.clear();
            self.at = 0;
            if !self.source.next_lines(&mut self.out)? {
                return Ok(0);
            }
        }
        let rest = self.out.get(self.at..).unwrap_or_default();
        let read = rest.len().min(buffer.len());
        buffer[..read].copy_from_slice(&rest[..read]);
        self.at += read;
        Ok(read)
    }
}

/// The rows of an export in Parquet.
pub(crate) struct ParquetRows {
    file: ExportFile,
    encoder: RowEncoder,
    progress: Arc<Progress>,
}

impl ParquetRows {
    pub(crate) fn open(path: &Path, progress: Arc<Progress>) -> io::Result<Self> {
        let file = ExportFile::open(path).map_err(io::Error::other)?;
        // Lines don't name their project.
        Ok(Self { file, encoder: RowEncoder::new(ExportFormat::Ndjson, ProjectId(0)), progress })
    }
}

impl LineSource for ParquetRows {
    fn next_lines(&mut self, out: &mut Vec<u8>) -> io::Result<bool> {
        let Some(row) = self.file.next() else { return Ok(false) };
        self.encoder.push(&row.map_err(io::Error::other)?).map_err(io::Error::other)?;
        out.extend(self.encoder.take(1).unwrap_or_default());
        self.progress.read_bytes.store(self.file.read_bytes, Ordering::Relaxed);
        Ok(true)
    }
}

/// A field. `None` is an unquoted empty field.
type FieldText = Option<Vec<u8>>;

/// The records of CSV.
pub(crate) struct CsvRecords<R> {
    source: R,
    tables: Tables,
    header: Option<Vec<String>>,
    lines: u64,
}

impl<R: BufRead> CsvRecords<R> {
    pub(crate) fn new(source: R, tables: Tables) -> Self {
        Self { source, tables, header: None, lines: 0 }
    }

    /// Reads the text of the next record. Returns its number of lines.
    fn next_record(&mut self) -> io::Result<Option<(Vec<u8>, usize)>> {
        let (mut record, mut lines, mut is_open) = (Vec::new(), 0, false);
        let failed = |lines: u64, what: &str| io::Error::other(format!("the record at line {}: {what}", lines + 1));
        loop {
            let before = record.len();
            let limit = u64::try_from(MAX_LINE_BYTES - before.min(MAX_LINE_BYTES)).unwrap_or(0) + 1;
            if self.source.by_ref().take(limit).read_until(b'\n', &mut record)? == 0 && before == 0 {
                return Ok(None);
            }
            if record.len() > MAX_LINE_BYTES {
                return Err(failed(self.lines, &format!("it has more than {MAX_LINE_BYTES} bytes; is a closing quote missing?")));
            }
            let line = record.get(before..).unwrap_or_default();
            if !line.ends_with(b"\n") {
                // Exports end every record. Without a line end, the last field may be truncated.
                return Err(failed(self.lines, "it has no end: the file is truncated"));
            }
            lines += 1;
            // A record ends at the first line end outside of quotes.
            is_open ^= memchr::memchr_iter(b'"', line).count() % 2 == 1;
            if !is_open {
                self.lines += lines as u64;
                return Ok(Some((record, lines)));
            }
        }
    }

    fn read_header(&mut self, record: &[u8]) -> io::Result<()> {
        let fields = fields(record, MAX_COLUMNS);
        if fields.len() > MAX_COLUMNS {
            return Err(io::Error::other(format!("the CSV header has more than {MAX_COLUMNS} columns")));
        }
        let name =
            |field: FieldText| String::from_utf8_lossy(&field.unwrap_or_default()).trim_start_matches('\u{feff}').to_owned();
        let header: Vec<String> = fields.into_iter().map(name).collect();
        if let Tables::Foreign(ForeignTable { is, needs }) = self.tables
            && let Some(lacking) = needs.iter().find(|column| !header.iter().any(|name| name == *column))
        {
            return Err(io::Error::other(format!("it is not {is}: the CSV header has no column `{lacking}`")));
        }
        self.header = Some(header);
        Ok(())
    }
}

impl<R: BufRead> LineSource for CsvRecords<R> {
    fn next_lines(&mut self, out: &mut Vec<u8>) -> io::Result<bool> {
        let Some((record, lines)) = self.next_record()? else { return Ok(false) };
        match &self.header {
            None => self.read_header(&record)?,
            Some(header) => {
                let fields = fields(&record, header.len());
                // A record without text is a blank line.
                if !matches!(&fields[..], [None]) {
                    write_object(out, header, &fields, self.tables == Tables::Exports)?;
                }
            }
        }
        out.extend(std::iter::repeat_n(b'\n', lines));
        Ok(true)
    }
}

/// The fields of a record, at most one more than `most`.
fn fields(record: &[u8], most: usize) -> Vec<FieldText> {
    let record = record.strip_suffix(b"\n").unwrap_or(record);
    let record = record.strip_suffix(b"\r").unwrap_or(record);
    let (mut fields, mut field, mut is_quoted, mut is_open) = (Vec::new(), Vec::new(), false, false);
    let mut bytes = record.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' if is_open && bytes.peek() == Some(&b'"') => {
                field.push(b'"');
                bytes.next();
            }
            b'"' if is_open => is_open = false,
            b'"' if field.is_empty() => (is_open, is_quoted) = (true, true),
            b',' if !is_open => {
                let text = std::mem::take(&mut field);
                fields.push((std::mem::take(&mut is_quoted) || !text.is_empty()).then_some(text));
                if fields.len() > most {
                    return fields;
                }
            }
            _ => field.push(byte),
        }
    }
    fields.push((is_quoted || !field.is_empty()).then_some(field));
    fields
}

/// Writes a record as an object, or the reason why it can't be one. Invalid numbers, booleans and
/// metadata become text. A column of another type refuses the text later. `export` escapes text
/// that could begin a formula; other products' tables are read unchanged.
fn write_object(out: &mut Vec<u8>, header: &[String], fields: &[FieldText], is_export: bool) -> io::Result<()> {
    let refuse = |out: &mut Vec<u8>, why: String| {
        out.clear();
        out.push(REFUSED);
        out.extend_from_slice(why.as_bytes());
    };
    if header.len() != fields.len() {
        let more = if fields.len() > header.len() { "more than" } else { "only" };
        let count = fields.len().min(header.len());
        refuse(out, format!("the record has {more} {count} fields, and the header has {}", header.len()));
        return Ok(());
    }
    out.push(b'{');
    for (name, field) in header.iter().zip(fields) {
        let Some(bytes) = field else { continue };
        let Ok(text) = std::str::from_utf8(bytes) else {
            refuse(out, format!("`{name}` is not UTF-8"));
            return Ok(());
        };
        if out.last() != Some(&b'{') {
            out.push(b',');
        }
        serde_json::to_writer(&mut *out, name)?;
        out.push(b':');
        let text = if is_export && is_text(name) { restored(text) } else { Cow::Borrowed(text) };
        if is_export && is_json(name) && serde_json::from_str::<&RawValue>(&text).is_ok() {
            out.extend(text.bytes().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { byte }));
        } else {
            serde_json::to_writer(&mut *out, &text)?;
        }
    }
    out.push(b'}');
    Ok(())
}

/// Whether the fields of a column are JSON.
fn is_json(name: &str) -> bool {
    let of_column = |access| matches!(access, Access::Integer(..) | Access::Boolean(..) | Access::Decimal(..));
    name == VERSION_FIELD || name == METADATA || columns().any(|column| column.name == name && of_column(column.access))
}

/// Whether the fields of a column are texts, which [`restored`] unescapes.
fn is_text(name: &str) -> bool {
    columns().any(|column| column.name == name && matches!(column.access, Access::Text(..)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(csv: &str) -> io::Result<String> {
        let mut json = String::new();
        AsJson::new(CsvRecords::new(csv.as_bytes(), Tables::Exports)).read_to_string(&mut json).map(|_| json)
    }

    #[test]
    fn records_are_lines_of_json_at_their_numbers() {
        let table = [
            ("", ""),
            ("a,b\r\n", "\n"),
            ("\u{feff}name,value\r\nx,5\r\n", "\n{\"name\":\"x\",\"value\":5}\n"),
            ("name,value\nx,\n\"\",abc\n", "\n{\"name\":\"x\"}\n{\"name\":\"\",\"value\":\"abc\"}\n"),
            ("name\n\"a\nb\"\n\nc\n", "\n{\"name\":\"a\\nb\"}\n\n\n{\"name\":\"c\"}\n"),
            (
                "name,metadata\n\"a \"\"b\"\"\",\"{\"\"k\"\":[1,\n2]}\"\n",
                "\n{\"name\":\"a \\\"b\\\"\",\"metadata\":{\"k\":[1, 2]}}\n\n",
            ),
            ("a,b\n1\n", "\n\u{1}the record has only 1 fields, and the header has 2\n"),
            ("a,b\n1,2,3,4\n", "\n\u{1}the record has more than 2 fields, and the header has 2\n"),
        ];
        for (csv, json) in table {
            assert_eq!(read(csv).unwrap(), json, "{csv:?}");
        }
    }

    #[test]
    fn apostrophes_before_formulas_go_from_texts_of_exports_alone() {
        let csv =
            "_v,user_id,value,other,metadata\n1,'=1,-5,'=1,\"'-5\"\n1,''=1,'-5,'a,\"{\"\"k\"\":\"\"x;'=1\"\"}\"\n1,'a';'b,,,'5\n";
        let lines = [
            r#"{"_v":1,"user_id":"=1","value":-5,"other":"'=1","metadata":-5}"#,
            r#"{"_v":1,"user_id":"'=1","value":"'-5","other":"'a","metadata":{"k":"x;=1"}}"#,
            r#"{"_v":1,"user_id":"'a';'b","metadata":"'5"}"#,
        ];
        assert_eq!(read(csv).unwrap(), format!("\n{}\n", lines.join("\n")));
        let foreign = Tables::Foreign(ForeignTable { is: "another product's", needs: &["user_id"] });
        let mut json = String::new();
        AsJson::new(CsvRecords::new("user_id\n'=1\n".as_bytes(), foreign)).read_to_string(&mut json).unwrap();
        assert_eq!(json, "\n{\"user_id\":\"'=1\"}\n");
    }

    #[test]
    fn what_is_cut_or_too_large_is_an_error() {
        for (csv, expected) in [
            ("a\n\"b\n".to_owned(), "line 2: it has no end"),
            ("a\nb".to_owned(), "line 2: it has no end"),
            ("a,".repeat(300) + "\n", "more than 256 columns"),
            (format!("a\n\"{}\n", "b\n".repeat(9 << 20)), "line 2: it has more than 16777216 bytes"),
        ] {
            let error = read(&csv).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        let long = format!("a,b\n{}\n", ",".repeat(10 << 20));
        assert!(read(&long).unwrap().contains("more than 2 fields"), "not all of them are kept");
    }
}
