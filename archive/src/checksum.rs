//! Checksums of lists, which are JSON objects that end with a checksum of everything before it, and
//! of whole files.

use std::path::Path;

use headcount_storage::files::File;
use sha2::{Digest, Sha256};

use crate::error::ArchiveError;

/// The number of bytes per hashing step.
const HASH_BYTES: usize = 1 << 18;

/// The text before the checksum. The checksum covers everything before this text.
const KEY: &str = ",\"crc32c\":\"";
/// The text after the checksum.
const END: &str = "\"}\n";
const DIGITS: usize = 8;

/// Appends the checksum to a JSON object.
pub(crate) fn append(mut object: String) -> String {
    // The closing brace follows the checksum.
    object.pop();
    let checksum = crc32c::crc32c(object.as_bytes());
    format!("{object}{KEY}{checksum:08x}{END}")
}

/// The SHA-256 of the first `bytes` bytes of a file, in hexadecimal.
pub(crate) fn sha256(file: &File, path: &Path, bytes: u64) -> Result<String, ArchiveError> {
    let (mut hash, mut buffer, mut at) = (Sha256::new(), vec![0; HASH_BYTES], 0);
    while at < bytes {
        let length = usize::try_from(bytes - at).unwrap_or(HASH_BYTES).min(HASH_BYTES);
        file.read_exact_at(&mut buffer[..length], at).map_err(ArchiveError::io("read", path))?;
        hash.update(&buffer[..length]);
        at += length as u64;
    }
    Ok(format!("{:x}", hash.finalize()))
}

/// Checks an object that ends with its checksum, and returns it as text.
///
/// # Errors
/// The problem, as text.
pub(crate) fn check(bytes: &[u8]) -> Result<&str, String> {
    let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
    let matches = || {
        let rest = text.strip_suffix(END)?;
        let (rest, digits) = rest.split_at_checked(rest.len().checked_sub(DIGITS)?)?;
        let rest = rest.strip_suffix(KEY)?;
        (digits == format!("{:08x}", crc32c::crc32c(rest.as_bytes()))).then_some(text)
    };
    matches().ok_or_else(|| "it does not match its checksum".to_owned())
}
