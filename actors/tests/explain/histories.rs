//! Random histories of one project: each explanation, joined from its pages, equals that of the
//! naive model. The planted-bug command runs this. In some histories the clock jumps ahead and
//! back, in a running engine and between two starts.
//!
//! `HEADCOUNT_TRIALS` sets the number of histories.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use headcount_actors::domain::figures::{AttributedTo, ExplainPlace, ExplainQuestion, ExplainedEvent};
use headcount_actors::domain::filter::{Clause, Filter, Predicate};
use headcount_actors::domain::ids::{OrganizationId, ProjectId};
use headcount_actors::domain::intake::admission::Sender as SenderKind;
use headcount_actors::domain::intake::client_address::ClientAddress;
use headcount_actors::domain::intake::policy::Rates as EngineRates;
use headcount_actors::domain::money::{Amount, Currency, Rate};
use headcount_actors::domain::names::NamedValues;
use headcount_actors::domain::time::{Day, Instant, Timezone, Window};
use headcount_actors::ingest::Origin;
use headcount_actors::{Engine, EngineConfig};
use headcount_common::clock::{Clock as _, FixedClock};
use headcount_control::{NewProject, OrganizationPatch, ProjectPatch};
use headcount_histories::{History, Rng, Size, Step, explained, model_of};
use headcount_model::served::ignored;
use headcount_model::time::day_of;
use headcount_model::{Ids, Json, Model, Question, Rates, Sender, same};

use super::jumps::Jumps;

/// A Friday in the past, after all events of a history.
const NOW_MS: i64 = 1_790_000_000_000;
const TRIALS: u64 = 40;
const QUESTIONS: usize = 30;

fn rates(rates: &Rates) -> EngineRates {
    let rate =
        |currency: &String, rate| (Currency::parse(currency).unwrap(), Rate::parse(&Json::from(rate).to_string()).unwrap());
    rates.iter().map(|(currency, value)| rate(currency, *value)).collect()
}

/// An engine with the first project of a history.
struct Rig {
    engine: Engine,
    clock: FixedClock,
    dir: PathBuf,
    organization: OrganizationId,
    project: ProjectId,
    timezone: Timezone,
}

impl Rig {
    fn open(dir: &Path, clock: &FixedClock) -> Engine {
        let mut config = EngineConfig::new(dir);
        (config.shards, config.min_free_bytes) = (1, 0);
        config.clock = Arc::new(clock.clone());
        Engine::open(config).unwrap()
    }

    fn new(dir: &Path, history: &History) -> Rig {
        let clock = FixedClock::at(Instant(NOW_MS));
        let engine = Self::open(dir, &clock);
        let now = engine.clock().now();
        let organization = engine.registry().initialize(now).unwrap().organization_id;
        let timezone = Timezone::parse(history.timezone().name()).unwrap();
        let patch = OrganizationPatch {
            timezone: Some(timezone),
            currency: Some(Currency::parse(&history.organization.currency).unwrap()),
            fx_rates: Some(rates(&history.organization.fx_rates)),
            ..OrganizationPatch::default()
        };
        engine.registry().update_organization(organization, patch, now).unwrap();
        let body = &history.projects[0].body;
        let flag = |name: &str, usual: bool| Some(*body.field(name) == Json::Bool(!usual)).map(|differs| differs != usual);
        let new = NewProject {
            name: "p".into(),
            currency: body.field("currency").text().map(|code| Currency::parse(code).unwrap()),
            cookieless: flag("cookieless", true),
            bots: body.field("bots").text().map(|name| serde_json::from_value(name.into()).unwrap()),
            signals_policy: body.field("signals_policy").text().map(|name| serde_json::from_value(name.into()).unwrap()),
            server_only_revenue: flag("server_only_revenue", false),
            ignored_referrers: Some(ignored(body)),
            ..NewProject::default()
        };
        let project = engine.registry().create_project(organization, new, now).unwrap().id;
        Rig { engine, clock, dir: dir.to_owned(), organization, project, timezone }
    }

    fn now(&self) -> Instant {
        self.clock.now()
    }

    /// Sets the retention so that a day and all later ones are kept, if one is long enough. Returns
    /// it.
    fn retain_from(&self, day: &str) -> Option<u32> {
        let today = self.timezone.day_of(self.now());
        let days = u32::try_from(today.since(Day::parse(day).unwrap()) + 1).ok().filter(|days| (1..=3_660).contains(days))?;
        let patch = ProjectPatch { retention_days: Some(Some(days)), ..ProjectPatch::default() };
        self.engine.registry().update_project(self.organization, self.project, patch, self.now()).unwrap();
        Some(days)
    }

    /// Records an event from a typical browser.
    async fn send(&self, body: &str) {
        let browser = Sender::browser();
        let origin = Origin {
            sender: SenderKind::Public,
            address: Some(ClientAddress::parse(&browser.address)),
            user_agent: Some(&browser.agent),
            ..Origin::SERVER
        };
        let config = self.engine.registry().policy(self.project).unwrap();
        let prepare = |policy: &_| self.engine.ingest.prepare(policy, body.as_bytes(), &origin);
        // Some are refused, also by the model.
        let Ok(prepared) = self.engine.ingest.with_pinned_config(config, prepare, |_| true).await.unwrap() else { return };
        let permit = self.engine.admission.admit(self.project, None, body.len()).unwrap();
        self.engine.ingest.record(&self.engine.ingest.tracker, self.project, prepared, permit).await.unwrap();
    }

    /// `floor`: the beginning of a default window that would begin before it.
    fn question(&self, body: &Json, limit: usize, place: Option<ExplainPlace>, floor: Option<Day>) -> ExplainQuestion {
        fn named<T: NamedValues>(body: &Json, name: &str) -> Option<T> {
            body.field(name).text().map(|text| text.parse().unwrap())
        }
        let text = |name: &str| body.field(name).text();
        let mut window = Window::resolve(text("start_date"), text("end_date"), self.timezone, self.now()).unwrap();
        if text("start_date").is_none() {
            window.start = window.start.max(floor.unwrap_or(window.start));
        }
        let filter = |filter: &Json| {
            let value = Some(filter.field("value")).filter(|value| **value != Json::Null).map(Json::to_string);
            let part = |name: &str| filter.field(name).text().unwrap();
            Filter::in_sessions(part("field"), part("operator"), value.as_deref()).unwrap()
        };
        let clause = |clause: &Json| match clause.field("any") {
            Json::Null => filter(clause).into(),
            lists => Clause::any(lists.items().iter().map(|list| list.items().iter().map(filter).collect()).collect()).unwrap(),
        };
        let filters = body.field("filters").items().iter().chain(body.field("segment").field("filters").items());
        let clauses = filters.map(clause).collect();
        let attributed = AttributedTo {
            model: named(body, "model").unwrap_or_default(),
            level: named(body, "level").unwrap_or_default(),
            dimension: named(body, "dimension").unwrap_or_default(),
            value: text("value").map(Into::into),
        };
        ExplainQuestion {
            figure: named(body, "figure").unwrap(),
            attributed: Some(attributed).filter(|_| text("figure") == Some("attribution")),
            window,
            predicate: Predicate::new(text("event_name"), clauses).unwrap(),
            limit,
            place,
        }
    }

    /// Asks for all pages, and returns them in the model's form. Their sum is the result.
    async fn explain(&self, body: &Json, limit: usize) -> Json {
        let (mut rows, mut not_counted, mut place) = (Vec::new(), Vec::new(), None);
        let floor = self.engine.floor(self.project).await.unwrap();
        loop {
            let page = self.engine.scans.explain(self.project, self.question(body, limit, place, floor)).await.unwrap();
            assert!(page.rows.len() <= limit && page.not_counted.len() <= limit && rows.len() <= 1_000, "{body}");
            rows.extend(page.rows);
            not_counted.extend(page.not_counted);
            place = page.next;
            if place.is_none() {
                let sum = rows.iter().fold(Amount::ZERO, |mut sum, event| {
                    sum += event.contributes;
                    sum
                });
                assert_eq!(sum, page.result, "{body}");
                return Json::object([
                    ("result", amount(page.result)),
                    ("rows", Json::list(rows.iter().map(|event| self.shown(event)))),
                    ("not_counted", Json::list(not_counted.iter().map(|event| self.shown(event)))),
                ]);
            }
        }
    }

    fn shown(&self, event: &ExplainedEvent) -> Json {
        let identity = event.identity.as_ref().map(|identity| identity.public(self.organization, self.project));
        Json::object([
            ("at", Json::from(event.at.time.to_string())),
            ("name", Json::from(event.name.clone())),
            ("identity_id", Json::from(identity)),
            ("value", event.money.map_or(Json::Null, |(value, _)| amount(value))),
            ("currency", Json::from(event.money.map(|(_, currency)| currency.to_string()))),
            ("contributes", amount(event.contributes)),
            ("why", Json::from(event.why.as_str())),
        ])
    }
}

fn amount(amount: Amount) -> Json {
    Json::parse(&amount.to_string()).unwrap()
}

/// The model's values of these fields. All other fields belong to HTTP.
fn expected(model: &Model, now: Instant, question: &Question) -> Option<Json> {
    let mut whole = question.clone();
    if let Some(Json::Object(body)) = &mut whole.body {
        body.insert("limit".to_owned(), Json::from(500));
    }
    let answer = model.answer(now.0, &whole);
    let fields = || ["result", "rows", "not_counted"].map(|name| (name, answer.body.field(name).clone()));
    (answer.status == 200).then(|| Json::object(fields()))
}

/// A history that continues in an engine and in the model.
struct Trial {
    rig: Rig,
    model: Model,
    history: History,
    /// The project's name.
    name: String,
    jumps: Jumps,
}

impl Trial {
    /// Reads the believed time, and raises the floor by it.
    async fn raise_floor(&mut self) {
        let said = self.jumps.see(&self.rig.engine);
        let Some(days) = self.jumps.kept else { return };
        let wanted = said.floor(days, self.history.timezone());
        self.model.raise_floor(&self.name, wanted);
        let floor = self.rig.engine.ingest.apply_retention(self.rig.project).await.unwrap().map(|floor| floor.to_string());
        let expected = self.model.floor(&self.name).map(|floor| floor.to_string());
        assert_eq!(floor, expected, "{}: {said:?} of {} with {days} days", self.history.seed, self.rig.now());
    }

    /// The clock of a running engine jumps, or between two starts, or an operator confirms it.
    async fn jump(&mut self) {
        if self.jumps.rng.chance(20) {
            self.jumps.confirm(&self.rig.engine);
            return self.raise_floor().await;
        }
        let timezone = self.history.timezone();
        let is_one_day = |one, other| day_of(one, timezone) == day_of(other, timezone);
        let next = Instant(self.jumps.next(self.rig.now().0, is_one_day));
        if self.jumps.rng.chance(50) {
            self.rig.clock.set(next);
        } else {
            self.restart(next).await;
        }
        self.raise_floor().await;
    }

    /// Stops the engine, and starts it at another time.
    async fn restart(&mut self, next: Instant) {
        self.jumps.see(&self.rig.engine);
        self.rig.engine.close().await;
        self.jumps.stop();
        self.rig.clock.set(next);
        self.rig.engine = Rig::open(&self.rig.dir, &self.rig.clock);
        self.jumps.start();
        self.jumps.see(&self.rig.engine);
    }

    async fn send(&mut self, bodies: &[String]) {
        for body in bodies {
            let body = self.jumps.dated(body, self.rig.now().0);
            drop(self.model.record(&self.name, &body, self.rig.now().0, &Sender::browser()));
            self.rig.send(&body).await;
        }
    }

    async fn step(&mut self, step: &Step) {
        match step {
            Step::Track { project, body } if *project == self.name => self.send(std::slice::from_ref(body)).await,
            Step::Batch { project, bodies } if *project == self.name => self.send(bodies).await,
            Step::Rates(table) => {
                let patch = OrganizationPatch { fx_rates: Some(rates(table)), ..OrganizationPatch::default() };
                self.rig.engine.registry().update_organization(self.rig.organization, patch, self.rig.now()).unwrap();
                self.model.set_rates(table.clone());
            }
            Step::Settings { project, body } if *project == self.name => {
                let hosts = ignored(body);
                let patch =
                    ProjectPatch { ignored_referrers: Some(hosts.clone()), own_domains: Some(Vec::new()), ..Default::default() };
                let (organization, project) = (self.rig.organization, self.rig.project);
                self.rig.engine.registry().update_project(organization, project, patch, self.rig.now()).unwrap();
                self.model.ignore_referrers(&self.name, hosts);
            }
            Step::Floor { project, day } if *project == self.name => {
                self.jumps.see(&self.rig.engine);
                self.jumps.kept = self.rig.retain_from(&day.to_string()).or(self.jumps.kept);
                self.raise_floor().await;
            }
            Step::Restart => self.restart(self.rig.now()).await,
            _ => {}
        }
    }
}

async fn trial(seed: u64) -> usize {
    let history = History::from_seed(seed, NOW_MS, Size { events: 100, questions: 0 });
    let mut history = if seed.is_multiple_of(3) { history } else { history.with_floors() };
    let has_jumps = seed % 3 == 2;
    if let (true, Json::Object(body)) = (has_jumps, &mut history.projects[0].body) {
        // Salts depend on the clock, and visitors on salts.
        body.insert("cookieless".to_owned(), Json::from(false));
    }
    let dir = tempfile::tempdir().unwrap();
    let (rig, model) = (Rig::new(dir.path(), &history), model_of(&history));
    let (name, steps) = (history.projects[0].name.clone(), history.steps.clone());
    let jumps = Jumps::new(seed, NOW_MS, has_jumps);
    let mut trial = Trial { rig, model, history, name, jumps };
    for (number, step) in steps.iter().enumerate() {
        if has_jumps && trial.jumps.rng.chance(8) {
            trial.jump().await;
        }
        trial.step(step).await;
        if number == steps.len() / 2 && seed.is_multiple_of(2) {
            trial.rig.engine.seal_archive().await.unwrap();
        }
    }
    let (mut rng, mut ids, mut pairs) = (Rng::new(seed), Ids::default(), 0);
    for _ in 0..QUESTIONS {
        let question = explained(&trial.history, &mut rng, &format!("/projects/{{{}}}/explain", trial.name));
        let Some(expected) = expected(&trial.model, trial.rig.now(), &question) else { continue };
        let body = question.body.as_ref().unwrap();
        let got = trial.rig.explain(body, 1 + rng.below(40)).await;
        if let Err(difference) = same(&expected, &got, &mut ids) {
            panic!("seed {seed}: {difference} at {body}\nexpected {expected}\ngot      {got}");
        }
        pairs += 1;
    }
    trial.rig.engine.close().await;
    pairs
}

#[tokio::test]
async fn explanations_equal_the_model() {
    let trials = std::env::var("HEADCOUNT_TRIALS").ok().and_then(|number| number.parse().ok()).unwrap_or(TRIALS);
    let first = std::env::var("HEADCOUNT_FIRST_SEED").ok().and_then(|number| number.parse().ok()).unwrap_or(21_000);
    let (mut pairs, seeds) = (0, first..first + trials);
    for seed in seeds {
        // Instants of live histories are those of their receipt, which does not advance here.
        pairs += trial(seed).await;
    }
    println!("{pairs} pairs of a history and a question");
    assert!(pairs as u64 > trials * 8, "{pairs}");
}
