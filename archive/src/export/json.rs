//! Rows as JSON.

use std::io::Write;

use super::columns;
use crate::row::Row;
use crate::schema::{Column, METADATA, Value};

/// Whether columns without a value are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nulls {
    /// As null.
    Written,
    /// Not at all.
    LeftOut,
}

/// Writes the columns of `row` as fields of a JSON object, without its braces:
/// `"position":7,"name":"order"`. The fields contain no line breaks.
///
/// # Errors
/// None in practice: writing to memory can't fail.
pub fn json_fields(out: &mut Vec<u8>, row: &Row, nulls: Nulls) -> std::io::Result<()> {
    let mut is_first = true;
    for column in columns() {
        let value = column.value(row);
        if value == Value::Null && nulls == Nulls::LeftOut {
            continue;
        }
        if !std::mem::take(&mut is_first) {
            out.push(b',');
        }
        write!(out, "\"{}\":", column.name)?;
        write_value(out, column, value)?;
    }
    Ok(())
}

fn write_value(out: &mut Vec<u8>, column: &Column, value: Value<'_>) -> std::io::Result<()> {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Integer(number) => write!(out, "{number}")?,
        Value::Timestamp(at) => write!(out, "\"{at}\"")?,
        Value::Date(day) => write!(out, "\"{day}\"")?,
        Value::Boolean(yes) => write!(out, "{yes}")?,
        Value::Decimal(amount) => write!(out, "{amount}")?,
        Value::Bytes16(bytes) => write!(out, "\"{bytes:032x}\"")?,
        // Line breaks in JSON strings are escaped, so these are between tokens.
        Value::Text(json) if column.name == METADATA => {
            out.extend(json.bytes().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { byte }));
        }
        Value::Text(text) => serde_json::to_writer(out, text)?,
    }
    Ok(())
}
