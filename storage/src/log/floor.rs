//! The file with the first position of the log, after old segments were removed.
//!
//! Without it, a log that lost its oldest segments would look like a trimmed one.

use std::path::{Path, PathBuf};

use super::Position;
use super::error::{Damage, LogError};
use super::segment::{le_u32, le_u64};
use crate::files::{self, PRIVATE_FILE};

const NAME: &str = "floor";
const MAGIC: [u8; 8] = *b"hcntflr\x01";
pub(super) const LEN: usize = 20;

/// Records that the log begins at `first`. Durable when this returns.
pub(super) fn write(dir: &Path, first: Position) -> Result<(), LogError> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&first.to_le_bytes());
    bytes.extend_from_slice(&crc32c::crc32c(&bytes).to_le_bytes());
    let path = path(dir);
    files::write_atomically(&path, &bytes, PRIVATE_FILE).map_err(|error| LogError::creating("write", &path, error))
}

/// Returns the first position of the log; `None` if none has been recorded, as in a directory
/// without a log.
pub(super) fn read(dir: &Path) -> Result<Option<Position>, LogError> {
    let path = path(dir);
    let bytes = files::read_if_there(&path).map_err(|error| LogError::io("read", &path, error))?;
    let Some(bytes) = bytes else { return Ok(None) };
    if bytes.len() != LEN || bytes[0..8] != MAGIC || crc32c::crc32c(&bytes[..16]) != le_u32(&bytes, 16) {
        return Err(LogError::Damaged { segment: 0, offset: 0, reason: Damage::Floor });
    }
    Ok(Some(le_u64(&bytes, 8)))
}

/// The file of the log in `dir`.
pub(super) fn path(dir: &Path) -> PathBuf {
    dir.join(NAME)
}
