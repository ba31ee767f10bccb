//! The event log: the source of truth, from which everything else can be rebuilt.
//!
//! A directory of append-only segments, `NNNNNNNNNNNNNNNNNNNN.seg`, each named by the position of
//! its first event. One append is one *block* ([`block`]), one write and one fdatasync; it holds
//! *entries*, each of one partition. Positions count events: the first of all is 1, and an entry of
//! n events takes n positions in a row.
//!
//! # Invariants
//! - When [`Log::append`] returns a position, the block is on disk. When it returns an error,
//!   nothing was recorded. There is no third case: a write or sync that fails ends the process.
//! - One block at a time: the next is begun when the one before is on disk. So a crash leaves at
//!   most one incomplete block, at the end of the last segment ([`recovery`]).
//! - A segment's header carries a hash of all of the segment before. No file can be lost, swapped
//!   or changed unnoticed.
//! - Blocks are checked whenever they are read; nothing that is not intact is ever handed out, or
//!   skipped silently.
//!
//! One process, and one [`Log`], may have a directory open: the caller of [`Log::open`] holds a
//! lock on the data directory.
//!
//! # Files beside the segments
//! `*.idx`: what a sealed segment holds, advisory ([`index`]). `floor`: where the log begins, once
//! old segments were removed. `*.tmp`: not yet in use. `*.damaged`: set aside by a repair
//! ([`repair`]).

mod block;
mod commit;
mod cursor;
mod durable;
mod error;
#[cfg(test)]
mod fault_tests;
mod floor;
mod group;
mod hold;
mod index;
mod read;
mod reader;
mod record;
mod recovery;
mod repair;
mod segment;
mod shared;
mod space;
#[cfg(test)]
mod tests;
mod writer;

pub use commit::{Commit, Committed, Outcome, Refused};
pub use error::{Damage, LogError, RemoteFailure};
#[cfg(feature = "fault-injection")]
pub use group::Fault;
pub use group::{GroupCommit, GroupOptions};
pub use hold::{LogFile, LogFiles, LogHold};
pub use read::{LogMark, ReadLog, RecordVisitor, WantedAfter};
pub use reader::{LogReader, LogTrimmer, Removed, Verified};
pub use record::{AppendEntry, MAX_BLOCK_BYTES, Position, Record};
pub use recovery::{Lost, Recovery};
pub use writer::{Log, LogOptions};
