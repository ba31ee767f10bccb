//! Writing a run: in one pass, in order, into a temporary file that is renamed when it is whole and synced.

use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::error::ExternalIdsError;
use super::run::{CRC_BYTES, Header, PAGE_BYTES, page_crc};
use crate::files::{File, parent_of, remove_if_there, rename, sync_dir};
use crate::sstable::filter::{BLOCK_BYTES, Filter};

const BUFFER_BYTES: usize = 256 << 10;

/// A run being written.
pub(super) struct RunWriter {
    tmp: PathBuf,
    path: PathBuf,
    /// `None` once it is complete.
    out: Option<BufWriter<File>>,
    header: Header,
    page: Vec<u8>,
    fences: Vec<u8>,
    filter: Filter,
}

impl RunWriter {
    /// Begins the run at `path`, for at most `entries` entries with positions from `smallest` to `largest`.
    pub(super) fn create(
        path: &Path,
        incarnation: u128,
        entries: u64,
        (smallest, largest): (u64, u64),
    ) -> Result<Self, ExternalIdsError> {
        let tmp = path.with_extension("tmp");
        let mut file = File::create(&tmp).map_err(ExternalIdsError::io("create a run"))?;
        file.seek(SeekFrom::Start(PAGE_BYTES as u64)).map_err(ExternalIdsError::io("write a run"))?;
        let header =
            Header { incarnation, count: 0, smallest, largest, pages: 0, filter_blocks: 0, fences_crc: 0, filter_crc: 0 };
        Ok(Self {
            tmp,
            path: path.to_owned(),
            out: Some(BufWriter::with_capacity(BUFFER_BYTES, file)),
            header,
            page: Vec::with_capacity(PAGE_BYTES),
            fences: Vec::new(),
            filter: Filter::for_entries(entries),
        })
    }

    /// Appends an entry, which must be greater than the one before.
    pub(super) fn push(&mut self, fingerprint: u128, position: u64) -> Result<(), ExternalIdsError> {
        if self.page.is_empty() {
            self.fences.extend_from_slice(&((fingerprint >> 64) as u64).to_be_bytes());
        }
        self.page.extend_from_slice(&fingerprint.to_be_bytes());
        let relative = position.wrapping_sub(self.header.smallest).to_be_bytes();
        self.page.extend_from_slice(&relative[relative.len() - self.header.width()..]);
        self.filter.insert(fingerprint);
        self.header.count += 1;
        if self.page.len() + self.header.entry_bytes() > PAGE_BYTES - CRC_BYTES {
            self.end_page()?;
        }
        Ok(())
    }

    fn end_page(&mut self) -> Result<(), ExternalIdsError> {
        if self.page.is_empty() {
            return Ok(());
        }
        self.page.resize(PAGE_BYTES - CRC_BYTES, 0);
        let crc = page_crc(self.header.pages, &self.page);
        self.page.extend_from_slice(&crc.to_be_bytes());
        if let Some(out) = &mut self.out {
            out.write_all(&self.page).map_err(ExternalIdsError::io("write a run"))?;
        }
        self.page.clear();
        self.header.pages += 1;
        Ok(())
    }

    /// Completes the run; when this returns it is durable under its name.
    pub(super) fn finish(mut self) -> Result<(), ExternalIdsError> {
        self.end_page()?;
        let filter = self.filter.encode();
        self.header.filter_blocks = (filter.len() / BLOCK_BYTES) as u64;
        self.header.fences_crc = crc32c::crc32c(&self.fences);
        self.header.filter_crc = crc32c::crc32c(&filter);
        let Some(mut out) = self.out.take() else { return Ok(()) };
        let complete = || -> std::io::Result<()> {
            out.write_all(&self.fences)?;
            out.write_all(&filter)?;
            out.flush()?;
            let (file, _empty) = out.into_parts();
            file.write_all_at(&self.header.encode(), 0)?;
            file.sync_all()?;
            rename(&self.tmp, &self.path)?;
            sync_dir(parent_of(&self.path))
        };
        complete().map_err(|source| {
            self.remove();
            ExternalIdsError::Io { action: "write a run", source }
        })
    }

    /// Removes what is written. What can't be removed now is removed at the next open.
    fn remove(&self) {
        let _ = remove_if_there(&self.tmp);
        let _ = remove_if_there(&self.path);
    }
}

impl Drop for RunWriter {
    fn drop(&mut self) {
        if let Some(out) = self.out.take() {
            // Nothing more is written: the disk may be full.
            drop(out.into_parts());
            self.remove();
        }
    }
}
