//! Named histories: those that once failed, and difficult ones written by hand. Each is as short as
//! possible, and states a few answers explicitly, as the contract requires them; all others are
//! compared with the model.
//!
//! Add a history that fails in a random run here, minimized, with the defect that it revealed.

mod cases;

use std::collections::BTreeSet;

use chrono::{Days, NaiveDate};
use headcount_model::decimal::Decimal;
use headcount_model::served::company_id;
use headcount_model::time::day_of;
use headcount_model::{Json, OrganizationSetup, Question, Rates};

use crate::history::{History, Project, Step};
use crate::run::{Failure, Subject, model_of, run};

/// A step of a case.
enum Act {
    /// An event of a project. `@-3 10:00:00` is that time (UTC) three days ago.
    Send(&'static str, &'static str),
    /// Several events at once.
    Batch(&'static str, &'static [&'static str]),
    /// A restart.
    Restart,
    /// The floor of a project rises to the day (UTC) that many days ago.
    Floor(&'static str, u64),
}

/// A history written by hand.
struct Case {
    name: &'static str,
    timezone: &'static str,
    rates: &'static [(&'static str, &'static str)],
    projects: &'static [&'static str],
    acts: &'static [Act],
    /// Question, place in its answer, and the value there. `POST` precedes a question with that
    /// method; a project is `{shop}`.
    says: &'static [(&'static str, &'static str, &'static str)],
}

const USUAL: Case = Case { name: "", timezone: "UTC", rates: &[], projects: &[r#"{"name": "shop"}"#], acts: &[], says: &[] };

/// The thoroughness of a run of a regression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Care {
    /// Asks all questions at the end.
    AtTheEnd,
    /// Asks all questions after every step.
    AfterEachStep,
    /// Asks all questions and restarts after every step.
    WithRestarts,
}

/// A named history.
#[derive(Clone, Debug)]
pub struct Regression {
    /// The name.
    pub name: &'static str,
    /// The steps, and every question about them.
    pub history: History,
    says: Vec<(Question, &'static str, Json)>,
}

/// Returns all regressions as of `now_ms`.
#[must_use]
pub fn regressions(now_ms: i64, care: Care) -> Vec<Regression> {
    cases::CASES.iter().map(|case| regression(case, now_ms, care)).collect()
}

impl Regression {
    /// Runs the history on a subject and on the model, and compares both with the stated answers.
    ///
    /// # Errors The first difference.
    pub fn run(&self, subject: &mut dyn Subject) -> Result<(), Failure> {
        run(&self.history, subject, model_of(&self.history))?;
        for (question, path, expected) in &self.says {
            let (status, got) = subject.ask(question);
            if got.at(path).unwrap_or(&Json::Null) != expected {
                let what = format!("{question:?}");
                let (expected, got) = (expected.to_string(), format!("{status} {got}"));
                return Err(Failure { step: self.history.steps.len(), what, path: (*path).to_owned(), expected, got });
            }
        }
        Ok(())
    }
}

fn regression(case: &Case, now_ms: i64, care: Care) -> Regression {
    let fx_rates: Rates =
        case.rates.iter().map(|(currency, rate)| ((*currency).to_owned(), Decimal::parse(rate).expect("a number"))).collect();
    let timezone = case.timezone.parse().expect("a timezone");
    let organization = OrganizationSetup { timezone, currency: "USD".to_owned(), fx_rates };
    let projects = case.projects.iter().map(|body| {
        let body = Json::parse(body).expect("JSON");
        Project { name: body.field("name").text().expect("a name").to_owned(), body }
    });
    let mut history =
        History { seed: 0, organization, projects: projects.collect(), live: false, days: Vec::new(), steps: Vec::new() };
    let steps: Vec<_> = case.acts.iter().map(|act| step(act, now_ms)).collect();
    let asked = everything(&history, &steps, now_ms);
    for step in steps {
        history.steps.push(step);
        if care == Care::WithRestarts {
            history.steps.push(Step::Restart);
        }
        if care != Care::AtTheEnd {
            history.steps.extend(asked.iter().cloned().map(Step::Ask));
        }
    }
    history.steps.extend(asked.into_iter().map(Step::Ask));
    let says = case.says.iter().map(|(asked, path, value)| (question(asked), *path, Json::parse(value).expect("JSON")));
    Regression { name: case.name, history, says: says.collect() }
}

fn step(act: &Act, now_ms: i64) -> Step {
    match act {
        Act::Send(project, body) => Step::Track { project: (*project).to_owned(), body: dated(body, now_ms) },
        Act::Batch(project, bodies) => {
            Step::Batch { project: (*project).to_owned(), bodies: bodies.iter().map(|body| dated(body, now_ms)).collect() }
        }
        Act::Restart => Step::Restart,
        Act::Floor(project, ago) => {
            Step::Floor { project: (*project).to_owned(), day: day_of(now_ms, chrono_tz::UTC) - Days::new(*ago) }
        }
    }
}

/// Resolves times such as `@-3 10:00:00` in a body.
fn dated(body: &str, now_ms: i64) -> String {
    let Some((before, rest)) = body.split_once("@-") else { return body.to_owned() };
    let (spelled, after) = rest.split_once('"').expect("a quote behind a time");
    let (ago, time) = spelled.split_once(' ').expect("days and a time");
    let ago = ago.parse().expect("a number of days");
    let day: NaiveDate = day_of(now_ms, chrono_tz::UTC) - Days::new(ago);
    format!("{before}{day}T{time}Z\"{after}")
}

/// Parses `POST /path?name=value&…`, whose values go into the body, or the same without `POST`.
fn question(text: &str) -> Question {
    let (target, is_post) = text.strip_prefix("POST ").map_or((text, false), |target| (target, true));
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let fields = query.split('&').filter_map(|field| field.split_once('='));
    if is_post {
        let body = fields.map(|(name, value)| (name.to_owned(), Json::from(value))).collect();
        return Question::post(path, Json::Object(body));
    }
    Question::get(path, &fields.collect::<Vec<_>>())
}

/// The ids and names in the events.
#[derive(Default)]
struct Named {
    users: BTreeSet<String>,
    emails: BTreeSet<String>,
    companies: BTreeSet<String>,
    groups: BTreeSet<(String, String)>,
}

impl Named {
    fn see(&mut self, body: &str) {
        let body = Json::parse(body).expect("JSON");
        let text = |json: &Json| json.filled().map(str::to_owned);
        let metadata = body.field("metadata");
        self.users.extend(text(body.field("user_id")));
        if let Some(email) = text(metadata.field("email")) {
            self.companies.extend(email.split_once('@').map(|(_, domain)| domain.to_owned()));
            self.emails.insert(email);
        }
        self.companies.extend(text(metadata.field("domain")));
        match (body.field("group_type").text().unwrap_or("company"), text(body.field("group_id"))) {
            ("company", Some(key)) => drop(self.companies.insert(key)),
            (kind, Some(key)) => drop(self.groups.insert((kind.to_owned(), key))),
            _ => {}
        }
    }
}

/// Returns every question of the model that concerns the events.
fn everything(history: &History, steps: &[Step], now_ms: i64) -> Vec<Question> {
    let mut named = Named::default();
    for step in steps {
        match step {
            Step::Track { body, .. } => named.see(body),
            Step::Batch { bodies, .. } => bodies.iter().for_each(|body| named.see(body)),
            _ => {}
        }
    }
    let today = day_of(now_ms, history.timezone());
    let recent = format!("start_date={}&end_date={today}", today - Days::new(40));
    let windows = [recent.as_str(), "start_date=2024-01-01&end_date=2024-12-31", "start_date=2005-10-28&end_date=2005-11-01"];
    let mut asked = vec!["/companies/top?range_days=365&limit=100".to_owned()];
    for project in &history.projects {
        of_project(&project.name, &windows, &mut asked);
    }
    for window in &windows[..2] {
        let users = named.users.iter().map(|user| format!("user_id={user}"));
        for who in users.chain(named.emails.iter().map(|email| format!("email={email}"))) {
            for operation in ["profile", "referrers", "top-pages"] {
                asked.push(format!("/identities/{operation}?{who}&{window}"));
            }
        }
    }
    for key in &named.companies {
        let id = company_id(key);
        asked.push(format!("/companies/{{{id}}}/metrics?range_days=365"));
        asked.push(format!("/companies/{{{id}}}/top-users?range_days=365&limit=100"));
        if key.contains('.') {
            asked.push(format!("/companies/lookup?domain={key}&range_days=365"));
        }
    }
    for (kind, key) in &named.groups {
        asked.push(format!("/groups/metrics?group_type={kind}&group_key={key}&range_days=365"));
        asked.push(format!("/groups/top?group_type={kind}&range_days=365"));
    }
    asked.iter().map(|asked| question(asked)).collect()
}

fn of_project(project: &str, windows: &[&str], asked: &mut Vec<String>) {
    for window in windows {
        asked.push(format!("POST /projects/{{{project}}}/analytics/count-unique-users-per-day?{window}"));
        for operation in ["metrics", "timeseries"] {
            asked.push(format!("/projects/{{{project}}}/revenue/{operation}?{window}"));
        }
        for model in ["first_touch", "last_touch"] {
            for level in ["account", "identity"] {
                for dimension in ["source", "medium", "campaign"] {
                    let chosen = format!("model={model}&level={level}&dimension={dimension}");
                    asked.push(format!("/projects/{{{project}}}/revenue/by-attribution?{chosen}&{window}"));
                }
            }
        }
    }
    for level in ["account", "identity"] {
        asked.push(format!("/projects/{{{project}}}/revenue/ltv-cohorts?level={level}"));
    }
}
