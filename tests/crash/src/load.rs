//! Generates load: many connections that send events singly and in batches, and check the
//! responses.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use headcount_histories::Rng;
use tokio::task::JoinHandle;

use crate::error::Findings;
use crate::events::{PRIVATE_DAYS, Plan, private_day};
use crate::http::{Connection, Request, Response};
use crate::ledger::{EventState, Ledger};
use crate::resend;
use crate::tenant::Tenant;

/// Number of connections.
pub const CONNECTIONS: usize = 64;
/// Maximum number of events in a batch.
const MAX_BATCH: usize = 60;
/// Duration of the final part of [`Load::run_up`], without pauses.
const RUN_UP: Duration = Duration::from_millis(150);

/// State shared by a campaign and the tasks of its load. All run on one thread.
#[derive(Debug)]
pub struct Shared {
    /// The organization and its projects.
    pub tenant: Tenant,
    /// Every event sent.
    pub ledger: RefCell<Ledger>,
    /// Violations found by the tasks.
    pub findings: Findings,
    /// Counts of the current load.
    pub tally: RefCell<Tally>,
    stop: Cell<bool>,
    no_pauses: Cell<bool>,
}

/// Counts of one load.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    /// Events acknowledged.
    pub acknowledged: usize,
    /// Responses by status.
    pub by_status: BTreeMap<u16, usize>,
    /// 503 responses without `Retry-After`.
    pub without_retry_after: usize,
    /// Reads of an event that had just been acknowledged.
    pub reads: usize,
    /// Acknowledged events sent a second time.
    pub repeats: usize,
}

/// Intensity of a load.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// Index of the load within the campaign; selects its private days.
    pub cycle: usize,
    /// Longest pause between two requests of a connection.
    pub pause: Duration,
    /// Whether clients reopen broken connections instead of stopping.
    pub reconnect: bool,
    /// [`Plan::bulk`] of single events.
    pub bulk: usize,
}

impl Pace {
    /// No pauses; clients stop when their connection breaks.
    #[must_use]
    pub fn fast(cycle: usize) -> Self {
        Self { cycle, pause: Duration::ZERO, reconnect: false, bulk: 0 }
    }

    /// With pauses, so that the model can process the resulting number of events.
    #[must_use]
    pub fn steady(cycle: usize) -> Self {
        Self { pause: Duration::from_millis(100), ..Self::fast(cycle) }
    }
}

/// A running load.
#[derive(Debug)]
pub struct Load {
    shared: Rc<Shared>,
    tasks: Vec<JoinHandle<()>>,
}

impl Shared {
    /// Creates the state of a campaign before its first event.
    #[must_use]
    pub fn new(tenant: Tenant, seed: u64) -> Rc<Self> {
        Rc::new(Self {
            tenant,
            ledger: RefCell::new(Ledger::new(seed)),
            findings: Findings::default(),
            tally: RefCell::default(),
            stop: Cell::new(false),
            no_pauses: Cell::new(false),
        })
    }

    /// Counts a response.
    pub fn count(&self, response: &Response) {
        let mut tally = self.tally.borrow_mut();
        *tally.by_status.entry(response.status).or_default() += 1;
        if response.status == 503 && response.retry_after.is_none() {
            tally.without_retry_after += 1;
        }
    }

    /// Records the response to an event that was sent alone.
    pub fn record_response(&self, number: usize, response: &Response) {
        self.count(response);
        if response.status != 202 {
            return self.ledger.borrow_mut().set(number, EventState::Refused);
        }
        if response.json().field("status").text() != Some("recorded") {
            self.findings.add(format!("event e{number} was sent for the first time, but the response was {}", response.body));
        }
        self.ledger.borrow_mut().set(number, EventState::Acknowledged(response.integer("position")));
        self.tally.borrow_mut().acknowledged += 1;
    }
}

impl Load {
    /// Starts the load.
    #[must_use]
    pub fn start(shared: &Rc<Shared>, address: SocketAddr, pace: Pace, rng: &mut Rng) -> Self {
        shared.stop.set(false);
        shared.no_pauses.set(false);
        *shared.tally.borrow_mut() = Tally::default();
        let task = |number: usize| {
            let client = Client::new(Rc::clone(shared), address, pace, number, Rng::new(rng.bits()));
            tokio::task::spawn_local(client.run())
        };
        Self { shared: Rc::clone(shared), tasks: (0..CONNECTIONS).map(task).collect() }
    }

    /// Runs for `time`, the last part without pauses, so that a crash hits most connections in the
    /// middle of a request.
    pub async fn run_up(&self, time: Duration) {
        tokio::time::sleep(time.saturating_sub(RUN_UP)).await;
        self.shared.no_pauses.set(true);
        tokio::time::sleep(time.min(RUN_UP)).await;
    }

    /// Waits until every connection has finished its current request or is broken.
    pub async fn finish(self) -> Tally {
        self.shared.stop.set(true);
        for task in self.tasks {
            if let Err(error) = task.await {
                self.shared.findings.add(format!("the task of a connection failed: {error}"));
            }
        }
        self.shared.tally.borrow().clone()
    }
}

/// One connection and its requests.
struct Client {
    shared: Rc<Shared>,
    address: SocketAddr,
    pace: Pace,
    rng: Rng,
    private: PrivateDay,
}

/// The private day of a client, and the orders expected on it: `known` acknowledged, up to
/// `unknown` more.
struct PrivateDay {
    plan: Plan,
    day: usize,
    known: u64,
    unknown: u64,
}

impl Client {
    fn new(shared: Rc<Shared>, address: SocketAddr, pace: Pace, number: usize, rng: Rng) -> Self {
        let day = (pace.cycle * CONNECTIONS + number) % PRIVATE_DAYS;
        let project = number % shared.tenant.projects.len();
        let known = shared.ledger.borrow().on_private_day(project, day) as u64;
        let private = PrivateDay { plan: Plan { private_day: Some(day), ..Plan::ordinary(project) }, day, known, unknown: 0 };
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
            // Crashes break connections; the ledger has the unanswered events.
            let ended = self.send_requests(&mut connection).await;
            if ended.is_err() && !self.pace.reconnect {
                return;
            }
        }
    }

    async fn send_requests(&mut self, connection: &mut Connection) -> io::Result<()> {
        while !self.shared.stop.get() {
            match self.rng.below(100) {
                0..50 => self.single(connection).await?,
                50..75 => self.batch(connection).await?,
                75..82 => self.repeat(connection).await?,
                _ => self.read_own_write(connection).await?,
            }
            if self.pace.pause > Duration::ZERO && !self.shared.no_pauses.get() && self.rng.chance(50) {
                let micros = self.rng.below(usize::try_from(self.pace.pause.as_micros()).unwrap_or(1));
                tokio::time::sleep(Duration::from_micros(micros as u64)).await;
            }
        }
        Ok(())
    }

    fn project(&mut self) -> usize {
        self.rng.below(self.shared.tenant.projects.len())
    }

    async fn single(&mut self, connection: &mut Connection) -> io::Result<()> {
        let project = self.project();
        let number = self.shared.ledger.borrow_mut().add(Plan { bulk: self.pace.bulk, ..Plan::ordinary(project) });
        self.send(connection, number).await.map(drop)
    }

    async fn send(&mut self, connection: &mut Connection, number: usize) -> io::Result<Response> {
        let (body, plan) = (self.shared.ledger.borrow().body(number), self.shared.ledger.borrow().plan(number));
        let path = if self.rng.chance(50) { "/i" } else { "/track" };
        let response = connection.send(&Request::events(path, &self.shared.tenant.projects[plan.project].key, &body)).await?;
        self.shared.record_response(number, &response);
        self.slow_down(&response).await;
        Ok(response)
    }

    async fn slow_down(&self, response: &Response) {
        if response.status == 503 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Sends new events, and some that are acknowledged already.
    async fn batch(&mut self, connection: &mut Connection) -> io::Result<()> {
        let project = self.project();
        let most = if self.rng.chance(20) { MAX_BATCH } else { 8 };
        let (mut events, mut known) = (Vec::new(), 0);
        for _ in 0..=self.rng.below(most) {
            let repeated =
                if self.rng.chance(10) { self.shared.ledger.borrow().random_acknowledged(&mut self.rng, project) } else { None };
            known += u64::from(repeated.is_some());
            let new = || self.shared.ledger.borrow_mut().add(Plan::ordinary(project));
            events.push(repeated.unwrap_or_else(new));
        }
        let body = self.shared.ledger.borrow().batch(&events);
        let response = connection.send(&Request::events("/i/batch", &self.shared.tenant.projects[project].key, &body)).await?;
        self.shared.count(&response);
        let (new, state) = (
            events.len() as u64 - known,
            if response.status == 202 { EventState::Acknowledged(None) } else { EventState::Refused },
        );
        if response.status == 202 && resend::counts(&response) != Ok((new, known)) {
            self.shared
                .findings
                .add(format!("the response to a batch of {new} new and {known} known events was {}", response.body));
        }
        for number in events {
            let mut ledger = self.shared.ledger.borrow_mut();
            if !matches!(ledger.state(number), EventState::Acknowledged(_)) {
                ledger.set(number, state);
                self.shared.tally.borrow_mut().acknowledged += usize::from(response.status == 202);
            }
        }
        self.slow_down(&response).await;
        Ok(())
    }

    /// Sends an acknowledged event again: it must be a duplicate, with the position of the
    /// original.
    async fn repeat(&mut self, connection: &mut Connection) -> io::Result<()> {
        let project = self.project();
        let Some(number) = self.shared.ledger.borrow().random_acknowledged(&mut self.rng, project) else { return Ok(()) };
        let (body, state) = (self.shared.ledger.borrow().body(number), self.shared.ledger.borrow().state(number));
        let response = connection.send(&Request::events("/i", &self.shared.tenant.projects[project].key, &body)).await?;
        self.shared.count(&response);
        if response.status == 202 {
            self.shared.tally.borrow_mut().repeats += 1;
            let position = response.integer("position");
            let moved = matches!(state, EventState::Acknowledged(Some(first)) if position != Some(first));
            if moved || response.json().field("status").text() != Some("duplicate") {
                self.shared.findings.add(format!("event e{number} is {state:?}, but the response was {}", response.body));
            }
        }
        self.slow_down(&response).await;
        Ok(())
    }

    /// Sends an order on the private day, and immediately queries that day.
    async fn read_own_write(&mut self, connection: &mut Connection) -> io::Result<()> {
        let number = self.shared.ledger.borrow_mut().add(self.private.plan);
        self.private.unknown += 1;
        let response = self.send(connection, number).await?;
        if response.status == 202 {
            self.private.unknown -= 1;
            self.private.known += 1;
        }
        let day = private_day(self.private.day);
        let project = &self.shared.tenant.projects[self.private.plan.project];
        let path = format!("/projects/{}/revenue/metrics?start_date={day}&end_date={day}", project.id);
        let response = connection.send(&Request::get(&path, &self.shared.tenant.token)).await?;
        self.shared.count(&response);
        if response.status == 200 {
            self.shared.tally.borrow_mut().reads += 1;
            let (least, most) = (self.private.known, self.private.known + self.private.unknown);
            if !response.integer("orders").is_some_and(|orders| (least..=most).contains(&orders)) {
                let what = format!(
                    "{path} must count {least} to {most} orders of this connection, but the response was {}",
                    response.body
                );
                self.shared.findings.add(what);
            }
        }
        Ok(())
    }
}
