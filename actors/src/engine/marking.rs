//! Marks behind the events of a deleted project in the log of brokers.

use std::sync::mpsc::sync_channel;
use std::time::Duration;

use actix::ArbiterHandle;
use headcount_domain::floor::FloorMove;
use headcount_domain::ids::ProjectId;
use headcount_domain::time::Day;

use crate::admission_gate::Gate;
use crate::ingest::Tracker;

/// What a mark takes of the admission limit.
const MARK_BYTES: usize = 64;
/// How long it may take until one is recorded and applied.
const MARK_TIMEOUT: Duration = Duration::from_secs(20);

/// Returns what writes a mark: a record of a deleted project, which therefore changes nothing, as a message of its own. Brokers remove messages in their order, and keep
/// the last one that is sealed, so that something must follow that with the project's last event.
pub(super) fn marking(arbiter: ArbiterHandle, tracker: Tracker, gate: Gate) -> impl Fn(ProjectId) -> bool + Send + Sync {
    move |project| {
        let Some(permit) = gate.take(MARK_BYTES) else { return false };
        let (done, wait) = sync_channel(1);
        let tracker = tracker.clone();
        let is_sent = arbiter.spawn(async move {
            // The floor of no event: also a machine that would apply it would drop nothing.
            let recorded = tracker.raise_floor(FloorMove { project, day: Day(i32::MIN) }, permit).await;
            let _nobody_waits = done.send(recorded.is_ok());
        });
        is_sent && wait.recv_timeout(MARK_TIMEOUT).unwrap_or(false)
    }
}
