//! The figures of a node in `/metrics`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use headcount_actors::ingest::Ticket;
use headcount_common::{HeldPartition, NodeVitals, Owners};
use headcount_storage::boot_time::boot_time;
use parking_lot::Mutex;

use crate::lease::Lease;
use crate::log::StreamCommit;

/// Counts the work of partition tasks.
#[derive(Debug, Default)]
pub(super) struct NodeFigures(Mutex<Counted>);

#[derive(Debug, Default)]
struct Counted {
    /// The partitions whose leases the node holds.
    held: BTreeMap<u16, Held>,
    takeovers: u64,
    takeovers_failed: u64,
    takeover_time: Duration,
    longest_takeover: Duration,
    drains: bool,
    stopped: BTreeSet<u16>,
}

#[derive(Debug, Clone, Copy)]
struct Held {
    epoch: u64,
    until: Duration,
    is_served: bool,
}

impl NodeFigures {
    /// Records that the node holds the lease of a partition, until the lease's time is over.
    pub(super) fn has(&self, partition: u16, lease: &Lease) {
        let mut counted = self.0.lock();
        let held = Held { epoch: lease.epoch, until: lease.until(), is_served: false };
        counted.held.entry(partition).or_insert(held).until = lease.until();
    }

    /// Records that a partition is served from now on, and how long the takeover took.
    pub(super) fn serves(&self, partition: u16, took: Duration) {
        let mut counted = self.0.lock();
        if let Some(held) = counted.held.get_mut(&partition) {
            held.is_served = true;
        }
        counted.takeovers += 1;
        counted.takeover_time += took;
        counted.longest_takeover = counted.longest_takeover.max(took);
    }

    /// Records that a partition could not be taken over.
    pub(super) fn failed(&self) {
        self.0.lock().takeovers_failed += 1;
    }

    /// Records that the node no longer holds the lease of a partition.
    pub(super) fn has_not(&self, partition: u16) {
        self.0.lock().held.remove(&partition);
    }

    /// Records whether a partition is stopped, according to its lease.
    pub(super) fn stopped(&self, partition: u16, is_stopped: bool) {
        let stopped = &mut self.0.lock().stopped;
        let has_changed = if is_stopped { stopped.insert(partition) } else { stopped.remove(&partition) };
        if has_changed {
            tracing::warn!(
                partition,
                is_stopped,
                "whether a partition is stopped has changed; `headcount cluster status` says why"
            );
        }
    }

    /// Records whether the node drains.
    pub(super) fn drains(&self, drains: bool) {
        self.0.lock().drains = drains;
    }

    /// Returns all figures.
    pub(super) fn vitals(&self, owners: &Owners, commit: &StreamCommit<Ticket>) -> NodeVitals {
        let now = boot_time();
        let counted = self.0.lock();
        let held = |(partition, held): (&u16, &Held)| {
            let appends = commit.appends(*partition).unwrap_or_default();
            HeldPartition {
                partition: *partition,
                epoch: held.epoch,
                lease_left: held.until.saturating_sub(now),
                is_served: held.is_served && owners.is_here(*partition),
                position: appends.position,
                append_waits: appends.waits,
            }
        };
        NodeVitals {
            is_live: owners.is_live(),
            drains: counted.drains,
            held: counted.held.iter().map(held).collect(),
            stopped: counted.stopped.iter().copied().collect(),
            takeovers: counted.takeovers,
            takeovers_failed: counted.takeovers_failed,
            takeover_time: counted.takeover_time,
            longest_takeover: counted.longest_takeover,
            append_retries: commit.retries(),
        }
    }
}
