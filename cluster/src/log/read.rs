//! Reading the streams of partitions as one log.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use headcount_storage::log::{LogError as ReadError, Position, ReadLog, Record, RecordVisitor, WantedAfter};
use tokio::runtime::Handle;

use super::message::Content;
use super::reader::LogReader;
use super::{LogError, position};

/// The logs of several partitions. Their positions say nothing of each other. The message before the first wanted event must not have been purged: what follows is checked
/// against its chain.
#[derive(Debug)]
pub struct StreamLog {
    runtime: Handle,
    readers: BTreeMap<u16, LogReader>,
}

impl StreamLog {
    /// Reads the logs of these partitions, with `runtime`. Its functions must not be called by a task.
    #[must_use]
    pub fn new(runtime: Handle, readers: BTreeMap<u16, LogReader>) -> Self {
        Self { runtime, readers }
    }

    /// Returns the sequences of the first and the last message of a partition; without any, the last one is one less.
    fn bounds(&self, partition: u16) -> (u64, u64) {
        self.readers.get(&partition).map_or((1, 0), LogReader::bounds)
    }

    /// Visits one partition. Returns whether the visitor has ended the reading.
    fn read_partition(
        &self,
        partition: u16,
        after: Position,
        visit: &mut RecordVisitor<'_>,
    ) -> Result<ControlFlow<()>, LogError> {
        let Some(reader) = self.readers.get(&partition) else { return Ok(ControlFlow::Continue(())) };
        let mut flow = ControlFlow::Continue(());
        let mut visit_message = |sequence, message: super::Message| {
            let Content::Events(entries) = message.content else { return flow };
            let mut first = position::first_of(sequence);
            for entry in entries {
                let last = first + u64::from(entry.count) - 1;
                if last > after {
                    flow = visit(Record { partition, first, count: entry.count, payload: &entry.payload });
                    if flow.is_break() {
                        break;
                    }
                }
                first = last + 1;
            }
            flow
        };
        self.runtime.block_on(async {
            // The message of `after` may have more events than were wanted before.
            let end = reader.end_at(position::sequence_of(after).saturating_sub(1)).await?;
            reader.read(end, &mut visit_message).await
        })?;
        Ok(flow)
    }
}

impl ReadLog for StreamLog {
    fn first_position(&self, partition: u16) -> Position {
        position::first_of(self.bounds(partition).0)
    }

    fn last_position(&self, partition: u16) -> Position {
        match self.bounds(partition).1 {
            0 => 0,
            last => position::last_of(last),
        }
    }

    /// Counts messages, each as the events that it can have.
    fn events_after(&self, partition: u16, after: Position) -> u64 {
        self.last_position(partition).saturating_sub(after)
    }

    fn is_in_order(&self) -> bool {
        false
    }

    fn read(&self, wanted: &WantedAfter<'_>, visit: &mut RecordVisitor<'_>) -> Result<(), ReadError> {
        for partition in self.readers.keys() {
            let Some(after) = wanted(*partition) else { continue };
            if self.read_partition(*partition, after, visit)?.is_break() {
                return Ok(());
            }
        }
        Ok(())
    }
}
