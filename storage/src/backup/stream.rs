//! A backup that is sent as a tar stream.

use std::io::{self, BufReader, Read, Write};

use tar::{Builder, EntryType, Header};

use super::copy::Hashed;
use super::error::BackupError;
use super::folder::BackupFolder;
use super::manifest::{BackupFile, BackupManifest, MANIFEST_NAME, SUMS_NAME};
use super::target::BackupTarget;
use crate::files::PRIVATE_FILE;

/// The maximum size of the list and of the checksums in a stream.
const MAX_LIST_BYTES: u64 = 256 << 20;
const BUFFER_BYTES: usize = 256 << 10;
/// The name of an entry with the reason why the server can't complete a backup. It replaces the
/// list.
const GIVEN_UP_NAME: &str = "NOT_COMPLETED";
const MAX_REASON_BYTES: u64 = 4096;

/// Writes a backup as a tar stream. The list is its last file.
pub struct TarTarget<W: Write> {
    builder: Builder<W>,
    /// Whether the last file is incomplete.
    is_cut_off: bool,
}

/// Remembers whether reading failed, because the builder of the stream does not distinguish it from
/// a write error.
struct Source<R> {
    inner: R,
    has_failed: bool,
}

impl<R: Read> Read for Source<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.inner.read(buffer).inspect_err(|_| self.has_failed = true)
    }
}

impl<W: Write> TarTarget<W> {
    /// Writes the stream to `writer`.
    pub fn new(writer: W) -> Self {
        Self { builder: Builder::new(writer), is_cut_off: false }
    }

    /// Writes the reason why the backup will not be completed, instead of the list.
    ///
    /// # Errors
    /// [`BackupError::Unsent`] if it can't be written. This includes the case of an incomplete
    /// file, since the reader would take the reason for a part of it.
    pub fn give_up(&mut self, reason: &str) -> Result<(), BackupError> {
        if self.is_cut_off {
            return Err(BackupError::Unsent(io::Error::other("a file is truncated")));
        }
        self.file(GIVEN_UP_NAME, reason.len() as u64, &mut reason.as_bytes()).map(drop)
    }

    /// Returns the writer.
    ///
    /// # Errors
    /// [`BackupError::Unsent`] if the end of the stream can't be written.
    pub fn into_writer(self) -> Result<W, BackupError> {
        self.builder.into_inner().map_err(BackupError::Unsent)
    }
}

impl<W: Write> BackupTarget for TarTarget<W> {
    fn file(&mut self, name: &str, bytes: u64, contents: &mut dyn Read) -> Result<String, BackupError> {
        let mut header = Header::new_gnu();
        header.set_mode(PRIVATE_FILE);
        header.set_size(bytes);
        self.is_cut_off = true;
        let mut source = Source { inner: Hashed::new(BufReader::with_capacity(BUFFER_BYTES, contents)), has_failed: false };
        let appended = self.builder.append_data(&mut header, name, (&mut source).take(bytes));
        if let Err(error) = appended {
            return Err(if source.has_failed { BackupError::io_of("read", name)(error) } else { BackupError::Unsent(error) });
        }
        if source.inner.bytes != bytes {
            return Err(BackupError::damaged(name, format!("does not have {bytes} bytes")));
        }
        self.is_cut_off = false;
        Ok(source.inner.sha256())
    }

    fn finish(&mut self, list: &[u8], sums: &[u8]) -> Result<(), BackupError> {
        for (name, bytes) in [(SUMS_NAME, sums), (MANIFEST_NAME, list)] {
            self.file(name, bytes.len() as u64, &mut &*bytes)?;
        }
        self.builder.finish().map_err(BackupError::Unsent)
    }
}

/// Writes a backup from a tar stream to a folder.
///
/// # Errors
/// [`BackupError::EndedEarly`] if the stream ends before the list; [`BackupError::Damaged`] if a
/// file differs from the list; the errors of the folder.
pub fn unpack(stream: impl Read, folder: &mut BackupFolder) -> Result<BackupManifest, BackupError> {
    let ended = |error: io::Error| BackupError::EndedEarly { reason: error.to_string() };
    let mut archive = tar::Archive::new(BufReader::with_capacity(BUFFER_BYTES, stream));
    let (mut received, mut sums) = (Vec::new(), Vec::new());
    for entry in archive.entries().map_err(ended)? {
        let mut entry = entry.map_err(ended)?;
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        if entry.header().entry_type() != EntryType::Regular {
            return Err(BackupError::damaged(&name, "is not a regular file"));
        }
        match name.as_str() {
            SUMS_NAME => sums = read_list(&mut entry).map_err(ended)?,
            MANIFEST_NAME => {
                let list = read_list(&mut entry).map_err(ended)?;
                let manifest = BackupManifest::decode(&list, &sums)?;
                received.sort_by(|one: &BackupFile, other| one.name.cmp(&other.name));
                if manifest.files != received {
                    return Err(BackupError::damaged(MANIFEST_NAME, "does not match the received files"));
                }
                folder.finish(&list, &sums)?;
                return Ok(manifest);
            }
            GIVEN_UP_NAME => {
                let mut reason = Vec::new();
                entry.take(MAX_REASON_BYTES).read_to_end(&mut reason).map_err(ended)?;
                return Err(BackupError::EndedEarly { reason: String::from_utf8_lossy(&reason).into_owned() });
            }
            _ => {
                let bytes = entry.size();
                let sha256 = folder.file(&name, bytes, &mut entry)?;
                received.push(BackupFile { name, bytes, sha256 });
            }
        }
    }
    Err(BackupError::EndedEarly { reason: "the stream has no more files".to_owned() })
}

fn read_list(entry: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if entry.take(MAX_LIST_BYTES + 1).read_to_end(&mut bytes)? as u64 > MAX_LIST_BYTES {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "its list is too long"));
    }
    Ok(bytes)
}
