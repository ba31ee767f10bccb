//! Appends events to the streams of partitions, after the events that an earlier attempt has
//! recorded.

use std::collections::{BTreeMap, VecDeque};

use headcount_actors::PositionMap;
use tokio::runtime::Handle;
use xxhash_rust::xxh3::Xxh3;

use super::error::MoveError;
use super::gather::MovedEntry;
use crate::connection::Connection;
use crate::log::{Content, Entry, LogEnd, LogWriter, first_of};
use crate::stream::StreamName;

/// The streams of all partitions that get events, in the epoch of this attempt.
pub(super) struct Streams {
    runtime: Handle,
    streams: BTreeMap<u16, Filling>,
}

/// The stream of a partition.
struct Filling {
    writer: LogWriter,
    /// The events that it had when the attempt began.
    before: Contents,
    /// The sequences of its messages with events.
    sequences: VecDeque<u64>,
    /// The part of these events that this attempt has passed.
    again: Contents,
    appended: u64,
}

/// A number of events, and their digest.
#[derive(Default)]
struct Contents {
    events: u64,
    digest: Xxh3,
}

impl Contents {
    fn add(&mut self, entries: &[Entry]) {
        for Entry { count, payload } in entries {
            self.events += u64::from(*count);
            self.digest.update(&count.to_le_bytes());
            self.digest.update(payload);
        }
    }
}

impl Streams {
    /// Begins the epoch in all streams, so that an earlier attempt can't write to them any more,
    /// and reads their events. Takes each partition with the sequence of its first message.
    pub(super) fn take_over(
        runtime: &Handle,
        connection: &Connection,
        wanted: &[(u16, u64)],
        epoch: u64,
    ) -> Result<Self, MoveError> {
        let mut streams = BTreeMap::new();
        for (partition, first) in wanted {
            let (name, mut before, mut sequences) = (StreamName::of_partition(*partition), Contents::default(), VecDeque::new());
            let mut visit = |end: LogEnd, message: crate::log::Message| {
                if let Content::Events(entries) = message.content {
                    before.add(&entries);
                    sequences.push_back(end.sequence);
                }
            };
            let end = LogEnd { sequence: first - 1, ..LogEnd::default() };
            let writer = runtime.block_on(LogWriter::take_over(connection, &name, epoch, end, &mut visit))?;
            streams.insert(*partition, Filling { writer, before, sequences, again: Contents::default(), appended: 0 });
        }
        Ok(Self { runtime: runtime.clone(), streams })
    }

    /// The number of events that an earlier attempt has recorded.
    pub(super) fn recorded(&self) -> u64 {
        self.streams.values().map(|filling| filling.before.events).sum()
    }

    /// The number of events that were appended or found.
    pub(super) fn passed(&self) -> u64 {
        self.streams.values().map(|filling| filling.again.events + filling.appended).sum()
    }

    /// Appends a message, unless the stream has it. Reports the positions of its events to `new`.
    pub(super) fn append(&mut self, partition: u16, moved: Vec<MovedEntry>, new: &mut PositionMap) -> Result<(), MoveError> {
        let (entries, origins): (Vec<Entry>, Vec<_>) =
            moved.into_iter().map(|MovedEntry { entry, project, positions }| (entry, (project, positions))).unzip();
        let sequence = self.append_entries(partition, entries)?;
        let mut position = first_of(sequence);
        for (project, positions) in origins {
            new.pass(project, &positions, position);
            position += positions.len() as u64;
        }
        Ok(())
    }

    /// Appends a message of these entries. Returns its sequence.
    fn append_entries(&mut self, partition: u16, entries: Vec<Entry>) -> Result<u64, MoveError> {
        let other = || MoveError::OtherContent(StreamName::of_partition(partition).stream);
        let Filling { writer, before, sequences, again, appended } = self.streams.get_mut(&partition).ok_or_else(other)?;
        if again.events < before.events {
            again.add(&entries);
            let is_same = again.events < before.events
                || (again.events == before.events && again.digest.digest128() == before.digest.digest128());
            return if is_same { sequences.pop_front().ok_or_else(other) } else { Err(other()) };
        }
        *appended += entries.iter().map(|entry| u64::from(entry.count)).sum::<u64>();
        Ok(self.runtime.block_on(writer.append(entries))?)
    }

    /// Checks that no stream has more events than this attempt.
    pub(super) fn finish(&self) -> Result<(), MoveError> {
        match self.streams.iter().find(|(_, filling)| filling.again.events < filling.before.events) {
            Some((partition, _)) => Err(MoveError::OtherContent(StreamName::of_partition(*partition).stream)),
            None => Ok(()),
        }
    }
}
