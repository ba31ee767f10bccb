//! What a column is: a name, a type, and the way between a row and its value there.

use headcount_domain::money::Amount;
use headcount_domain::time::{Day, Instant};

use super::draft::Draft;
use crate::row::Row;

/// A column of the archive or of an export.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// Whether every row has a value there.
    pub required: bool,
    /// Whether it is in files of the archive only, and not in exports.
    pub archive_only: bool,
    /// Its type, and how it is read and put back.
    pub access: Access,
}

/// The type of a column, with what reads its value from a row and what puts it back into a [`Draft`].
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
    /// `STRING`. Putting it back fails where the column does not allow the text.
    Text(fn(&Row) -> Option<&str>, fn(&mut Draft, &str) -> Option<()>),
}

/// A value of a column, for formats that are written row by row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value<'r> {
    /// There is none.
    Null,
    /// An integer.
    Integer(i64),
    /// A moment.
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
    /// What the row has in this column.
    #[must_use]
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
