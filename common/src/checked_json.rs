//! Small JSON files with a version and a checksum.

use std::io;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use xxhash_rust::xxh3::xxh3_64;

/// The content of a file, with its checksum.
#[derive(Serialize, Deserialize)]
struct Checked {
    version: u8,
    checksum: String,
    content: Box<RawValue>,
}

fn checksum_of(content: &RawValue) -> String {
    format!("{:016x}", xxh3_64(content.get().as_bytes()))
}

/// Returns the bytes of a file with this content.
pub fn encode<T: Serialize>(version: u8, content: &T) -> io::Result<Vec<u8>> {
    let content = to_raw_value(content)?;
    Ok(serde_json::to_vec(&Checked { version, checksum: checksum_of(&content), content })?)
}

/// Returns the content of a file; `None` if the bytes are damaged or of another version.
pub fn decode<T: DeserializeOwned>(version: u8, bytes: &[u8]) -> Option<T> {
    let file: Checked = serde_json::from_slice(bytes).ok()?;
    let is_intact = file.version == version && file.checksum == checksum_of(&file.content);
    serde_json::from_str(file.content.get()).ok().filter(|_| is_intact)
}
