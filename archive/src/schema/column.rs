//! The parts of a column: its name, its type, and access to its values.

use headcount_domain::{Amount, Day, Instant};

use super::draft::Draft;
use crate::row::Row;

/// A column of the archive or of an export.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    /// The name.
    pub name: &'static str,
    /// Whether every row has a value.
    pub required: bool,
    /// Whether exports omit it.
    pub archive_only: bool,
    /// The type and the access functions.
    pub access: Access,
}

/// The type of a column, with a function that reads its value from a row, and a function that sets
/// it in a [`Draft`].
#[derive(Debug, Clone, Copy)]
pub enum Access {
    /// `INT64`.
    Integer(fn(&Row) -> i64, fn(&mut Draft, i64)),
    /// `TIMESTAMP(MILLIS, UTC)`.
    Timestamp(fn(&Row) -> Instant, fn(&mut Draft, Instant)),
    /// `DATE`.
    Date(fn(&Row) -> Day, fn(&mut Draft, Day)),
    /// `BOOLEAN`.
    Boolean(fn(&Row) -> Option<bool>, fn(&mut Draft, bool)),
    /// `DECIMAL(38, 6)`.
    Decimal(fn(&Row) -> Option<Amount>, fn(&mut Draft, Amount)),
    /// `FIXED_LEN_BYTE_ARRAY(16)`, big-endian.
    Bytes16(fn(&Row) -> Option<u128>, fn(&mut Draft, u128)),
    /// `STRING`. Setting it returns `None` if the column does not allow the text.
    Text(fn(&Row) -> Option<&str>, fn(&mut Draft, &str) -> Option<()>),
}

/// The value of a column, for row-based formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value<'r> {
    /// No value.
    Null,
    /// An integer.
    Integer(i64),
    /// An instant.
    Timestamp(Instant),
    /// A day.
    Date(Day),
    /// True or false.
    Boolean(bool),
    /// A decimal.
    Decimal(Amount),
    /// 16 bytes.
    Bytes16(u128),
    /// Text.
    Text(&'r str),
}

impl Column {
    /// Returns the value of `row`.
    pub fn value<'r>(&self, row: &'r Row) -> Value<'r> {
        match self.access {
            Access::Integer(get, _) => Value::Integer(get(row)),
            Access::Timestamp(get, _) => Value::Timestamp(get(row)),
            Access::Date(get, _) => Value::Date(get(row)),
            Access::Boolean(get, _) => get(row).map_or(Value::Null, Value::Boolean),
            Access::Decimal(get, _) => get(row).map_or(Value::Null, Value::Decimal),
            Access::Bytes16(get, _) => get(row).map_or(Value::Null, Value::Bytes16),
            Access::Text(get, _) => get(row).map_or(Value::Null, Value::Text),
        }
    }
}
