//! Faults that tests inject, to prove that crash tests notice them.
//!
//! Only builds with the feature `fault-injection` have them, and only if the variable [`VARIABLE`]
//! names one. The faults of the log itself are in `headcount_storage::log`.

use std::sync::OnceLock;
use std::time::Duration;

use headcount_domain::Position;
use headcount_storage::files::switch::{Plan, Switch};
use headcount_storage::log::Fault;
use parking_lot::Mutex;

use crate::engine::{EngineConfig, OpenError};
use crate::ingest::Return;
use crate::shard::Outcome;

/// The variable with the fault: `ack-before-write`, `ack-before-sync`, `ack-before-apply`, or one
/// of [`OF_CLUSTERS`]. Unset or empty means none.
const VARIABLE: &str = "HEADCOUNT_FAULT";
/// The faults of nodes. The cluster crate makes them.
const OF_CLUSTERS: [&str; 4] = ["ack-before-quorum", "no-epoch-record", "resend-after-unknown", "lease-ignored"];
/// The variable with the file operations that fail, in the format of [`Plan`]:
/// `at=17,errno=EIO,failures=3`. Operations under the data directory count from the start of the
/// process.
const IO_VARIABLE: &str = "HEADCOUNT_IO_FAULT";
/// The variable with the number of unsaved events after which a checkpoint is due, so that small
/// workloads write several.
const CHECKPOINT_VARIABLE: &str = "HEADCOUNT_CHECKPOINT_EVENTS";
/// The variable with the size of the log's segments, so that few events fill one.
const SEGMENT_VARIABLE: &str = "HEADCOUNT_SEGMENT_BYTES";
/// How long events wait between their answer and their application under `ack-before-apply`.
const LATE: Duration = Duration::from_millis(50);

/// Whether senders are answered before their events are applied.
static ACK_BEFORE_APPLY: OnceLock<bool> = OnceLock::new();

/// The switch that [`IO_VARIABLE`] arms, until the process ends.
static IO_FAULTS: Mutex<Option<Switch>> = Mutex::new(None);

/// Configures the fault that the environment names.
pub(crate) fn plant(mut config: EngineConfig) -> Result<EngineConfig, OpenError> {
    let name = std::env::var(VARIABLE).unwrap_or_default();
    let (fault, before_apply) = match name.as_str() {
        "" => (Fault::None, false),
        "ack-before-write" => (Fault::AckBeforeWrite, false),
        "ack-before-sync" => (Fault::AckBeforeSync, false),
        "ack-before-apply" => (Fault::None, true),
        name if OF_CLUSTERS.contains(&name) => (Fault::None, false),
        other => return Err(OpenError::Start(format!("{VARIABLE} names no fault: {other:?}"))),
    };
    if !name.is_empty() {
        tracing::warn!(fault = %name, "this build makes a mistake on purpose: its answers are wrong");
        config.group.fault = fault;
    }
    let _ = ACK_BEFORE_APPLY.set(before_apply);
    if let Ok(text) = std::env::var(IO_VARIABLE)
        && !text.is_empty()
    {
        let plan: Plan = text.parse().map_err(|error| OpenError::Start(format!("{IO_VARIABLE}: {error}")))?;
        tracing::warn!(?plan, "this build fails operations on files on purpose");
        *IO_FAULTS.lock() = Some(Switch::arm(&config.data_dir, plan));
    }
    if let Some(events) = number(CHECKPOINT_VARIABLE)? {
        config.checkpoints.events = events;
    }
    if let Some(bytes) = number(SEGMENT_VARIABLE)? {
        config.log.segment_bytes = bytes;
    }
    Ok(config)
}

fn number(variable: &str) -> Result<Option<u64>, OpenError> {
    let Ok(text) = std::env::var(variable) else { return Ok(None) };
    text.parse().map(Some).map_err(|_| OpenError::Start(format!("{variable} is not a number: {text:?}")))
}

/// Under `ack-before-apply`: answers now, with made-up outcomes. The real answer comes later and
/// finds no receiver.
pub(crate) fn acknowledge_early(back: &mut Return, first: Position, count: usize) {
    if is_early() {
        let outcomes = (first..).take(count).map(Outcome::at).collect();
        back.finish_early(outcomes);
    }
}

/// Under `ack-before-apply`: waits before events are handed to the shards.
pub(crate) fn apply_late() {
    if is_early() {
        std::thread::sleep(LATE);
    }
}

fn is_early() -> bool {
    ACK_BEFORE_APPLY.get().copied().unwrap_or(false)
}
