//! Seals everything that is in durable checkpoints, and trims the log.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant as Stopwatch};

use headcount_archive::error::ArchiveError;
use headcount_domain::fault::Fault;
use headcount_domain::ids::ProjectId;
use headcount_domain::intake::event::Position;
use headcount_storage::external_ids::ExternalIdsError;
use headcount_storage::log::LogError;

use super::pass::Pass;
use super::sources::Sources;
use crate::fault;
use crate::history::HistoryError;

/// How long a request to seal waits for checkpoints.
const CHECKPOINTS_TIMEOUT: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(20);

/// The result of sealing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sealed {
    /// The position up to which all events are sealed.
    pub sealed_until: Position,
    /// The number of events that were added to the archive.
    pub events: u64,
}

/// The reason for which events could not be sealed. They are still in the log, and sealing is retried.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SealingError {
    /// The archive.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// The log can't be read.
    #[error(transparent)]
    History(#[from] HistoryError),
    /// The log can't be trimmed.
    #[error("the sealed part of the log could not be removed: {0}")]
    Trim(#[from] LogError),
    /// The index of external ids can't be read.
    #[error(transparent)]
    Index(#[from] ExternalIdsError),
    /// The index of external ids lacks an event that a checkpoint reflects.
    #[error("the index of external ids does not have the event at position {0}")]
    UnknownId(Position),
    /// An event has a value, and the currency of its project is not known.
    #[error("the project {0} is not known")]
    UnknownProject(ProjectId),
    /// A shard did not answer, or checkpoints could not be written in time.
    #[error("the events are in no durable checkpoint yet")]
    NoAnswer,
    /// There is too little space.
    #[error("the disk is nearly full")]
    DiskFull,
}

impl From<SealingError> for Fault {
    fn from(error: SealingError) -> Self {
        let message = error.to_string();
        match error {
            SealingError::Archive(error) => fault::of_archive(error),
            SealingError::History(error) => fault::of_history(error),
            SealingError::Trim(error) => Self::new(fault::of_log(error).kind, message),
            SealingError::Index(error) => fault::of_index(error),
            SealingError::UnknownId(_) => Self::damaged_index(message),
            SealingError::UnknownProject(_) => Self::defect(message),
            SealingError::NoAnswer | SealingError::DiskFull => Self::io(message),
        }
    }
}

/// Seals what is in durable checkpoints.
pub(super) fn seal(sources: &Sources) -> Result<Sealed, SealingError> {
    let delivered = sources.delivered.load(Ordering::Acquire);
    let until = sources.shards.durable_until(delivered).ok_or(SealingError::NoAnswer)?;
    seal_until(sources, until)
}

/// Has checkpoints written, and seals everything that was recorded before the call.
pub(super) fn seal_all(sources: &Sources) -> Result<Sealed, SealingError> {
    let target = sources.delivered.load(Ordering::Acquire);
    let began = Stopwatch::now();
    sources.shards.want_checkpoints();
    loop {
        let until = sources.shards.durable_until(sources.delivered.load(Ordering::Acquire));
        if let Some(until) = until.filter(|until| *until >= target) {
            return seal_until(sources, until);
        }
        if sources.is_stopping() || began.elapsed() > CHECKPOINTS_TIMEOUT {
            return Err(SealingError::NoAnswer);
        }
        std::thread::sleep(POLL);
    }
}

fn seal_until(sources: &Sources, until: Position) -> Result<Sealed, SealingError> {
    let catalog = sources.sealed.catalog();
    let after = catalog.sealed_until();
    if until <= after {
        trim(sources)?;
        return Ok(Sealed { sealed_until: after, events: 0 });
    }
    if !sources.has_space() {
        return Err(SealingError::DiskFull);
    }
    let (last, events) = Pass::new(sources, after, until).run()?;
    let catalog = catalog.advanced(until, &last);
    catalog.write(sources.sealed.root())?;
    sources.done("catalog replaced");
    sources.sealed.publish(catalog);
    trim(sources)?;
    Ok(Sealed { sealed_until: until, events })
}

/// Removes the segments of the log whose events are all sealed, and that nobody reads.
fn trim(sources: &Sources) -> Result<(), SealingError> {
    let removed = sources.trimmer.remove_before(sources.sealed.unread_until() + 1)?;
    if removed.segments > 0 {
        sources.done("log trimmed");
        tracing::info!(
            segments = removed.segments,
            first_position = removed.first_position,
            "sealed segments of the log are removed"
        );
    }
    Ok(())
}
