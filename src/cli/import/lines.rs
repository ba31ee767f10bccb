//! Reading a file in blocks of whole lines.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::bufread::MultiGzDecoder;

/// How much is read at once; about the size of a block.
const BLOCK_BYTES: usize = 256 << 10;
/// How many lines a block may have: what one batch of the API may.
pub(crate) const BLOCK_LINES: usize = headcount_actors::track::MAX_BATCH_EVENTS;
/// How long a line may be. An event may have 64 KiB; something so far beyond is no list of events.
const MAX_LINE_BYTES: usize = 16 << 20;
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// A place between two lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Place {
    /// Bytes before it, after decompression.
    pub(crate) offset: u64,
    /// Lines before it.
    pub(crate) lines: u64,
}

impl Place {
    /// The beginning.
    pub(crate) const START: Place = Place { offset: 0, lines: 0 };
}

/// Some whole lines.
#[derive(Debug)]
pub(crate) struct Block {
    /// Counts from 0.
    pub(crate) number: u64,
    /// The lines, with their ends.
    pub(crate) bytes: Vec<u8>,
    /// Where they begin.
    pub(crate) start: Place,
    /// Where they end.
    pub(crate) end: Place,
}

/// Blocks of an input, one after another.
pub(crate) struct Blocks {
    reader: Box<dyn Read + Send>,
    carry: Vec<u8>,
    at: Place,
    number: u64,
    is_over: bool,
}

/// How far the file itself was read; compressed bytes, if it is compressed.
pub(crate) type ReadBytes = Arc<AtomicU64>;

impl Blocks {
    /// Opens `file` (`-`: standard input) at `from`. What is gzip is decompressed.
    pub(crate) fn open(file: &Path, from: Place, read_bytes: &ReadBytes) -> io::Result<Self> {
        let mut plain = None;
        let source: Box<dyn Read + Send> = if file == Path::new("-") {
            Box::new(io::stdin())
        } else {
            let opened = File::open(file)?;
            plain = Some(opened.try_clone()?);
            Box::new(opened)
        };
        let counted = Counted { source, read_bytes: Arc::clone(read_bytes) };
        let mut buffered = BufReader::with_capacity(256 << 10, counted);
        let mut reader: Box<dyn Read + Send> = if buffered.fill_buf()?.starts_with(&GZIP_MAGIC) {
            plain = None;
            Box::new(MultiGzDecoder::new(buffered))
        } else {
            Box::new(buffered)
        };
        match plain {
            Some(mut file) if from.offset > 0 => {
                file.seek(SeekFrom::Start(from.offset))?;
                read_bytes.store(from.offset, Ordering::Relaxed);
                reader = Box::new(Counted { source: Box::new(file), read_bytes: Arc::clone(read_bytes) });
            }
            _ => {
                io::copy(&mut reader.by_ref().take(from.offset), &mut io::sink())?;
            }
        }
        Ok(Self { reader, carry: Vec::new(), at: from, number: 0, is_over: false })
    }

    /// The next block; `None` at the end.
    pub(crate) fn next_block(&mut self) -> io::Result<Option<Block>> {
        let mut bytes = std::mem::take(&mut self.carry);
        let mut wanted = BLOCK_BYTES;
        let (length, lines) = loop {
            while !self.is_over && bytes.len() < wanted {
                let missing = u64::try_from(wanted - bytes.len()).unwrap_or(u64::MAX);
                bytes.reserve_exact(wanted - bytes.len());
                self.is_over = self.reader.by_ref().take(missing).read_to_end(&mut bytes)? == 0;
            }
            if let Some(cut) = cut(&bytes, self.is_over) {
                break cut;
            }
            if self.is_over {
                return Ok(None);
            }
            if wanted >= MAX_LINE_BYTES {
                let message = format!("line {} has more than {MAX_LINE_BYTES} bytes", self.at.lines + 1);
                return Err(io::Error::new(io::ErrorKind::InvalidData, message));
            }
            wanted *= 2;
        };
        self.carry = bytes.split_off(length);
        let start = self.at;
        let offset = start.offset + u64::try_from(length).unwrap_or(0);
        self.at = Place { offset, lines: start.lines + lines };
        let number = self.number;
        self.number += 1;
        Ok(Some(Block { number, bytes, start, end: self.at }))
    }
}

/// Where to cut, and how many lines lie before that. `None`: there is no whole line.
fn cut(bytes: &[u8], is_over: bool) -> Option<(usize, u64)> {
    let (mut last, mut lines) = (None, 0);
    for at in memchr::memchr_iter(b'\n', bytes).take(BLOCK_LINES) {
        last = Some(at + 1);
        lines += 1;
    }
    let is_rest_last = is_over && usize::try_from(lines).is_ok_and(|lines| lines < BLOCK_LINES);
    match last {
        // The last line of a file may lack its end.
        _ if is_rest_last && !bytes.is_empty() && last != Some(bytes.len()) => Some((bytes.len(), lines + 1)),
        Some(last) => Some((last, lines)),
        None => None,
    }
}

struct Counted {
    source: Box<dyn Read + Send>,
    read_bytes: ReadBytes,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.source.read(buffer)?;
        self.read_bytes.fetch_add(u64::try_from(read).unwrap_or(0), Ordering::Relaxed);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn blocks(path: &Path, from: Place) -> Vec<Block> {
        let mut blocks = Blocks::open(path, from, &ReadBytes::default()).unwrap();
        std::iter::from_fn(|| blocks.next_block().unwrap()).collect()
    }

    #[test]
    fn blocks_are_whole_lines_and_all_of_the_file_plain_or_compressed() {
        let dir = tempfile::tempdir().unwrap();
        let text: String =
            (0..30_000).map(|line| format!("{line} {}\n", "x".repeat(line % 97))).chain(["the last".into()]).collect();
        let (plain, packed) = (dir.path().join("plain"), dir.path().join("packed.gz"));
        std::fs::write(&plain, &text).unwrap();
        let mut encoder = flate2::write::GzEncoder::new(File::create(&packed).unwrap(), flate2::Compression::fast());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap();
        for path in [&plain, &packed] {
            let all = blocks(path, Place::START);
            assert!(all.len() > 5);
            assert_eq!(all.iter().flat_map(|block| block.bytes.clone()).collect::<Vec<u8>>(), text.as_bytes());
            assert_eq!(all.last().unwrap().end, Place { offset: text.len() as u64, lines: 30_001 });
            for block in &all {
                let lines = block.bytes.split_inclusive(|b| *b == b'\n').count();
                assert_eq!(lines as u64, block.end.lines - block.start.lines);
                assert!(lines <= BLOCK_LINES);
            }
            // From any place on there is exactly the rest.
            for block in &all {
                let rest: Vec<u8> = blocks(path, block.start).into_iter().flat_map(|block| block.bytes).collect();
                assert_eq!(rest, &text.as_bytes()[usize::try_from(block.start.offset).unwrap()..]);
            }
        }
    }

    #[test]
    fn odd_files() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        for (text, lines) in [("", 0), ("\n", 1), ("\n\n", 2), ("a", 1), ("a\nb", 2), ("a\r\nb\r\n", 2)] {
            std::fs::write(&path, text).unwrap();
            let end = blocks(&path, Place::START).last().map_or(Place::START, |block| block.end);
            assert_eq!(end, Place { offset: text.len() as u64, lines }, "{text:?}");
        }
        std::fs::write(&path, "x".repeat(3 << 20)).unwrap();
        assert_eq!(blocks(&path, Place::START).len(), 1);
        std::fs::write(&path, "x".repeat(17 << 20)).unwrap();
        assert!(Blocks::open(&path, Place::START, &ReadBytes::default()).unwrap().next_block().is_err());
    }
}
