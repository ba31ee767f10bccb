//! Rows as CSV (RFC 4180): a header, `,` between fields, `"` around fields that need it, and CRLF
//! after records. Texts are neutralized (`formulas.rs`). No other field begins like a formula,
//! except negative numbers.

use std::io::Write;

use super::formulas::neutralized;
use super::{ROW_VERSION, VERSION_FIELD, columns};
use crate::row::Row;
use crate::schema::Value;

/// Writes the names of the fields.
pub(super) fn write_header(out: &mut Vec<u8>) {
    out.extend_from_slice(VERSION_FIELD.as_bytes());
    for column in columns() {
        out.push(b',');
        out.extend_from_slice(column.name.as_bytes());
    }
    out.extend_from_slice(b"\r\n");
}

/// Writes a record. A missing value is an empty field; empty text is `""`.
pub(super) fn write_record(out: &mut Vec<u8>, row: &Row) -> std::io::Result<()> {
    write!(out, "{ROW_VERSION}")?;
    for column in columns() {
        out.push(b',');
        match column.value(row) {
            Value::Null => {}
            Value::Integer(number) => write!(out, "{number}")?,
            Value::Timestamp(at) => write!(out, "{at}")?,
            Value::Date(day) => write!(out, "{day}")?,
            Value::Boolean(yes) => write!(out, "{yes}")?,
            Value::Decimal(amount) => write!(out, "{amount}")?,
            Value::Bytes16(bytes) => write!(out, "{bytes:032x}")?,
            Value::Text(text) => write_text(out, text),
        }
    }
    out.extend_from_slice(b"\r\n");
    Ok(())
}

fn write_text(out: &mut Vec<u8>, text: &str) {
    let text = neutralized(text);
    let needs_quotes = text.is_empty() || text.bytes().any(|byte| matches!(byte, b'"' | b',' | b'\r' | b'\n'));
    if !needs_quotes {
        return out.extend_from_slice(text.as_bytes());
    }
    out.push(b'"');
    for byte in text.bytes() {
        if byte == b'"' {
            out.push(byte);
        }
        out.push(byte);
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_quoted_where_they_must_be() {
        for (text, field) in [
            ("a b", "a b"),
            ("", "\"\""),
            ("a,b", "\"a,b\""),
            ("say \"a\"", "\"say \"\"a\"\"\""),
            ("a\r\nb", "\"a\r\nb\""),
            ("ä'", "ä'"),
            ("=1,2", "\"'=1,2\""),
            ("x;-1", "x;'-1"),
        ] {
            let mut out = Vec::new();
            write_text(&mut out, text);
            assert_eq!(String::from_utf8(out).unwrap(), field);
        }
    }
}
