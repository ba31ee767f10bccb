//! The list of a set's tables.

use serde::{Deserialize, Serialize};

use super::error::TableError;
use crate::codec::{self, CodecError};

/// The version of the manifest and of the tables that it names. Tables of another version are
/// rebuilt from the log.
const VERSION: u8 = 1;

/// The tables of a set. Tables that it does not name don't count.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Manifest {
    /// The number of the next table.
    pub(crate) next: u64,
    /// The numbers of the tables, oldest first.
    pub(crate) tables: Vec<u64>,
}

impl Manifest {
    /// Encodes the manifest.
    pub(crate) fn encode(&self) -> Result<Vec<u8>, TableError> {
        codec::encode(VERSION, self)
            .map_err(|error| TableError::Io { action: "encode its manifest", source: std::io::Error::other(error) })
    }

    /// Decodes a manifest.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, TableError> {
        codec::decode(VERSION, bytes).map_err(|error| match error {
            CodecError::UnknownVersion { found, .. } => TableError::OtherFormat { found, expected: VERSION },
            error => TableError::damaged(format!("the manifest of its tables: {error}")),
        })
    }
}
