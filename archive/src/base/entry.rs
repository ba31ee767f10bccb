//! What is known of a base without reading it, and what it says of itself.

use headcount_domain::intake::event::Position;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// The beginning of the names of bases.
pub(crate) const BASE_PREFIX: &str = "state-";

/// The entry of a base in the list of files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BaseEntry {
    /// The position up to which the base has everything of the project, and nothing beyond. Its file is named by it.
    #[serde(rename = "name", serialize_with = "to_name", deserialize_with = "parse_name")]
    pub position: Position,
    /// The length in bytes.
    pub bytes: u64,
    /// The SHA-256 of the contents, in hexadecimal.
    pub sha256: String,
}

impl BaseEntry {
    /// The name of the file, in the project's folder.
    #[must_use]
    pub fn name(&self) -> String {
        name_of(self.position)
    }
}

/// The name of the base at a position.
pub(crate) fn name_of(position: Position) -> String {
    format!("{BASE_PREFIX}{position:020}")
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn to_name<S: Serializer>(position: &Position, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&name_of(*position))
}

fn parse_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Position, D::Error> {
    let name = String::deserialize(deserializer)?;
    let position = name.strip_prefix(BASE_PREFIX).and_then(|digits| digits.parse().ok());
    position.filter(|position| name_of(*position) == name).ok_or_else(|| de::Error::custom("not the name of a base"))
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
