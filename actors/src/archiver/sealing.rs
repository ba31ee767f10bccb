//! Seals all events in durable checkpoints, and trims the log.

use std::collections::BTreeSet;
use std::time::{Duration, Instant as Stopwatch};

use headcount_domain::{Position, ProjectId};
use serde::{Deserialize, Serialize};

use super::error::SealingError;
use super::pass::{Passed, SealingPass};
use super::sources::Sources;

/// How long a request to seal waits for checkpoints.
const CHECKPOINTS_TIMEOUT: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(20);
/// The time before checkpoints are requested again: an earlier round does not save events that were
/// still queued, or being rebuilt, when it began.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// The result of sealing. Positions of different archives are unrelated.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sealed {
    /// The partitions whose events are sealed.
    pub partitions: BTreeSet<u16>,
    /// The position up to which all events are sealed, except events of waiting projects.
    pub sealed_until: Position,
    /// The number of events added to the archive.
    pub events: u64,
    /// The projects whose list of files can't be used. Their events stay in the log until the list
    /// is restored.
    pub waiting: Vec<ProjectId>,
}

impl Sealed {
    fn new(sources: &Sources, sealed_until: Position, events: u64, waiting: Vec<ProjectId>) -> Self {
        Self { partitions: sources.partitions.clone().collect(), sealed_until, events, waiting }
    }

    /// Adds the result of other partitions. The position is the higher one.
    pub(crate) fn and(mut self, other: Self) -> Self {
        self.partitions.extend(other.partitions);
        self.sealed_until = self.sealed_until.max(other.sealed_until);
        self.events += other.events;
        self.waiting.extend(other.waiting);
        self
    }
}

/// Seals the events in durable checkpoints, if there are at least `least`.
pub(super) fn seal(sources: &Sources, least: u64) -> Result<Sealed, SealingError> {
    let until = sources.durable_until().ok_or(SealingError::NoAnswer)?;
    let catalog = sources.sealed.catalog();
    if sources.events_between(catalog.sealed_until(), until) < least {
        let waiting = catalog.waiting().keys().copied().collect();
        return Ok(Sealed::new(sources, catalog.sealed_until(), 0, waiting));
    }
    seal_until(sources, until)
}

/// Requests checkpoints, and seals all events recorded before the call.
pub(super) fn seal_all(sources: &Sources) -> Result<Sealed, SealingError> {
    let target = sources.recorded_until().ok_or(SealingError::NoAnswer)?;
    let began = Stopwatch::now();
    let mut asked: Option<Stopwatch> = None;
    loop {
        if asked.is_none_or(|at| at.elapsed() >= ASK_AGAIN) {
            sources.shards.want_checkpoints();
            asked = Some(Stopwatch::now());
        }
        if let Some(until) = sources.durable_until().filter(|until| *until >= target) {
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
    let until = until.max(catalog.sealed_until());
    let pass = SealingPass::new(sources, &catalog, until);
    if pass.is_empty() {
        trim(sources)?;
        let waiting = catalog.waiting().keys().copied().collect();
        return Ok(Sealed::new(sources, until, 0, waiting));
    }
    if !sources.has_space() {
        return Err(SealingError::DiskFull);
    }
    let Passed { last, waiting, events } = pass.run()?;
    let waiting_projects = waiting.keys().copied().collect();
    let catalog = catalog.advanced(until, &last, waiting);
    catalog.write(&sources.sealed.root)?;
    sources.done("catalog replaced");
    sources.sealed.publish(catalog);
    trim(sources)?;
    Ok(Sealed::new(sources, until, events, waiting_projects))
}

/// Removes sealed events that are not being read from the log: whole segments, or messages of
/// brokers. All nodes know the archive before.
pub(super) fn trim(sources: &Sources) -> Result<(), SealingError> {
    if !sources.files.seals() {
        return Ok(());
    }
    for partition in sources.partitions.clone() {
        sources.files.publish(partition, &sources.sealed.root, &|| sources.is_stopping())?;
    }
    if !sources.logged.has_files() {
        sources.done("archive published");
    }
    if sources.files.trim(sources.partitions.clone(), sources.sealed.unread_until()).map_err(SealingError::Trim)? {
        sources.done("log trimmed");
    }
    Ok(())
}
