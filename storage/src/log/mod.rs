//! The event log: the truth that everything else can be rebuilt from.
//!
//! A directory of append-only segments, `NNNNNNNNNNNNNNNNNNNN.seg`, each named by the position of its first event. One
//! append is one *block* ([`block`]), one write and one fdatasync; it holds *shares*, each of one partition. Positions
//! count events: the first of all is 1, and a share of n events takes n positions in a row.
//!
//! # Invariants
//! - When [`Log::append`] returns a position, the block is on disk. When it returns an error, nothing was recorded.
//!   There is no third case: a write or sync that fails ends the process.
//! - One block at a time: the next is begun when the one before is on disk. So a crash leaves at most one incomplete
//!   block, at the end of the last segment ([`recovery`]).
//! - A segment's header carries a hash of all of the segment before. No file can be lost, swapped or changed unnoticed.
//! - Blocks are checked whenever they are read; nothing that is not intact is ever handed out, or skipped silently.
//!
//! One process, and one [`Log`], may have a directory open: whoever calls [`Log::open`] holds a lock on the data
//! directory.
//!
//! # Files beside the segments
//! `*.idx`: what a sealed segment holds, advisory ([`index`]). `floor`: where the log begins, once old segments were
//! removed. `*.tmp`: not yet in use. `*.damaged`: set aside by a repair ([`repair`]).

mod block;
mod cursor;
mod durable;
mod error;
#[cfg(test)]
mod fault_tests;
mod floor;
mod group;
mod index;
mod reader;
mod recovery;
mod repair;
mod segment;
mod space;
#[cfg(test)]
mod tests;
mod writer;

use std::ops::ControlFlow;

pub use error::{Damage, LogError};
#[cfg(feature = "fault-injection")]
pub use group::Fault;
pub use group::{Committed, GroupCommit, GroupOptions, Outcome, Refused};
pub use reader::{LogReader, LogTrimmer, Removed, Verified};
pub use recovery::{Lost, Recovery};
pub use writer::Log;

/// The place of an event in the log, counted from 1. Position 0 is "before all events".
pub type Position = u64;

/// The most that one append may hold, in bytes of payload and table.
pub const MAX_BLOCK_BYTES: u64 = 64 * 1024 * 1024;

/// One partition's part of an append.
#[derive(Clone, Copy)]
pub struct Share<'a> {
    /// The partition.
    pub partition: u16,
    /// Number of events in the payload, at least 1.
    pub count: u32,
    /// The events, in a form that the log knows nothing of.
    pub payload: &'a [u8],
}

/// One partition's part of an append, as it is read back.
#[derive(Clone, Copy)]
pub struct Record<'a> {
    /// The partition.
    pub partition: u16,
    /// Position of the first event.
    pub first: Position,
    /// Number of events: they have the positions from `first` to `first + count - 1`.
    pub count: u32,
    /// The events, as they were appended.
    pub payload: &'a [u8],
}

/// How a log is opened.
#[derive(Debug, Clone)]
pub struct LogOptions {
    /// Size of a segment's file in bytes; between 8 KiB and 1 GiB. A block that is larger gets a segment of its own.
    pub segment_bytes: u64,
    /// Whether the next segment is prepared on a thread while the current one is filled. Without, an append that needs
    /// a new segment waits until its file has been zeroed.
    pub prepare_ahead: bool,
    /// Whether to keep what can be kept of a damaged log, and to report the rest as [`Recovery::lost`], instead of
    /// returning [`LogError::Damaged`]. Reads the whole log and overwrites what is damaged.
    pub repair: bool,
}

impl Default for LogOptions {
    fn default() -> Self {
        LogOptions { segment_bytes: 64 * 1024 * 1024, prepare_ahead: true, repair: false }
    }
}

/// A log as those see it who write to it. [`Log`] is one on this machine's disk; one that several machines share would
/// be another.
pub trait EventLog: Send {
    /// What reads this log from other threads.
    type Reader: ReadLog;

    /// Appends the shares in order, as one unit: all of them or none. Returns the position of the first event once
    /// everything is durable.
    ///
    /// # Errors
    /// Nothing was recorded, and the log can be used again. See [`LogError`].
    fn append(&mut self, shares: &[Share<'_>]) -> Result<Position, LogError>;

    /// As `append`, but returns before anything is durable, if the log knows how to: for proving that a test of crashes
    /// would notice.
    ///
    /// # Errors
    /// As `append`.
    #[cfg(feature = "fault-injection")]
    fn append_unsynced(&mut self, shares: &[Share<'_>]) -> Result<Position, LogError> {
        self.append(shares)
    }

    /// Position of the last event; the one before the log's first position if there is none.
    fn last_position(&self) -> Position;

    /// A handle for reading.
    fn reader(&self) -> Self::Reader;
}

/// A log as those see it who read it.
pub trait ReadLog: Clone + Send + Sync + 'static {
    /// Position of the oldest event that is kept.
    fn first_position(&self) -> Position;

    /// Position of the last event that is durable.
    fn last_position(&self) -> Position;

    /// Hands the records of the wanted partitions to `visit`, in order. See [`LogReader::read`].
    ///
    /// # Errors
    /// [`LogError::Damaged`], [`LogError::Io`].
    fn read(
        &self,
        wanted: &dyn Fn(u16) -> Option<Position>,
        visit: &mut dyn FnMut(Record<'_>) -> ControlFlow<()>,
    ) -> Result<(), LogError>;
}

// Payloads are what people did: they stay out of logs and panics.
impl std::fmt::Debug for Share<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Share { partition, count, payload } = self;
        write!(f, "Share(partition {partition}, {count} events, {} bytes)", payload.len())
    }
}

impl std::fmt::Debug for Record<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Record { partition, first, count, payload } = self;
        write!(f, "Record(partition {partition}, {count} events from {first}, {} bytes)", payload.len())
    }
}
