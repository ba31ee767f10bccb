//! The actor around a [`Shard`]: one per shard, on its own arbiter (a thread).
//!
//! Its mailbox is unbounded. Messages have passed the engine's gates (bytes of events, number of
//! queries), and logged events can't be refused any more.

use std::time::{Duration, Instant as Stopwatch};

use actix::{Actor, ActorFutureExt, AsyncContext, Context, Handler, Message, WrapFuture};
use headcount_domain::OrganizationId;
use headcount_storage::background::Burst;
use tokio::sync::oneshot;

use super::checkpointer::Next;
use super::shard::{Shard, ShardRequest};
use super::work::Work;

const TICK: Duration = Duration::from_secs(1);
/// How long steps of checkpoints may take together before the shard pauses. Timers are not finer
/// than this.
const PACED_TOGETHER: Duration = Duration::from_millis(1);
/// How long queued events are applied while the engine closes. The next start applies the rest.
const FOLD_AT_CLOSE: Duration = Duration::from_secs(3);

/// The actor around a [`Shard`].
pub(crate) struct ShardActor {
    shard: Shard,
    /// Whether a turn is scheduled.
    advancing: bool,
    /// Whether a [`Signal::Step`] or the pause after one is scheduled.
    stepping: bool,
    /// How long the steps since the last pause took.
    stepped_for: Duration,
    /// Makes background work yield to the steps, unless checkpoints are urgent.
    burst: Option<Burst>,
    drained: Vec<oneshot::Sender<()>>,
    /// The time until which queued events are applied; `None` without a drain.
    fold_until: Option<Stopwatch>,
}

/// Durable work for the shard's partitions.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Apply(pub(crate) Vec<Work>);

/// A request to the shard.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Ask {
    /// The organization whose turn it takes; `None` for the engine's own requests.
    pub(crate) organization: Option<OrganizationId>,
    pub(crate) request: Box<dyn ShardRequest>,
}

/// Applies queued events for a while, then writes checkpoints. The answer comes after the last
/// round of checkpoints.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Drain(pub(crate) oneshot::Sender<()>);

/// A message of the actor to itself, or from a thread that works for it.
#[derive(Message)]
#[rtype(result = "()")]
enum Signal {
    /// Take a turn.
    Advance,
    /// Take a step of a checkpoint.
    Step,
    /// A rebuild has events to apply.
    RebuildReady,
    /// The checkpoint writer has sent a report.
    CheckpointReported,
}

impl ShardActor {
    pub(crate) fn new(shard: Shard) -> Self {
        Self {
            shard,
            advancing: false,
            stepping: false,
            stepped_for: Duration::ZERO,
            burst: None,
            drained: Vec::new(),
            fold_until: None,
        }
    }

    /// Schedules a turn of the shard after the messages that have arrived, so that turns are fair
    /// among them.
    fn schedule(&mut self, ctx: &mut Context<Self>) {
        if !self.advancing {
            self.advancing = true;
            ctx.notify(Signal::Advance);
        }
    }

    fn advance(&mut self, ctx: &mut Context<Self>) {
        self.advancing = self.shard.advance();
        if self.shard.checkpoint_due() {
            // The round begins before its time, unless one is in progress.
            let next = self.shard.begin_checkpoints(true);
            self.step(next, ctx);
        }
        if self.advancing {
            // This goes through the runtime, not through a message. An actor that has messages
            // never yields its thread, so no timer would fire, and the actor could not be stopped.
            let turn = tokio::task::yield_now().into_actor(self);
            ctx.spawn(turn.map(|(), actor, ctx| actor.advance(ctx)));
        }
        match self.fold_until {
            Some(until) => self.fold_for_the_drain(until, ctx),
            None if !self.advancing => self.drain(ctx),
            None => {}
        }
    }

    /// Begins the last round of checkpoints when the queues are empty, or time is up.
    fn fold_for_the_drain(&mut self, until: Stopwatch, ctx: &mut Context<Self>) {
        if self.shard.has_queued() {
            if Stopwatch::now() < until {
                return;
            }
            self.shard.drop_queues();
        }
        self.fold_until = None;
        self.drain(ctx);
    }

    fn step(&mut self, next: Next, ctx: &mut Context<Self>) {
        if next.is_step() && !self.stepping {
            self.stepping = true;
            ctx.notify(Signal::Step);
        }
    }

    /// Performs a step of a checkpoint. Between the steps the shard pauses, unless checkpoints are
    /// urgent.
    fn perform_step(&mut self, ctx: &mut Context<Self>) {
        if self.burst.is_none() && !self.shard.is_urgent() {
            self.burst = Some(Burst::begin());
        }
        let began = Stopwatch::now();
        let next = self.shard.step_checkpoint();
        let pause = self.pause_after(began.elapsed());
        if pause.is_zero() || !next.is_step() {
            self.stepping = false;
            return self.go_on(next, ctx);
        }
        ctx.run_later(pause, |actor, ctx| {
            actor.stepping = false;
            actor.go_on(actor.shard.next_step(), ctx);
        });
    }

    /// Returns the pause after a step, which is as long as the shard's work. With longer pauses,
    /// more records change before they are collected, and must be copied then.
    fn pause_after(&mut self, step: Duration) -> Duration {
        self.stepped_for += step;
        if self.stepped_for < PACED_TOGETHER {
            return Duration::ZERO;
        }
        let stepped_for = std::mem::take(&mut self.stepped_for);
        if self.shard.is_urgent() { Duration::ZERO } else { stepped_for }
    }

    fn go_on(&mut self, next: Next, ctx: &mut Context<Self>) {
        if !next.is_step() {
            self.burst = None;
        }
        self.step(next, ctx);
        if next == Next::Rest {
            self.drain(ctx);
        }
    }

    /// Continues the last round if a drain waits for it, and answers the drain when the round is
    /// over.
    fn drain(&mut self, ctx: &mut Context<Self>) {
        if self.drained.is_empty() || self.fold_until.is_some() {
            return;
        }
        match self.shard.drain() {
            Next::Rest => self.drained.drain(..).for_each(|waiting| {
                let _ = waiting.send(());
            }),
            next => self.step(next, ctx),
        }
    }
}

impl Actor for ShardActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        let me = ctx.address().downgrade();
        self.shard.notify_with(move || {
            #[expect(clippy::disallowed_methods, reason = "one message per report, and a partition has one job at a time")]
            if let Some(me) = me.upgrade() {
                me.do_send(Signal::CheckpointReported);
            }
        });
        // There may be reports from before the actor started.
        ctx.notify(Signal::CheckpointReported);
        let me = ctx.address().downgrade();
        self.shard.set_wake(move || {
            #[expect(clippy::disallowed_methods, reason = "a rebuild has few pieces under way")]
            if let Some(me) = me.upgrade() {
                me.do_send(Signal::RebuildReady);
            }
        });
        ctx.run_interval(TICK, |actor, ctx| {
            actor.shard.evict_if_needed();
            let next = actor.shard.begin_checkpoints(actor.shard.checkpoint_due());
            actor.step(next, ctx);
            // If applying waits for memory, other shards may have made room.
            actor.schedule(ctx);
        });
    }
}

impl Handler<Apply> for ShardActor {
    type Result = ();

    fn handle(&mut self, Apply(works): Apply, ctx: &mut Context<Self>) {
        works.into_iter().for_each(|work| self.shard.enqueue(work));
        self.schedule(ctx);
    }
}

impl Handler<Ask> for ShardActor {
    type Result = ();

    fn handle(&mut self, Ask { organization, request }: Ask, ctx: &mut Context<Self>) {
        self.shard.enqueue_request(organization, request);
        self.schedule(ctx);
    }
}

impl Handler<Signal> for ShardActor {
    type Result = ();

    fn handle(&mut self, signal: Signal, ctx: &mut Context<Self>) {
        match signal {
            Signal::Advance => self.advance(ctx),
            Signal::Step => self.perform_step(ctx),
            Signal::RebuildReady => self.schedule(ctx),
            Signal::CheckpointReported => {
                let next = self.shard.hear_writer();
                self.go_on(next, ctx);
                // Some events may have waited for memory.
                self.schedule(ctx);
            }
        }
    }
}

impl Handler<Drain> for ShardActor {
    type Result = ();

    fn handle(&mut self, Drain(waiting): Drain, ctx: &mut Context<Self>) {
        self.drained.push(waiting);
        if self.drained.len() == 1 {
            let until = Stopwatch::now() + FOLD_AT_CLOSE;
            self.fold_until = Some(until);
            self.fold_for_the_drain(until, ctx);
        }
    }
}
