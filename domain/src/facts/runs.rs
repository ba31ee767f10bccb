//! Runs: orders between two touches with deferred attribution by last touch.
//!
//! A touch takes over all orders up to the next touch. If there are many, they are counted under
//! the key of a run, and the run's touch is stored once, so a new touch moves no order. A touch
//! within a run splits it: the larger part keeps the key, and only the smaller part is counted
//! again. So each order moves at most a logarithmic number of times.

use serde::{Deserialize, Serialize};

use super::dirty_range::Times;
use crate::ids::RecordKey;
use crate::records::page_key;
use crate::time::Instant;

/// A time range without a touch, except at its start. Both ends are included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Run {
    pub(super) from: Instant,
    pub(super) to: Instant,
    pub(super) serial: u32,
}

/// The runs of an entity.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Runs {
    pub(super) owner: RecordKey,
    pub(super) next_serial: u32,
    /// The runs in order, without overlap.
    pub(super) runs: Vec<Run>,
}

impl Runs {
    pub(super) fn within(&self, times: Times) -> &[Run] {
        let from = self.runs.partition_point(|run| run.to < times.from.time);
        let to = self.runs.partition_point(|run| run.from <= times.to.time);
        self.runs.get(from..to).unwrap_or_default()
    }

    pub(super) fn at(&self, time: Instant) -> Option<Run> {
        let place = self.runs.partition_point(|run| run.to < time);
        self.runs.get(place).copied().filter(|run| run.from <= time)
    }

    pub(super) fn key(&self, run: Run) -> RecordKey {
        page_key(self.owner, run.serial)
    }

    pub(super) fn weight(&self) -> usize {
        size_of::<Self>() + self.runs.capacity() * size_of::<Run>()
    }

    pub(super) fn insert(&mut self, run: Run) {
        let place = self.runs.partition_point(|other| other.from < run.from);
        self.runs.insert(place, run);
    }
}
