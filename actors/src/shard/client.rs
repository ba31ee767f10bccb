//! Sends requests to shards and waits for their answers.

use std::time::Duration;

use actix::Addr;
use headcount_common::nodes::AskNodeError;
use headcount_common::partition_of;
use headcount_domain::{Day, Fault, OrganizationId, Position, ProjectId};
use headcount_storage::external_ids::{ExternalIdsView, Purge, Written};
use headcount_storage::keyspace::PartitionId;
use tokio::sync::oneshot;

use super::actor::{Ask, Drain, ShardActor};
use super::replacement::Replaceable;
use super::shard::{Shard, ShardRequest};
use super::shard_map::ShardMap;
use crate::admission_gate::{Gate, Holder, Permit};

/// The time limit of an answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// The maximum number of waiting requests.
const MAX_REQUESTS: usize = 4096;

/// The reason why a query has no answer.
#[derive(Debug, Clone, thiserror::Error)]
pub enum AskError {
    /// Too many queries are waiting.
    #[error("too many questions are waiting")]
    Busy,
    /// The state can't be read, or is being rebuilt.
    #[error("{0}")]
    Lost(Fault),
    /// The engine is closed, or a shard took too long.
    #[error("the engine does not answer")]
    NoAnswer,
    /// The answer took longer than
    /// [`EngineConfig::question_timeout`](crate::EngineConfig::question_timeout).
    #[error("the answer took longer than {0:?}")]
    TimedOut(Duration),
    /// The question needs events of days before this one, which are not kept. The floor rose after
    /// the question was parsed.
    #[error("events before {0} are not kept any more")]
    BelowFloor(Day),
    /// The owner of a project is unknown.
    #[error("no node is known to have the figures of a project")]
    NoOwner,
    /// The owner of a project gives no answer.
    #[error(transparent)]
    Node(#[from] AskNodeError),
}

/// A sent request.
pub(crate) struct Pending<R> {
    answer: oneshot::Receiver<Result<R, Fault>>,
}

impl<R> Pending<R> {
    /// Waits for the answer.
    pub(crate) async fn wait(self) -> Result<R, AskError> {
        match tokio::time::timeout(ANSWER_TIMEOUT, self.answer).await {
            Ok(Ok(answer)) => answer.map_err(AskError::Lost),
            _ => Err(AskError::NoAnswer),
        }
    }
}

/// A request with the way back for its answer.
struct Request<R, F> {
    answer: oneshot::Sender<R>,
    request: F,
    /// Its place among the waiting requests, until it is answered or dropped.
    _place: Permit,
}

impl<R: Send, F: FnOnce(&mut Shard) -> R + Send> ShardRequest for Request<R, F> {
    fn is_wanted(&self) -> bool {
        !self.answer.is_closed()
    }

    fn answer(self: Box<Self>, shard: &mut Shard) {
        let Self { answer, request, .. } = *self;
        let _ = answer.send(request(shard));
    }
}

/// A handle to all shards.
pub(crate) struct ShardClient {
    addresses: Vec<Addr<ShardActor>>,
    map: ShardMap,
    gate: Gate,
}

impl ShardClient {
    pub(crate) fn new(addresses: Vec<Addr<ShardActor>>, map: ShardMap) -> Self {
        Self { addresses, map, gate: Gate::new(MAX_REQUESTS) }
    }

    /// The shard of a project.
    pub(crate) fn shard_of(&self, project: ProjectId) -> usize {
        self.map.shard_of(partition_of(project))
    }

    /// Sends a request to the shard of a project, for a member of `organization`.
    pub(crate) fn send<R: Send + 'static>(
        &self,
        project: ProjectId,
        organization: Option<OrganizationId>,
        request: impl FnOnce(&mut Shard) -> Result<R, Fault> + Send + 'static,
    ) -> Result<Pending<R>, AskError> {
        let holders = [organization.map(Holder::Organization), None];
        let place = self.gate.take_for(holders, 1).map_err(|_| AskError::Busy)?;
        Ok(send(&self.addresses[self.shard_of(project)], organization, place, request))
    }

    /// Asks the shard of a partition, and blocks until it answers.
    pub(crate) fn ask_partition<R: Send + 'static>(
        &self,
        partition: u16,
        request: impl FnOnce(&mut Shard) -> Result<R, Fault> + Send + 'static,
    ) -> Result<R, AskError> {
        let place = self.gate.take(1).ok_or(AskError::Busy)?;
        let shard = self.addresses.get(self.map.shard_of(partition)).ok_or(AskError::NoAnswer)?;
        let answer = send(shard, None, place, request).answer.blocking_recv();
        answer.map_err(|_| AskError::NoAnswer)?.map_err(AskError::Lost)
    }

    /// Sends a request of the engine's own to the shard of a partition.
    pub(crate) fn send_to<R: Send + 'static>(
        &self,
        partition: u16,
        request: impl FnOnce(&mut Shard) -> Result<R, Fault> + Send + 'static,
    ) -> Result<Pending<R>, AskError> {
        let place = self.gate.take(1).ok_or(AskError::Busy)?;
        let shard = self.addresses.get(self.map.shard_of(partition)).ok_or(AskError::NoAnswer)?;
        Ok(send(shard, None, place, request))
    }

    /// Checks that each shard answers.
    ///
    /// # Errors
    /// Returns [`AskError::Busy`] if too many questions wait now, [`AskError::NoAnswer`] if a shard
    /// does not answer.
    pub(crate) async fn check(&self) -> Result<(), AskError> {
        for shard in &self.addresses {
            let place = self.gate.take(1).ok_or(AskError::Busy)?;
            send(shard, None, place, |_| Ok(())).wait().await?;
        }
        Ok(())
    }

    /// Makes every shard apply its queue and write its last checkpoints. Each receiver gets a
    /// message at the end.
    pub(crate) fn drain(&self) -> Vec<oneshot::Receiver<()>> {
        let drain = |shard: &Addr<ShardActor>| {
            let (done, wait) = oneshot::channel();
            #[expect(clippy::disallowed_methods, reason = "one message per shard, at the end")]
            shard.do_send(Drain(done));
            wait
        };
        self.addresses.iter().map(drain).collect()
    }
}

/// The requests of sealing. Calls block.
impl ShardClient {
    /// Returns the position up to which all events are in durable checkpoints, if all events up to
    /// `delivered` have been delivered to the shards. Returns `None` if it is unknown now.
    pub(crate) fn durable_until(&self, delivered: Position) -> Option<Position> {
        // All shards are asked before the first answer is awaited.
        let place = || self.gate.take(1);
        let ask = |shard| Some(send(shard, None, place()?, move |shard: &mut Shard| Ok(shard.durable_until(delivered))));
        let asked: Vec<_> = self.addresses.iter().map(ask).collect();
        asked.into_iter().try_fold(delivered, |until, asked| Some(until.min(asked?.answer.blocking_recv().ok()?.ok()??)))
    }

    /// Returns the position up to which all events of a partition are in durable checkpoints;
    /// `None` if it is unknown now.
    pub(crate) fn durable_until_of(&self, partition: u16) -> Option<Position> {
        self.ask_partition(partition, move |shard: &mut Shard| Ok(shard.durable_until_of(partition))).ok()?
    }

    /// Returns the position up to which all events of a partition are applied; `None` if it is
    /// unknown now.
    pub(crate) fn applied_until_of(&self, partition: u16) -> Option<Position> {
        self.ask_partition(partition, move |shard: &mut Shard| Ok(shard.applied_until_of(partition))).ok()?
    }

    /// Requests checkpoints of everything soon.
    pub(crate) fn want_checkpoints(&self) {
        for shard in &self.addresses {
            if let Some(place) = self.gate.take(1) {
                let request = |shard: &mut Shard| {
                    shard.want_checkpoints();
                    Ok(())
                };
                drop(send(shard, None, place, request).answer.blocking_recv());
            }
        }
    }

    /// Removes a deleted project from the state. Returns the part of the store with its partition
    /// once a checkpoint without the project is durable; `None` if there is none yet, or the shard
    /// does not answer.
    pub(crate) fn forget(&self, project: ProjectId) -> Option<PartitionId> {
        self.ask_of(project, move |shard| shard.forget(project))?
    }

    /// Returns the removal of a deleted project's external ids; `None` if the shard does not
    /// answer.
    pub(crate) fn purge_ids(&self, project: ProjectId) -> Option<Purge> {
        self.ask_of(project, move |shard| shard.purge_ids(project))
    }

    /// Uses the tables of external ids that a removal has written.
    pub(crate) fn adopt_ids(&self, project: ProjectId, written: Written) {
        // If the partition was given up meanwhile, it is opened with the new tables.
        let _adopted = self.ask_of(project, move |shard| shard.adopt_ids(project, written));
    }

    /// Returns the part of the store that holds a partition; `None` if it is being rebuilt, or its
    /// shard does not answer.
    pub(crate) fn stored_as(&self, partition: u16) -> Option<PartitionId> {
        self.ask_partition(partition, move |shard: &mut Shard| Ok(shard.stored_as(partition))).ok()?.map(PartitionId)
    }

    /// Returns a view of the durable external ids of a partition; `None` without an answer.
    pub(crate) fn known_ids(&self, partition: u16) -> Option<ExternalIdsView> {
        let shard = self.addresses.get(self.map.shard_of(partition))?;
        let asked = send(shard, None, self.gate.take(1)?, move |shard: &mut Shard| shard.known_ids_in(partition));
        asked.answer.blocking_recv().ok()?.ok()
    }
}

/// The requests of the archiver and of folds about a project.
impl ShardClient {
    /// Asks the shard of a project, and waits for the answer.
    fn ask_of<R: Send + 'static>(
        &self,
        project: ProjectId,
        request: impl FnOnce(&mut Shard) -> Result<R, Fault> + Send + 'static,
    ) -> Option<R> {
        let shard = self.addresses.get(self.shard_of(project))?;
        send(shard, None, self.gate.take(1)?, request).answer.blocking_recv().ok()?.ok()
    }
}

/// The requests of a fold. Calls block. They return `None` if the project's partition is being
/// rebuilt, or its shard does not answer.
impl ShardClient {
    /// Returns the position of the last event of a project that counted.
    pub(crate) fn last_counted(&self, project: ProjectId) -> Option<Position> {
        self.ask_of(project, move |shard| shard.last(project))
    }

    /// Requests that everything in a project's partition is saved soon. Returns the number of the
    /// checkpoint that will have it.
    pub(crate) fn save_soon(&self, project: ProjectId) -> Option<u64> {
        self.ask_of(project, move |shard| shard.save_soon(project))
    }

    /// Whether a checkpoint of a project's partition is durable.
    pub(crate) fn is_durable(&self, project: ProjectId, serial: u64) -> Option<bool> {
        self.ask_of(project, move |shard| shard.is_durable(project, serial))
    }

    /// Holds a project, so that its state can be replaced. Call it until the whole state is saved.
    pub(crate) fn begin_replacement(&self, project: ProjectId) -> Option<Option<Replaceable>> {
        self.ask_of(project, move |shard| shard.begin_replacement(project))
    }

    /// Lets a project continue with its state from the store. If `reflected`, that state has none
    /// of the identities that were erased when [`Erasures::view`] returned this number.
    pub(crate) fn end_replacement(&self, project: ProjectId, reflected: Option<u64>) {
        // Without an answer, the engine is closing.
        let _ended = self.ask_of(project, move |shard| {
            shard.end_replacement(project, reflected);
            Ok(())
        });
    }
}

fn send<R: Send + 'static>(
    shard: &Addr<ShardActor>,
    organization: Option<OrganizationId>,
    place: Permit,
    request: impl FnOnce(&mut Shard) -> Result<R, Fault> + Send + 'static,
) -> Pending<R> {
    let (answer, wait) = oneshot::channel();
    let request = Box::new(Request { answer, request, _place: place });
    #[expect(clippy::disallowed_methods, reason = "the gate of requests bounds what waits in the mailbox")]
    shard.do_send(Ask { organization, request });
    Pending { answer: wait }
}
