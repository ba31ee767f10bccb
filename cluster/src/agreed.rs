//! The format versions that the nodes of a cluster have agreed to write.
//!
//! Each node announces its [`Levels`]: the latest versions of formats that its program reads and
//! writes. All nodes write the versions that the cluster has *agreed* on, so a node of the previous
//! program version can read everything. A key of the bucket records the agreement. When all nodes
//! run the later program version, [`finalize`](crate::finalize) raises the agreed versions. From
//! then on, the cluster refuses nodes of the previous program version.

use headcount_common::answers_version;
use serde::{Deserialize, Serialize};

use crate::cells::{Cell, KvCells, Unanswered};
use crate::connection::Connection;
use crate::levels::Levels;
use crate::record::{self, BUCKET, RecordError};

const KEY: &str = "levels";
/// The version of the key's value.
const VERSION: u32 = 1;

/// The levels that the nodes of a cluster have agreed on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgreedLevels {
    version: u32,
    /// The program version that raised the levels; empty if they were never raised.
    pub by: String,
    /// The levels.
    pub levels: Levels,
}

/// The fields that every version of the program can read.
#[derive(Deserialize)]
struct VersionedLevels {
    version: u32,
    by: String,
}

/// The reason why the agreed levels can't be read, or don't suit this version of the program.
#[derive(Debug, thiserror::Error)]
pub enum LevelsError {
    /// The levels were raised beyond what this version of the program reads.
    #[error(
        "the cluster was finalized by version {by} of headcount, and has {agreed}; this version ({}) has {own}, and can't be a node of it: install version {by} or a later one. \
         Nothing is lost, and the data directory can stay as it is",
        answers_version()
    )]
    Later {
        /// The program version that raised the levels.
        by: String,
        /// The agreed levels; `unknown levels` if this version does not know them.
        agreed: String,
        /// The levels of this version.
        own: Levels,
    },
    /// The key can't be read.
    #[error("the key `{KEY}` of the bucket `{BUCKET}` can't be read: {0}")]
    Unreadable(String),
    /// The brokers don't answer.
    #[error(transparent)]
    Brokers(#[from] RecordError),
}

impl From<Unanswered> for LevelsError {
    fn from(unanswered: Unanswered) -> Self {
        Self::Brokers(unanswered.into())
    }
}

impl AgreedLevels {
    /// Returns the levels of a cluster that were never raised.
    fn first() -> Self {
        Self { version: VERSION, by: String::new(), levels: Levels::FIRST }
    }

    fn of_bytes(bytes: &[u8]) -> Result<Self, LevelsError> {
        let unreadable = |error: serde_json::Error| LevelsError::Unreadable(error.to_string());
        match serde_json::from_slice(bytes).map_err(unreadable)? {
            VersionedLevels { version: VERSION, .. } => serde_json::from_slice(bytes).map_err(unreadable),
            VersionedLevels { by, .. } => Err(LevelsError::Later { by, agreed: "unknown levels".to_owned(), own: Levels::own() }),
        }
    }

    /// Reads the agreed levels.
    ///
    /// # Errors
    /// Returns a [`LevelsError`].
    pub(crate) async fn read(connection: &Connection) -> Result<Self, LevelsError> {
        let cell = record::read_key(connection, KEY).await?;
        cell.map_or_else(|| Ok(Self::first()), |cell| Self::of_bytes(&cell.value))
    }

    /// Reads the agreed levels for a node with the levels `own`. Everything that uses the
    /// connection writes them from now on.
    ///
    /// # Errors
    /// Returns a [`LevelsError`]: [`LevelsError::Later`] if the node can't join the cluster.
    pub async fn join(connection: &Connection, own: Levels) -> Result<Self, LevelsError> {
        Self::read(connection).await?.joined(connection, own)
    }

    fn joined(self, connection: &Connection, own: Levels) -> Result<Self, LevelsError> {
        if !own.cover(&self.levels) {
            return Err(LevelsError::Later { by: self.by, agreed: self.levels.to_string(), own });
        }
        connection.write_as(self.levels);
        Ok(self)
    }

    /// Makes a new cluster begin with the levels of this program version. No node has joined yet.
    ///
    /// # Errors
    /// Returns a [`LevelsError`].
    pub(crate) async fn begin(connection: &Connection) -> Result<(), LevelsError> {
        let own = Levels::own();
        if own != Levels::FIRST {
            let begun = Self { version: VERSION, by: answers_version().to_owned(), levels: own };
            record::write_key(connection, KEY, &begun.to_text()?).await?;
        }
        connection.write_as(own);
        Ok(())
    }

    fn to_text(&self) -> Result<String, LevelsError> {
        serde_json::to_string(self).map_err(|error| LevelsError::Unreadable(error.to_string()))
    }
}

/// The key with the levels, for those who read it again and again, or change it.
pub(crate) struct LevelsKey<'s>(pub(crate) &'s KvCells);

impl LevelsKey<'_> {
    /// Returns the agreed levels with the revision of the key, or 0 if the key doesn't exist.
    pub(crate) async fn read(&self) -> Result<(AgreedLevels, u64), LevelsError> {
        match self.0.read(KEY).await? {
            Some(Cell { value, revision }) => Ok((AgreedLevels::of_bytes(&value)?, revision)),
            None => Ok((AgreedLevels::first(), 0)),
        }
    }

    /// Reads the agreed levels for a node with the levels `own`. See [`AgreedLevels::join`].
    pub(crate) async fn follow(&self, connection: &Connection, own: Levels) -> Result<AgreedLevels, LevelsError> {
        self.read().await?.0.joined(connection, own)
    }

    /// Raises the agreed levels to `to` if the key still has this revision. Returns whether it had.
    pub(crate) async fn raise(&self, to: Levels, revision: u64) -> Result<bool, LevelsError> {
        let raised = AgreedLevels { version: VERSION, by: answers_version().to_owned(), levels: to };
        Ok(self.0.change(KEY, raised.to_text()?, revision).await?.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nodes of other program versions read this text.
    #[test]
    fn the_text_is_fixed() {
        let agreed = AgreedLevels { version: 1, by: "0.1.0".to_owned(), levels: Levels::FIRST };
        let text = r#"{"version":1,"by":"0.1.0","levels":{"log":1,"control":1,"files":1,"nodes":1,"fold":1}}"#;
        assert_eq!(agreed.to_text().unwrap(), text);
        assert_eq!(AgreedLevels::of_bytes(text.as_bytes()).unwrap(), agreed);
        let later = AgreedLevels::of_bytes(br#"{"version":2,"by":"9.0.0","levels":[]}"#).unwrap_err().to_string();
        assert!(
            later.contains("finalized by version 9.0.0") && later.contains("install version 9.0.0 or a later one"),
            "{later}"
        );
        assert!(matches!(AgreedLevels::of_bytes(b"{}"), Err(LevelsError::Unreadable(_))));
    }
}
