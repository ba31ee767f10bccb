//! Reads the streams of partitions as one log.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use headcount_common::PARTITIONS;
use headcount_storage::log::{LogError as ReadError, LogMark, Position, ReadLog, Record, RecordVisitor, WantedAfter};
use parking_lot::RwLock;
use tokio::runtime::Handle;

use super::message::{Claims, Content, Entry};
use super::reader::LogReader;
use super::{LogEnd, LogError, position};

/// The logs of several partitions. Positions of different partitions are unrelated.
///
/// A read after a position is checked against the chain of the message before. That message must
/// not have been purged, unless the caller wants no events after the position.
#[derive(Debug)]
pub struct StreamLog {
    runtime: Handle,
    readers: RwLock<BTreeMap<u16, Adopted>>,
    /// Partitions that are no longer read, but will be saved once more.
    released: RwLock<BTreeMap<u16, Adopted>>,
}

/// A partition that is read.
#[derive(Debug)]
struct Adopted {
    reader: LogReader,
    /// The number of [`ReadLog::resumed`].
    resumed: u64,
}

impl StreamLog {
    /// Begins without partitions. Reads with `runtime`, so its tasks must not call the functions of
    /// this.
    pub fn new(runtime: Handle) -> Self {
        Self { runtime, readers: RwLock::default(), released: RwLock::default() }
    }

    /// Reads a partition with `reader` from now on. [`ReadLog::resumed`] will return `resumed`.
    pub fn adopt(&self, partition: u16, reader: LogReader, resumed: u64) {
        self.forget(partition);
        self.readers.write().insert(partition, Adopted { reader, resumed });
    }

    /// Stops reading a partition. Reads in progress continue; later reads return an error. Marks
    /// stay known until the partition is saved.
    pub fn release(&self, partition: u16) {
        let mut readers = self.readers.write();
        if let Some(adopted) = readers.remove(&partition) {
            self.released.write().insert(partition, adopted);
        }
    }

    /// Forgets a released partition.
    pub fn forget(&self, partition: u16) {
        self.released.write().remove(&partition);
    }

    /// Returns whether the log of a partition has room for a new epoch. `false` if unknown.
    pub(crate) async fn has_room(&self, partition: u16) -> bool {
        let Some(reader) = self.reader(partition) else { return false };
        reader.has_room().await.unwrap_or(false)
    }

    fn reader(&self, partition: u16) -> Option<LogReader> {
        self.readers.read().get(&partition).map(|adopted| adopted.reader.clone())
    }

    /// Returns the sequences of the first and the last message of a partition. If its log is empty,
    /// `last` is `first - 1`.
    fn bounds(&self, partition: u16) -> (u64, u64) {
        self.readers.read().get(&partition).map_or((1, 0), |adopted| adopted.reader.known_bounds())
    }

    /// Visits one partition. Returns whether the visitor ended the reading.
    fn read_partition(
        &self,
        partition: u16,
        after: Position,
        visit: &mut RecordVisitor<'_>,
    ) -> Result<ControlFlow<()>, LogError> {
        // An empty answer would look like a log without events.
        let gone = || LogError::unavailable(format!("partition {partition} is not read here any more"));
        let reader = self.reader(partition).ok_or_else(gone)?;
        let before = self.runtime.block_on(end_before(&reader, after))?;
        // State without any events that are read here reflects at most this end.
        reader.note_end(before);
        let mut cursor = self.runtime.block_on(reader.cursor(before))?;
        loop {
            // The visitor may block on tasks of the runtime, so it must not run in one.
            let messages = self.runtime.block_on(cursor.next())?;
            if messages.is_empty() {
                return Ok(ControlFlow::Continue(()));
            }
            for (end, message) in messages {
                reader.note_end(end);
                let Content::Events(entries) = message.content else { continue };
                if visit_entries(partition, end.sequence, &entries, after, visit).is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
        }
    }
}

/// Returns the end to read after. This is the message before the one with `after`, since that one
/// may have later events. If it has none, or if the message before was purged, this is the message
/// with `after`.
async fn end_before(reader: &LogReader, after: Position) -> Result<LogEnd, LogError> {
    let sequence = position::sequence_of(after);
    let (first, _) = reader.ask_bounds().await?;
    if sequence <= 1 && first <= 1 {
        return Ok(LogEnd::default());
    }
    if sequence > first {
        return reader.end_at(sequence - 1).await;
    }
    if sequence < first {
        return Err(reader.missing(sequence.max(1)));
    }
    let Claims { epoch, count, chain } = reader.claims(sequence).await?;
    match position::first_of(sequence) + u64::from(count) <= after + 1 {
        true => Ok(LogEnd { sequence, chain, epoch }),
        false => Err(reader.missing(sequence - 1)),
    }
}

/// Visits the records of a message that have events after `after`.
fn visit_entries(
    partition: u16,
    sequence: u64,
    entries: &[Entry],
    after: Position,
    visit: &mut RecordVisitor<'_>,
) -> ControlFlow<()> {
    let mut first = position::first_of(sequence);
    for entry in entries {
        let last = first + u64::from(entry.count) - 1;
        if last > after {
            visit(Record { partition, first, count: entry.count, payload: &entry.payload })?;
        }
        first = last + 1;
    }
    ControlFlow::Continue(())
}

impl ReadLog for StreamLog {
    fn first_position(&self, partition: u16) -> Position {
        match self.bounds(partition).0 {
            // No message was before it.
            1 => 1,
            first => position::first_of(first),
        }
    }

    fn last_position(&self, partition: u16) -> Position {
        match self.bounds(partition).1 {
            0 => 0,
            last => position::last_of(last),
        }
    }

    fn events_after(&self, partition: u16, after: Position) -> u64 {
        self.readers.read().get(&partition).map_or(0, |adopted| adopted.reader.events_after(position::sequence_of(after)))
    }

    fn mark(&self, partition: u16, position: Position) -> Option<LogMark> {
        let mark = |adopted: &Adopted| {
            let LogEnd { chain, .. } = adopted.reader.known_end(position::sequence_of(position))?;
            Some(LogMark { position, digest: chain.0, resumed: adopted.resumed })
        };
        match self.readers.read().get(&partition) {
            Some(adopted) => mark(adopted),
            None => self.released.read().get(&partition).and_then(mark),
        }
    }

    fn resumed(&self, partition: u16) -> u64 {
        self.readers.read().get(&partition).map_or(0, |adopted| adopted.resumed)
    }

    fn is_in_order(&self) -> bool {
        false
    }

    fn read(&self, wanted: &WantedAfter<'_>, visit: &mut RecordVisitor<'_>) -> Result<(), ReadError> {
        for partition in 0..PARTITIONS {
            let Some(after) = wanted(partition) else { continue };
            if self.read_partition(partition, after, visit)?.is_break() {
                return Ok(());
            }
        }
        Ok(())
    }
}
