//! Writes a base. The file gets its name when it is complete and durable.

use std::path::{Path, PathBuf};

use headcount_domain::Position;
use headcount_storage::files::{self, File};
use sha2::{Digest, Sha256};

use super::entry::{BaseEntry, BaseHeader, BaseName};
use super::frame::{FRAME_BYTES, FrameKind, encode};
use crate::error::ArchiveError;

/// The compression level of zstd.
const LEVEL: i32 = 3;

/// Writes a base. If it is dropped before [`BaseWriter::finish`], it removes its file.
pub struct BaseWriter {
    dir: PathBuf,
    tmp: PathBuf,
    name: BaseName,
    file: File,
    hash: Sha256,
    bytes: u64,
    compressor: zstd::bulk::Compressor<'static>,
    kind: FrameKind,
    contents: Vec<u8>,
    pairs: u64,
    ids: u64,
    is_finished: bool,
}

impl BaseWriter {
    /// Begins the base `name`, at the position of `header`, in the project's folder `dir`. A folder
    /// can have only one writer at a time.
    ///
    /// # Errors
    /// [`ArchiveError::Io`].
    pub fn create(dir: &Path, header: &BaseHeader, name: BaseName) -> Result<Self, ArchiveError> {
        let tmp = dir.join("base.tmp");
        let compressor = zstd::bulk::Compressor::new(LEVEL).map_err(ArchiveError::encode)?;
        let contents = serde_json::to_vec(header).map_err(ArchiveError::encode)?;
        let file = File::create(&tmp).map_err(ArchiveError::io("create", &tmp))?;
        let mut writer = Self {
            dir: dir.to_owned(),
            tmp,
            name,
            file,
            hash: Sha256::new(),
            bytes: 0,
            compressor,
            kind: FrameKind::Header,
            contents,
            pairs: 0,
            ids: 0,
            is_finished: false,
        };
        writer.end_frame()?;
        Ok(writer)
    }

    /// Adds a pair of the store.
    ///
    /// # Errors
    /// [`ArchiveError::Io`].
    pub fn push_pair(&mut self, key: &[u8], value: &[u8]) -> Result<(), ArchiveError> {
        self.begin(FrameKind::Pairs)?;
        self.pairs += 1;
        for part in [key, value] {
            let length = u32::try_from(part.len()).map_err(ArchiveError::encode)?;
            self.contents.extend_from_slice(&length.to_le_bytes());
            self.contents.extend_from_slice(part);
        }
        Ok(())
    }

    /// Adds the fingerprint of an external id, and the position of the first event with it.
    ///
    /// # Errors
    /// [`ArchiveError::Io`].
    pub fn push_id(&mut self, fingerprint: u128, position: Position) -> Result<(), ArchiveError> {
        self.begin(FrameKind::Ids)?;
        self.ids += 1;
        self.contents.extend_from_slice(&fingerprint.to_le_bytes());
        self.contents.extend_from_slice(&position.to_le_bytes());
        Ok(())
    }

    /// Begins a new frame if the current one is full or has another kind.
    fn begin(&mut self, kind: FrameKind) -> Result<(), ArchiveError> {
        if self.kind != kind || self.contents.len() >= FRAME_BYTES {
            self.end_frame()?;
            self.kind = kind;
        }
        Ok(())
    }

    fn end_frame(&mut self) -> Result<(), ArchiveError> {
        if self.contents.is_empty() {
            return Ok(());
        }
        let frame = encode(self.kind, &self.contents, &mut self.compressor).map_err(ArchiveError::encode)?;
        self.contents.clear();
        self.file.write_all_at(&frame, self.bytes).map_err(ArchiveError::io("write", &self.tmp))?;
        self.hash.update(&frame);
        self.bytes += frame.len() as u64;
        Ok(())
    }

    /// Completes the base, makes it durable and renames it. Replaces a file of the same name from a
    /// failed attempt.
    ///
    /// # Errors
    /// [`ArchiveError::Io`]. A file that is not in the list may remain.
    pub fn finish(mut self) -> Result<BaseEntry, ArchiveError> {
        self.begin(FrameKind::End)?;
        self.contents.extend_from_slice(&self.pairs.to_le_bytes());
        self.contents.extend_from_slice(&self.ids.to_le_bytes());
        self.end_frame()?;
        self.file.sync_all().map_err(ArchiveError::io("sync", &self.tmp))?;
        files::rename(&self.tmp, &self.dir.join(self.name.to_string())).map_err(ArchiveError::io("rename", &self.tmp))?;
        self.is_finished = true;
        files::sync_dir(&self.dir).map_err(ArchiveError::io("sync", &self.dir))?;
        let sha256 = format!("{:x}", self.hash.finalize_reset());
        Ok(BaseEntry { name: self.name, bytes: self.bytes, sha256 })
    }
}

impl Drop for BaseWriter {
    fn drop(&mut self) {
        // On a full disk, other files need the space.
        if !self.is_finished
            && let Err(error) = files::remove_file(&self.tmp)
        {
            tracing::debug!(path = %self.tmp.display(), %error, "an unfinished base is not removed");
        }
    }
}
