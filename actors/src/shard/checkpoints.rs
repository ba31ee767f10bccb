//! Takes the checkpoints of a shard: performs the steps that the [`Checkpointer`] decides on, and
//! hands the checkpoints to the writer.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant as Stopwatch};

use headcount_domain::{Fault, Position};
use headcount_storage::external_ids::{Frozen, Written};
use headcount_storage::keyspace::PartitionId;
use headcount_storage::log::LogMark;

use super::checkpoint_progress::CheckpointProgress;
use super::checkpointer::{CheckpointPolicy, Checkpointer, Next, Unsaved};
use super::partition::{Begun, Partition, PartitionMap};
use crate::checkpoint_writer::{
    CancelledJobs, CheckpointWriter, Claim, Entries, Job, JobOutcome, Mailbox, MergeJob, Reply, Report,
};
use crate::history::History;

/// The approximate number of records, pages and parts that one step encodes, in about half a
/// millisecond of the shard's time.
const ENTRIES_PER_STEP: usize = 256;

/// A checkpoint in collection.
struct Collecting {
    serial: u64,
    frozen_at: Stopwatch,
    entries: Entries,
    new_ids: Option<Frozen>,
}

/// Jobs of a partition at the writer.
#[derive(Default)]
struct Claims {
    checkpoint: Option<(Arc<Claim>, PartitionId)>,
    merge: Option<Arc<Claim>>,
    /// The claim of the thread that replaces the state of a project.
    replacement: Option<(Arc<Claim>, PartitionId)>,
}

/// The checkpoints of a shard.
pub(crate) struct Checkpoints {
    pub(super) checkpointer: Checkpointer,
    pub(super) writer: CheckpointWriter,
    mailbox: Mailbox,
    reports: Receiver<Report>,
    progress: Arc<CheckpointProgress>,
    collecting: Option<Collecting>,
    claims: BTreeMap<u16, Claims>,
}

impl Checkpoints {
    pub(crate) fn new(writer: CheckpointWriter, policy: CheckpointPolicy, progress: Arc<CheckpointProgress>) -> Self {
        let (mailbox, reports) = Mailbox::new();
        let checkpointer = Checkpointer::new(policy, Stopwatch::now());
        Self { checkpointer, writer, mailbox, reports, progress, collecting: None, claims: BTreeMap::new() }
    }

    /// Calls `notify` whenever the writer has sent a report.
    pub(super) fn notify_with(&self, notify: impl Fn() + Send + Sync + 'static) {
        self.mailbox.notify_with(notify);
    }

    /// Begins a round if one is due, or if `force` is set.
    pub(super) fn begin_round(&mut self, force: bool, partitions: &PartitionMap, history: &dyn History) -> Next {
        // Called at each turn of the shard while memory is short, so the partitions are only
        // checked if a round can begin.
        if !self.checkpointer.is_idle() {
            return Next::Rest;
        }
        let unsaved = |(number, partition): (&u16, &Partition)| {
            let first = partition.checkpoint.unsaved_from.filter(|_| !partition.checkpoint.is_stuck)?;
            Some(Unsaved {
                partition: *number,
                events_to_replay: history.events_after(*number, first.saturating_sub(1)),
                unsaved_for: self.progress.unsaved_for(*number).unwrap_or_default(),
            })
        };
        let mut unsaved: Vec<Unsaved> = partitions.iter().filter_map(unsaved).collect();
        // A held project waits for its partition's checkpoint.
        let is_awaited = |one: &Unsaved| partitions.get(&one.partition).is_some_and(|partition| partition.replacement.is_some());
        unsaved.sort_by_key(|one| !is_awaited(one));
        self.checkpointer.begin_round(Stopwatch::now(), force, &unsaved)
    }

    /// Freezes a partition. All its events up to `all_up_to` are applied. The log has this mark
    /// there.
    pub(super) fn freeze(
        &mut self,
        number: u16,
        partition: Option<&mut Partition>,
        all_up_to: Position,
        mark: Option<LogMark>,
    ) -> Result<(), Fault> {
        let (mut entries, frozen_at) = (Entries::default(), Stopwatch::now());
        let begun = partition.map_or(Ok(None), |partition| partition.freeze(all_up_to, mark, &mut entries));
        self.checkpointer.frozen(number, matches!(begun, Ok(Some(_))));
        self.collecting = begun?.map(|Begun { serial, new_ids }| Collecting { serial, frozen_at, entries, new_ids });
        Ok(())
    }

    /// Collects some records of the frozen partition, and submits the checkpoint when it is
    /// complete.
    pub(super) fn collect(&mut self, number: u16, partition: Option<&mut Partition>) -> Result<(), Fault> {
        let (Some(mut collecting), Some(partition)) = (self.collecting.take(), partition) else {
            self.checkpointer.frozen(number, false);
            return Ok(());
        };
        if partition.collect_records(ENTRIES_PER_STEP, &mut collecting.entries)? {
            self.collecting = Some(collecting);
            return Ok(());
        }
        let Collecting { serial, frozen_at, entries, new_ids } = collecting;
        partition.handed_over(entries.bytes());
        let (stored_in, claim) = (partition.stored_as(), Arc::<Claim>::default());
        let reply = Reply::new(number, self.checkpointer.submitted(number, frozen_at), self.mailbox.clone());
        self.claims.entry(number).or_default().checkpoint = Some((Arc::clone(&claim), stored_in));
        self.writer.write(Job::new(reply, claim, stored_in, serial, entries, new_ids));
        Ok(())
    }

    /// Takes a report, if one has arrived.
    pub(super) fn try_receive(&mut self) -> Option<Report> {
        self.reports.try_recv().ok()
    }

    /// Waits for a report. Returns `None` if none came within `timeout`.
    pub(super) fn receive(&mut self, timeout: Option<Duration>) -> Result<Option<Report>, Fault> {
        let received = match timeout {
            Some(timeout) => self.reports.recv_timeout(timeout),
            None => self.reports.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match received {
            Ok(report) => Ok(Some(report)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(Fault::defect("the checkpoint thread is gone")),
        }
    }

    /// Handles a report.
    pub(super) fn handle(&mut self, report: Report, partitions: &mut PartitionMap) {
        let Report { partition: number, job, outcome } = report;
        if let JobOutcome::Merged(table) = outcome {
            return self.merged(number, job, table, partitions);
        }
        let is_over = !matches!(outcome, JobOutcome::Postponed { .. });
        // A report about a cancelled checkpoint belongs to a state that is gone.
        let Some(frozen_at) = self.checkpointer.reported(number, job, is_over) else { return };
        if is_over && let Some(claims) = self.claims.get_mut(&number) {
            claims.checkpoint = None;
        }
        let Some(partition) = partitions.get_mut(&number) else { return };
        match outcome {
            JobOutcome::Saved { ids } => self.saved(partition, frozen_at, ids),
            JobOutcome::Postponed { error } => {
                if !partition.checkpoint.is_stuck {
                    tracing::error!(partition = number, error, "its checkpoints can't be written; the log keeps its events");
                }
                partition.set_stuck();
                self.progress.note_unsaved(number);
                self.progress.set_failing(number, true);
            }
            JobOutcome::Dropped { ids } => {
                // The log has everything. But the next checkpoint would lack the changes of this
                // one, so there must be none.
                partition.set_stuck();
                ids.into_iter().for_each(|table| partition.adopt(table));
                self.progress.set_failing(number, true);
            }
            JobOutcome::Merged(_) => {}
        }
    }

    fn saved(&mut self, partition: &mut Partition, frozen_at: Stopwatch, ids: Option<Written>) {
        let number = partition.number;
        if partition.checkpoint.is_stuck {
            tracing::info!(partition = number, "its checkpoints can be written again");
        }
        partition.mark_durable();
        ids.into_iter().for_each(|table| partition.adopt(table));
        self.progress.note_saved(number, frozen_at, partition.checkpoint.unsaved_from.is_none());
        self.progress.set_failing(number, false);
        self.progress.set_full(number, false);
        self.begin_merge(partition);
    }

    fn begin_merge(&mut self, partition: &mut Partition) {
        let number = partition.number;
        let claims = self.claims.entry(number).or_default();
        if claims.merge.is_some() {
            return;
        }
        let Some(merge) = partition.merge() else { return };
        let Some(job) = self.checkpointer.begin_merge(number) else { return };
        let claim = Arc::<Claim>::default();
        claims.merge = Some(Arc::clone(&claim));
        self.writer.merge(MergeJob { reply: Reply::new(number, job, self.mailbox.clone()), claim, merge });
    }

    fn merged(&mut self, number: u16, job: u64, table: Option<Written>, partitions: &mut PartitionMap) {
        if !self.checkpointer.merged(number, job) {
            return;
        }
        if let Some(claims) = self.claims.get_mut(&number) {
            claims.merge = None;
        }
        if let (Some(table), Some(partition)) = (table, partitions.get_mut(&number)) {
            partition.adopt(table);
            self.begin_merge(partition);
        }
    }

    /// Returns the claim of a thread that will replace the state of a project. No other thread
    /// writes the partition until [`Checkpoints::end_replacement`].
    pub(super) fn begin_replacement(&mut self, number: u16, stored_as: PartitionId) -> Arc<Claim> {
        let claims = self.claims.entry(number).or_default();
        let (claim, _) = claims.replacement.get_or_insert_with(|| (Arc::default(), stored_as));
        Arc::clone(claim)
    }

    /// Ends the claim of the thread that replaced the state of a project.
    pub(super) fn end_replacement(&mut self, number: u16) {
        if let Some(claims) = self.claims.get_mut(&number) {
            claims.replacement = None;
        }
    }

    /// Begins the last round before a stop, once, and retries stuck checkpoints. Returns whether it
    /// began now.
    pub(super) fn begin_last_round(&mut self) -> bool {
        let stuck = self.checkpointer.begin_last_round();
        stuck.iter().flatten().for_each(|number| self.writer.retry_now(*number));
        stuck.is_some()
    }

    /// Cancels the checkpoint and the merge of a partition. Wait for them before you open it again.
    pub(super) fn cancel(&mut self, number: u16) -> CancelledJobs {
        if self.checkpointer.next() == Next::Collect(number) {
            self.collecting = None;
        }
        self.checkpointer.cancel(number);
        let Claims { checkpoint, merge, replacement } = self.claims.remove(&number).unwrap_or_default();
        let (claims, stored_in): (Vec<_>, Vec<_>) = checkpoint.into_iter().chain(replacement).unzip();
        let claims: Vec<_> = claims.into_iter().chain(merge).collect();
        claims.iter().for_each(|claim| claim.stop());
        self.progress.set_failing(number, false);
        self.progress.set_full(number, false);
        CancelledJobs { claims, stored_in }
    }
}
