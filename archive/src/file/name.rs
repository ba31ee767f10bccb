//! The names of files, and their entries in the list.

use std::fmt;
use std::str::FromStr;

use headcount_domain::time::Month;
use headcount_domain::{Day, Position};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// The name of a file: `month=2026-11/<first>-<last>.parquet`, or
/// `<first>-<last>-<rewrites>.parquet` after rows were removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileName {
    /// The position of its first row.
    pub first: Position,
    /// The position of its last row.
    pub last: Position,
    /// The UTC month of receipt.
    pub month: Month,
    /// How often rows were removed from the file or its sources. It distinguishes files with the
    /// same range of positions.
    pub rewrites: u32,
}

impl FileName {
    /// The name of the month's folder.
    pub fn folder(&self) -> String {
        folder_of(self.month)
    }

    /// The name without the folder, for messages.
    pub fn base(&self) -> String {
        let Self { first, last, rewrites, .. } = self;
        match rewrites {
            0 => format!("{first:020}-{last:020}.parquet"),
            _ => format!("{first:020}-{last:020}-{rewrites}.parquet"),
        }
    }
}

/// The name of the folder of a month.
pub(crate) fn folder_of(month: Month) -> String {
    format!("month={month}")
}

impl fmt::Display for FileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.folder(), self.base())
    }
}

/// The error for text that is not the name of an archive file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not the name of an archive file")]
pub struct NameError;

impl FromStr for FileName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let parse = || {
            let (month, range) = text.strip_prefix("month=")?.split_once('/')?;
            let (first, last) = range.strip_suffix(".parquet")?.split_once('-')?;
            let (last, rewrites) = last.split_once('-').unwrap_or((last, "0"));
            let (first, last, rewrites) = (first.parse().ok()?, last.parse().ok()?, rewrites.parse().ok()?);
            let name = Self { first, last, month: Month::parse(month)?, rewrites };
            Some(name).filter(|name| name.to_string() == text && name.first <= name.last)
        };
        parse().ok_or(NameError)
    }
}

/// The entry of a file in the list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// Its name.
    #[serde(serialize_with = "to_text", deserialize_with = "parse_name")]
    pub name: FileName,
    /// The number of rows.
    pub rows: u64,
    /// The earliest day of its events.
    #[serde(serialize_with = "to_text", deserialize_with = "parse_day")]
    pub first_day: Day,
    /// The latest day of its events.
    #[serde(serialize_with = "to_text", deserialize_with = "parse_day")]
    pub last_day: Day,
    /// The length in bytes.
    pub bytes: u64,
    /// The SHA-256 of the contents, in hexadecimal.
    pub sha256: String,
}

fn to_text<S: Serializer>(value: &impl fmt::Display, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

fn parse_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<FileName, D::Error> {
    String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
}

fn parse_day<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Day, D::Error> {
    Day::parse(&String::deserialize(deserializer)?).ok_or_else(|| de::Error::custom("not a day"))
}
