//! Which partitions take events and queries. Written by the shards, read before anything is logged.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use super::shard_map::PARTITIONS;
use parking_lot::Mutex;

/// The condition of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Condition {
    /// It works.
    Well = 0,
    /// Its state is being rebuilt from the log.
    Rebuilding = 1,
    /// Its state can't be rebuilt for now.
    Failed = 2,
}

/// The condition of each partition, with the reason.
#[derive(Debug)]
pub(crate) struct PartitionHealth {
    conditions: Vec<AtomicU8>,
    reasons: Mutex<BTreeMap<u16, (Condition, String)>>,
    stopping: AtomicBool,
}

impl Default for PartitionHealth {
    fn default() -> Self {
        Self {
            conditions: (0..PARTITIONS).map(|_| AtomicU8::new(Condition::Well as u8)).collect(),
            reasons: Mutex::default(),
            stopping: AtomicBool::new(false),
        }
    }
}

impl PartitionHealth {
    /// Checks that a partition takes events and queries.
    ///
    /// # Errors
    /// The reason, in words for clients.
    pub(crate) fn check(&self, partition: u16) -> Result<(), &'static str> {
        let condition = self.conditions.get(usize::from(partition)).map(|condition| condition.load(Ordering::Acquire));
        match condition {
            None | Some(0) => Ok(()),
            Some(1) => Err("the figures of this project are being rebuilt"),
            Some(_) => Err("the figures of this project are not available; the server's log says why"),
        }
    }

    /// Sets the condition of a partition.
    pub(crate) fn set(&self, partition: u16, condition: Condition, reason: &str) {
        if let Some(known) = self.conditions.get(usize::from(partition)) {
            known.store(condition as u8, Ordering::Release);
        }
        let mut reasons = self.reasons.lock();
        match condition {
            Condition::Well => drop(reasons.remove(&partition)),
            _ => drop(reasons.insert(partition, (condition, reason.to_owned()))),
        }
    }

    /// The partitions that don't work, each with its condition and the reason.
    pub(crate) fn unwell(&self) -> Vec<(u16, Condition, String)> {
        let reasons = self.reasons.lock();
        reasons.iter().map(|(partition, (condition, reason))| (*partition, *condition, reason.clone())).collect()
    }

    /// Tells the shards to drop their queues, because the engine stops.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }
}
