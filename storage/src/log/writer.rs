//! Appends to a log.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use super::block::Encoder;
use super::durable::abort;
use super::error::LogError;
use super::floor;
use super::hold::LogFile;
use super::index::SegmentIndex;
use super::reader::{LogReader, LogTrimmer, Removed};
use super::record::{AppendEntry, Position};
use super::recovery::{Active, Recovered, Recovery, recover};
use super::repair::repair;
use super::segment::{Chain, HEADER_BYTES, SegmentHeader, segment_path};
use super::shared::LogState;
use super::space::{Fill, FillOnDisk, Preparer};
use crate::files::{File, make_private_dir};

const MIN_SEGMENT_BYTES: u64 = 2 * HEADER_BYTES;
const MAX_SEGMENT_BYTES: u64 = 1024 * 1024 * 1024;

/// The options of opening a log.
#[derive(Debug, Clone)]
pub struct LogOptions {
    /// Size of a segment's file in bytes, between 8 KiB and 1 GiB. A larger block gets its own
    /// segment. Even an empty log takes the disk space of two segments: the current one and the
    /// prepared one.
    pub segment_bytes: u64,
    /// Whether a thread prepares the next segment while the current one is filled. Otherwise an
    /// append that needs a new segment waits until its file has been zeroed.
    pub prepare_ahead: bool,
    /// Whether to save the intact parts of a damaged log, and report the rest as
    /// [`Recovery::lost`], instead of returning [`LogError::Damaged`]. Reads the whole log and
    /// overwrites the damaged parts.
    pub repair: bool,
}

impl Default for LogOptions {
    fn default() -> Self {
        LogOptions { segment_bytes: 16 * 1024 * 1024, prepare_ahead: true, repair: false }
    }
}

/// The log in a directory, open for appending.
#[derive(Debug)]
pub struct Log {
    shared: Arc<LogState>,
    segment_bytes: u64,
    prepare_ahead: bool,
    preparer: Preparer,
    file: File,
    active: Active,
    encoder: Encoder,
    next: Position,
}

/// Whether an append waits until its block is on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sync {
    Wait,
    #[cfg(feature = "fault-injection")]
    Skip,
}

impl Log {
    /// Opens or creates the log in `dir`. The time depends only on the last segment, not on the
    /// number of segments.
    ///
    /// # Errors
    /// [`LogError::Damaged`] if something has changed, except for an incomplete last block, which
    /// is cut off and reported. [`LogError::UnsupportedVersion`], [`LogError::Full`] (only when
    /// creating a log), [`LogError::Io`].
    pub fn open(dir: impl AsRef<Path>, options: LogOptions) -> Result<(Self, Recovery), LogError> {
        Self::open_with(dir.as_ref(), options, Arc::new(FillOnDisk))
    }

    /// Creates a log in `dir` whose first event gets the position `first`, as if all earlier events
    /// had been removed.
    ///
    /// # Errors
    /// [`LogError::Io`] if a log exists, and the errors of [`Log::open`].
    pub fn create_at(dir: impl AsRef<Path>, first: Position, options: LogOptions) -> Result<Self, LogError> {
        let dir = dir.as_ref();
        create_dir(dir)?;
        if recover(dir)?.is_some() {
            return Err(LogError::io("create", dir, ErrorKind::AlreadyExists.into()));
        }
        create(dir, first, segment_bytes(&options), &mut Preparer::new(dir, Arc::new(FillOnDisk)))?;
        Ok(Self::open(dir, options)?.0)
    }

    pub(super) fn open_with(dir: &Path, options: LogOptions, fill: Arc<dyn Fill>) -> Result<(Self, Recovery), LogError> {
        create_dir(dir)?;
        let lost = if options.repair { repair(dir)? } else { Vec::new() };
        let segment_bytes = segment_bytes(&options);
        let mut preparer = Preparer::new(dir, fill);
        let recovered = match recover(dir)? {
            Some(recovered) => recovered,
            None => create(dir, 1, segment_bytes, &mut preparer)?,
        };
        let Recovered { headers, active, cut_bytes } = recovered;
        let path = segment_path(dir, active.header.first);
        let file = File::edit(&path).map_err(|error| LogError::io("open", &path, error))?;
        let recovery = Recovery {
            cut_bytes,
            first_position: headers.first().map_or(1, |header| header.first),
            last_position: active.index.last,
            segments: headers.len(),
            lost,
        };
        if options.prepare_ahead {
            preparer.start(segment_bytes);
        }
        let log = Log {
            shared: Arc::new(LogState::new(dir, headers, recovery.last_position)),
            segment_bytes,
            prepare_ahead: options.prepare_ahead,
            preparer,
            file,
            next: recovery.last_position + 1,
            active,
            encoder: Encoder::default(),
        };
        Ok((log, recovery))
    }

    /// Appends the entries in order as one block: all or none of them. Returns the position of the
    /// first event when the block is on disk; the other events follow it.
    ///
    /// # Errors
    /// [`LogError::Full`] if another segment is needed and there is no space for it,
    /// [`LogError::TooLarge`] over [`MAX_BLOCK_BYTES`](super::MAX_BLOCK_BYTES), [`LogError::Empty`]
    /// without events, [`LogError::Io`] if the new segment can't be created for another reason.
    /// Nothing was recorded, and the log is still usable.
    ///
    /// # Aborts
    /// Aborts the process if the block can't be written or synced.
    pub fn append(&mut self, entries: &[AppendEntry<'_>]) -> Result<Position, LogError> {
        self.append_block(entries, Sync::Wait)
    }

    /// Appends like [`Log::append`], but returns before the block is durable, for proving that a
    /// crash test detects it.
    ///
    /// # Errors
    /// See [`Log::append`].
    #[cfg(feature = "fault-injection")]
    pub(super) fn append_unsynced(&mut self, entries: &[AppendEntry<'_>]) -> Result<Position, LogError> {
        self.append_block(entries, Sync::Skip)
    }

    /// Position of the last event; without one, the position before the log's first position.
    pub fn last_position(&self) -> Position {
        self.next - 1
    }

    /// A handle for reading. Other threads can use it during appends.
    pub fn reader(&self) -> LogReader {
        LogReader::new(Arc::clone(&self.shared))
    }

    /// A handle for removing old segments. Other threads can use it during appends.
    pub fn trimmer(&self) -> LogTrimmer {
        LogTrimmer::new(Arc::clone(&self.shared))
    }

    /// Removes the sealed segments that end before `position`. See [`LogTrimmer::remove_before`].
    ///
    /// # Errors
    /// Same as [`LogTrimmer::remove_before`].
    pub fn remove_before(&mut self, position: Position) -> Result<Removed, LogError> {
        self.trimmer().remove_before(position)
    }

    /// Returns the files of the ended segments, in order. They don't change any more.
    ///
    /// # Errors
    /// [`LogError::Io`].
    pub fn ended_segments(&self) -> Result<Vec<LogFile>, LogError> {
        let headers = self.shared.lock().clone();
        let ended = headers.iter().filter(|header| header.first != self.active.header.first);
        let file = |header: &SegmentHeader| {
            let path = segment_path(&self.shared.dir, header.first);
            let bytes = File::open(&path).and_then(|file| file.len()).map_err(|error| LogError::io("inspect", &path, error))?;
            Ok(LogFile { path, bytes })
        };
        ended.map(file).collect()
    }

    /// Removes the ended segments. See [`LogTrimmer::remove_before`].
    ///
    /// # Errors
    /// Same as [`LogTrimmer::remove_before`].
    pub fn remove_ended(&mut self) -> Result<Removed, LogError> {
        self.remove_before(self.active.header.first)
    }

    fn append_block(&mut self, entries: &[AppendEntry<'_>], sync: Sync) -> Result<Position, LogError> {
        let first = self.next;
        let bytes = self.encoder.encode(entries, first)?;
        if self.active.offset + bytes > self.active.file_bytes {
            self.make_room(bytes)?;
        }
        let offset = self.active.offset;
        let (block, checksum) = self.encoder.place(self.active.header.salt, offset);
        if let Err(error) = self.file.write_all_at(block, offset) {
            abort("write a block to", &segment_path(&self.shared.dir, self.active.header.first), &error);
        }
        if sync == Sync::Wait
            && let Err(error) = self.file.sync_data()
        {
            abort("sync a block of", &segment_path(&self.shared.dir, self.active.header.first), &error);
        }
        for entry in entries {
            let last = self.next + u64::from(entry.count) - 1;
            self.active.index.add_entry(entry.partition, self.next, last);
            self.next = last + 1;
        }
        let last = self.next - 1;
        self.active.offset += bytes;
        self.active.chain = self.active.chain.extend(checksum, last);
        self.active.index.finish_block(last, self.active.chain);
        self.shared.set_durable(last);
        Ok(first)
    }

    /// Ends the current segment if it has events up to the position `until`, so that it can be
    /// removed when they are no longer needed.
    ///
    /// # Errors
    /// Same as [`Log::append`]. The current segment then stays.
    pub fn end_segment(&mut self, until: Position) -> Result<(), LogError> {
        if self.active.header.first > until || self.active.offset == HEADER_BYTES {
            return Ok(());
        }
        self.make_room(0)
    }

    /// Switches to a segment with room for `bytes`. After an error the current segment stays.
    fn make_room(&mut self, bytes: u64) -> Result<(), LogError> {
        let dir = self.shared.dir.clone();
        let path = segment_path(&dir, self.next);
        if self.active.offset == HEADER_BYTES {
            // An empty segment already has the name of the next one.
            let wanted = HEADER_BYTES + bytes;
            self.preparer
                .extend(&self.file, self.active.file_bytes, wanted)
                .map_err(|error| LogError::creating("extend", &path, error))?;
            self.active.file_bytes = wanted;
            return Ok(());
        }
        let prepared = self
            .preparer
            .take(self.segment_bytes.max(HEADER_BYTES + bytes))
            .map_err(|error| LogError::creating("create", &path, error))?;
        let header = SegmentHeader::new(self.next, self.active.header.first, self.active.chain.0);
        let file_bytes = prepared.bytes;
        self.file = prepared.install(&dir, &header).map_err(|error| LogError::creating("create", &path, error))?;
        self.active.index.save(&dir);
        self.active = empty(header, file_bytes);
        self.shared.push_segment(header);
        if self.prepare_ahead {
            self.preparer.start(self.segment_bytes);
        }
        Ok(())
    }
}

fn empty(header: SegmentHeader, file_bytes: u64) -> Active {
    Active { offset: HEADER_BYTES, file_bytes, chain: Chain::begin(&header), index: SegmentIndex::new(&header), header }
}

fn create_dir(dir: &Path) -> Result<(), LogError> {
    make_private_dir(dir).map_err(|error| LogError::creating("create", dir, error))
}

/// The size of segments.
fn segment_bytes(options: &LogOptions) -> u64 {
    options.segment_bytes.clamp(MIN_SEGMENT_BYTES, MAX_SEGMENT_BYTES).next_multiple_of(HEADER_BYTES)
}

/// Creates the first segment of a new log, which begins at the position `first`.
fn create(dir: &Path, first: Position, segment_bytes: u64, preparer: &mut Preparer) -> Result<Recovered, LogError> {
    let header = SegmentHeader::new(first, 0, 0);
    let failed = |error| LogError::creating("create", &segment_path(dir, first), error);
    let prepared = preparer.take(segment_bytes).map_err(failed)?;
    prepared.install(dir, &header).map_err(failed)?;
    // The floor is written last, so that a floor without a segment means that a segment was lost.
    floor::write(dir, first)?;
    Ok(Recovered { headers: vec![header], active: empty(header, segment_bytes), cut_bytes: 0 })
}
