//! Random histories of one project: each explanation, put together from its pages, is that of the naive model. The planted-bug command runs this.
//!
//! `HEADCOUNT_TRIALS` says how many histories.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use headcount_actors::clock::FixedClock;
use headcount_actors::domain::figures::{AttributedTo, ExplainPlace, ExplainQuestion, ExplainedEvent};
use headcount_actors::domain::filter::{Filter, Predicate};
use headcount_actors::domain::ids::{OrganizationId, ProjectId};
use headcount_actors::domain::intake::admission::Sender as SenderKind;
use headcount_actors::domain::intake::client_address::ClientAddress;
use headcount_actors::domain::intake::policy::Rates as EngineRates;
use headcount_actors::domain::money::{Amount, Currency, Rate};
use headcount_actors::domain::names::NamedValues;
use headcount_actors::domain::time::{Day, Instant, Timezone, Window};
use headcount_actors::ingest::Origin;
use headcount_actors::registry::{NewProject, OrganizationPatch, ProjectPatch};
use headcount_actors::{Engine, EngineConfig};
use headcount_histories::{History, Rng, Size, Step, explained, model_of};
use headcount_model::{Ids, Json, Model, Question, Rates, Sender, same};

/// A Friday in the past: nothing that a history does lies ahead of it.
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
    dir: PathBuf,
    organization: OrganizationId,
    project: ProjectId,
    timezone: Timezone,
}

impl Rig {
    fn open(dir: &Path) -> Engine {
        let mut config = EngineConfig::new(dir);
        (config.shards, config.min_free_bytes) = (1, 0);
        config.clock = Arc::new(FixedClock::at(Instant(NOW_MS)));
        Engine::open(config).unwrap()
    }

    fn new(dir: &Path, history: &History) -> Rig {
        let engine = Self::open(dir);
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
            ..NewProject::default()
        };
        let project = engine.registry().create_project(organization, new, now).unwrap().id;
        Rig { engine, dir: dir.to_owned(), organization, project, timezone }
    }

    async fn restart(&mut self) {
        self.engine.close().await;
        self.engine = Self::open(&self.dir);
    }

    /// Sets the retention so that a day and all later ones are kept.
    async fn raise_floor(&self, day: &str) {
        let today = self.timezone.day_of(Instant(NOW_MS));
        let day = Day::parse(day).unwrap();
        let patch =
            ProjectPatch { retention_days: Some(Some(u32::try_from(today.since(day) + 1).unwrap())), ..ProjectPatch::default() };
        self.engine.registry().update_project(self.organization, self.project, patch, Instant(NOW_MS)).unwrap();
        assert!(self.engine.apply_retention(self.project).await.unwrap() >= Some(day));
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
        let prepare = |policy: &_| self.engine.prepare(policy, body.as_bytes(), &origin);
        // Some are refused, as by the model.
        let Ok(prepared) = self.engine.with_pinned_config(config, prepare, |_| true).await.unwrap() else { return };
        let permit = self.engine.admit(self.project, None, body.len()).unwrap();
        self.engine.record(&self.engine.tracker(), self.project, prepared, permit).await.unwrap();
    }

    fn question(&self, body: &Json, limit: usize, place: Option<ExplainPlace>) -> ExplainQuestion {
        fn named<T: NamedValues>(body: &Json, name: &str) -> Option<T> {
            body.field(name).text().map(|text| text.parse().unwrap())
        }
        let text = |name: &str| body.field(name).text();
        let window = Window::resolve(text("start_date"), text("end_date"), self.timezone, Instant(NOW_MS)).unwrap();
        let filter = |filter: &Json| {
            let value = Some(filter.field("value")).filter(|value| **value != Json::Null).map(Json::to_string);
            let part = |name: &str| filter.field(name).text().unwrap();
            Filter::in_sessions(part("field"), part("operator"), value.as_deref()).unwrap()
        };
        let filters = body.field("filters").items().iter().map(filter).collect();
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
            predicate: Predicate::new(text("event_name"), filters).unwrap(),
            limit,
            place,
        }
    }

    /// Asks for all pages, and returns them as the model has them. Their sum is the result.
    async fn explain(&self, body: &Json, limit: usize) -> Json {
        let (mut rows, mut not_counted, mut place) = (Vec::new(), Vec::new(), None);
        loop {
            let page = self.engine.explain(self.project, self.question(body, limit, place)).await.unwrap();
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

/// What the model has of these fields; those beside them are of HTTP.
fn expected(model: &Model, question: &Question) -> Option<Json> {
    let mut whole = question.clone();
    if let Some(Json::Object(body)) = &mut whole.body {
        body.insert("limit".to_owned(), Json::from(500));
    }
    let answer = model.answer(NOW_MS, &whole);
    let fields = || ["result", "rows", "not_counted"].map(|name| (name, answer.body.field(name).clone()));
    (answer.status == 200).then(|| Json::object(fields()))
}

async fn trial(seed: u64) -> usize {
    let history = History::from_seed(seed, NOW_MS, Size { events: 100, questions: 0 });
    let history = if seed.is_multiple_of(3) { history } else { history.with_floors() };
    let dir = tempfile::tempdir().unwrap();
    let (mut rig, mut model) = (Rig::new(dir.path(), &history), model_of(&history));
    let name = history.projects[0].name.clone();
    let half = history.steps.len() / 2;
    for (number, step) in history.steps.iter().enumerate() {
        let bodies = match step {
            Step::Track { project, body } if *project == name => vec![body],
            Step::Batch { project, bodies } if *project == name => bodies.iter().collect(),
            Step::Rates(table) => {
                let patch = OrganizationPatch { fx_rates: Some(rates(table)), ..OrganizationPatch::default() };
                rig.engine.registry().update_organization(rig.organization, patch, Instant(NOW_MS)).unwrap();
                model.set_rates(table.clone());
                continue;
            }
            Step::Floor { project, day } if *project == name => {
                rig.raise_floor(&day.to_string()).await;
                model.raise_floor(&name, *day);
                continue;
            }
            Step::Restart => {
                rig.restart().await;
                continue;
            }
            _ => continue,
        };
        for body in bodies {
            drop(model.record(&name, body, NOW_MS, &Sender::browser()));
            rig.send(body).await;
        }
        if number == half && seed.is_multiple_of(2) {
            rig.engine.seal_archive().await.unwrap();
        }
    }
    let (mut rng, mut ids, mut pairs) = (Rng::new(seed), Ids::default(), 0);
    for _ in 0..QUESTIONS {
        let question = explained(&history, &mut rng, &format!("/projects/{{{name}}}/explain"));
        let Some(expected) = expected(&model, &question) else { continue };
        let body = question.body.as_ref().unwrap();
        let got = rig.explain(body, 1 + rng.below(40)).await;
        if let Err(difference) = same(&expected, &got, &mut ids) {
            panic!("seed {seed}: {difference} at {body}\nexpected {expected}\ngot      {got}");
        }
        pairs += 1;
    }
    rig.engine.close().await;
    pairs
}

#[tokio::test]
async fn explanations_equal_the_model() {
    let trials = std::env::var("HEADCOUNT_TRIALS").ok().and_then(|number| number.parse().ok()).unwrap_or(TRIALS);
    let (mut pairs, seeds) = (0, 21_000..21_000 + trials);
    for seed in seeds {
        // Instants of live histories are those of their receipt, which stands still here.
        pairs += trial(seed).await;
    }
    println!("{pairs} pairs of a history and a question");
    assert!(pairs as u64 > trials * 10, "{pairs}");
}
