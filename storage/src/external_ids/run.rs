//! A run: fingerprints in order, each with its position, in a file that never changes.
//!
//! ```text
//! page 0              header
//! page 1 ..= pages    entries: fingerprint (16 bytes) and position - smallest (`width` bytes), big endian;
//!                     the last 4 bytes of a page are the CRC32C of the rest and of the page's number
//! then                fences: the high half of the first fingerprint of each page (8 bytes each)
//! then                the filter
//! ```
//!
//! Fences and filter are read into memory at open; a lookup that passes the filter reads one page.

use std::sync::Arc;

use super::error::ExternalIdsError;
use crate::files::{CachedFile, Dir, OpenFiles};
use crate::pace::Pace;
use crate::sstable::filter::{BLOCK_BYTES, Filter};

/// The size of a page.
pub(super) const PAGE_BYTES: usize = 4096;
pub(super) const CRC_BYTES: usize = 4;
/// The size of a fingerprint.
pub(super) const FINGERPRINT_BYTES: usize = 16;
const MAGIC: [u8; 8] = *b"hcfinge1";
const HEADER_BYTES: usize = 85;
/// How many pages a sequential reader fetches at once.
const READ_AHEAD: usize = 64;

/// A page of a run.
pub(super) type Page = [u8; PAGE_BYTES];

/// What a run says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) incarnation: u128,
    /// How many entries there are.
    pub(super) count: u64,
    /// The smallest position, which all are stored relative to.
    pub(super) smallest: u64,
    /// The largest position.
    pub(super) largest: u64,
    pub(super) pages: u64,
    pub(super) filter_blocks: u64,
    pub(super) fences_crc: u32,
    pub(super) filter_crc: u32,
}

impl Header {
    /// How many bytes a position takes.
    pub(super) fn width(&self) -> usize {
        (u64::BITS - (self.largest - self.smallest).leading_zeros()).div_ceil(8) as usize
    }

    /// How many bytes an entry takes.
    pub(super) fn entry_bytes(&self) -> usize {
        FINGERPRINT_BYTES + self.width()
    }

    /// How many entries a page holds.
    pub(super) fn entries_per_page(&self) -> usize {
        (PAGE_BYTES - CRC_BYTES) / self.entry_bytes()
    }

    /// The header as it is written.
    pub(super) fn encode(&self) -> Page {
        let mut page = [0; PAGE_BYTES];
        let mut at = 0;
        let mut put = |bytes: &[u8]| {
            page[at..at + bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
        };
        put(&MAGIC);
        put(&[1]);
        put(&self.incarnation.to_be_bytes());
        for field in [self.count, self.smallest, self.largest, self.pages, self.filter_blocks] {
            put(&field.to_be_bytes());
        }
        for field in [self.fences_crc, self.filter_crc] {
            put(&field.to_be_bytes());
        }
        page[HEADER_BYTES - 12..HEADER_BYTES - 4].fill(0);
        let crc = crc32c::crc32c(&page[..HEADER_BYTES - 4]);
        page[HEADER_BYTES - 4..HEADER_BYTES].copy_from_slice(&crc.to_be_bytes());
        page
    }

    fn decode(page: &Page) -> Option<Self> {
        let mut rest = &page[MAGIC.len() + 1..];
        let header = Self {
            incarnation: u128::from_be_bytes(take(&mut rest)?),
            count: u64::from_be_bytes(take(&mut rest)?),
            smallest: u64::from_be_bytes(take(&mut rest)?),
            largest: u64::from_be_bytes(take(&mut rest)?),
            pages: u64::from_be_bytes(take(&mut rest)?),
            filter_blocks: u64::from_be_bytes(take(&mut rest)?),
            fences_crc: u32::from_be_bytes(take(&mut rest)?),
            filter_crc: u32::from_be_bytes(take(&mut rest)?),
        };
        (header.smallest <= header.largest && page == &header.encode()).then_some(header)
    }
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (field, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(*field)
}

/// The checksum at the end of a page.
pub(super) fn page_crc(number: u64, body: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&number.to_be_bytes()), body)
}

/// Where runs lie, and how many of their files may be open.
#[derive(Debug)]
pub(super) struct RunDir {
    pub(super) dir: Arc<Dir>,
    pub(super) open_files: Arc<OpenFiles>,
}

/// The name of a run's file.
pub(super) fn run_name(id: u64) -> String {
    format!("{id:016x}.run")
}

/// An open run.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) id: u64,
    pub(super) header: Header,
    file: CachedFile,
    fences: Vec<u64>,
    filter: Filter,
}

impl Run {
    /// Opens a run; its header, fences and filter are checked, its pages when they are read.
    pub(super) fn open(dir: &RunDir, id: u64, incarnation: u128) -> Result<Self, ExternalIdsError> {
        let file = CachedFile::new(&dir.dir, run_name(id), &dir.open_files);
        let mut page = [0; PAGE_BYTES];
        file.read_exact_at(&mut page, 0).map_err(ExternalIdsError::reading("read a run's header"))?;
        let header = Header::decode(&page).filter(|header| header.incarnation == incarnation);
        let header = header.ok_or_else(|| ExternalIdsError::damaged(format!("the header of run {id}")))?;
        let pages_end = (1 + header.pages) * PAGE_BYTES as u64;
        let fences_len = header.pages * 8;
        let filter_len = header.filter_blocks * BLOCK_BYTES as u64;
        let len = file.len().map_err(ExternalIdsError::io("measure a run"))?;
        if len != pages_end + fences_len + filter_len {
            return Err(ExternalIdsError::damaged(format!("the length of run {id}")));
        }
        let part = |from, len: u64, crc, what| {
            let mut bytes = vec![0; usize::try_from(len).unwrap_or(usize::MAX)];
            file.read_exact_at(&mut bytes, from).map_err(ExternalIdsError::reading("read a run"))?;
            let sound = crc32c::crc32c(&bytes) == crc;
            if sound { Ok(bytes) } else { Err(ExternalIdsError::damaged(format!("the {what} of run {id}"))) }
        };
        let fences = part(pages_end, fences_len, header.fences_crc, "fences")?;
        let fences = fences.as_chunks().0.iter().map(|fence| u64::from_be_bytes(*fence)).collect();
        let filter = Filter::decode(&part(pages_end + fences_len, filter_len, header.filter_crc, "filter")?);
        let filter = filter.ok_or_else(|| ExternalIdsError::damaged(format!("the filter of run {id}")))?;
        Ok(Self { id, header, file, fences, filter })
    }

    /// Has the file removed when nobody reads it any more.
    pub(super) fn remove_at_end(&self) {
        self.file.remove_at_end();
    }

    /// The position of a fingerprint.
    pub(super) fn get(&self, fingerprint: u128) -> Result<Option<u64>, ExternalIdsError> {
        if !self.filter.may_hold(fingerprint) {
            return Ok(None);
        }
        let high = (fingerprint >> 64) as u64;
        // The last page that begins at or before it; where several begin alike, it may be in an earlier one.
        let mut page = self.fences.partition_point(|fence| *fence <= high);
        while page > 0 {
            page -= 1;
            let found = self.search(page, fingerprint)?;
            if found.is_some() || self.fences.get(page) != Some(&high) {
                return Ok(found);
            }
        }
        Ok(None)
    }

    fn search(&self, page: usize, fingerprint: u128) -> Result<Option<u64>, ExternalIdsError> {
        let number = page as u64;
        let mut bytes = [0; PAGE_BYTES];
        let from = (1 + number) * PAGE_BYTES as u64;
        self.file.read_exact_at(&mut bytes, from).map_err(ExternalIdsError::reading("read a page"))?;
        let entries = self.entries(number, &bytes)?;
        let wanted = fingerprint.to_be_bytes();
        let width = self.header.entry_bytes();
        let (mut low, mut high) = (0, entries.len() / width);
        while low < high {
            let middle = low.midpoint(high);
            let entry = &entries[middle * width..][..width];
            match entry[..FINGERPRINT_BYTES].cmp(&wanted) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => return Ok(Some(self.header.entry(entry).1)),
            }
        }
        Ok(None)
    }

    /// The bytes of a page's entries, once the page has proved sound.
    fn entries<'a>(&self, number: u64, page: &'a Page) -> Result<&'a [u8], ExternalIdsError> {
        let (body, crc) = page.split_at(PAGE_BYTES - CRC_BYTES);
        if page_crc(number, body).to_be_bytes() != crc {
            return Err(ExternalIdsError::damaged(format!("page {number} of run {}", self.id)));
        }
        let per_page = self.header.entries_per_page() as u64;
        let entries = self.header.count.saturating_sub(number * per_page).min(per_page) as usize;
        Ok(&body[..entries * self.header.entry_bytes()])
    }

    /// Reads everything and checks it. `false`: `pace` broke it off.
    pub(super) fn verify(&self, pace: &mut Pace<'_>) -> Result<bool, ExternalIdsError> {
        let mut pages = RunIter { run: self, next_page: 0, pages: Vec::new(), entries: Vec::new().into_iter() };
        let mut count = 0;
        while pages.next_page < self.header.pages {
            if pace((READ_AHEAD * PAGE_BYTES) as u64).is_break() {
                return Ok(false);
            }
            pages.read_on()?;
            count += pages.entries.len() as u64;
        }
        let sound = count == self.header.count;
        if sound { Ok(true) } else { Err(ExternalIdsError::damaged(format!("the number of entries of run {}", self.id))) }
    }

    /// All entries in order.
    pub(super) fn iter(&self) -> RunIter<'_> {
        RunIter { run: self, next_page: 0, pages: Vec::new(), entries: Vec::new().into_iter() }
    }

    /// The memory that the run takes.
    pub(super) fn memory_bytes(&self) -> u64 {
        self.filter.memory_bytes() + 8 * self.fences.len() as u64
    }
}

impl Header {
    /// The fingerprint and the position of an entry.
    fn entry(&self, bytes: &[u8]) -> (u128, u64) {
        let (fingerprint, relative) = bytes.split_at(FINGERPRINT_BYTES);
        let fold = |bytes: &[u8]| bytes.iter().fold(0_u128, |sum, byte| (sum << 8) | u128::from(*byte));
        (fold(fingerprint), self.smallest.wrapping_add(fold(relative) as u64))
    }
}

/// The entries of a run, read in long strides.
pub(super) struct RunIter<'a> {
    run: &'a Run,
    next_page: u64,
    pages: Vec<u8>,
    entries: std::vec::IntoIter<(u128, u64)>,
}

impl RunIter<'_> {
    /// The next entry.
    pub(super) fn next(&mut self) -> Result<Option<(u128, u64)>, ExternalIdsError> {
        if let Some(entry) = self.entries.next() {
            return Ok(Some(entry));
        }
        self.read_on()?;
        Ok(self.entries.next())
    }

    fn read_on(&mut self) -> Result<(), ExternalIdsError> {
        let pages = (self.run.header.pages - self.next_page).min(READ_AHEAD as u64);
        self.pages.resize(pages as usize * PAGE_BYTES, 0);
        let from = (1 + self.next_page) * PAGE_BYTES as u64;
        self.run.file.read_exact_at(&mut self.pages, from).map_err(ExternalIdsError::reading("read pages"))?;
        let mut entries = Vec::with_capacity(pages as usize * self.run.header.entries_per_page());
        for (number, page) in (self.next_page..).zip(self.pages.as_chunks().0) {
            let bytes = self.run.entries(number, page)?;
            entries.extend(bytes.chunks_exact(self.run.header.entry_bytes()).map(|entry| self.run.header.entry(entry)));
        }
        self.next_page += pages;
        self.entries = entries.into_iter();
        Ok(())
    }
}
