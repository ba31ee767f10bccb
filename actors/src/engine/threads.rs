//! The engine's threads: an actix system with one arbiter per shard, and the sink of the log's
//! thread.

use std::collections::BTreeMap;
use std::panic::catch_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use actix::{Actor, Addr, Arbiter, System};
use headcount_common::partition_of;
use headcount_storage::lock::DirLock;
use headcount_storage::log::Outcome as LogOutcome;
use tokio::runtime::{self, Handle};

use super::config::OpenError;
use crate::archiver::Archiver;
use crate::checkpoint_writer::CheckpointWriter;
use crate::ingest::{Gathering, Ticket, Tracker};
use crate::shard::{Apply, Shard, ShardActor, ShardMap, Work};
use crate::thread_name;
use crate::unknown_appends::UnknownAppends;
use crate::verifier::Verifier;

/// The actix system of an engine.
pub(super) struct ActorSystem {
    pub(super) system: System,
    /// The runtime of the system's thread, and of the threads on which its tasks block.
    runtime: runtime::Id,
    thread: JoinHandle<()>,
}

/// The threads of an engine, and the lock of its data directory.
pub(super) struct Threads {
    actors: ActorSystem,
    writer: CheckpointWriter,
    writer_thread: JoinHandle<()>,
    verifier: Verifier,
    archiver: Arc<Archiver>,
    archiver_thread: JoinHandle<()>,
    _lock: DirLock,
}

impl Threads {
    pub(super) fn new(
        actors: ActorSystem,
        (writer, writer_thread): (CheckpointWriter, JoinHandle<()>),
        verifier: Verifier,
        (archiver, archiver_thread): (Arc<Archiver>, JoinHandle<()>),
        lock: DirLock,
    ) -> Self {
        Self { actors, writer, writer_thread, verifier, archiver, archiver_thread, _lock: lock }
    }

    /// Stops all threads and waits for them, unless the caller is a task of the engine.
    pub(super) fn stop(self) {
        if Handle::try_current().is_ok_and(|current| current.id() == self.actors.runtime) {
            // The system ends after all its tasks, and this task would wait for the system.
            let stopping = std::thread::Builder::new().name("close".into()).spawn(|| self.stop());
            if let Err(error) = stopping {
                tracing::warn!(%error, "the threads of the engine are left behind");
            }
            return;
        }
        let Self { actors, writer, writer_thread, verifier, archiver, archiver_thread, _lock } = self;
        archiver.stop();
        verifier.stop();
        writer.stop_retrying();
        drop(writer);
        actors.system.stop();
        let _ = actors.thread.join();
        // The shards are gone and answer nothing, so the archiver does not wait for them.
        let _ = archiver_thread.join();
        // The writer ends after the shards, which hold its other handles.
        let _ = writer_thread.join();
    }
}

/// Starts the engine's own actix system, with one arbiter per shard.
pub(super) fn start_system(shards: Vec<Shard>) -> Result<(ActorSystem, Vec<Addr<ShardActor>>), OpenError> {
    let (started, wait) = std::sync::mpsc::sync_channel(1);
    let thread = std::thread::Builder::new()
        .name("actors".into())
        .spawn(move || {
            let runner = System::new();
            let is_up = runner.block_on(async {
                let Some(arbiters) = arbiters(shards.len()) else { return false };
                let start = |(number, (arbiter, shard)): (usize, (Arbiter, Shard))| {
                    ShardActor::start_in_arbiter(&arbiter.handle(), move |_| {
                        thread_name::name_current(&format!("shard-{number}"));
                        ShardActor::new(shard)
                    })
                };
                let addresses: Vec<_> = arbiters.into_iter().zip(shards).enumerate().map(start).collect();
                started.send((System::current(), Handle::current().id(), addresses)).is_ok()
            });
            if is_up && let Err(error) = runner.run() {
                tracing::error!(%error, "the engine's actor system failed");
            }
        })
        .map_err(|error| OpenError::Start(error.to_string()))?;
    let (system, runtime, addresses) =
        wait.recv().map_err(|_| OpenError::Start("the actor system did not start: there are too few files or threads".into()))?;
    Ok((ActorSystem { system, runtime, thread }, addresses))
}

/// Starts `count` threads. Returns `None`, with no thread left, if the operating system refuses
/// one: actix would panic then, and not stop the earlier ones.
fn arbiters(count: usize) -> Option<Vec<Arbiter>> {
    let mut arbiters: Vec<Arbiter> = Vec::with_capacity(count);
    for _ in 0..count {
        let Ok(arbiter) = catch_unwind(Arbiter::new) else {
            for arbiter in arbiters {
                arbiter.stop();
                let _ = arbiter.join();
            }
            return None;
        };
        arbiters.push(arbiter);
    }
    Some(arbiters)
}

pub(crate) fn start_tracker(system: &System, gathering: Gathering, timeout: Duration) -> Result<Tracker, OpenError> {
    let (started, wait) = std::sync::mpsc::sync_channel(1);
    let running = system.arbiter().spawn_fn(move || drop(started.send(Tracker::start(gathering, timeout))));
    if !running {
        return Err(OpenError::Start("the actor system has stopped".into()));
    }
    wait.recv().map_err(|_| OpenError::Start("the tracker did not start".into()))
}

/// Returns the sink of the log's thread. It passes committed events to their shards, and refusals
/// back.
///
/// `delivered` is the position up to which all events have been passed on. `unknown` records
/// appends whose outcome is unknown.
pub(crate) fn sink(
    shards: Vec<Addr<ShardActor>>,
    map: ShardMap,
    (delivered, unknown): (Arc<AtomicU64>, Arc<UnknownAppends>),
) -> impl Fn(Vec<LogOutcome<Ticket>>) + Send + Sync + 'static {
    move |outcomes| {
        let mut last = 0;
        let mut works: BTreeMap<usize, Vec<Work>> = BTreeMap::new();
        for outcome in outcomes {
            match outcome {
                LogOutcome::Committed(committed) => {
                    #[cfg_attr(not(feature = "fault-injection"), expect(unused_mut, reason = "only a fault answers early"))]
                    let Ticket { project, record, permits, mut back } = committed.ticket;
                    #[cfg(feature = "fault-injection")]
                    super::fault_injection::acknowledge_early(&mut back, committed.first, record.count());
                    let reply = Box::new(move |outcomes| back.finish(outcomes));
                    let (partition, first) = (committed.partition, committed.first);
                    last = last.max(first + u64::from(committed.count) - 1);
                    let work = Work { partition, project, first, record, permits, reply };
                    works.entry(map.shard_of(partition)).or_default().push(work);
                }
                LogOutcome::Refused(refused) => refused.ticket.back.refuse(refused.reason),
                LogOutcome::Undecided(ticket) => {
                    // Recorded before its permits are dropped: a job that waits for all admitted
                    // events then finds it.
                    unknown.note(partition_of(ticket.project));
                    // Dropping the ticket reports that the outcome is unknown.
                    drop(ticket);
                }
            }
        }
        #[cfg(feature = "fault-injection")]
        super::fault_injection::apply_late();
        for (shard, works) in works {
            #[expect(
                clippy::disallowed_methods,
                reason = "these events are in the log: they happen; the gate bounds their bytes"
            )]
            shards[shard].do_send(Apply(works));
        }
        // A reader of this position finds the events in the shards' mailboxes.
        delivered.fetch_max(last, Ordering::Release);
    }
}
