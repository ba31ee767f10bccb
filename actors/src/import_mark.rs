//! What the log says of the imports whose events it has.

use serde::{Deserialize, Serialize};

/// Names the part of an imported file that a record of the log has. It is recorded with the events of that part: the log has both or neither.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportMark {
    /// The import.
    pub import: u64,
    /// The bytes and lines before the part.
    pub from: (u64, u64),
    /// The bytes and lines before the line that follows the part.
    pub until: (u64, u64),
    /// The lines of the part that were refused: the first and last number of each run of lines.
    pub refused: Vec<(u64, u64)>,
}
