//! Random histories folded by the domain, and recomputed by the naive model: every answer must be
//! the same.
//!
//! No log, no HTTP: this is the quick one, which the planted-bug command runs for each bug.
//! Checkpoints are written as bytes while events come in; a restart goes on with nothing but the
//! last whole one and the events since. Pages are tiny, so that the little that a history holds has
//! many.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a panic is a failed test")]

mod answers;
mod arrival;
mod checkpoints;
mod forgotten;
mod past;
mod regressions;
mod reports;
mod rows;
mod saved;
mod scanned;
mod senders;
mod shown;
mod traffic;
mod versions;

use std::collections::{BTreeMap, HashMap};
use std::panic::{catch_unwind, resume_unwind};
use std::sync::{LazyLock, Mutex, PoisonError};

use chrono::NaiveDate;
use headcount_domain::agent::{Hints, parse_with};
use headcount_domain::hosts::{HostList, listed};
use headcount_domain::intake::admission::{Client, Sender, Verdict, admit};
use headcount_domain::intake::client_address::ClientAddress;
use headcount_domain::intake::policy::{Policy, Rates as DomainRates};
use headcount_domain::intake::submission::Submission;
use headcount_domain::limits::Limits;
use headcount_domain::queries::{Projects, Query as Asked, Reader, Travels};
use headcount_domain::{
    Currency, Day, Event, Fault, Instant, KeyHasher, OrganizationId, Project, ProjectId, Rate, RisingFloor, Timezone,
};
use headcount_histories::{BatchReply, Coverage, History, Size, Step, Subject, TrackReply, is_of_server, model_of, run};
use headcount_model::{Json, Question, Rates};
use saved::{Saved, let_go};
use senders::Sent;

/// A Friday in the past: nothing that a history does lies ahead of it.
const NOW_MS: i64 = 1_790_000_000_000;

/// Tiny pages and parts, and few orders before attribution is deferred: a history is short.
const TINY: Limits = Limits {
    page_items: 6,
    part_bytes: 48,
    max_inline_orders: 2,
    max_inline_run: 1,
    short_history: 0,
    top_margin: 0,
    listed_users: 2,
    member_days: 9,
};

/// The limits of the history of a seed: every fourth leaves many orders inline, in several pages.
fn limits_of(seed: u64) -> Limits {
    match seed % 4 {
        3 => Limits {
            page_items: 1 + usize::try_from(seed / 4 % 3).unwrap_or(0),
            max_inline_orders: 20,
            max_inline_run: 20,
            ..TINY
        },
        _ => TINY,
    }
}

/// The number of parts and records of a checkpoint that the history of a seed writes with each
/// event. With one, many events arrive while a checkpoint is written, but few checkpoints are
/// completed and few pages evicted; every fourth history completes each checkpoint with the next
/// event.
fn checkpoint_step_of(seed: u64) -> usize {
    if seed % 4 == 3 { usize::MAX } else { 1 }
}

/// A record of the log.
#[derive(Clone)]
enum Logged {
    Event(Box<Event>),
    Floor(Day),
}

/// One project.
struct Held {
    policy: Policy,
    state: Project,
    saved: Saved,
    /// The number of parts and records of a checkpoint that are written with each event.
    checkpoint_step: usize,
    /// What a log holds: the events that the last whole checkpoint is without, with their
    /// positions.
    since: Vec<(Logged, u64)>,
    /// How many of them the checkpoint that is being written will hold.
    begun_at: usize,
    external_ids: HashMap<String, u64>,
    /// What was folded, with its positions.
    log: Vec<(Event, u64)>,
    /// The floors, with the positions at which they rose.
    floors: Vec<(Day, u64)>,
}

impl Held {
    fn new(policy: Policy, limits: Limits, checkpoint_step: usize) -> Held {
        Held {
            policy,
            state: Project::new(limits),
            saved: Saved::default(),
            checkpoint_step,
            since: Vec::new(),
            begun_at: 0,
            external_ids: HashMap::new(),
            log: Vec::new(),
            floors: Vec::new(),
        }
    }

    fn apply(&mut self, event: Box<Event>, position: u64) {
        self.state.apply(&event, position, hasher(), &self.saved).unwrap();
        self.log.push(((*event).clone(), position));
        self.logged(Logged::Event(event), position);
    }

    fn raise_floor(&mut self, day: Day, position: u64) {
        raise_floor(&mut self.state, day, position);
        self.floors.push((day, position));
        self.logged(Logged::Floor(day), position);
    }

    fn logged(&mut self, record: Logged, position: u64) {
        self.state
            .kept_sums
            .compare(&self.state.rollups.group_activity, &mut |describe| panic!("at {position}: {:?}", describe()));
        self.since.push((record, position));
        if self.saved.is_running() {
            if position.is_multiple_of(3) {
                let_go(&mut self.state);
            }
            self.go_on();
        } else if position.is_multiple_of(5) {
            self.begun_at = self.since.len();
            self.saved.begin(&mut self.state);
        }
    }

    fn go_on(&mut self) {
        if self.saved.go_on(&mut self.state, self.checkpoint_step) {
            self.since.drain(..std::mem::take(&mut self.begun_at));
            let_go(&mut self.state);
        }
    }

    fn stop(&mut self) {
        let limits = self.state.limits;
        self.saved.stop(std::mem::replace(&mut self.state, Project::new(limits)));
        (self.since, self.begun_at) = (Vec::new(), 0);
    }

    fn start(&mut self) {
        self.state = self.saved.start(self.state.limits);
        self.begun_at = 0;
        for (record, position) in &self.since {
            match record {
                Logged::Event(event) => drop(self.state.apply(event, *position, hasher(), &self.saved).unwrap()),
                Logged::Floor(day) => raise_floor(&mut self.state, *day, *position),
            }
        }
    }

    fn ask<Q: Asked>(&mut self, question: &Q) -> Result<Q::Partial, Fault> {
        let mut reader = Reader { id: self.policy.project, project: &mut self.state, hasher: hasher(), source: &self.saved };
        question.answer(&mut reader)
    }
}

fn hasher() -> &'static KeyHasher {
    static HASHER: LazyLock<KeyHasher> = LazyLock::new(|| KeyHasher::new([9; 16]));
    &HASHER
}

/// All projects of one organization.
struct Folded {
    /// When questions are asked.
    now: Instant,
    projects: BTreeMap<String, Mutex<Held>>,
    position: u64,
    /// After how many events each a project stops without warning.
    crashes: Option<u64>,
    limits: Limits,
    checkpoint_step: usize,
}

impl Default for Folded {
    fn default() -> Self {
        Self { now: Instant(NOW_MS), projects: BTreeMap::new(), position: 0, crashes: None, limits: TINY, checkpoint_step: 1 }
    }
}

impl Projects for Folded {
    type Error = Fault;

    fn organization(&self) -> OrganizationId {
        OrganizationId(1)
    }

    fn count(&self) -> usize {
        self.projects.len()
    }

    fn hasher(&self) -> &KeyHasher {
        hasher()
    }

    fn limits(&self) -> Limits {
        self.limits
    }

    async fn scatter<Q: Travels>(&self, question: Q) -> Result<Vec<Q::Partial>, Fault> {
        let held = self.projects.values();
        held.map(|held| held.lock().unwrap_or_else(PoisonError::into_inner).ask(&question)).collect()
    }
}

fn rates(rates: &Rates) -> DomainRates {
    let rate = |(currency, rate): (&String, _)| {
        (Currency::parse(currency).unwrap(), Rate::parse(&Json::from(rate).to_string()).unwrap())
    };
    rates.iter().map(|(currency, value)| rate((currency, *value))).collect()
}

impl Folded {
    /// The events of a history, folded; nothing is asked.
    fn of(history: &History) -> Folded {
        let mut folded = Folded::default();
        folded.setup(history);
        for step in &history.steps {
            match step {
                Step::Track { project, body } => drop(folded.track(project, body)),
                Step::Batch { project, bodies } => drop(folded.batch(project, bodies)),
                Step::Rates(table) => folded.rates(table),
                Step::Settings { project, body } => folded.settings(project, body),
                Step::Floor { project, day } => folded.raise_floor(project, *day),
                Step::Clock { ahead_ms } => folded.set_clock(*ahead_ms),
                Step::Restart | Step::Ask(_) => {}
            }
        }
        folded
    }

    fn send(&mut self, project: &str, body: &str) -> TrackReply {
        let held = self.projects.get_mut(project).unwrap().get_mut().unwrap();
        let (sent, is_of_server) = (Sent::of(body), is_of_server(body));
        let of_browser = sent.agent();
        let salt = u128::try_from(held.policy.timezone.day_of(self.now).0).unwrap().to_be_bytes();
        let admitted = Submission::read(body.as_bytes(), |event| {
            let of_server = parse_with(event.user_agent().unwrap_or_default(), &Hints::NONE);
            let client = Client {
                sender: if is_of_server { Sender::Server } else { Sender::Public },
                address: Some(ClientAddress::parse("192.0.2.1")).filter(|_| !is_of_server),
                user_agent: if is_of_server { event.user_agent() } else { Some(sent.user_agent()) },
                country: None,
                agent: if is_of_server { &of_server } else { &of_browser },
                gpc: false,
                dnt: false,
                salt: Some(salt),
            };
            admit(event, &held.policy, &client, self.now)
        })
        .flatten();
        let (event, clamped, warnings) = match admitted {
            Ok(Verdict::Record { event, clamped, warnings }) => (event, clamped, warnings),
            Ok(Verdict::Dropped(reason)) => {
                let reason = Some(reason.as_str().to_owned());
                return TrackReply::Accepted { status: "dropped".into(), reason, clamped: false, id: None, warnings: Vec::new() };
            }
            Err(invalid) => return TrackReply::Refused { param: invalid.param },
        };
        let warnings = warnings.iter().map(|warning| format!("{} {}", warning.code, warning.param)).collect();
        if held.state.drops(&event) {
            let reason = Some("retention".to_owned());
            return TrackReply::Accepted { status: "dropped".into(), reason, clamped, id: None, warnings };
        }
        self.position += 1;
        let position = self.position;
        let known = event.external_id.as_ref().map(|id| *held.external_ids.entry(id.to_string()).or_insert(position));
        let first = known.unwrap_or(position);
        if first == position {
            held.apply(event, position);
            if self.crashes.is_some_and(|crashes| position.is_multiple_of(crashes)) {
                held.start();
            }
        }
        let status = if first == position { "recorded" } else { "duplicate" };
        TrackReply::Accepted { status: status.into(), reason: None, clamped, id: Some(format!("{project}/{first}")), warnings }
    }
}

impl Subject for Folded {
    fn now_ms(&mut self) -> i64 {
        self.now.0
    }

    fn set_clock(&mut self, ahead_ms: i64) {
        self.now = Instant(NOW_MS + ahead_ms);
    }

    fn setup(&mut self, history: &History) {
        let organization = &history.organization;
        self.crashes = [None, Some(7), Some(31)][(history.seed % 3) as usize];
        for (number, project) in history.projects.iter().enumerate() {
            let currency = project.body.field("currency").text().map_or(Currency::USD, |code| Currency::parse(code).unwrap());
            let policy = Policy {
                project: ProjectId(number as u64 + 1),
                organization: OrganizationId(1),
                currency,
                organization_currency: Currency::parse(&organization.currency).unwrap(),
                rates: rates(&organization.fx_rates).into(),
                timezone: Timezone::parse(history.timezone().name()).unwrap(),
                bots: serde(&project.body, "bots"),
                signals: serde(&project.body, "signals_policy"),
                cookieless: *project.body.field("cookieless") != Json::Bool(false),
                server_only_revenue: *project.body.field("server_only_revenue") == Json::Bool(true),
                no_referrers: no_referrers(&project.body),
            };
            self.projects.insert(project.name.clone(), Mutex::new(Held::new(policy, self.limits, self.checkpoint_step)));
        }
    }

    fn track(&mut self, project: &str, body: &str) -> TrackReply {
        self.send(project, body)
    }

    fn batch(&mut self, project: &str, bodies: &[String]) -> BatchReply {
        let mut reply = BatchReply::default();
        for (index, body) in bodies.iter().enumerate() {
            match self.send(project, body) {
                TrackReply::Refused { param } => reply.errors.push((index, param)),
                TrackReply::Accepted { status, .. } if status == "recorded" => reply.recorded += 1,
                TrackReply::Accepted { status, .. } if status == "duplicate" => reply.duplicates += 1,
                TrackReply::Accepted { .. } => reply.dropped += 1,
            }
        }
        reply
    }

    fn rates(&mut self, table: &Rates) {
        for held in self.projects.values_mut() {
            let held = held.get_mut().unwrap();
            held.policy.rates = rates(table).into();
        }
    }

    fn settings(&mut self, project: &str, body: &Json) {
        let held = self.projects.get_mut(project).unwrap().get_mut().unwrap();
        held.policy.no_referrers = no_referrers(body);
    }

    fn restart(&mut self) {
        for held in self.projects.values_mut() {
            let held = held.get_mut().unwrap();
            held.stop();
            held.start();
        }
    }

    fn raise_floor(&mut self, project: &str, day: NaiveDate) {
        self.position += 1;
        let held = self.projects.get_mut(project).unwrap().get_mut().unwrap();
        let day = Day::parse(&day.to_string()).unwrap();
        held.raise_floor(day, self.position);
    }

    fn ask(&mut self, question: &Question) -> (u16, Json) {
        answers::ask(self, question)
    }
}

fn no_referrers(body: &Json) -> HostList {
    let lists = ["own_domains", "ignored_referrers"].into_iter().flat_map(|list| body.field(list).items());
    HostList::new(lists.filter_map(Json::text).map(|host| listed(host).unwrap()))
}

fn serde<T: serde::de::DeserializeOwned + Default>(body: &Json, name: &str) -> T {
    body.field(name).text().map_or_else(T::default, |text| serde_json::from_value(text.into()).unwrap())
}

/// Raises a floor in the smallest steps.
fn raise_floor(state: &mut Project, day: Day, position: u64) {
    let mut rising = RisingFloor::new(day, position);
    while !state.raise_floor(&mut rising, 1) {}
}

/// The history of the first project as an organization's only one.
fn alone(mut history: History) -> History {
    history.projects.truncate(1);
    let name = history.projects[0].name.clone();
    let path = format!("/projects/{{{name}}}/");
    history.steps.retain(|step| match step {
        Step::Track { project, .. }
        | Step::Batch { project, .. }
        | Step::Settings { project, .. }
        | Step::Floor { project, .. } => *project == name,
        Step::Ask(question) => !question.path.starts_with("/projects/") || question.path.starts_with(&path),
        Step::Rates(_) | Step::Restart | Step::Clock { .. } => true,
    });
    history
}

fn trial(seed: u64) -> Result<Coverage, String> {
    let history = History::from_seed(seed, NOW_MS, Size { events: 120, questions: 60 });
    let history = if has_floors(seed) { history.with_floors() } else { history };
    let history = if has_jumps(seed) { history.with_jumps(NOW_MS) } else { history };
    let history = if seed % 3 == 1 { history.with_hints() } else { history };
    let steps = history.steps.iter().filter(|step| answers::is_answered(step)).cloned().collect();
    let history = history.with_steps(steps);
    // Questions take other ways where nobody but one project has a say.
    let history = if seed % 4 == 3 { alone(history) } else { history };
    let fails = |history: &History| {
        let mut folded = Folded { limits: limits_of(seed), checkpoint_step: checkpoint_step_of(seed), ..Folded::default() };
        // All is saved at the end, which compares what is saved with what it says.
        run(history, &mut folded, model_of(history)).inspect(|_| folded.restart())
    };
    fails(&history).map_err(|failure| {
        if std::env::var_os("HEADCOUNT_AS_FOUND").is_some() {
            return format!("seed {seed}: {failure}");
        }
        let small = headcount_histories::minimize(&history, |history| fails(history).is_err());
        let failure = fails(&small).err().unwrap_or(failure);
        format!("seed {seed}: {failure}\n{small}")
    })
}

/// Whether floors rise in the history of a seed.
fn has_floors(seed: u64) -> bool {
    seed % 5 >= 3
}

/// Whether the clock jumps in the history of a seed, also where floors rise.
fn has_jumps(seed: u64) -> bool {
    seed % 7 >= 5
}

/// How many histories [`every_answer_equals_the_model`] runs, unless `HEADCOUNT_TRIALS` says
/// otherwise.
const USUAL_TRIALS: u64 = 300;

/// How many histories a test runs that has `usual` of them where that one has its usual number:
/// more and fewer go together.
fn trials(usual: u64) -> u64 {
    let set = std::env::var("HEADCOUNT_TRIALS").ok().and_then(|number| number.parse::<u64>().ok());
    set.map_or(usual, |trials| (trials * usual / USUAL_TRIALS).max(1))
}

#[test]
fn every_answer_equals_the_model() {
    let mut coverage = Coverage::default();
    let first: u64 = std::env::var("HEADCOUNT_FIRST_SEED").ok().and_then(|number| number.parse().ok()).unwrap_or(0);
    for seed in first..first + trials(USUAL_TRIALS) {
        let outcome = catch_unwind(|| trial(seed)).unwrap_or_else(|panic| {
            eprintln!("seed {seed}");
            resume_unwind(panic)
        });
        match outcome {
            Ok(seen) => coverage.merge(&seen),
            Err(failure) => panic!("{failure}"),
        }
    }
    println!("{coverage}");
}
