//! The archive's own entries in a file's footer: the project, a checksum of each column chunk, and
//! a checksum of the footer.

use std::fmt::Write as _;

use parquet::file::metadata::KeyValue;

/// The key of the schema version.
pub(super) const FORMAT: &str = "headcount.archive";
/// The key of the project's id.
pub(super) const PROJECT: &str = "headcount.project";
/// The key of the CRC-32C of each column chunk: eight hexadecimal digits each, row group by row
/// group.
pub(super) const CHUNKS: &str = "headcount.chunks";
/// The key of the CRC-32C of the footer, which is computed with zeros in its place. It is the last
/// entry.
const CHECKSUM: &str = "headcount.crc32c";
const NO_CHECKSUM: &str = "00000000";
/// The last bytes of a file, after the length of the footer.
const MAGIC: &[u8] = b"PAR1";
/// The size of the length and the magic after the footer.
pub(super) const TRAILER_BYTES: usize = 8;

/// The entries of a file's footer.
pub(super) fn entries(project: &str, checksums: &[u32]) -> Vec<KeyValue> {
    let mut chunks = String::with_capacity(checksums.len() * 8);
    for checksum in checksums {
        let _ = write!(chunks, "{checksum:08x}");
    }
    let entry = |key: &str, value: String| KeyValue::new(key.to_owned(), value);
    vec![
        entry(FORMAT, crate::schema::SCHEMA_VERSION.to_owned()),
        entry(PROJECT, project.to_owned()),
        entry(CHUNKS, chunks),
        entry(CHECKSUM, NO_CHECKSUM.to_owned()),
    ]
}

/// Parses the checksums of column chunks.
pub(super) fn parse_chunks(text: &str) -> Option<Vec<u32>> {
    let digits = text.as_bytes().chunks(8);
    digits.map(|digits| u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()).collect()
}

/// The length of the footer before `trailer`; `None` if it is not a trailer of Parquet.
pub(super) fn length(trailer: [u8; TRAILER_BYTES]) -> Option<u64> {
    let (length, magic) = trailer.split_first_chunk()?;
    (magic == MAGIC).then_some(u64::from(u32::from_le_bytes(*length)))
}

/// Writes the checksum into a footer. Returns false if the footer has no entry for it.
pub(super) fn seal(footer: &mut [u8]) -> bool {
    let Some(at) = place(footer) else { return false };
    let checksum = format!("{:08x}", crc32c::crc32c(footer));
    footer[at..at + NO_CHECKSUM.len()].copy_from_slice(checksum.as_bytes());
    true
}

/// Whether a footer has a checksum, right or wrong.
pub(super) fn has_checksum(footer: &[u8]) -> bool {
    place(footer).is_some()
}

/// Whether a footer matches the checksum in it.
pub(super) fn is_intact(footer: &[u8]) -> bool {
    let Some(at) = place(footer) else { return false };
    let (before, rest) = footer.split_at(at);
    let (found, after) = rest.split_at(NO_CHECKSUM.len());
    let checksum = crc32c::crc32c_append(crc32c::crc32c_append(crc32c::crc32c(before), NO_CHECKSUM.as_bytes()), after);
    found == format!("{checksum:08x}").as_bytes()
}

/// The index of the checksum's digits. In Thrift's compact protocol, a field header and a length of
/// one byte each follow the key.
fn place(footer: &[u8]) -> Option<usize> {
    let key = footer.windows(CHECKSUM.len()).rposition(|bytes| bytes == CHECKSUM.as_bytes())?;
    let at = key + CHECKSUM.len() + 2;
    (footer.len() >= at + NO_CHECKSUM.len()).then_some(at)
}
