//! External sort: sorts more keys than fit into memory, in unnamed temporary files that are merged
//! on reading.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::io::{self, BufReader, ErrorKind, Read, Seek, SeekFrom};

use headcount_storage::files::File;

use super::spill_dir::SpillDir;

/// Number of runs of one size that are merged into one of the next: it bounds open files and their
/// buffers.
const MERGE_AT: usize = 16;
const BUFFER_BYTES: usize = 16 << 10;

/// Collects keys of `N` bytes. Of keys with the same first `prefix` bytes only the smallest is
/// kept.
pub(crate) struct Sorter<const N: usize> {
    scratch: SpillDir,
    prefix: usize,
    /// Maximum number of keys in memory.
    most: usize,
    keys: Vec<[u8; N]>,
    /// Runs by size: each is about [`MERGE_AT`] times as large as those of the tier before.
    tiers: Vec<Vec<File>>,
}

impl<const N: usize> Sorter<N> {
    /// Creates a sorter that keeps at most `bytes` of keys in memory, and the others in `scratch`.
    pub(crate) fn new(scratch: &SpillDir, prefix: usize, bytes: usize) -> Self {
        Self { scratch: scratch.clone(), prefix, most: (bytes / N).max(2), keys: Vec::new(), tiers: Vec::new() }
    }

    /// Adds a key.
    pub(crate) fn push(&mut self, key: [u8; N]) -> io::Result<()> {
        if self.keys.len() >= self.most {
            self.sort();
            // If most of them are equal, they are not worth a file.
            if self.keys.len() > self.most / 2 {
                self.spill()?;
            }
        }
        self.keys.push(key);
        Ok(())
    }

    fn sort(&mut self) {
        let prefix = self.prefix;
        self.keys.sort_unstable_by(|one, other| head(one).cmp(&head(other)).then_with(|| one.cmp(other)));
        self.keys.dedup_by(|key, before| key[..prefix] == before[..prefix]);
    }

    fn spill(&mut self) -> io::Result<()> {
        let run = self.write(&mut self.keys.iter().map(|key| Ok(*key)))?;
        self.keys.clear();
        self.add(run, 0)
    }

    fn add(&mut self, run: File, tier: usize) -> io::Result<()> {
        if self.tiers.len() <= tier {
            self.tiers.push(Vec::new());
        }
        self.tiers[tier].push(run);
        if self.tiers[tier].len() < MERGE_AT {
            return Ok(());
        }
        let runs = std::mem::take(&mut self.tiers[tier]);
        let mut merged = Sorted::new(runs, Vec::new(), self.prefix)?;
        let run = self.write(&mut merged)?;
        self.add(run, tier + 1)
    }

    fn write(&self, keys: &mut dyn Iterator<Item = io::Result<[u8; N]>>) -> io::Result<File> {
        let mut out = self.scratch.create()?;
        for key in keys {
            out.write(&key?)?;
        }
        out.finish()
    }

    /// Returns all keys in order.
    pub(crate) fn finish(mut self) -> io::Result<Sorted<N>> {
        self.sort();
        let runs = std::mem::take(&mut self.tiers).into_iter().flatten().collect();
        Sorted::new(runs, std::mem::take(&mut self.keys), self.prefix)
    }
}

/// The first bytes of a key, so that most comparisons need no others.
fn head<const N: usize>(key: &[u8; N]) -> u64 {
    key.first_chunk().map_or(0, |head| u64::from_be_bytes(*head))
}

/// Iterates over keys in order.
pub(crate) struct Sorted<const N: usize> {
    prefix: usize,
    sources: Vec<Source<N>>,
    /// The next key of each source that has one, after its first bytes.
    heads: BinaryHeap<Reverse<(u64, [u8; N], usize)>>,
    last: Option<[u8; N]>,
}

enum Source<const N: usize> {
    File(BufReader<File>),
    Memory(std::vec::IntoIter<[u8; N]>),
}

impl<const N: usize> Source<N> {
    fn next(&mut self) -> io::Result<Option<[u8; N]>> {
        match self {
            Self::Memory(keys) => Ok(keys.next()),
            Self::File(file) => {
                let mut key = [0; N];
                match file.read_exact(&mut key) {
                    Ok(()) => Ok(Some(key)),
                    Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(None),
                    Err(error) => Err(error),
                }
            }
        }
    }
}

impl<const N: usize> Sorted<N> {
    fn new(runs: Vec<File>, keys: Vec<[u8; N]>, prefix: usize) -> io::Result<Self> {
        let mut sources = vec![Source::Memory(keys.into_iter())];
        for mut run in runs {
            run.seek(SeekFrom::Start(0))?;
            sources.push(Source::File(BufReader::with_capacity(BUFFER_BYTES, run)));
        }
        let mut heads = BinaryHeap::with_capacity(sources.len());
        for (number, source) in sources.iter_mut().enumerate() {
            heads.extend(source.next()?.map(|key| Reverse((head(&key), key, number))));
        }
        Ok(Self { prefix, sources, heads, last: None })
    }

    fn advance(&mut self) -> io::Result<Option<[u8; N]>> {
        while let Some(mut first) = self.heads.peek_mut() {
            let Reverse((_, key, number)) = *first;
            match self.sources[number].next()? {
                Some(next) => *first = Reverse((head(&next), next, number)),
                None => drop(PeekMut::pop(first)),
            }
            if self.last.is_none_or(|last| last[..self.prefix] != key[..self.prefix]) {
                self.last = Some(key);
                return Ok(Some(key));
            }
        }
        Ok(None)
    }
}

impl<const N: usize> Iterator for Sorted<N> {
    type Item = io::Result<[u8; N]>;

    fn next(&mut self) -> Option<Self::Item> {
        self.advance().transpose()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn keys_come_back_in_order_and_few_are_in_memory() {
        let dir = tempfile::tempdir().unwrap();
        for (keys, bytes) in [(0, 80), (5, 80), (3_000, 80), (3_000, 1 << 20)] {
            let mut sorter: Sorter<8> = Sorter::new(&SpillDir::new(dir.path()), 4, bytes);
            let mut expected: BTreeMap<u32, u32> = BTreeMap::new();
            for number in 0..keys {
                let (head, tail) = (number * 7919 % 1_009, number * 31 % 257);
                expected.entry(head).and_modify(|least| *least = tail.min(*least)).or_insert(tail);
                let key: [u8; 8] = [head.to_be_bytes(), tail.to_be_bytes()].concat().try_into().unwrap();
                sorter.push(key).unwrap();
                assert!(sorter.keys.len() * 8 <= bytes);
                assert!(sorter.tiers.iter().all(|tier| tier.len() < MERGE_AT), "few files are open");
            }
            assert!(sorter.tiers.len() > 1 || bytes > 80 || keys < 10, "there is something to merge");
            let sorted: Vec<(u32, u32)> = sorter
                .finish()
                .unwrap()
                .map(|key| key.map(|key| (u32::from_be_bytes(key[..4].try_into().unwrap()), tail(key))).unwrap())
                .collect();
            assert_eq!(sorted, expected.into_iter().collect::<Vec<_>>());
        }
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "the files have no names");
    }

    fn tail(key: [u8; 8]) -> u32 {
        u32::from_be_bytes(key[4..].try_into().unwrap())
    }

    #[test]
    fn repeated_keys_need_no_file() {
        let dir = tempfile::tempdir().unwrap();
        let mut sorter: Sorter<8> = Sorter::new(&SpillDir::new(dir.path()), 8, 800);
        for number in 0..100_000_u64 {
            sorter.push((number % 10).to_be_bytes()).unwrap();
        }
        assert!(sorter.tiers.is_empty());
        assert_eq!(sorter.finish().unwrap().count(), 10);
    }
}
