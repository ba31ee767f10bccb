//! Random histories folded by the domain, and recomputed by the naive model: every answer must be the same.
//!
//! No log, no store, no HTTP: this is the quick one, which the planted-bug command runs for each bug. Project questions
//! that the domain answers are compared; the others are left out of the histories.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a panic is a failed test")]

use std::collections::{BTreeMap, HashMap};

use headcount_domain::admission::{Client, Sender, Verdict, admit};
use headcount_domain::agent::Agent;
use headcount_domain::answers::Unconverted;
use headcount_domain::fold::{NoSource, Project};
use headcount_domain::ids::{KeyHasher, OrganizationId, ProjectId};
use headcount_domain::money::{Currency, Rate};
use headcount_domain::policy::{Policy, Rates as DomainRates};
use headcount_domain::submission::Submission;
use headcount_domain::time::{Instant, Timezone, Window};
use headcount_histories::{BatchReply, Coverage, History, Size, Step, Subject, TrackReply, model_of, run};
use headcount_model::{Json, Question, Rates};

/// A Friday in the past: nothing that a history does lies ahead of it.
const NOW_MS: i64 = 1_790_000_000_000;

struct Held {
    policy: Policy,
    state: Project,
    external_ids: HashMap<String, u64>,
}

#[derive(Default)]
struct Folded {
    projects: BTreeMap<String, Held>,
    position: u64,
}

fn rates(rates: &Rates) -> DomainRates {
    let rate = |(currency, rate): (&String, _)| {
        (Currency::parse(currency).unwrap(), Rate::parse(&Json::from(rate).to_string()).unwrap())
    };
    rates.iter().map(|(currency, value)| rate((currency, *value))).collect()
}

impl Folded {
    fn send(&mut self, project: &str, body: &str) -> TrackReply {
        let held = self.projects.get_mut(project).unwrap();
        let agent = Agent::default();
        let client = Client {
            sender: Sender::Public,
            address: Some("192.0.2.1"),
            user_agent: Some("a usual browser"),
            country: None,
            agent: &agent,
            gpc: false,
            dnt: false,
            salt: [7; 16],
        };
        let admitted = Submission::parse(body.as_bytes()).and_then(|event| admit(&event, &held.policy, &client, Instant(NOW_MS)));
        let (event, clamped) = match admitted {
            Ok(Verdict::Record { event, clamped }) => (event, clamped),
            Ok(Verdict::Dropped(reason)) => {
                let reason = Some(reason.as_str().to_owned());
                return TrackReply::Accepted { status: "dropped".into(), reason, clamped: false, id: None };
            }
            Err(invalid) => return TrackReply::Refused { param: invalid.param },
        };
        self.position += 1;
        let position = self.position;
        let known = event.external_id.as_ref().map(|id| *held.external_ids.entry(id.to_string()).or_insert(position));
        let first = known.unwrap_or(position);
        if first == position {
            let hasher = KeyHasher::new([9; 16]);
            held.state.apply(&event, position, &hasher, &NoSource).unwrap();
        }
        let status = if first == position { "recorded" } else { "duplicate" };
        TrackReply::Accepted { status: status.into(), reason: None, clamped, id: Some(format!("{project}/{first}")) }
    }
}

impl Subject for Folded {
    fn now_ms(&mut self) -> i64 {
        NOW_MS
    }

    fn setup(&mut self, history: &History) {
        let organization = &history.organization;
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
            };
            let held = Held { policy, state: Project::default(), external_ids: HashMap::new() };
            self.projects.insert(project.name.clone(), held);
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
            held.policy.rates = rates(table).into();
        }
    }

    fn restart(&mut self) {}

    fn ask(&mut self, question: &Question) -> (u16, Json) {
        let (project, operation) = question.path.trim_start_matches("/projects/{").split_once("}/").unwrap();
        let held = &self.projects[project];
        let body = question.body.as_ref();
        let field = |name: &str| {
            let in_body = body.and_then(|body| body.field(name).text().map(str::to_owned));
            in_body.or_else(|| question.query.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone()))
        };
        let (start, end) = (field("start_date"), field("end_date"));
        let window = match Window::resolve(start.as_deref(), end.as_deref(), held.policy.timezone, Instant(NOW_MS)) {
            Ok(window) => window,
            Err(error) => {
                let param = Json::from(error.param());
                let error = Json::object([("type", Json::from("invalid_request")), ("param", param)]);
                return (400, Json::object([("error", error)]));
            }
        };
        (200, answer(held, operation, window))
    }
}

fn serde<T: serde::de::DeserializeOwned + Default>(body: &Json, name: &str) -> T {
    body.field(name).text().map_or_else(T::default, |text| serde_json::from_value(text.into()).unwrap())
}

fn number(number: impl ToString) -> Json {
    Json::parse(&number.to_string()).unwrap()
}

fn unconverted(money: &Unconverted) -> Json {
    let one = |(currency, (revenue, orders)): (&Currency, &(_, i64))| {
        (currency.to_string(), Json::object([("revenue", number(revenue)), ("orders", number(orders))]))
    };
    Json::Object(money.iter().map(one).collect())
}

fn answer(held: &Held, operation: &str, window: Window) -> Json {
    match operation {
        "analytics/count-unique-users-per-day" => {
            let users = held.state.unique_users(window);
            let day = |(day, users): &(headcount_domain::time::Day, u64)| {
                Json::object([("day", Json::from(day.to_string().as_str())), ("unique_users", number(users))])
            };
            Json::object([
                ("series", Json::list(users.series.iter().map(day))),
                ("total_unique_users", number(users.total)),
                ("start_date", Json::from(window.start.to_string().as_str())),
                ("end_date", Json::from(window.end.to_string().as_str())),
                ("timezone", Json::from(held.policy.timezone.name())),
            ])
        }
        "revenue/metrics" => {
            let metrics = held.state.revenue_metrics(window);
            Json::object([
                ("total_revenue", number(metrics.total_revenue)),
                ("orders", number(metrics.orders)),
                ("aov", number(metrics.aov)),
                ("arpa", number(metrics.arpa)),
                ("arpu", number(metrics.arpu)),
                ("currency", Json::from(held.policy.currency.as_str())),
                ("unconverted", unconverted(&metrics.unconverted)),
            ])
        }
        "revenue/timeseries" => {
            let series = held.state.revenue_series(window);
            let day = |(day, revenue, orders): &(headcount_domain::time::Day, _, i64)| {
                let day = Json::from(day.to_string().as_str());
                Json::object([("day", day), ("revenue", number(revenue)), ("orders", number(orders))])
            };
            Json::object([
                ("currency", Json::from(held.policy.currency.as_str())),
                ("series", Json::list(series.series.iter().map(day))),
                ("unconverted", unconverted(&series.unconverted)),
            ])
        }
        other => panic!("{other} is not asked here"),
    }
}

/// Whether the domain answers this without a scan of events.
fn is_answered(step: &Step) -> bool {
    let Step::Ask(question) = step else { return true };
    // Names of parameters are the HTTP interface's affair.
    let known = |name: &str| matches!(name, "start_date" | "end_date");
    let fields = match &question.body {
        Some(Json::Object(fields)) => fields.keys().all(|name| known(name) || matches!(name.as_str(), "event_name" | "filters")),
        _ => true,
    };
    if !fields || !question.query.iter().all(|(name, _)| known(name)) {
        return false;
    }
    match question.path.split_once("}/").map(|(_, operation)| operation) {
        Some("analytics/count-unique-users-per-day") => {
            let body = question.body.as_ref();
            body.is_none_or(|body| *body.field("event_name") == Json::Null && *body.field("filters") == Json::Null)
        }
        Some("revenue/metrics" | "revenue/timeseries") => true,
        _ => false,
    }
}

fn trial(seed: u64) -> Result<Coverage, String> {
    let history = History::from_seed(seed, NOW_MS, Size { events: 120, questions: 60 });
    let steps = history.steps.iter().filter(|step| is_answered(step)).cloned().collect();
    let history = history.with_steps(steps);
    let fails = |history: &History| run(history, &mut Folded::default(), model_of(history));
    fails(&history).map_err(|failure| {
        let small = headcount_histories::minimize(&history, |history| fails(history).is_err());
        let failure = fails(&small).err().unwrap_or(failure);
        format!("seed {seed}: {failure}\n{small}")
    })
}

/// How many histories: `HEADCOUNT_TRIALS` says otherwise.
fn trials(usual: u64) -> u64 {
    std::env::var("HEADCOUNT_TRIALS").ok().and_then(|number| number.parse().ok()).unwrap_or(usual)
}

#[test]
fn every_answer_equals_the_model() {
    let mut coverage = Coverage::default();
    let first: u64 = std::env::var("HEADCOUNT_FIRST_SEED").ok().and_then(|number| number.parse().ok()).unwrap_or(0);
    for seed in first..first + trials(300) {
        match trial(seed) {
            Ok(seen) => coverage.merge(&seen),
            Err(failure) => panic!("{failure}"),
        }
    }
    println!("{coverage}");
}
