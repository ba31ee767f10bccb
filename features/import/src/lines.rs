//! Reads a file in blocks of whole lines, and waits for more lines in a followed file.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::form::{Form, Recognized};
use super::progress::Progress;
use super::tables::{AsJson, CsvRecords, MAX_LINE_BYTES, ParquetRows, Tables};

/// The size of a block, unless its first line is longer.
const BLOCK_BYTES: usize = 256 << 10;
/// The maximum number of lines in a block, which is one batch of the API.
pub(crate) const BLOCK_LINES: usize = headcount_actors::ingest::MAX_BATCH_EVENTS;
/// The interval at which a followed file is polled.
const POLL: Duration = Duration::from_millis(200);
/// The number of polls without new lines after which a replaced file counts as finished. A web
/// server writes to the old file until it reopens its log.
const QUIET_POLLS: u32 = 10;

/// A place between two lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Place {
    /// The number of bytes before it, after decompression. In a table, the bytes of its rows as
    /// JSON.
    pub(crate) offset: u64,
    /// The number of lines before it.
    pub(crate) lines: u64,
}

impl Place {
    /// The beginning of a file.
    pub(crate) const START: Place = Place { offset: 0, lines: 0 };
}

/// A block of consecutive whole lines.
#[derive(Debug)]
pub(crate) struct Block {
    /// The number of the block, from 0.
    pub(crate) number: u64,
    /// The lines with their line ends.
    pub(crate) bytes: Vec<u8>,
    /// The place where they begin.
    pub(crate) start: Place,
    /// The place where they end.
    pub(crate) end: Place,
    /// Whether the block is a single line of more than [`MAX_LINE_BYTES`]. Its bytes are not kept.
    pub(crate) is_too_long: bool,
}

/// How to open a file.
#[derive(Debug, Clone)]
pub(crate) struct Opening {
    /// The path; `-` is standard input.
    pub(crate) file: PathBuf,
    /// The place to begin.
    pub(crate) from: Place,
    /// Whether to wait for more lines at the end.
    pub(crate) follow: bool,
    /// Tests whether a last line without a line end is complete. Not called for pipes and
    /// compressed files, which can't grow.
    pub(crate) is_whole: fn(&[u8]) -> bool,
    /// The kinds of tables that the file may have.
    pub(crate) tables: Tables,
    /// The progress to update.
    pub(crate) progress: Arc<Progress>,
}

/// The blocks of an input.
pub(crate) struct Blocks {
    reader: Box<dyn Read + Send>,
    carry: Vec<u8>,
    at: Place,
    number: u64,
    is_over: bool,
    last_line: LastLine,
    /// Whether the lines are lines of the file itself.
    is_plain: bool,
    /// The error that ended a compressed file or a table early.
    broken: Option<io::Error>,
    follow: Option<Follow>,
    progress: Arc<Progress>,
}

/// What to do with a last line without an end.
#[derive(Debug, Clone, Copy)]
enum LastLine {
    Take,
    TakeIf(fn(&[u8]) -> bool),
    Leave,
}

/// A followed file.
#[derive(Debug)]
struct Follow {
    path: PathBuf,
    inode: u64,
    quiet_polls: u32,
}

impl Blocks {
    /// Opens the input. Blocks until a pipe has its first line.
    pub(crate) fn open(opening: Opening) -> io::Result<Self> {
        let Opening { file: path, mut from, follow, is_whole, tables, progress } = opening;
        let mut plain = None;
        let source: Box<dyn Read + Send> = if path == Path::new("-") {
            Box::new(io::stdin())
        } else {
            let opened = File::open(&path)?;
            plain = opened.metadata()?.is_file().then(|| opened.try_clone()).transpose()?;
            Box::new(opened)
        };
        let counted = Counted { source, progress: Arc::clone(&progress) };
        let recognized = Recognized::of(BufReader::with_capacity(256 << 10, counted))?;
        let form = recognized.form_among(tables)?;
        let Recognized { reader, is_packed, .. } = recognized;
        let is_plain = !is_packed && form == Form::Lines;
        let mut reader: Box<dyn Read + Send> = match form {
            Form::Lines => Box::new(reader),
            Form::Csv => Box::new(AsJson::new(CsvRecords::new(reader, tables))),
            Form::Parquet if plain.is_some() && !is_packed => {
                Box::new(AsJson::new(ParquetRows::open(&path, Arc::clone(&progress))?))
            }
            Form::Parquet => {
                return Err(io::Error::other("Parquet can only be read from a plain file, not from a pipe or a compressed file"));
            }
        };
        let inode = plain.as_ref().map(File::metadata).transpose()?.map(|metadata| metadata.ino());
        let last_line = if plain.is_some() && is_plain { LastLine::TakeIf(is_whole) } else { LastLine::Take };
        match plain.filter(|_| is_plain) {
            Some(mut file) if from.offset > 0 => {
                from.offset += end_of_line(&file, from.offset)?;
                file.seek(SeekFrom::Start(from.offset))?;
                progress.read_bytes.store(from.offset, Ordering::Relaxed);
                reader = Box::new(Counted { source: Box::new(file), progress: Arc::clone(&progress) });
            }
            _ => {
                skip(&mut reader, from)?;
            }
        }
        let follow = match (follow, inode) {
            (false, _) => None,
            (true, Some(inode)) if is_plain => Some(Follow { path, inode, quiet_polls: 0 }),
            (true, _) => return Err(io::Error::other("only a plain text file can be followed")),
        };
        let blocks = Self {
            reader,
            carry: Vec::new(),
            at: from,
            number: 0,
            is_over: false,
            last_line,
            is_plain,
            broken: None,
            follow,
            progress,
        };
        Ok(blocks)
    }

    /// Returns the next block, or `None` at the end.
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

    /// Reads until there are `wanted` bytes or the input ends. Returns early with the whole lines
    /// of a followed file.
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
                // Keep the lines before the damage.
                Err(error) if !self.is_plain => {
                    self.broken = Some(error);
                    self.last_line = LastLine::Leave;
                    self.is_over = true;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Waits for more than the `beyond` bytes that were read ahead. The input ends when it is
    /// closed, or when another file took its name and it stops growing.
    fn wait(&mut self, beyond: usize) {
        let Some(follow) = &mut self.follow else { return };
        if self.progress.closed.load(Ordering::Relaxed) {
            (self.is_over, self.last_line) = (true, LastLine::Leave);
            return;
        }
        let read_to = self.at.offset + u64::try_from(beyond).unwrap_or(0);
        // If no file has this name, the next one is about to be created.
        if let Ok(metadata) = follow.path.metadata() {
            let is_cut = metadata.ino() == follow.inode && metadata.len() < read_to;
            if metadata.ino() != follow.inode {
                follow.quiet_polls += 1;
            }
            if is_cut || follow.quiet_polls > QUIET_POLLS {
                (self.is_over, self.last_line) = (true, LastLine::Take);
                return;
            }
        }
        std::thread::sleep(POLL);
    }

    fn takes_rest(&self, bytes: &[u8]) -> bool {
        let rest = memchr::memrchr(b'\n', bytes).map_or(bytes, |end| &bytes[end + 1..]);
        match self.last_line {
            LastLine::Take => true,
            LastLine::TakeIf(is_whole) => rest.is_empty() || is_whole(rest),
            LastLine::Leave => rest.is_empty(),
        }
    }

    fn end(&mut self, rest: &[u8]) -> io::Result<Option<Block>> {
        if let Some(error) = self.broken.take() {
            let message =
                format!("it is truncated or damaged after line {} ({error}); the complete lines before were read", self.at.lines);
            return Err(io::Error::new(error.kind(), message));
        }
        if !rest.is_empty() {
            self.progress.unfinished_line.store(self.at.lines + 1, Ordering::Relaxed);
        }
        Ok(None)
    }

    /// Skips the rest of a line, after the `before` bytes that were already read.
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

/// Skips the lines that an earlier import read, in an input without places of its own.
fn skip(reader: &mut impl Read, to: Place) -> io::Result<()> {
    let mut rest = reader.take(to.offset);
    let (mut buffer, mut lines, mut last) = (vec![0; BLOCK_BYTES], 0, b'\n');
    loop {
        let read = match rest.read(&mut buffer)? {
            0 => break,
            read => &buffer[..read],
        };
        lines += memchr::memchr_iter(b'\n', read).count() as u64;
        last = read.last().copied().unwrap_or(last);
    }
    // The last line of an input may have no end.
    if rest.limit() > 0 || lines + u64::from(last != b'\n') != to.lines {
        return Err(io::Error::other("it was rewritten after its import; --again begins at its first line"));
    }
    Ok(())
}

/// Returns the length of the line end at `offset`, if it was written after the line was read.
fn end_of_line(file: &File, offset: u64) -> io::Result<u64> {
    let mut around = [0; 3];
    let read = file.read_at(&mut around, offset - 1)?;
    Ok(match around[..read] {
        [before, b'\n', ..] if before != b'\n' => 1,
        [before, b'\r', b'\n'] if before != b'\n' => 2,
        _ => 0,
    })
}

/// Returns the length of the whole lines at the beginning, and their number, or `None` if there are
/// none.
fn cut(bytes: &[u8], is_over: bool) -> Option<(usize, u64)> {
    let (mut last, mut lines) = (None, 0);
    for at in memchr::memchr_iter(b'\n', bytes).take(BLOCK_LINES) {
        last = Some(at + 1);
        lines += 1;
    }
    let is_rest_last = is_over && usize::try_from(lines).is_ok_and(|lines| lines < BLOCK_LINES);
    match last {
        // The last line of a file may have no end.
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
        Opening { file: path.to_owned(), from, follow: false, is_whole: |_| true, tables: Tables::Never, progress }
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
            // Reading from any place yields exactly the rest.
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
        // A line end that is written later is not a line of its own.
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
