//! What the archive records in a file's footer beside what Parquet does: whose the file is, a checksum of each column chunk, and one of
//! the footer itself.

use std::fmt::Write as _;

use parquet::file::metadata::KeyValue;

/// The version of the columns.
pub(super) const FORMAT: &str = "headcount.archive";
/// The project.
pub(super) const PROJECT: &str = "headcount.project";
/// The CRC-32C of each column chunk, eight hexadecimal digits each, row group by row group.
pub(super) const CHUNKS: &str = "headcount.chunks";
/// The CRC-32C of the footer, with these digits as zeros. The last entry of all.
const CHECKSUM: &str = "headcount.crc32c";
const NO_CHECKSUM: &str = "00000000";
/// What ends a file: the length of the footer, and this.
const MAGIC: &[u8] = b"PAR1";
/// The bytes behind the footer.
pub(super) const TRAILER_BYTES: usize = 8;

/// The entries of a footer.
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

/// Reads the checksums of the chunks.
pub(super) fn parse_chunks(text: &str) -> Option<Vec<u32>> {
    let digits = text.as_bytes().chunks(8);
    digits.map(|digits| u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()).collect()
}

/// How long the footer is that ends with this trailer; `None` if it is no trailer.
pub(super) fn length(trailer: [u8; TRAILER_BYTES]) -> Option<u64> {
    let (length, magic) = trailer.split_first_chunk()?;
    (magic == MAGIC).then_some(u64::from(u32::from_le_bytes(*length)))
}

/// Puts its checksum into a footer that has zeros there. False if there is no place for it.
pub(super) fn seal(footer: &mut [u8]) -> bool {
    let Some(at) = place(footer) else { return false };
    let checksum = format!("{:08x}", crc32c::crc32c(footer));
    footer[at..at + NO_CHECKSUM.len()].copy_from_slice(checksum.as_bytes());
    true
}

/// Whether a footer matches the checksum in it.
pub(super) fn is_intact(footer: &[u8]) -> bool {
    let Some(at) = place(footer) else { return false };
    let (before, rest) = footer.split_at(at);
    let (found, after) = rest.split_at(NO_CHECKSUM.len());
    let checksum = crc32c::crc32c_append(crc32c::crc32c_append(crc32c::crc32c(before), NO_CHECKSUM.as_bytes()), after);
    found == format!("{checksum:08x}").as_bytes()
}

/// Where the digits of the checksum begin: behind the key comes a byte that says that a text follows, and its length.
fn place(footer: &[u8]) -> Option<usize> {
    let key = footer.windows(CHECKSUM.len()).rposition(|bytes| bytes == CHECKSUM.as_bytes())?;
    let at = key + CHECKSUM.len() + 2;
    (footer.len() >= at + NO_CHECKSUM.len()).then_some(at)
}
