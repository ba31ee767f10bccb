//! What is known of a base without reading it, and what it says of itself.

use std::fmt;

use headcount_domain::intake::event::Position;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// The beginning of the names of bases.
pub(crate) const BASE_PREFIX: &str = "state-";

/// The name of a base: `state-<position>`, or `state-<position>-<rewrites>` for one that was written after that of the same position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BaseName {
    /// The position up to which the base has everything of the project, and nothing beyond.
    pub position: Position,
    /// It tells bases of one position apart.
    pub rewrites: u32,
}

impl fmt::Display for BaseName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { position, rewrites } = self;
        match rewrites {
            0 => write!(f, "{BASE_PREFIX}{position:020}"),
            _ => write!(f, "{BASE_PREFIX}{position:020}-{rewrites}"),
        }
    }
}

/// The entry of a base in the list of files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BaseEntry {
    /// The name of its file, in the project's folder.
    #[serde(serialize_with = "to_text", deserialize_with = "parse_name")]
    pub name: BaseName,
    /// The length in bytes.
    pub bytes: u64,
    /// The SHA-256 of the contents, in hexadecimal.
    pub sha256: String,
}

impl BaseEntry {
    /// The position up to which the base has everything of the project, and nothing beyond.
    #[must_use]
    pub fn position(&self) -> Position {
        self.name.position
    }

    /// The name of the file, in the project's folder.
    #[must_use]
    pub fn name(&self) -> String {
        self.name.to_string()
    }

    /// The name of another base, at a position that is not lower. Names of files never change their contents.
    #[must_use]
    pub fn next_name(&self, position: Position) -> BaseName {
        let rewrites = if position == self.position() { self.name.rewrites + 1 } else { 0 };
        BaseName { position, rewrites }
    }
}

fn to_text<S: Serializer>(name: &BaseName, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(name)
}

fn parse_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BaseName, D::Error> {
    let text = String::deserialize(deserializer)?;
    let parse = || {
        let rest = text.strip_prefix(BASE_PREFIX)?;
        let (position, rewrites) = rest.split_once('-').unwrap_or((rest, "0"));
        Some(BaseName { position: position.parse().ok()?, rewrites: rewrites.parse().ok()? })
    };
    parse().filter(|name| name.to_string() == text).ok_or_else(|| de::Error::custom("not the name of a base"))
}

/// The first frame of a base.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BaseHeader {
    /// The project.
    pub project_id: String,
    /// The position up to which the base has everything of the project.
    pub position: Position,
    /// The position of the last event that counts in it.
    pub last: Position,
    /// A check value of the hash key that its keys were computed with.
    pub key_check: String,
    /// The types of its values, with their versions. Another list was written by another version of the program.
    pub stored_types: Vec<String>,
}
