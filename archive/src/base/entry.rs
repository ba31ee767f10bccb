//! The entry of a base in the list of files, and its header.

use std::fmt;

use headcount_domain::Position;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// The prefix of the names of bases.
pub(crate) const BASE_PREFIX: &str = "state-";

/// The name of a base: `state-<position>`, or `state-<position>-<rewrites>` for a later base at the
/// same position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BaseName {
    /// The base has everything of the project up to this position, and nothing beyond.
    pub position: Position,
    /// Distinguishes the bases of one position.
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
    /// The base has everything of the project up to this position, and nothing beyond.
    pub fn position(&self) -> Position {
        self.name.position
    }

    /// The name of the file, in the project's folder.
    pub fn name(&self) -> String {
        self.name.to_string()
    }

    /// The name of the next base, at the same or a later position. A name always has the same
    /// contents.
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
    /// The base has everything of the project up to this position.
    pub position: Position,
    /// The position of the last counted event in it.
    pub last: Position,
    /// A check value of the hash key of its keys.
    pub key_check: String,
    /// The types of its values, with their versions. Another version of the program may have
    /// another list.
    pub stored_types: Vec<String>,
}
