//! Sends requests to shards and waits for their answers.

use std::sync::Arc;
use std::time::Duration;

use actix::Addr;
use headcount_common::nodes::AskNodeError;
use headcount_common::partition_of;
use headcount_domain::fault::Fault;
use headcount_domain::ids::{OrganizationId, ProjectId};
use headcount_domain::intake::event::Position;
use headcount_domain::time::Day;
use headcount_storage::external_ids::{ExternalIdsView, Purge, Written};
use headcount_storage::keyspace::PartitionId;
use tokio::sync::oneshot;

use crate::admission_gate::{Gate, Holder, Permit};
use crate::archiver::ShardBarrier;
use crate::refolding::FoldedShards;
use crate::shard::{Ask, Drain, Replaceable, Shard, ShardActor, ShardMap, ShardRequest};

/// How long an answer may take.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// How many requests may be waiting at once.
const MAX_REQUESTS: usize = 4096;

/// Why a query has no answer.
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
    /// The answer took longer than [`EngineConfig::question_timeout`](crate::EngineConfig::question_timeout).
    #[error("the answer took longer than {0:?}")]
    TimedOut(Duration),
    /// The question needs events of days before this one, which are not kept: the floor rose after the question was read.
    #[error("events before {0} are not kept any more")]
    BelowFloor(Day),
    /// No node is known to have the figures of a project.
    #[error("no node is known to have the figures of a project")]
    NoOwner,
    /// The node that has the figures of a project gives no answer.
    #[error(transparent)]
    Node(#[from] AskNodeError),
}

/// A request that was sent.
pub(super) struct Pending<R> {
    answer: oneshot::Receiver<Result<R, Fault>>,
}

impl<R> Pending<R> {
    /// Waits for the answer.
    pub(super) async fn wait(self) -> Result<R, AskError> {
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
    /// Its place among those that wait, until it is answered or passed over.
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
pub(super) struct ShardClient {
    addresses: Vec<Addr<ShardActor>>,
    map: ShardMap,
    gate: Gate,
}

impl ShardClient {
    pub(super) fn new(addresses: Vec<Addr<ShardActor>>, map: ShardMap) -> Self {
        Self { addresses, map, gate: Gate::new(MAX_REQUESTS) }
    }

    /// The shard that a project is on.
    pub(super) fn shard_of(&self, project: ProjectId) -> usize {
        self.map.shard_of(partition_of(project))
    }

    /// Sends a request to the shard of a project, for a member of `organization`.
    pub(super) fn send<R: Send + 'static>(
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
    pub(super) fn ask_partition<R: Send + 'static>(
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
    pub(super) fn send_to<R: Send + 'static>(
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
    /// [`AskError::Busy`] if no question can wait now, [`AskError::NoAnswer`] if a shard does not answer.
    pub(super) async fn check(&self) -> Result<(), AskError> {
        for shard in &self.addresses {
            let place = self.gate.take(1).ok_or(AskError::Busy)?;
            send(shard, None, place, |_| Ok(())).wait().await?;
        }
        Ok(())
    }

    /// Has every shard apply what is queued and write its last checkpoints. The receivers hear when that is over.
    pub(super) fn drain(&self) -> Vec<oneshot::Receiver<()>> {
        let drain = |shard: &Addr<ShardActor>| {
            let (done, wait) = oneshot::channel();
            #[expect(clippy::disallowed_methods, reason = "one message per shard, at the end")]
            shard.do_send(Drain(done));
            wait
        };
        self.addresses.iter().map(drain).collect()
    }
}

impl ShardBarrier for Arc<ShardClient> {
    fn durable_until(&self, delivered: Position) -> Option<Position> {
        // All are asked before the first answer is awaited.
        let place = || self.gate.take(1);
        let ask = |shard| Some(send(shard, None, place()?, move |shard: &mut Shard| Ok(shard.durable_until(delivered))));
        let asked: Vec<_> = self.addresses.iter().map(ask).collect();
        asked.into_iter().try_fold(delivered, |until, asked| Some(until.min(asked?.answer.blocking_recv().ok()?.ok()??)))
    }

    fn durable_until_of(&self, partition: u16) -> Option<Position> {
        self.ask_partition(partition, move |shard: &mut Shard| Ok(shard.durable_until_of(partition))).ok()?
    }

    fn applied_until_of(&self, partition: u16) -> Option<Position> {
        self.ask_partition(partition, move |shard: &mut Shard| Ok(shard.applied_until_of(partition))).ok()?
    }

    fn want_checkpoints(&self) {
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

    fn forget(&self, project: ProjectId) -> Option<PartitionId> {
        ask_of(self, project, move |shard| shard.forget(project))?
    }

    fn purge_ids(&self, project: ProjectId) -> Option<Purge> {
        ask_of(self, project, move |shard| shard.purge_ids(project))
    }

    fn adopt_ids(&self, project: ProjectId, written: Written) {
        // If the partition was given up meanwhile, it is opened with the new tables.
        let _adopted = ask_of(self, project, move |shard| shard.adopt_ids(project, written));
    }

    fn stored_as(&self, partition: u16) -> Option<PartitionId> {
        self.ask_partition(partition, move |shard: &mut Shard| Ok(shard.stored_as(partition))).ok()?.map(PartitionId)
    }

    fn known_ids(&self, partition: u16) -> Option<ExternalIdsView> {
        let shard = self.addresses.get(self.map.shard_of(partition))?;
        let asked = send(shard, None, self.gate.take(1)?, move |shard: &mut Shard| shard.known_ids_in(partition));
        asked.answer.blocking_recv().ok()?.ok()
    }
}

impl FoldedShards for Arc<ShardClient> {
    fn last_counted(&self, project: ProjectId) -> Option<Position> {
        ask_of(self, project, move |shard| shard.last(project))
    }

    fn save_soon(&self, project: ProjectId) -> Option<u64> {
        ask_of(self, project, move |shard| shard.save_soon(project))
    }

    fn is_durable(&self, project: ProjectId, serial: u64) -> Option<bool> {
        ask_of(self, project, move |shard| shard.is_durable(project, serial))
    }

    fn begin_replacement(&self, project: ProjectId) -> Option<Option<Replaceable>> {
        ask_of(self, project, move |shard| shard.begin_replacement(project))
    }

    fn end_replacement(&self, project: ProjectId, reflected: Option<u64>) {
        // If nobody answers, the engine is closing.
        let _ended = ask_of(self, project, move |shard| {
            shard.end_replacement(project, reflected);
            Ok(())
        });
    }
}

/// Asks the shard of a project, and waits for the answer.
fn ask_of<R: Send + 'static>(
    shards: &ShardClient,
    project: ProjectId,
    request: impl FnOnce(&mut Shard) -> Result<R, Fault> + Send + 'static,
) -> Option<R> {
    let shard = shards.addresses.get(shards.shard_of(project))?;
    send(shard, None, shards.gate.take(1)?, request).answer.blocking_recv().ok()?.ok()
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
