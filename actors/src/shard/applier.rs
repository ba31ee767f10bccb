//! Applies single events to a partition, and sets aside events that panic repeatedly.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use headcount_domain::{Event, Fault, FloorMove, Position, SentKeys};

use super::partition::Partition;
use super::work::Outcome;
use crate::dead_letters::DeadLetters;

/// The number of panics at one position of a partition that set its event aside.
const STRIKES: u8 = 2;

/// Called before each event is applied. Tests use it.
pub(crate) type Probe = Option<Arc<dyn Fn(&Event) + Send + Sync>>;

/// Applies events.
pub(crate) struct Applier {
    dead: Arc<DeadLetters>,
    strikes: HashMap<(u16, Position), u8>,
    probe: Probe,
}

impl Applier {
    pub(crate) fn new(dead: Arc<DeadLetters>, probe: Probe) -> Self {
        Self { dead, strikes: HashMap::new(), probe }
    }

    /// Applies an event with the keys of its ids, or skips it if it was set aside. Returns `None`
    /// if it panicked: the state of the partition is lost then.
    ///
    /// # Errors
    /// The partition can't be read, or the event can't be set aside. The state of the partition is
    /// lost.
    pub(super) fn apply(
        &mut self,
        partition: &mut Partition,
        (event, keys): (&Event, SentKeys),
        position: Position,
    ) -> Result<Option<Outcome>, Fault> {
        if self.dead.contains(partition.number, position) {
            partition.skip(position);
            return Ok(Some(Outcome::at(position)));
        }
        let probe = &self.probe;
        let applied = catch_unwind(AssertUnwindSafe(|| {
            if let Some(probe) = probe {
                probe(event);
            }
            partition.apply(event, keys, position)
        }));
        match applied {
            Ok(outcome) => outcome.map(Some),
            Err(_) => {
                tracing::error!(partition = partition.number, position, "an event made its shard panic");
                self.strike((partition.number, position), event)?;
                Ok(None)
            }
        }
    }

    /// Takes a step in raising a floor. Returns `None` if more steps follow.
    ///
    /// # Errors
    /// The partition can't be read, or a defect. The state of the partition is lost.
    pub(super) fn step_floor(partition: &mut Partition, floor: FloorMove, position: Position) -> Result<Option<Outcome>, Fault> {
        let raised = catch_unwind(AssertUnwindSafe(|| partition.step_floor(floor, position)));
        let raised = raised.unwrap_or_else(|_| Err(Fault::defect(format!("the floor at position {position} panicked"))))?;
        Ok(raised.then(|| Outcome::at(position)))
    }

    /// Raises a floor in all its steps.
    ///
    /// # Errors
    /// Returns the same errors as [`Applier::step_floor`].
    pub(super) fn raise_floor(partition: &mut Partition, floor: FloorMove, position: Position) -> Result<Outcome, Fault> {
        loop {
            if let Some(outcome) = Self::step_floor(partition, floor, position)? {
                return Ok(outcome);
            }
        }
    }

    fn strike(&mut self, place: (u16, Position), event: &Event) -> Result<(), Fault> {
        let strikes = self.strikes.entry(place).or_insert(0);
        *strikes += 1;
        if *strikes >= STRIKES {
            tracing::error!(partition = place.0, position = place.1, project = %event.project, "the event panicked twice and is set aside");
            self.dead
                .add(place, "panicked twice", event)
                .map_err(|error| Fault::io(format!("could not set an event aside: {error}")))?;
        }
        Ok(())
    }
}
