//! The marks of imports in the log.

use serde::{Deserialize, Serialize};

/// Names a part of an imported file. It is recorded with the events of that part, so the log has
/// both or neither.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportMark {
    /// The number of the import.
    pub import: u64,
    /// The bytes and lines before the part.
    pub from: (u64, u64),
    /// The bytes and lines before the line after the part.
    pub until: (u64, u64),
    /// The refused lines of the part: the first and last number of each run of lines.
    pub refused: Vec<(u64, u64)>,
}
