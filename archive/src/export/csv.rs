//! Rows as CSV (RFC 4180): a header, `,` between fields, `"` around fields that need it, and CRLF
//! after records. Texts are neutralized that spreadsheets would run as formulas. No other field
//! begins like a formula, except negative numbers.
//!
//! A spreadsheet may separate cells by `,`, `;` or tabs, depending on its locale, whatever the file
//! uses. Quotes in the middle of a line then have no effect, and a cell begins after each `;`, tab
//! and line break of a text. A cell that would begin a formula gets a leading apostrophe. So does a
//! cell with apostrophes before a formula, so that removing one apostrophe restores the text.

use std::borrow::Cow;
use std::io::Write;

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

/// The characters that end a cell within a text.
const ENDS: [char; 4] = [';', '\t', '\r', '\n'];
/// The characters that begin a formula.
const FORMULA: [char; 4] = ['=', '+', '-', '@'];

/// Returns a text that no spreadsheet runs as a formula.
fn neutralized(text: &str) -> Cow<'_, str> {
    changed(text, Cell::is_formula, |cell, out| {
        out.push('\'');
        out.push_str(cell.text);
    })
}

/// Restores a text that was [`neutralized`].
pub fn restored(text: &str) -> Cow<'_, str> {
    let has_apostrophe = |cell: &Cell<'_>| cell.text.starts_with('\'') && cell.is_formula();
    changed(text, has_apostrophe, |cell, out| out.push_str(cell.text.strip_prefix('\'').unwrap_or(cell.text)))
}

/// A part of a text that may be a cell, with its separator.
struct Cell<'t> {
    text: &'t str,
    is_first: bool,
}

impl Cell<'_> {
    /// Whether it begins a formula, after any number of apostrophes.
    fn is_formula(&self) -> bool {
        let text = self.text.trim_start_matches('\'');
        // Some spreadsheets skip blanks and quotes before a formula.
        let is_skipped = |letter: char| letter == '"' || (letter.is_whitespace() && !ENDS.contains(&letter));
        (self.is_first && text.starts_with(['\t', '\r', '\n'])) || text.trim_start_matches(is_skipped).starts_with(FORMULA)
    }
}

fn cells(text: &str) -> impl Iterator<Item = Cell<'_>> {
    text.split_inclusive(ENDS).enumerate().map(|(place, text)| Cell { text, is_first: place == 0 })
}

fn changed<'t>(text: &'t str, is_changed: impl Fn(&Cell<'t>) -> bool, change: impl Fn(&Cell<'t>, &mut String)) -> Cow<'t, str> {
    if !cells(text).any(|cell| is_changed(&cell)) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for cell in cells(text) {
        if is_changed(&cell) { change(&cell, &mut out) } else { out.push_str(cell.text) }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

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

    #[test]
    fn what_begins_a_formula_gets_an_apostrophe() {
        for (text, safe) in [
            ("", ""),
            ("a=1", "a=1"),
            ("a, =1", "a, =1"),
            ("it's", "it's"),
            ("'quoted'", "'quoted'"),
            ("''", "''"),
            ("=1+1", "'=1+1"),
            ("-5", "'-5"),
            ("@a", "'@a"),
            ("'=1", "''=1"),
            ("''=1", "'''=1"),
            (" \u{a0}\"=1", "' \u{a0}\"=1"),
            ("\ta", "'\ta"),
            ("\r=1", "'\r'=1"),
            ("x;=1+1;y", "x;'=1+1;y"),
            ("x;'=1+1;' -2", "x;''=1+1;'' -2"),
            ("x;\ty", "x;\ty"),
            ("a\n+b\r\n\"@c\td-e", "a\n'+b\r\n'\"@c\td-e"),
            ("ü;€=1", "ü;€=1"),
        ] {
            assert_eq!(neutralized(text), safe, "{text:?}");
            assert_eq!(restored(safe), text, "{safe:?}");
        }
    }

    proptest! {
        #[test]
        fn every_text_comes_back(text in "[=+\\-@';\t\r\n \"a,]{0,12}", any in ".{0,8}") {
            for text in [&text, &any] {
                let safe = neutralized(text);
                prop_assert_eq!(restored(&safe), &**text);
                let is_safe = safe.split(ENDS).all(|cell| !cell.trim_start_matches(['"', ' ']).starts_with(FORMULA));
                prop_assert!(is_safe, "{:?}", safe);
            }
        }
    }
}
