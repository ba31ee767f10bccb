//! Load on all nodes of a cluster. Each client belongs to one project and one node, so that what
//! waits for one partition says nothing of the others.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use headcount_histories::Rng;
use tokio::task::JoinHandle;

use super::site::NODES;
use super::timeline::Timeline;
use crate::events::{Plan, private_day};
use crate::http::{Connection, Request, Response};
use crate::ledger::EventState;
use crate::load::Shared;

/// Clients of each project at each node.
const CLIENTS: usize = 2;
/// Longest pause of a client between two requests.
const PAUSE_MS: usize = 200;
/// Its pause after an event that was refused, or has no answer.
const REFUSED_PAUSE_MS: usize = 300;
/// Maximum number of events in a batch.
const MAX_BATCH: usize = 8;
/// How often an event of each project is sent without waiting for those before, and how many may be
/// under way.
const PROBE_EVERY: Duration = Duration::from_millis(250);
const MAX_PROBES: usize = 800;

/// What the clients of a cycle share.
#[derive(Debug)]
pub struct Field {
    /// Tenant, ledger and findings.
    pub shared: Rc<Shared>,
    /// Where the nodes are reached.
    pub nodes: Vec<SocketAddr>,
    /// When events were acknowledged.
    pub timeline: Timeline,
    /// Counts.
    pub counts: RefCell<Counts>,
    stop: Cell<bool>,
    probes: Cell<usize>,
}

/// Counts of a load.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// Events acknowledged.
    pub acknowledged: usize,
    /// Reads of an event, through another node, right after its 202.
    pub reads: usize,
    /// Of these, reads that did not count the event.
    pub misses: usize,
    /// Acknowledged events sent a second time, to any node.
    pub repeats: usize,
    /// Events answered with 503.
    pub refused: usize,
    /// Events answered with `outcome_unknown`.
    pub unknown: usize,
    /// Requests that got no answer.
    pub broken: usize,
}

impl Counts {
    /// Adds other counts.
    pub fn add(&mut self, other: &Counts) {
        self.acknowledged += other.acknowledged;
        self.reads += other.reads;
        self.misses += other.misses;
        self.repeats += other.repeats;
        self.refused += other.refused;
        self.unknown += other.unknown;
        self.broken += other.broken;
    }
}

/// A running load.
#[derive(Debug)]
pub struct Load {
    /// What the clients share.
    pub field: Rc<Field>,
    tasks: Vec<JoinHandle<()>>,
}

impl Load {
    /// Starts the load.
    #[must_use]
    pub fn start(shared: &Rc<Shared>, nodes: Vec<SocketAddr>, rng: &mut Rng) -> Self {
        let projects = shared.tenant.projects.len();
        let field = Rc::new(Field {
            shared: Rc::clone(shared),
            nodes,
            timeline: Timeline::default(),
            counts: RefCell::default(),
            stop: Cell::new(false),
            probes: Cell::new(0),
        });
        let client = |number: usize| {
            let client = Client::new(&field, number, Rng::new(rng.bits()));
            tokio::task::spawn_local(client.run())
        };
        let mut tasks: Vec<JoinHandle<()>> = (0..clients(shared)).map(client).collect();
        tasks.extend((0..projects).map(|project| tokio::task::spawn_local(probe(Rc::clone(&field), project))));
        Self { field, tasks }
    }

    /// Waits until every client has finished its current request.
    pub async fn finish(self) -> Counts {
        self.field.stop.set(true);
        for task in self.tasks {
            if let Err(error) = task.await {
                self.field.shared.findings.add(format!("the task of a client failed: {error}"));
            }
        }
        while self.field.probes.get() > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        self.field.counts.borrow().clone()
    }
}

/// Returns the number of clients, each of which has the private day of its number.
#[must_use]
pub fn clients(shared: &Shared) -> usize {
    CLIENTS * NODES * shared.tenant.projects.len()
}

/// Sends an event of a project every now and then, to each node in turn, whether those before were
/// answered or not.
async fn probe(field: Rc<Field>, project: usize) {
    let mut node = project;
    while !field.stop.get() {
        node = (node + 1) % field.nodes.len();
        if field.probes.get() < MAX_PROBES {
            field.probes.set(field.probes.get() + 1);
            let field = Rc::clone(&field);
            tokio::task::spawn_local(async move {
                let number = field.shared.ledger.borrow_mut().add(Plan::ordinary(project));
                if let Ok(mut connection) = Connection::open(field.nodes[node]).await {
                    // Without an answer the event stays unanswered in the ledger.
                    let _ = field.send(&mut connection, number, node).await;
                } else {
                    field.shared.ledger.borrow_mut().set(number, EventState::Refused);
                }
                field.probes.set(field.probes.get() - 1);
            });
        }
        tokio::time::sleep(PROBE_EVERY).await;
    }
}

impl Field {
    /// Sends an event that was not sent before.
    async fn send(&self, connection: &mut Connection, number: usize, node: usize) -> io::Result<Response> {
        let (body, plan) = (self.shared.ledger.borrow().body(number), self.shared.ledger.borrow().plan(number));
        let began = Instant::now();
        let key = &self.shared.tenant.projects[plan.project].key;
        let response = connection.send(&Request::events("/i", key, &body)).await.inspect_err(|_| self.note_broken())?;
        if response.status == 202 {
            self.shared.record_response(number, &response);
            self.timeline.note(number, plan.project, node, began);
            self.counts.borrow_mut().acknowledged += 1;
        } else {
            self.note_refusal(&[number], &response);
        }
        Ok(response)
    }

    fn note_broken(&self) {
        self.counts.borrow_mut().broken += 1;
    }

    /// Notes a response other than 202 to events. After 503, none of them is recorded, nor after
    /// 408, which says that the request was not read in time, as when the node was frozen; after
    /// `outcome_unknown`, any may be.
    fn note_refusal(&self, numbers: &[usize], response: &Response) {
        let mut counts = self.counts.borrow_mut();
        let is_unknown = response.json().field("error").field("code").text() == Some("outcome_unknown");
        match response.status {
            408 => self.set_refused(numbers, &mut counts),
            503 if response.retry_after.is_some() => self.set_refused(numbers, &mut counts),
            500 if is_unknown => counts.unknown += numbers.len(),
            status => self.shared.findings.add(format!("events were answered {status}: {}", response.body)),
        }
    }

    fn set_refused(&self, numbers: &[usize], counts: &mut Counts) {
        counts.refused += numbers.len();
        let mut ledger = self.shared.ledger.borrow_mut();
        for number in numbers {
            if ledger.state(*number) == EventState::Unanswered {
                ledger.set(*number, EventState::Refused);
            }
        }
    }
}

/// A client: its connections to nodes, and its private day.
struct Client {
    field: Rc<Field>,
    home: usize,
    rng: Rng,
    connections: BTreeMap<usize, Connection>,
    plan: Plan,
    day: usize,
    /// Orders on the private day that were acknowledged, and that may have been recorded.
    known: u64,
    unknown: u64,
}

impl Client {
    fn new(field: &Rc<Field>, number: usize, rng: Rng) -> Self {
        let projects = field.shared.tenant.projects.len();
        let (project, home) = (number % projects, number / projects % field.nodes.len());
        let known = field.shared.ledger.borrow().on_private_day(project, number) as u64;
        let plan = Plan { private_day: Some(number), ..Plan::ordinary(project) };
        Self { field: Rc::clone(field), home, rng, connections: BTreeMap::new(), plan, day: number, known, unknown: 0 }
    }

    async fn run(mut self) {
        while !self.field.stop.get() {
            let done = match self.rng.below(100) {
                0..38 => self.single().await,
                38..52 => self.batch().await,
                52..60 => self.repeat().await,
                _ => self.read_elsewhere().await,
            };
            // Crashes break connections, and what was answered says itself what is wrong; the
            // ledger has the unanswered events.
            let is_served = done.unwrap_or(false);
            let pause = if is_served { self.rng.below(PAUSE_MS) } else { REFUSED_PAUSE_MS };
            tokio::time::sleep(Duration::from_millis(pause as u64)).await;
        }
    }

    /// Takes the connection to a node, which is put back if it can be used again.
    async fn connection(&mut self, node: usize) -> io::Result<Connection> {
        match self.connections.remove(&node) {
            Some(connection) => Ok(connection),
            None => Connection::open(self.field.nodes[node]).await,
        }
    }

    /// Sends an event. Returns, as the others do, whether it was acknowledged.
    async fn single(&mut self) -> io::Result<bool> {
        let mut connection = self.connection(self.home).await?;
        let number = self.field.shared.ledger.borrow_mut().add(Plan::ordinary(self.plan.project));
        let response = self.field.send(&mut connection, number, self.home).await?;
        self.connections.insert(self.home, connection);
        Ok(response.status == 202)
    }

    async fn batch(&mut self) -> io::Result<bool> {
        let mut connection = self.connection(self.home).await?;
        let (project, began) = (self.plan.project, Instant::now());
        let new = |_| self.field.shared.ledger.borrow_mut().add(Plan::ordinary(project));
        let events: Vec<usize> = (0..=self.rng.below(MAX_BATCH)).map(new).collect();
        let body = self.field.shared.ledger.borrow().batch(&events);
        let key = &self.field.shared.tenant.projects[project].key;
        let sent = connection.send(&Request::events("/i/batch", key, &body)).await;
        let response = sent.inspect_err(|_| self.field.note_broken())?;
        self.connections.insert(self.home, connection);
        if response.status != 202 {
            self.field.note_refusal(&events, &response);
            return Ok(false);
        }
        if crate::resend::counts(&response) != Ok((events.len() as u64, 0)) {
            let what = format!("the response to a batch of {} new events was {}", events.len(), response.body);
            self.field.shared.findings.add(what);
        }
        self.field.timeline.note(events[0], project, self.home, began);
        self.field.counts.borrow_mut().acknowledged += events.len();
        events.into_iter().for_each(|event| self.field.shared.ledger.borrow_mut().set(event, EventState::Acknowledged(None)));
        Ok(true)
    }

    /// Sends an acknowledged event again, to any node: it must be a duplicate, with the position of
    /// the original.
    async fn repeat(&mut self) -> io::Result<bool> {
        let (node, project) = (self.rng.below(self.field.nodes.len()), self.plan.project);
        let shared = Rc::clone(&self.field.shared);
        let Some(number) = shared.ledger.borrow().random_acknowledged(&mut self.rng, project) else { return Ok(true) };
        let (body, state) = (shared.ledger.borrow().body(number), shared.ledger.borrow().state(number));
        let mut connection = self.connection(node).await?;
        let response = connection.send(&Request::events("/i", &shared.tenant.projects[project].key, &body)).await?;
        self.connections.insert(node, connection);
        if response.status != 202 {
            self.field.note_refusal(&[number], &response);
            return Ok(false);
        }
        self.field.counts.borrow_mut().repeats += 1;
        let position = response.integer("position");
        let has_moved = matches!(state, EventState::Acknowledged(Some(first)) if position != Some(first));
        if has_moved || response.json().field("status").text() != Some("duplicate") {
            shared.findings.add(format!("event e{number} is {state:?}, but node {node} answered {}", response.body));
        }
        Ok(true)
    }

    /// Sends an order on the private day, and at once asks another node for that day.
    async fn read_elsewhere(&mut self) -> io::Result<bool> {
        let mut connection = self.connection(self.home).await?;
        let number = self.field.shared.ledger.borrow_mut().add(self.plan);
        self.unknown += 1;
        let response = self.field.send(&mut connection, number, self.home).await?;
        self.connections.insert(self.home, connection);
        match response.status {
            202 => (self.known, self.unknown) = (self.known + 1, self.unknown - 1),
            408 | 503 => self.unknown -= 1,
            _ => {}
        }
        let nodes = self.field.nodes.len();
        let node = (self.home + 1 + self.rng.below(nodes - 1)) % nodes;
        let mut connection = self.connection(node).await?;
        let (day, tenant) = (private_day(self.day), &self.field.shared.tenant);
        let id = &tenant.projects[self.plan.project].id;
        let path = format!("/projects/{id}/revenue/metrics?start_date={day}&end_date={day}");
        let answer = connection.send(&Request::get(&path, &tenant.token)).await?;
        match answer.status {
            200 => self.compare(node, &answer, response.status == 202),
            408 | 503 => {}
            status => self.field.shared.findings.add(format!("node {node} answered {path} with {status}: {}", answer.body)),
        }
        self.connections.insert(node, connection);
        Ok(response.status == 202)
    }

    fn compare(&self, node: usize, answer: &Response, is_after_ack: bool) {
        let mut counts = self.field.counts.borrow_mut();
        counts.reads += usize::from(is_after_ack);
        let (least, most) = (self.known, self.known + self.unknown);
        if !answer.integer("orders").is_some_and(|orders| (least..=most).contains(&orders)) {
            counts.misses += usize::from(is_after_ack);
            let what =
                format!("node {node} must count {least} to {most} orders on day {}, but answered {}", self.day, answer.body);
            self.field.shared.findings.add(what);
        }
    }
}
