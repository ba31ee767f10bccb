//! A partition, as one node sees it: free, taken over, served, given up.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use headcount_actors::Adoption;
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};

use super::shared::Shared;
use super::timing::{NodeError, stopped};
use crate::lease::{self, Candidate, Lease, LeaseError};
use crate::log::{LogReader, LogWriter};
use crate::stream::StreamName;

/// How long brokers may take for what waits when a partition is given up.
const PATIENCE: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(10);
/// How long a node leaves a partition to others that it could not take over.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(10);

/// The task of one partition.
pub(super) struct PartitionTask {
    pub(super) partition: u16,
    pub(super) shared: Arc<Shared>,
    pub(super) stop: watch::Receiver<bool>,
}

/// Why a node no longer serves a partition.
enum End {
    /// It still has the lease, and gives it up: it stops, or another node is to have the partition.
    Released,
    /// As the first, while few partitions move at once.
    Moved {
        /// Until others may move.
        _permit: OwnedSemaphorePermit,
    },
    /// As the first, after something that it can't do.
    Failed,
    /// The lease may be another node's.
    Lost,
}

impl PartitionTask {
    /// Serves the partition whenever it falls to this node, until the node stops.
    pub(super) async fn run(mut self) {
        let key = lease::key_of(self.partition);
        let mut candidate = self.shared.leases.candidate(&key, self.shared.holder.clone());
        while !*self.stop.borrow() {
            let pause = match self.look(&mut candidate).await {
                Ok(Some(lease)) => match self.hold(lease).await {
                    End::Failed => PAUSE_AFTER_FAILURE,
                    End::Released | End::Moved { .. } | End::Lost => Duration::ZERO,
                },
                Ok(None) => self.shared.timing.renewed_every / 2,
                Err(error) => {
                    tracing::debug!(partition = self.partition, %error, "the lease can't be read");
                    self.shared.timing.renewed_every
                }
            };
            tokio::select! {
                () = sleep(pause) => {}
                () = stopped(&mut self.stop) => return,
            }
        }
    }

    /// Looks who has the partition, and takes it if it is free and falls to this node.
    async fn look(&self, candidate: &mut Candidate) -> Result<Option<Lease>, LeaseError> {
        let sighting = candidate.look().await?;
        let live = self.shared.live.borrow().nodes.clone();
        self.shared.figures.stopped(self.partition, sighting.stopped.is_some());
        let own = self.shared.holder.node.as_str();
        let holder = sighting.holder.as_deref().filter(|holder| *holder != own);
        if !sighting.is_free {
            self.shared.owners.note_elsewhere(self.partition, holder.and_then(|holder| live.address(holder)));
            return Ok(None);
        }
        self.shared.owners.note_elsewhere(self.partition, None);
        if sighting.is_own {
            // Any other node would have to wait. If the partition falls to one, it moves once all is calm.
            return candidate.take_seen(&sighting).await;
        }
        // A node that lost it, or gave it up, is not the one to take it next.
        match live.choose(self.partition, holder) {
            Some(chosen) if chosen == own => candidate.take_seen(&sighting).await,
            _ => Ok(None),
        }
    }

    /// Takes the partition over and serves it, for as long as this node has the lease and is to have it.
    async fn hold(&self, mut lease: Lease) -> End {
        let (partition, shared, mut stop) = (self.partition, Arc::clone(&self.shared), self.stop.clone());
        tracing::info!(partition, epoch = lease.epoch(), "takes a partition over");
        let began = Instant::now();
        shared.figures.has(partition, &lease);
        let end = {
            let mut taking = pin!(take_over(&shared, partition, lease.epoch()));
            let mut is_served = false;
            let mut renewal = interval(shared.timing.renewed_every);
            renewal.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                tokio::select! {
                    taken = &mut taking, if !is_served => match taken {
                        Ok(()) => {
                            is_served = true;
                            shared.owners.hold(partition, lease.until());
                            shared.engine.apply_retentions_of(partition);
                            shared.engine.resume(partition);
                            let took_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
                            shared.figures.serves(partition, began.elapsed());
                            tracing::info!(partition, took_ms, "serves a partition");
                        }
                        Err(error) => {
                            shared.figures.failed();
                            tracing::error!(partition, %error, "a partition can't be taken over");
                            break End::Failed;
                        }
                    },
                    _ = renewal.tick() => {
                        let end = self.renew(&mut lease).await;
                        if is_served && end.is_none() {
                            shared.owners.hold(partition, lease.until());
                        }
                        if let Some(end) = end {
                            break end;
                        }
                    }
                    () = stopped(&mut stop) => break End::Released,
                }
            }
        };
        self.give_up(lease, &end).await;
        end
    }

    /// Renews the lease. Returns why the partition is to be given up, if so.
    async fn renew(&self, lease: &mut Lease) -> Option<End> {
        let partition = self.partition;
        match lease.renew().await {
            Ok(()) => self.shared.figures.has(partition, lease),
            Err(error @ LeaseError::Lost(_)) => {
                tracing::warn!(partition, %error, "the partition is given up");
                return Some(End::Lost);
            }
            Err(error) if lease.is_valid() => {
                tracing::debug!(partition, %error, "the lease is not renewed yet");
                return None;
            }
            Err(error) => {
                tracing::warn!(partition, %error, "the partition is given up, because its lease could not be renewed in time");
                return Some(End::Lost);
            }
        }
        if self.shared.commit.has_ended(partition) {
            return Some(End::Failed);
        }
        let live = self.shared.live.borrow();
        let is_calm = live.since.elapsed() >= self.shared.timing.calm || live.nodes.drains(&self.shared.holder.node);
        let is_meant_for = live.nodes.choose(partition, None).unwrap_or(&self.shared.holder.node);
        if !is_calm || is_meant_for == self.shared.holder.node {
            return None;
        }
        let permit = Arc::clone(&self.shared.moves).try_acquire_owned().ok()?;
        tracing::info!(partition, node = is_meant_for, "the partition moves to another node");
        Some(End::Moved { _permit: permit })
    }

    /// Stops serving the partition. What is recorded is counted by its next owner.
    async fn give_up(&self, lease: Lease, end: &End) {
        let (partition, shared) = (self.partition, &self.shared);
        shared.owners.give_up(partition);
        shared.figures.has_not(partition);
        let lost = shared.commit.lost(partition);
        shared.commit.release(partition, PATIENCE).await;
        shared.log.release(partition);
        // Nothing more is recorded by this node, so that another one may begin.
        let released = match (end, lost) {
            (End::Lost, _) => Ok(()),
            (_, Some(reason)) => {
                shared.figures.stopped(partition, true);
                lease.stop(reason).await
            }
            (_, None) => lease.release().await,
        };
        if let Err(error) = released {
            tracing::warn!(partition, %error, "a lease could not be given up; others wait until its time is over");
        }
        if let Err(error) = shared.engine.release(partition).await {
            tracing::error!(partition, %error, "a partition could not be given up");
        }
        shared.letters.release(partition);
        if let Some(files) = &shared.files {
            files.release(partition);
        }
    }
}

/// Takes a partition over: begins its epoch, and replays what this node does not have of it.
async fn take_over(shared: &Shared, partition: u16, epoch: u64) -> Result<(), NodeError> {
    let _turn = shared.turns.acquire().await;
    if let Some(files) = &shared.files {
        // First, so that a former owner publishes nothing, and removes nothing from the log, that this node does not know.
        files.take_over(partition, epoch, &shared.engine.archive_dir(partition)).await?;
    }
    let name = StreamName::of_partition(partition);
    let reader = LogReader::open(&shared.connection, &name.stream).await?;
    // Everything is read again, and compared with this end, when it is replayed.
    let end = reader.last_end().await?;
    let writer = LogWriter::take_over(&shared.connection, &name, epoch, end, &mut |_, _| {}).await?;
    let until = writer.last_position();
    shared.log.adopt(partition, writer.reader());
    if let Some(files) = &shared.files {
        files.adopt(partition, writer.reader());
    }
    shared.commit.adopt(partition, writer);
    // First, so that a former owner sets nothing aside that this node does not know.
    shared.engine.adopt_letters(partition, shared.letters.take_over(partition, epoch).await?);
    shared.engine.adopt(partition, until).await?;
    loop {
        match shared.engine.adoption(partition) {
            Adoption::Done => return Ok(()),
            Adoption::UnderWay => sleep(POLL).await,
            Adoption::Failed(why) => return Err(NodeError::Adoption(why)),
        }
    }
}
