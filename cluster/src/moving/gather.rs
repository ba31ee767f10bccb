//! Gathers the events of each partition into messages. The same events always make the same
//! messages.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use headcount_actors::domain::ids::ProjectId;
use headcount_actors::domain::intake::event::Position;
use headcount_actors::{MovedEvents, MovingSource};

use super::error::MoveError;
use crate::levels::Levels;
use crate::log::{Chain, Content, Entry, MAX_EVENTS, Message};

/// The size up to which events are gathered in a message. A single submission may be larger.
const MESSAGE_BYTES: usize = 1 << 20;
/// The most bytes that a message takes in a stream beside its own: its header, its subject and
/// additions of the broker.
const ENVELOPE_BYTES: u64 = 256;

/// An entry of a message, with the former positions of its events.
pub(super) struct MovedEntry {
    pub(super) entry: Entry,
    pub(super) project: ProjectId,
    /// The former positions.
    pub(super) positions: Vec<Position>,
}

/// Takes the entries of one message.
type RecordMessage<'r> = &'r mut dyn FnMut(u16, Vec<MovedEntry>) -> Result<(), MoveError>;

/// The waiting events of each partition: at most 64 times a megabyte.
#[derive(Default)]
struct Gathered {
    waiting: BTreeMap<u16, (u32, usize, Vec<MovedEntry>)>,
}

impl Gathered {
    /// Adds events. If they don't fit into one message with the waiting ones, records those first.
    fn add(&mut self, events: MovedEvents, record: RecordMessage<'_>) -> Result<(), MoveError> {
        let MovedEvents { partition, project, positions, count, payload } = events;
        let (events, bytes, entries) = self.waiting.entry(partition).or_default();
        if !entries.is_empty() && (*events + count > MAX_EVENTS || *bytes + payload.len() > MESSAGE_BYTES) {
            record(partition, std::mem::take(entries))?;
            (*events, *bytes) = (0, 0);
        }
        *events += count;
        *bytes += payload.len();
        entries.push(MovedEntry { entry: Entry { count, payload }, project, positions });
        Ok(())
    }
}

/// Passes all events of an installation to `record`, in messages.
pub(super) fn gather(source: &MovingSource, record: RecordMessage<'_>) -> Result<(), MoveError> {
    let (mut gathered, mut failure) = (Gathered::default(), None);
    source.events(&mut |events| match gathered.add(events, record) {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => {
            failure = Some(error);
            ControlFlow::Break(())
        }
    })?;
    failure.map_or(Ok(()), Err)?;
    // What still waits.
    let mut waiting = gathered.waiting.into_iter().filter(|(_, (_, _, entries))| !entries.is_empty());
    waiting.try_for_each(|(partition, (_, _, entries))| record(partition, entries))
}

/// The number of events of each partition, and the bytes that they take in its stream.
#[derive(Debug, Default)]
pub(super) struct Sizes(BTreeMap<u16, (u64, u64)>);

impl Sizes {
    /// Counts a message.
    pub(super) fn add(&mut self, partition: u16, entries: Vec<MovedEntry>) -> Result<(), MoveError> {
        let entries: Vec<Entry> = entries.into_iter().map(|moved| moved.entry).collect();
        let added: u64 = entries.iter().map(|entry| u64::from(entry.count)).sum();
        let message = Message { epoch: 0, content: Content::Events(entries) };
        let (bytes, _) = message.encode(&Levels::own(), Chain::default()).map_err(crate::log::LogError::from)?;
        let (events, taken) = self.0.entry(partition).or_default();
        *events += added;
        *taken += bytes.len() as u64 + ENVELOPE_BYTES;
        Ok(())
    }

    pub(super) fn events(&self, partition: u16) -> u64 {
        self.0.get(&partition).map_or(0, |(events, _)| *events)
    }

    pub(super) fn all_events(&self) -> u64 {
        self.0.values().map(|(events, _)| events).sum()
    }

    pub(super) fn all_bytes(&self) -> u64 {
        self.0.values().map(|(_, bytes)| bytes).sum()
    }

    /// The partition that needs the most room, and its bytes.
    pub(super) fn largest(&self) -> Option<(u16, u64)> {
        self.0.iter().map(|(partition, (_, bytes))| (*partition, *bytes)).max_by_key(|(_, bytes)| *bytes)
    }
}
