//! Reading a file in blocks of whole lines, and waiting for more of them.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use flate2::bufread::MultiGzDecoder;

/// How much is read at once; about the size of a block.
const BLOCK_BYTES: usize = 256 << 10;
/// How many lines a block may have: what one batch of the API may.
pub(crate) const BLOCK_LINES: usize = headcount_actors::ingest::MAX_BATCH_EVENTS;
/// How long a line may be. An event may have 64 KiB; something so far beyond is none.
pub(crate) const MAX_LINE_BYTES: usize = 16 << 20;
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
/// How often a file that is followed is looked at.
const POLL: Duration = Duration::from_millis(200);
/// How often in a row nothing must come from a file that was replaced until it is left: a web server goes on writing to
/// it until it is told to open its log again.
const QUIET_POLLS: u32 = 10;

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
    /// It is one line that is longer than [`MAX_LINE_BYTES`], and its bytes are left out.
    pub(crate) is_too_long: bool,
}

/// What is opened, where, and what becomes of its end.
#[derive(Debug, Clone)]
pub(crate) struct Opening {
    /// The file; `-` is standard input.
    pub(crate) file: PathBuf,
    /// From where on.
    pub(crate) from: Place,
    /// Whether to wait for more at its end.
    pub(crate) follow: bool,
    /// Whether a last line without an end is whole. It is not asked where nothing more can come: pipes, compressed files.
    pub(crate) is_whole: fn(&[u8]) -> bool,
    /// What others see of it.
    pub(crate) progress: Arc<Progress>,
}

/// How far a file was read.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// Bytes of the file itself; compressed ones, if it is compressed.
    pub(crate) read_bytes: AtomicU64,
    /// The number of the last line, if that has no end yet and was left; else 0.
    pub(crate) unfinished_line: AtomicU64,
    /// Nobody wants more blocks.
    pub(crate) closed: AtomicBool,
}

/// Blocks of an input, one after another.
pub(crate) struct Blocks {
    reader: Box<dyn Read + Send>,
    carry: Vec<u8>,
    at: Place,
    number: u64,
    is_over: bool,
    rest: Rest,
    is_packed: bool,
    /// What ended a compressed file before its end.
    broken: Option<io::Error>,
    follow: Option<Follow>,
    progress: Arc<Progress>,
}

/// What becomes of a last line without an end.
#[derive(Debug, Clone, Copy)]
enum Rest {
    Taken,
    TakenIf(fn(&[u8]) -> bool),
    Left,
}

/// A file that is waited for.
#[derive(Debug)]
struct Follow {
    path: PathBuf,
    inode: u64,
    quiet_polls: u32,
}

/// Whether a file is gzip. It is at its beginning then.
pub(crate) fn is_packed(file: &mut File) -> io::Result<bool> {
    let mut magic = [0; 2];
    let read = file.read_at(&mut magic, 0)?;
    file.seek(SeekFrom::Start(0))?;
    Ok(read == magic.len() && magic == GZIP_MAGIC)
}

/// A regular file's content. What is gzip is decompressed.
pub(crate) fn open_plain(path: &Path) -> io::Result<Box<dyn Read + Send>> {
    let mut file = File::open(path)?;
    Ok(if is_packed(&mut file)? { Box::new(MultiGzDecoder::new(BufReader::new(file))) } else { Box::new(file) })
}

impl Blocks {
    /// Opens the input. It waits for the first byte of a pipe.
    pub(crate) fn open(opening: Opening) -> io::Result<Self> {
        let Opening { file: path, mut from, follow, is_whole, progress } = opening;
        let mut plain = None;
        let source: Box<dyn Read + Send> = if path == Path::new("-") {
            Box::new(io::stdin())
        } else {
            let opened = File::open(&path)?;
            plain = opened.metadata()?.is_file().then(|| opened.try_clone()).transpose()?;
            Box::new(opened)
        };
        let counted = Counted { source, progress: Arc::clone(&progress) };
        let mut buffered = BufReader::with_capacity(256 << 10, counted);
        let is_packed = buffered.fill_buf()?.starts_with(&GZIP_MAGIC);
        let mut reader: Box<dyn Read + Send> =
            if is_packed { Box::new(MultiGzDecoder::new(buffered)) } else { Box::new(buffered) };
        let inode = plain.as_ref().map(File::metadata).transpose()?.map(|metadata| metadata.ino());
        let rest = if plain.is_some() && !is_packed { Rest::TakenIf(is_whole) } else { Rest::Taken };
        match plain.filter(|_| !is_packed) {
            Some(mut file) if from.offset > 0 => {
                from.offset += end_of_line(&file, from.offset)?;
                file.seek(SeekFrom::Start(from.offset))?;
                progress.read_bytes.store(from.offset, Ordering::Relaxed);
                reader = Box::new(Counted { source: Box::new(file), progress: Arc::clone(&progress) });
            }
            _ => {
                io::copy(&mut reader.by_ref().take(from.offset), &mut io::sink())?;
            }
        }
        let follow = match (follow, inode) {
            (false, _) => None,
            (true, Some(inode)) if !is_packed => Some(Follow { path, inode, quiet_polls: 0 }),
            (true, _) => return Err(io::Error::other("only a plain file can be followed")),
        };
        let blocks = Self {
            reader,
            carry: Vec::new(),
            at: from,
            number: 0,
            is_over: false,
            rest,
            is_packed,
            broken: None,
            follow,
            progress,
        };
        Ok(blocks)
    }

    /// The next block; `None` at the end.
    pub(crate) fn next_block(&mut self) -> io::Result<Option<Block>> {
        let mut bytes = std::mem::take(&mut self.carry);
        let mut wanted = BLOCK_BYTES;
        let (length, lines) = loop {
            self.fill(&mut bytes, wanted)?;
            if let Some(cut) = cut(&bytes, self.is_over && self.takes_rest(&bytes)) {
                break cut;
            }
            if self.is_over {
                return self.end(&bytes);
            }
            if bytes.len() >= MAX_LINE_BYTES {
                return self.skip_line(bytes.len()).map(Some);
            }
            wanted = wanted.max(bytes.len()) * 2;
        };
        self.carry = bytes.split_off(length);
        Ok(Some(self.block(bytes, length, lines)))
    }

    fn block(&mut self, bytes: Vec<u8>, length: usize, lines: u64) -> Block {
        let (start, number) = (self.at, self.number);
        self.at = Place { offset: start.offset + u64::try_from(length).unwrap_or(0), lines: start.lines + lines };
        self.number += 1;
        Block { number, bytes, start, end: self.at, is_too_long: false }
    }

    /// Reads until there are `wanted` bytes, or nothing more comes. A file that is followed gives its whole lines at once.
    fn fill(&mut self, bytes: &mut Vec<u8>, wanted: usize) -> io::Result<()> {
        while !self.is_over && bytes.len() < wanted {
            let missing = wanted - bytes.len();
            bytes.reserve_exact(missing);
            match self.reader.by_ref().take(u64::try_from(missing).unwrap_or(u64::MAX)).read_to_end(bytes) {
                Ok(0) if self.follow.is_some() => {
                    if memchr::memchr(b'\n', bytes).is_some() {
                        return Ok(());
                    }
                    self.wait(bytes.len());
                }
                Ok(0) => self.is_over = true,
                Ok(_) => {
                    if let Some(follow) = &mut self.follow {
                        follow.quiet_polls = 0;
                    }
                }
                // What came before is as good as ever.
                Err(error) if self.is_packed => {
                    self.broken = Some(error);
                    self.rest = Rest::Left;
                    self.is_over = true;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Waits a moment for more, `beyond` bytes behind where it is. It is over when nobody wants more, or when another file
    /// has its name and no more comes.
    fn wait(&mut self, beyond: usize) {
        let Some(follow) = &mut self.follow else { return };
        if self.progress.closed.load(Ordering::Relaxed) {
            (self.is_over, self.rest) = (true, Rest::Left);
            return;
        }
        let read_to = self.at.offset + u64::try_from(beyond).unwrap_or(0);
        // While there is none of the name, the next is about to come.
        if let Ok(metadata) = follow.path.metadata() {
            let is_cut = metadata.ino() == follow.inode && metadata.len() < read_to;
            if metadata.ino() != follow.inode {
                follow.quiet_polls += 1;
            }
            if is_cut || follow.quiet_polls > QUIET_POLLS {
                (self.is_over, self.rest) = (true, Rest::Taken);
                return;
            }
        }
        std::thread::sleep(POLL);
    }

    fn takes_rest(&self, bytes: &[u8]) -> bool {
        let rest = memchr::memrchr(b'\n', bytes).map_or(bytes, |end| &bytes[end + 1..]);
        match self.rest {
            Rest::Taken => true,
            Rest::TakenIf(is_whole) => rest.is_empty() || is_whole(rest),
            Rest::Left => rest.is_empty(),
        }
    }

    fn end(&mut self, rest: &[u8]) -> io::Result<Option<Block>> {
        if let Some(error) = self.broken.take() {
            let message = format!(
                "the compressed data ends after line {}, or is damaged there ({error}); the whole lines before were read",
                self.at.lines
            );
            return Err(io::Error::new(error.kind(), message));
        }
        if !rest.is_empty() {
            self.progress.unfinished_line.store(self.at.lines + 1, Ordering::Relaxed);
        }
        Ok(None)
    }

    /// Passes over the rest of a line of which `before` bytes were read.
    fn skip_line(&mut self, before: usize) -> io::Result<Block> {
        let mut length = before;
        let mut bytes = Vec::new();
        loop {
            bytes.clear();
            self.fill(&mut bytes, BLOCK_BYTES)?;
            if let Some(end) = memchr::memchr(b'\n', &bytes) {
                self.carry = bytes.split_off(end + 1);
                length += end + 1;
                break;
            }
            length += bytes.len();
            if self.is_over {
                break;
            }
        }
        Ok(Block { is_too_long: true, ..self.block(Vec::new(), length, 1) })
    }
}

/// How many bytes end the line before `offset`, if that had no end when it was read.
fn end_of_line(file: &File, offset: u64) -> io::Result<u64> {
    let mut around = [0; 3];
    let read = file.read_at(&mut around, offset - 1)?;
    Ok(match around[..read] {
        [before, b'\n', ..] if before != b'\n' => 1,
        [before, b'\r', b'\n'] if before != b'\n' => 2,
        _ => 0,
    })
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
    progress: Arc<Progress>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.source.read(buffer)?;
        self.progress.read_bytes.fetch_add(u64::try_from(read).unwrap_or(0), Ordering::Relaxed);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn opening(path: &Path, from: Place) -> Opening {
        let progress = Arc::default();
        Opening { file: path.to_owned(), from, follow: false, is_whole: |_| true, progress }
    }

    fn blocks(path: &Path, from: Place) -> Vec<Block> {
        let mut blocks = Blocks::open(opening(path, from)).unwrap();
        std::iter::from_fn(|| blocks.next_block().unwrap()).collect()
    }

    fn text(blocks: &[Block]) -> String {
        blocks.iter().map(|block| String::from_utf8_lossy(&block.bytes)).collect()
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
    }

    #[test]
    fn a_line_over_the_limit_is_one_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let long = "x".repeat(17 << 20);
        std::fs::write(&path, format!("a\n{long}\nb\n{long}")).unwrap();
        let all = blocks(&path, Place::START);
        assert_eq!(text(&all), "a\nb\n");
        let long: Vec<u64> = all.iter().filter(|block| block.is_too_long).map(|block| block.start.lines + 1).collect();
        assert_eq!(long, [2, 4]);
        assert_eq!(all.last().unwrap().end.offset, std::fs::metadata(&path).unwrap().len());
        let rest = blocks(&path, all[1].end);
        assert_eq!(text(&rest), "b\n");
    }

    #[test]
    fn a_last_line_without_an_end_is_taken_if_it_is_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        for (content, taken, left) in [("a\nbc", "a\n", 2), ("a\nb}", "a\nb}", 0), ("b", "", 1), ("", "", 0), ("a\n", "a\n", 0)] {
            std::fs::write(&path, content).unwrap();
            let opening = Opening { is_whole: |rest| rest.ends_with(b"}"), ..opening(&path, Place::START) };
            let progress = Arc::clone(&opening.progress);
            let mut all = Blocks::open(opening).unwrap();
            let all: Vec<Block> = std::iter::from_fn(|| all.next_block().unwrap()).collect();
            assert_eq!((&*text(&all), progress.unfinished_line.load(Ordering::Relaxed)), (taken, left), "{content:?}");
        }
        // When its end comes later, that is no line of its own.
        std::fs::write(&path, "a\nb}\r\nc\n").unwrap();
        let rest = blocks(&path, Place { offset: 4, lines: 2 });
        assert_eq!((&*text(&rest), rest[0].start.lines), ("c\n", 2));
    }

    #[test]
    fn a_compressed_file_that_was_cut_keeps_its_whole_lines() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file.gz");
        let all: String = (0..200_000).map(|line| format!("{line}\n")).collect();
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(all.as_bytes()).unwrap();
        let packed = encoder.finish().unwrap();
        std::fs::write(&path, &packed[..packed.len() / 2]).unwrap();
        let mut reading = Blocks::open(opening(&path, Place::START)).unwrap();
        let mut read = String::new();
        let error = loop {
            match reading.next_block() {
                Ok(block) => read.push_str(&text(&[block.unwrap()])),
                Err(error) => break error,
            }
        };
        assert!(read.len() > all.len() / 4 && all.starts_with(&read) && read.ends_with('\n'), "{}", read.len());
        assert!(error.to_string().contains(&format!("after line {}", read.lines().count())), "{error}");
    }

    #[test]
    fn a_file_is_followed_until_another_has_its_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        std::fs::write(&path, "a\nb").unwrap();
        let mut following = Blocks::open(Opening { follow: true, ..opening(&path, Place::START) }).unwrap();
        let mut appended = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
        assert_eq!(text(&[following.next_block().unwrap().unwrap()]), "a\n");
        appended.write_all(b"c\nd").unwrap();
        assert_eq!(text(&[following.next_block().unwrap().unwrap()]), "bc\n");
        std::fs::rename(&path, dir.path().join("file.1")).unwrap();
        appended.write_all(b"e\n").unwrap();
        std::fs::write(&path, "new\n").unwrap();
        appended.write_all(b"f").unwrap();
        let rest: Vec<Block> = std::iter::from_fn(|| following.next_block().unwrap()).collect();
        assert_eq!(text(&rest), "de\nf");
        let following = Opening { follow: true, ..opening(&path, Place::START) };
        following.progress.closed.store(true, Ordering::Relaxed);
        let mut stopped = Blocks::open(following).unwrap();
        assert_eq!(text(&[stopped.next_block().unwrap().unwrap()]), "new\n");
        assert!(stopped.next_block().unwrap().is_none());
    }
}
