//! The life of a partition on one node: free, taken over, served, given up.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use headcount_actors::{Adoption, RemainsError};
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout};

use super::own_state;
use super::shared::Shared;
use super::states::{self, Publishing};
use super::timing::{NodeError, stopped};
use crate::lease::{self, Candidate, Failures, Lease, LeaseError};
use crate::log::{LogReader, LogWriter};
use crate::stream::StreamName;

/// How long brokers may take for the waiting submissions when a partition is given up.
const PATIENCE: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(10);
/// How long a node that could not take a partition over leaves it to other nodes.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(10);
/// The pause before a partition moves to a node that could not serve it doubles at most this often.
const MAX_DOUBLINGS: u32 = 6;

/// The task of one partition.
pub(super) struct PartitionTask {
    pub(super) partition: u16,
    pub(super) shared: Arc<Shared>,
    pub(super) stop: watch::Receiver<bool>,
}

/// The reason why a node stops serving a partition.
enum End {
    /// The node gives the lease up, because it stops, or another node is to have the partition.
    Released,
    /// Like `Released`, but counted: few partitions move at once.
    Moved {
        /// The new node.
        to: String,
        /// The permit to move. Dropping it lets another partition move.
        _permit: OwnedSemaphorePermit,
    },
    /// The node could not take the partition over. It gives the lease up.
    NotServed,
    /// The partition's log has ended. The node gives the lease up.
    Failed,
    /// The node stops the lease: no node may take it until an operator has checked the partition.
    Stopped(String),
    /// Another node may have the lease.
    Lost,
}

impl PartitionTask {
    /// Serves the partition whenever it falls to this node, until the node stops.
    pub(super) async fn run(mut self) {
        let key = lease::key_of(self.partition);
        let mut candidate = self.shared.leases.candidate(&key, self.shared.holder.clone());
        while !*self.stop.borrow() {
            let pause = match self.look(&mut candidate).await {
                Ok(Some(lease)) => {
                    let pause = match self.hold(lease).await {
                        End::NotServed | End::Failed | End::Stopped(_) => PAUSE_AFTER_FAILURE,
                        End::Released | End::Moved { .. } | End::Lost => Duration::ZERO,
                    };
                    tokio::select! {
                        () = sleep(pause) => continue,
                        () = stopped(&mut self.stop) => return,
                    }
                }
                Ok(None) => {
                    self.remove_remains().await;
                    let pause = self.shared.timing.renewed_every / 2;
                    candidate.free_in().map_or(pause, |free_in| pause.min(free_in))
                }
                Err(error) => {
                    tracing::debug!(partition = self.partition, %error, "the lease can't be read");
                    self.shared.timing.renewed_every
                }
            };
            tokio::select! {
                () = sleep(pause) => {}
                () = self.shared.hints.changed(self.partition) => {}
                () = stopped(&mut self.stop) => return,
            }
        }
    }

    /// Removes this node's data of deleted projects, for a partition that another node serves.
    async fn remove_remains(&self) {
        match self.shared.engine.partitions.remove_remains(self.partition).await {
            Ok(()) => {}
            // The work of a former owner ends soon.
            Err(error @ RemainsError::Here) => {
                tracing::debug!(partition = self.partition, %error, "deleted projects are not removed")
            }
            Err(error) => {
                tracing::warn!(partition = self.partition, %error, "what this node has of deleted projects is not removed yet");
                sleep(PAUSE_AFTER_FAILURE).await;
            }
        }
    }

    /// Looks at the lease of the partition, and takes it if it is free and falls to this node.
    async fn look(&self, candidate: &mut Candidate) -> Result<Option<Lease>, LeaseError> {
        let sighting = candidate.look().await?;
        let live = self.shared.live.borrow().nodes.clone();
        self.shared.figures.stopped(self.partition, sighting.stopped.is_some());
        let own = self.shared.holder.node.as_str();
        let holder = sighting.holder.as_deref().filter(|holder| *holder != own);
        if !sighting.is_free {
            self.shared.engine.owners().note_elsewhere(self.partition, holder.and_then(|holder| live.address(holder)));
            return Ok(None);
        }
        self.shared.engine.owners().note_elsewhere(self.partition, None);
        if sighting.is_own && self.shared.levels.fold >= sighting.fold {
            // Any other node would have to wait. If the partition falls to another node, it moves
            // later.
            return candidate.take_seen(&sighting).await;
        }
        // A node that lost it, gave it up or could not serve it should not be the next to take it.
        let failed = sighting.failed.iter().filter(|(_, failures)| !failures.tries_again);
        let failed: Vec<&str> = failed.map(|(node, _)| node.as_str()).collect();
        match live.choose(self.partition, holder, &failed, sighting.fold) {
            Some(chosen) if chosen == own => candidate.take_seen(&sighting).await,
            _ => Ok(None),
        }
    }

    /// Takes the partition over and serves it, while this node holds the lease and is to have the
    /// partition.
    async fn hold(&self, mut lease: Lease) -> End {
        let (partition, shared, mut stop) = (self.partition, Arc::clone(&self.shared), self.stop.clone());
        tracing::info!(partition, epoch = lease.epoch, "takes a partition over");
        let began = Instant::now();
        shared.figures.has(partition, &lease);
        let end = {
            let mut taking = pin!(take_over(&shared, partition, (lease.epoch, lease.resumed())));
            let mut served = None;
            let mut publishing = Publishing::new(&shared, partition);
            let mut renewal = interval(shared.timing.renewed_every);
            renewal.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                tokio::select! {
                    taken = &mut taking, if served.is_none() => match taken {
                        Ok(()) => {
                            served = Some(Instant::now());
                            lease.serves();
                            shared.engine.owners().hold(partition, lease.until());
                            shared.engine.partitions.resume(partition);
                            let took_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
                            shared.figures.serves(partition, began.elapsed());
                            tracing::info!(partition, took_ms, "serves a partition");
                        }
                        Err(NodeError::Lost(lost)) => {
                            shared.figures.failed();
                            tracing::error!(partition, %lost, "the brokers lost what they had confirmed: the partition is stopped");
                            break End::Stopped(lost.to_string());
                        }
                        Err(error) => {
                            shared.figures.failed();
                            tracing::error!(partition, %error, "a partition can't be taken over");
                            break End::NotServed;
                        }
                    },
                    _ = renewal.tick() => {
                        let end = self.renew(&mut lease, served).await;
                        if served.is_some() && end.is_none() {
                            shared.engine.owners().hold(partition, lease.until());
                        }
                        match end {
                            None if served.is_some() => publishing.look(),
                            None => {}
                            Some(end @ End::Moved { .. }) => {
                                publishing.finish().await;
                                break end;
                            }
                            Some(end) => break end,
                        }
                    }
                    () = stopped(&mut stop) => {
                        if served.is_some() {
                            publishing.finish().await;
                        }
                        break End::Released;
                    }
                }
            }
        };
        self.give_up(lease, &end).await;
        end
    }

    /// Renews the lease of a partition. `served` is the time since when it is served; `None` during
    /// the takeover. Returns the reason to give it up, if there is one.
    async fn renew(&self, lease: &mut Lease, served: Option<Instant>) -> Option<End> {
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
        // A partition is served before it moves on, even if it is meant for another node.
        let node = self.meant_for(lease, served?)?;
        let permit = Arc::clone(&self.shared.moves).try_acquire_owned().ok()?;
        if let Some(files) = &self.shared.files
            && !files.is_readable(partition).await
        {
            // The other node could not take it over.
            return None;
        }
        if !self.shared.log.has_room(partition).await {
            // The other node could not begin an epoch in a full log.
            return None;
        }
        tracing::info!(partition, node, "the partition moves to another node");
        Some(End::Moved { to: node, _permit: permit })
    }

    /// The other node that the partition is to move to now. It is served here since `served`.
    fn meant_for(&self, lease: &Lease, served: Instant) -> Option<String> {
        let (live, own) = (self.shared.live.borrow(), &self.shared.holder.node);
        let calm = self.shared.timing.calm;
        let is_calm = live.since.elapsed() >= calm || live.nodes.drains(own);
        // Nodes that could not serve it are tried again after a growing pause.
        let tries = |failures: &Failures| served.elapsed() >= calm * 2_u32.pow(failures.times.min(MAX_DOUBLINGS));
        let failed = lease.failed().iter().filter(|(_, failures)| !tries(failures));
        let failed: Vec<&str> = failed.map(|(node, _)| node.as_str()).collect();
        let chosen = live.nodes.choose(self.partition, None, &failed, self.shared.levels.fold);
        chosen.filter(|node| is_calm && node != own).map(str::to_owned)
    }

    /// Stops serving the partition. Its next owner counts the recorded events.
    async fn give_up(&self, lease: Lease, end: &End) {
        let (partition, shared) = (self.partition, &self.shared);
        shared.engine.owners().give_up(partition);
        shared.figures.has_not(partition);
        let lost = shared.commit.lost(partition);
        shared.commit.release(partition, PATIENCE).await;
        shared.log.release(partition);
        if !matches!(end, End::Lost) {
            let _ = timeout(PATIENCE, shared.engine.partitions.give_counts(partition)).await;
        }
        // This node records no more events, so another node may begin.
        let reason = match end {
            End::Stopped(reason) => Some(reason.clone()),
            End::Released | End::Moved { .. } | End::NotServed | End::Failed | End::Lost => lost,
        };
        let released = match (end, reason) {
            (End::Lost, _) => Ok(()),
            (_, Some(reason)) => {
                shared.figures.stopped(partition, true);
                lease.stop(reason).await
            }
            (End::NotServed, None) => lease.fail().await,
            (End::Moved { to, .. }, None) => lease.release_to(to).await,
            (_, None) => lease.release().await,
        };
        if let Err(error) = released {
            tracing::warn!(partition, %error, "a lease could not be given up; others wait until its time is over");
        }
        if let Err(error) = shared.engine.partitions.release(partition).await {
            tracing::error!(partition, %error, "a partition could not be given up");
        }
        shared.log.forget(partition);
        shared.letters.release(partition);
        if let Some(files) = &shared.files {
            files.release(partition);
            states::forget(shared, partition).await;
        }
    }
}

/// Takes a partition over: begins its epoch, and replays the events that this node lacks.
async fn take_over(shared: &Shared, partition: u16, (epoch, resumed): (u64, u64)) -> Result<(), NodeError> {
    let _turn = shared.turns.acquire().await;
    // Former owners may have removed projects whose deletion this node has not seen yet. From here
    // on, it records nothing for them, and keeps nothing of them.
    let engine = shared.engine.clone();
    let followed = tokio::task::spawn_blocking(move || engine.partitions.follow()).await.map_err(NodeError::unavailable)?;
    followed.map_err(NodeError::unavailable)?;
    shared.engine.partitions.remove_ended_remains(partition).await?;
    shared.engine.partitions.end_archive_work(partition).await.map_err(NodeError::unavailable)?;
    if let Some(files) = &shared.files {
        // Comes first. From then on, no former owner publishes files or trims the log behind this
        // node's back.
        files.take_over(partition, epoch, &shared.engine.partitions.archive_dir(partition)).await?;
    }
    // Letters come before the replay. From then on, no former owner sets events aside behind this
    // node's back.
    let letters = async { Ok::<_, NodeError>(shared.letters.take_over(partition, epoch).await?) };
    let (writer, (), letters) =
        tokio::try_join!(begin_epoch(shared, partition, (epoch, resumed)), take_state_over(shared, partition, epoch), letters)?;
    shared.engine.partitions.take_counts(partition, epoch).await;
    let (until, reader) = (writer.last_position(), writer.reader());
    let letters = shared.letters.keep_until(partition, until, letters).await?;
    shared.log.adopt(partition, reader.clone(), resumed);
    if let Some(files) = &shared.files {
        files.adopt(partition, writer.reader());
    }
    let copied = states::fetch(shared, partition, &reader).await;
    shared.engine.partitions.adopt(partition, (until, letters), copied.clone()).await?;
    // Comes last. A thread that checked the owner before this node gave the partition up may submit
    // only now. It is refused until the shard takes the events recorded after `until`.
    shared.commit.adopt(partition, writer);
    let adopted = loop {
        match shared.engine.partitions.adoption(partition) {
            Adoption::Done => break Ok(()),
            Adoption::UnderWay => sleep(POLL).await,
            Adoption::Failed(why) => break Err(NodeError::Adoption(why)),
        }
    };
    if let Some(copied) = copied {
        states::forget_copy(copied).await;
    }
    adopted
}

/// Writes the first message of an epoch. After it, no former owner can record anything.
async fn begin_epoch(shared: &Shared, partition: u16, (epoch, resumed): (u64, u64)) -> Result<LogWriter, NodeError> {
    let name = StreamName::of_partition(partition);
    let reader = LogReader::open(&shared.connection, &name.stream).await?;
    own_state::compare(shared, partition, resumed, &reader).await?;
    own_state::compare_files(shared, partition, &reader).await?;
    // The replay reads everything again, and compares it with this end.
    let end = reader.last_end().await?;
    Ok(LogWriter::take_over(&shared.connection, &name, epoch, end, &mut |_, _| {}).await?)
}

async fn take_state_over(shared: &Shared, partition: u16, epoch: u64) -> Result<(), NodeError> {
    match &shared.files {
        Some(files) => Ok(files.states.take_over(partition, epoch).await?),
        None => Ok(()),
    }
}
