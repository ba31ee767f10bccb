//! Marks: records that change nothing. Each one is a message of its own in the log of the brokers.
//!
//! Brokers remove messages in order, and keep the last sealed one. So if it has the last event of a
//! deleted project or an erased identity, another message must follow it (ADR 13, ADR 27).

use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use actix::System;
use headcount_domain::{FloorMove, ProjectId};
use headcount_storage::log::Commit;

use super::config::OpenError;
use super::threads::start_tracker;
use crate::admission_gate::Gate;
use crate::ingest::{Gathering, Ticket, Tracker};
use crate::shard::PartitionHealth;

/// The bytes of a mark in the admission limit.
const MARK_BYTES: usize = 64;
/// How long recording and applying a mark may take.
const MARK_TIMEOUT: Duration = Duration::from_secs(20);

/// Writes a mark of a project. Returns whether it is recorded. Blocks.
pub(super) type Mark = Box<dyn Fn(ProjectId) -> bool + Send + Sync>;

/// Starts the commit of events. Returns it with the function that writes marks.
pub(super) fn start_tracking(
    system: &System,
    gate: &Gate,
    (log, health): (&Arc<dyn Commit<Ticket>>, &Arc<PartitionHealth>),
    apply_timeout: Duration,
) -> Result<(Tracker, Mark), OpenError> {
    let tracker = start_tracker(system, Gathering::new(Arc::clone(log), Arc::clone(health)), apply_timeout)?;
    let (arbiter, gate, tracking) = (system.arbiter().clone(), gate.clone(), tracker.clone());
    let mark = move |project| {
        let Some(permit) = gate.take(MARK_BYTES) else { return false };
        let (done, wait) = sync_channel(1);
        let tracker = tracking.clone();
        let is_sent = arbiter.spawn(async move {
            let recorded = tracker.raise_floor(FloorMove::mark(project), permit).await;
            let _nobody_waits = done.send(recorded.is_ok());
        });
        is_sent && wait.recv_timeout(MARK_TIMEOUT).unwrap_or(false)
    };
    Ok((tracker, Box::new(mark)))
}
