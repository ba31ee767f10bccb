//! Load: many connections that send events singly and in batches, and check on the way what they are told.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use headcount_histories::Rng;
use tokio::task::JoinHandle;

use crate::events::{PRIVATE_DAYS, Plan, private_day};
use crate::http::{Connection, Reply, Request};
use crate::ledger::{Ledger, State};
use crate::settle;
use crate::trouble::Findings;
use crate::world::World;

/// How many connections there are.
pub const CONNECTIONS: usize = 64;
/// The most new events of a batch.
const MAX_BATCH: usize = 60;

/// How long the part without pauses is.
const RUN_UP: Duration = Duration::from_millis(150);

/// What the tasks of a load share with whoever started it. All run on one thread.
#[derive(Debug)]
pub struct Shared {
    /// What there is on the server.
    pub world: World,
    /// Every event.
    pub ledger: RefCell<Ledger>,
    /// Broken promises.
    pub findings: Findings,
    /// What happened.
    pub tally: RefCell<Tally>,
    stop: Cell<bool>,
    hurry: Cell<bool>,
}

/// What happened under load.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    /// Events that were acknowledged.
    pub acknowledged: usize,
    /// Answers by status.
    pub by_status: BTreeMap<u16, usize>,
    /// Answers 503 without `Retry-After`.
    pub without_retry_after: usize,
    /// Reads of what had just been acknowledged.
    pub reads: usize,
    /// Events that were sent a second time after they had been acknowledged.
    pub repeats: usize,
}

/// How much a load does.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// Which load of the campaign it is: each has private days of its own.
    pub cycle: usize,
    /// The longest pause of a connection between two requests.
    pub pause: Duration,
    /// Whether connections that break are opened again, or end.
    pub reconnect: bool,
    /// How bulky single events are.
    pub bulk: usize,
}

impl Pace {
    /// As fast as it goes, on connections that end when they break.
    #[must_use]
    pub fn fast(cycle: usize) -> Self {
        Self { cycle, pause: Duration::ZERO, reconnect: false, bulk: 0 }
    }

    /// With pauses: what comes of it the model can work through.
    #[must_use]
    pub fn steady(cycle: usize) -> Self {
        Self { pause: Duration::from_millis(100), ..Self::fast(cycle) }
    }
}

/// A load that runs.
#[derive(Debug)]
pub struct Load {
    shared: Rc<Shared>,
    tasks: Vec<JoinHandle<()>>,
}

impl Shared {
    /// Nothing has happened yet.
    #[must_use]
    pub fn new(world: World, seed: u64) -> Rc<Self> {
        Rc::new(Self {
            world,
            ledger: RefCell::new(Ledger::new(seed)),
            findings: Findings::default(),
            tally: RefCell::default(),
            stop: Cell::new(false),
            hurry: Cell::new(false),
        })
    }

    /// Adds an answer to the figures.
    pub fn count(&self, reply: &Reply) {
        let mut tally = self.tally.borrow_mut();
        *tally.by_status.entry(reply.status).or_default() += 1;
        if reply.status == 503 && reply.retry_after.is_none() {
            tally.without_retry_after += 1;
        }
    }

    /// Notes what became of an event that was sent alone.
    pub fn note_single(&self, number: usize, reply: &Reply) {
        self.count(reply);
        if reply.status != 202 {
            return self.ledger.borrow_mut().set(number, State::Refused);
        }
        if reply.json().field("status").text() != Some("recorded") {
            self.findings.add(format!("event e{number} was sent for the first time, and answered {}", reply.body));
        }
        self.ledger.borrow_mut().set(number, State::Acknowledged(reply.whole("position")));
        self.tally.borrow_mut().acknowledged += 1;
    }
}

impl Load {
    /// Starts it.
    #[must_use]
    pub fn start(shared: &Rc<Shared>, address: SocketAddr, pace: Pace, rng: &mut Rng) -> Self {
        shared.stop.set(false);
        shared.hurry.set(false);
        *shared.tally.borrow_mut() = Tally::default();
        let task = |number: usize| {
            let client = Client::new(Rc::clone(shared), address, pace, number, Rng::new(rng.bits()));
            tokio::task::spawn_local(client.run())
        };
        Self { shared: Rc::clone(shared), tasks: (0..CONNECTIONS).map(task).collect() }
    }

    /// Runs for `time`, the end of it without pauses, so that a crash finds most connections in the middle of a request.
    pub async fn run_up(&self, time: Duration) {
        tokio::time::sleep(time.saturating_sub(RUN_UP)).await;
        self.shared.hurry.set(true);
        tokio::time::sleep(time.min(RUN_UP)).await;
    }

    /// Lets every connection finish what it is at, unless it is broken, and waits for them.
    pub async fn finish(self) -> Tally {
        self.shared.stop.set(true);
        for task in self.tasks {
            if let Err(error) = task.await {
                self.shared.findings.add(format!("a connection's task failed: {error}"));
            }
        }
        self.shared.tally.borrow().clone()
    }
}

/// One connection, and what it does with it.
struct Client {
    shared: Rc<Shared>,
    address: SocketAddr,
    pace: Pace,
    rng: Rng,
    private: Private,
}

/// The day that is this client's alone, and what must be on it.
struct Private {
    plan: Plan,
    day: usize,
    known: u64,
    unknown: u64,
}

impl Client {
    fn new(shared: Rc<Shared>, address: SocketAddr, pace: Pace, number: usize, rng: Rng) -> Self {
        let day = (pace.cycle * CONNECTIONS + number) % PRIVATE_DAYS;
        let project = number % shared.world.projects.len();
        let known = shared.ledger.borrow().on_private_day(project, day) as u64;
        let private = Private { plan: Plan { private_day: Some(day), ..Plan::ordinary(project) }, day, known, unknown: 0 };
        Self { shared, address, pace, rng, private }
    }

    async fn run(mut self) {
        while !self.shared.stop.get() {
            let Ok(mut connection) = Connection::open(self.address).await else {
                if !self.pace.reconnect {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
                continue;
            };
            // A broken connection is what this is all about: what it left unanswered stands in the ledger.
            let ended = self.talk(&mut connection).await;
            if ended.is_err() && !self.pace.reconnect {
                return;
            }
        }
    }

    async fn talk(&mut self, connection: &mut Connection) -> io::Result<()> {
        while !self.shared.stop.get() {
            match self.rng.below(100) {
                0..50 => self.single(connection).await?,
                50..75 => self.batch(connection).await?,
                75..82 => self.repeat(connection).await?,
                _ => self.read_own_write(connection).await?,
            }
            if self.pace.pause > Duration::ZERO && !self.shared.hurry.get() && self.rng.chance(50) {
                let micros = self.rng.below(usize::try_from(self.pace.pause.as_micros()).unwrap_or(1));
                tokio::time::sleep(Duration::from_micros(micros as u64)).await;
            }
        }
        Ok(())
    }

    fn project(&mut self) -> usize {
        self.rng.below(self.shared.world.projects.len())
    }

    async fn single(&mut self, connection: &mut Connection) -> io::Result<()> {
        let project = self.project();
        let number = self.shared.ledger.borrow_mut().add(Plan { bulk: self.pace.bulk, ..Plan::ordinary(project) });
        self.send(connection, number).await.map(drop)
    }

    async fn send(&mut self, connection: &mut Connection, number: usize) -> io::Result<Reply> {
        let (body, plan) = (self.shared.ledger.borrow().body(number), self.shared.ledger.borrow().plan(number));
        let path = if self.rng.chance(50) { "/i" } else { "/track" };
        let reply = connection.send(&Request::events(path, &self.shared.world.projects[plan.project].key, &body)).await?;
        self.shared.note_single(number, &reply);
        self.slow_down(&reply).await;
        Ok(reply)
    }

    async fn slow_down(&self, reply: &Reply) {
        if reply.status == 503 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// New events, and some that are acknowledged already.
    async fn batch(&mut self, connection: &mut Connection) -> io::Result<()> {
        let project = self.project();
        let most = if self.rng.chance(20) { MAX_BATCH } else { 8 };
        let (mut events, mut old) = (Vec::new(), 0);
        for _ in 0..=self.rng.below(most) {
            let known =
                if self.rng.chance(10) { self.shared.ledger.borrow().some_acknowledged(&mut self.rng, project) } else { None };
            old += u64::from(known.is_some());
            let new = || self.shared.ledger.borrow_mut().add(Plan::ordinary(project));
            events.push(known.unwrap_or_else(new));
        }
        let body = self.shared.ledger.borrow().batch(&events);
        let reply = connection.send(&Request::events("/i/batch", &self.shared.world.projects[project].key, &body)).await?;
        self.shared.count(&reply);
        let (new, state) =
            (events.len() as u64 - old, if reply.status == 202 { State::Acknowledged(None) } else { State::Refused });
        if reply.status == 202 && settle::counts(&reply) != Ok((new, old)) {
            self.shared.findings.add(format!("a batch of {new} new and {old} known events was answered {}", reply.body));
        }
        for number in events {
            let mut ledger = self.shared.ledger.borrow_mut();
            if !matches!(ledger.state(number), State::Acknowledged(_)) {
                ledger.set(number, state);
                self.shared.tally.borrow_mut().acknowledged += usize::from(reply.status == 202);
            }
        }
        self.slow_down(&reply).await;
        Ok(())
    }

    /// An acknowledged event once more: a duplicate, with the position of the first.
    async fn repeat(&mut self, connection: &mut Connection) -> io::Result<()> {
        let project = self.project();
        let Some(number) = self.shared.ledger.borrow().some_acknowledged(&mut self.rng, project) else { return Ok(()) };
        let (body, state) = (self.shared.ledger.borrow().body(number), self.shared.ledger.borrow().state(number));
        let reply = connection.send(&Request::events("/i", &self.shared.world.projects[project].key, &body)).await?;
        self.shared.count(&reply);
        if reply.status == 202 {
            self.shared.tally.borrow_mut().repeats += 1;
            let position = reply.whole("position");
            let moved = matches!(state, State::Acknowledged(Some(first)) if position != Some(first));
            if moved || reply.json().field("status").text() != Some("duplicate") {
                self.shared.findings.add(format!("event e{number} is {state:?}, and was answered {}", reply.body));
            }
        }
        self.slow_down(&reply).await;
        Ok(())
    }

    /// An order on the private day, and at once a question for that day.
    async fn read_own_write(&mut self, connection: &mut Connection) -> io::Result<()> {
        let number = self.shared.ledger.borrow_mut().add(self.private.plan);
        self.private.unknown += 1;
        let reply = self.send(connection, number).await?;
        if reply.status == 202 {
            self.private.unknown -= 1;
            self.private.known += 1;
        }
        let day = private_day(self.private.day);
        let project = &self.shared.world.projects[self.private.plan.project];
        let path = format!("/projects/{}/revenue/metrics?start_date={day}&end_date={day}", project.id);
        let reply = connection.send(&Request::get(&path, &self.shared.world.token)).await?;
        self.shared.count(&reply);
        if reply.status == 200 {
            self.shared.tally.borrow_mut().reads += 1;
            let (least, most) = (self.private.known, self.private.known + self.private.unknown);
            if !reply.whole("orders").is_some_and(|orders| (least..=most).contains(&orders)) {
                let what = format!("{path} must count {least} to {most} orders of this connection, and answered {}", reply.body);
                self.shared.findings.add(what);
            }
        }
        Ok(())
    }
}
