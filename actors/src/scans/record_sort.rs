//! External sort of records of any length: more than fit into memory, in unnamed temporary files
//! that are merged on reading.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::io::{self, BufReader, ErrorKind, Read, Seek, SeekFrom};

use headcount_storage::files::File;

use super::spill_dir::{SpillDir, SpillWriter};

/// Number of runs of one size that are merged into one of the next: it bounds open files and their
/// buffers.
const MERGE_AT: usize = 16;
const BUFFER_BYTES: usize = 16 << 10;
/// Memory of a record besides its bytes.
const OVERHEAD: usize = size_of::<(u64, usize, usize)>();

/// Collects records, which are ordered as bytes.
#[derive(Debug)]
pub struct RecordSorter {
    scratch: SpillDir,
    /// Maximum number of bytes in memory. One record may exceed it.
    most: usize,
    bytes: Vec<u8>,
    /// The first 8 bytes of each record, its offset, and its end.
    records: Vec<(u64, usize, usize)>,
    /// Runs by size: each is about [`MERGE_AT`] times as large as those of the tier before.
    tiers: Vec<Vec<File>>,
}

impl RecordSorter {
    /// Creates a sorter that keeps at most `most` bytes in memory, and the others in `scratch`.
    #[must_use]
    pub fn new(scratch: &SpillDir, most: usize) -> Self {
        Self { scratch: scratch.clone(), most, bytes: Vec::new(), records: Vec::new(), tiers: Vec::new() }
    }

    /// Adds the record that consists of these parts.
    ///
    /// # Errors
    /// Any error of the operating system.
    pub fn push(&mut self, parts: &[&[u8]]) -> io::Result<()> {
        let bytes: usize = parts.iter().map(|part| part.len()).sum();
        let held = self.bytes.len() + self.records.len() * OVERHEAD;
        if !self.records.is_empty() && held + bytes + OVERHEAD > self.most {
            self.spill()?;
        }
        let start = self.bytes.len();
        parts.iter().for_each(|part| self.bytes.extend_from_slice(part));
        self.records.push((head(&self.bytes[start..]), start, self.bytes.len()));
        Ok(())
    }

    fn sort(&mut self) {
        let bytes = &self.bytes;
        let record = |(head, start, end): &(u64, usize, usize)| (*head, &bytes[*start..*end]);
        self.records.sort_unstable_by(|one, other| record(one).cmp(&record(other)));
    }

    fn spill(&mut self) -> io::Result<()> {
        self.sort();
        let mut out = Run(self.scratch.create()?);
        self.records.iter().try_for_each(|(_, start, end)| out.push(&self.bytes[*start..*end]))?;
        self.bytes.clear();
        self.records.clear();
        self.add(out.finish()?, 0)
    }

    fn add(&mut self, run: File, tier: usize) -> io::Result<()> {
        if self.tiers.len() <= tier {
            self.tiers.push(Vec::new());
        }
        self.tiers[tier].push(run);
        if self.tiers[tier].len() < MERGE_AT {
            return Ok(());
        }
        let mut merged = SortedRecords::new(std::mem::take(&mut self.tiers[tier]), Memory::default())?;
        let mut out = Run(self.scratch.create()?);
        while let Some(record) = merged.next()? {
            out.push(record)?;
        }
        self.add(out.finish()?, tier + 1)
    }

    /// Returns all records in order.
    ///
    /// # Errors
    /// Any error of the operating system.
    pub fn finish(mut self) -> io::Result<SortedRecords> {
        self.sort();
        let runs = std::mem::take(&mut self.tiers).into_iter().flatten().collect();
        let records = std::mem::take(&mut self.records).into_iter().map(|(_, start, end)| (start, end)).collect::<Vec<_>>();
        SortedRecords::new(runs, Memory { bytes: std::mem::take(&mut self.bytes), records: records.into_iter() })
    }

    #[cfg(test)]
    pub(super) fn runs(&self) -> usize {
        self.tiers.iter().map(Vec::len).sum()
    }
}

/// The first bytes of a record, so that most comparisons need no others.
fn head(record: &[u8]) -> u64 {
    let mut head = [0; 8];
    let length = record.len().min(8);
    head[..length].copy_from_slice(&record[..length]);
    u64::from_be_bytes(head)
}

/// A file of records in order, each after its length.
struct Run(SpillWriter);

impl Run {
    fn push(&mut self, record: &[u8]) -> io::Result<()> {
        let length = u32::try_from(record.len()).map_err(|_| io::Error::from(ErrorKind::InvalidInput))?;
        self.0.write(&length.to_le_bytes())?;
        self.0.write(record)
    }

    fn finish(self) -> io::Result<File> {
        self.0.finish()
    }
}

#[derive(Debug, Default)]
struct Memory {
    bytes: Vec<u8>,
    records: std::vec::IntoIter<(usize, usize)>,
}

/// Reads records in order.
#[derive(Debug)]
pub struct SortedRecords {
    files: Vec<BufReader<File>>,
    memory: Memory,
    /// The next record of each source that has one, after its first bytes. The source behind the
    /// files is the memory.
    heads: BinaryHeap<Reverse<(u64, Vec<u8>, usize)>>,
    /// The record that was returned last.
    current: Vec<u8>,
}

impl SortedRecords {
    fn new(runs: Vec<File>, memory: Memory) -> io::Result<Self> {
        let mut files = Vec::with_capacity(runs.len());
        for mut run in runs {
            run.seek(SeekFrom::Start(0))?;
            files.push(BufReader::with_capacity(BUFFER_BYTES, run));
        }
        let heads = BinaryHeap::with_capacity(files.len() + 1);
        let mut sorted = Self { files, memory, heads, current: Vec::new() };
        for source in 0..=sorted.files.len() {
            let mut record = Vec::new();
            if sorted.memory.read(&mut sorted.files, source, &mut record)? {
                sorted.heads.push(Reverse((head(&record), record, source)));
            }
        }
        Ok(sorted)
    }

    /// Returns the next record.
    ///
    /// # Errors
    /// Any error of the operating system.
    #[expect(clippy::should_implement_trait, reason = "it lends each record until the next one")]
    pub fn next(&mut self) -> io::Result<Option<&[u8]>> {
        let Some(mut first) = self.heads.peek_mut() else { return Ok(None) };
        let Reverse((first_bytes, record, source)) = &mut *first;
        // The space of the former record takes the next one of the source.
        std::mem::swap(record, &mut self.current);
        if self.memory.read(&mut self.files, *source, record)? {
            *first_bytes = head(record);
        } else {
            PeekMut::pop(first);
        }
        Ok(Some(&self.current))
    }
}

impl Memory {
    /// Reads the next record of a source: one of `files`, or this. Returns whether there is one.
    fn read(&mut self, files: &mut [BufReader<File>], source: usize, record: &mut Vec<u8>) -> io::Result<bool> {
        record.clear();
        if let Some(file) = files.get_mut(source) {
            return read(file, record);
        }
        let Some((start, end)) = self.records.next() else { return Ok(false) };
        record.extend_from_slice(&self.bytes[start..end]);
        Ok(true)
    }
}

fn read(file: &mut BufReader<File>, record: &mut Vec<u8>) -> io::Result<bool> {
    let mut length = [0; 4];
    match file.read_exact(&mut length) {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(false),
        other => other?,
    }
    record.resize(usize::try_from(u32::from_le_bytes(length)).unwrap_or(usize::MAX), 0);
    file.read_exact(record)?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_back_in_order_and_few_are_in_memory() {
        let dir = tempfile::tempdir().unwrap();
        for (count, most) in [(0_u32, 400), (5, 400), (3_000, 400), (3_000, 1 << 20)] {
            let mut sorter = RecordSorter::new(&SpillDir::new(dir.path()), most);
            let mut expected = Vec::new();
            for number in 0..count {
                let number = number.wrapping_mul(2_654_435_761);
                let record = number.to_string().repeat((number % 7) as usize);
                let (one, other) = record.split_at(record.len() / 2);
                sorter.push(&[one.as_bytes(), other.as_bytes()]).unwrap();
                expected.push(record.into_bytes());
                assert!(sorter.records.len() == 1 || sorter.bytes.len() + sorter.records.len() * OVERHEAD <= most);
                assert!(sorter.tiers.iter().all(|tier| tier.len() < MERGE_AT), "few files are open");
            }
            assert!(sorter.tiers.len() > 1 || most > 400 || count < 10, "there is something to merge");
            expected.sort();
            let mut sorted = sorter.finish().unwrap();
            for record in expected {
                assert_eq!(sorted.next().unwrap(), Some(&*record));
            }
            assert_eq!(sorted.next().unwrap(), None);
        }
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "the files have no names");
    }
}
