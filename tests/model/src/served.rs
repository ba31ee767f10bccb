//! The model behind the requests of a server, as the worked cases require.

use crate::answers::{Question, company_id_name, find_identities};
use crate::decimal::Decimal;
use crate::event::{ProjectSetup, Rates, Sender, Signals};
use crate::json::Json;
use crate::model::{Model, OrganizationSetup, Status};
use crate::subject::{Credential, Method, Request, Subject};
use crate::time::day_of;
use chrono::Days;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// A [`Subject`] that answers from the model. Ids of projects are their names, public keys `pk_`
/// and the name.
#[derive(Clone, Debug)]
pub struct ServedModel {
    /// The model.
    pub model: Model,
    /// Its clock.
    pub now_ms: i64,
    requests: Vec<Json>,
    /// Goals and segments by their ids, in the order of their creation.
    definitions: Vec<(String, Json)>,
}

impl ServedModel {
    /// Creates an organization without projects, in UTC and US dollars, whose clock stands still.
    #[must_use]
    pub fn new(now_ms: i64) -> ServedModel {
        let organization = OrganizationSetup { timezone: chrono_tz::UTC, currency: "USD".to_owned(), fx_rates: Rates::new() };
        ServedModel { model: Model::new(organization), now_ms, requests: Vec::new(), definitions: Vec::new() }
    }

    fn patch_organization(&mut self, body: &Json) -> Json {
        let organization = &mut self.model.organization;
        if let Some(timezone) = body.field("timezone").text() {
            organization.timezone = timezone.parse().expect("an IANA timezone");
        }
        if let Some(currency) = body.field("currency").text() {
            organization.currency = currency.to_owned();
        }
        if let Json::Object(given) = body.field("fx_rates") {
            organization.fx_rates = rates(given);
        }
        body.clone()
    }

    fn add_project(&mut self, body: &Json) -> Json {
        let name = body.field("name").text().expect("a name");
        self.model.add_project(name, project_setup(body));
        Json::object([("project_id", Json::from(name)), ("public_key", Json::from(format!("pk_{name}")))])
    }

    /// Replaces the hosts that a project ignores, or raises its floor to what its retention leaves.
    fn patch_project(&mut self, name: &str, body: &Json) -> Json {
        if *body.field("retention_days") == Json::Null {
            self.model.ignore_referrers(name, ignored(body));
            return body.clone();
        }
        let days = body.field("retention_days").number().and_then(Decimal::whole).expect("a number of days");
        let today = day_of(self.now_ms, self.model.organization.timezone);
        let floor = today - Days::new(u64::try_from(days - 1).expect("at least a day"));
        self.model.raise_floor(name, floor);
        Json::object([("retention_floor", Json::from(self.model.floor(name).map(|floor| floor.to_string())))])
    }

    fn track(&mut self, project: &str, body: &str, sender: &Sender) -> (u16, Json) {
        let recorded = match self.model.record(project, body, self.now_ms, sender) {
            Ok(recorded) => recorded,
            Err(refused) => {
                let error = [("type", Json::from("invalid_request")), ("param", Json::from(refused.param))];
                return (400, Json::object([("error", Json::object(error))]));
            }
        };
        let (status, index, reason) = match recorded.status {
            Status::Recorded => ("recorded", recorded.index, None),
            Status::Duplicate(first) => ("duplicate", first, None),
            Status::Dropped(reason) => ("dropped", None, Some(reason.to_owned())),
        };
        let mut answer = Json::object([
            ("status", Json::from(status)),
            ("duplicate", Json::from(status == "duplicate")),
            ("reason", Json::from(reason)),
            ("id", Json::from(index.map(|index| format!("ev_{index}")))),
        ]);
        if let (true, Json::Object(fields)) = (recorded.clamped, &mut answer) {
            fields.insert("clamped".to_owned(), Json::from(true));
        }
        if let (false, Json::Object(fields)) = (recorded.warnings.is_empty(), &mut answer) {
            let warning = |warning: &String| {
                let (code, param) = warning.split_once(' ').unwrap_or_default();
                Json::object([("code", Json::from(code)), ("param", Json::from(param))])
            };
            fields.insert("warnings".to_owned(), Json::list(recorded.warnings.iter().map(warning)));
        }
        (202, answer)
    }

    /// Each event stays as it is written: of much metadata, the first keys count.
    fn batch(&mut self, key: &str, body: &str) -> (u16, Json) {
        let body: BTreeMap<&str, Vec<&RawValue>> = serde_json::from_str(body).expect("a batch");
        let (mut counts, mut errors) = (BTreeMap::new(), Vec::new());
        for (index, event) in body["events"].iter().enumerate() {
            match self.track(project_of(key), event.get(), &Sender::browser()) {
                (202, answer) => *counts.entry(answer.field("status").clone()).or_insert(0) += 1,
                (_, answer) => {
                    let param = answer.field("error").field("param").clone();
                    errors.push(Json::object([("index", Json::from(index)), ("param", param)]));
                }
            }
        }
        let count = |status: &str| Json::from(counts.get(&Json::from(status)).copied().unwrap_or(0));
        let answer = Json::object([
            ("recorded", count("recorded")),
            ("duplicates", count("duplicate")),
            ("dropped", count("dropped")),
            ("errors", Json::List(errors)),
        ]);
        (202, answer)
    }

    fn erase(&mut self, body: &Json) -> (u16, Json) {
        assert_eq!(body.field("type").text(), Some("erasure"), "the model has no exports");
        let by = ["user_id", "email"].into_iter().find(|by| body.field(by).text().is_some());
        let by = by.expect("a user_id or an email");
        let subject = body.field(by).text().unwrap_or_default();
        if by == "email" {
            self.model.erase_email(subject);
        } else {
            let identities = find_identities(&self.model.facts(), by, subject);
            self.model.erase(&identities);
        }
        let id = Json::from(format!("pr_{}", self.requests.len()));
        let status = Json::from("completed");
        let request = Json::object([("id", id), ("type", Json::from("erasure")), ("status", status)]);
        self.requests.push(request.clone());
        (201, request)
    }

    /// Makes a goal or a segment of a project. Its id is its kind, project and name.
    fn define(&mut self, kind: &str, project: &str, body: Json) -> (u16, Json) {
        let id = format!("{kind} {project} {}", body.field("name").text().expect("a name"));
        self.definitions.push((id.clone(), body));
        (201, Json::Object([(format!("{kind}_id"), Json::from(id))].into()))
    }

    /// Changes fields of a goal.
    fn change_goal(&mut self, path: &str, changes: &Json) -> (u16, Json) {
        let id = path.rsplit("/goals/").next().unwrap_or_default();
        let found = self.definitions.iter_mut().find(|(known, _)| known == id);
        match (found, changes) {
            (Some((_, Json::Object(goal))), Json::Object(changes)) => goal.extend(changes.clone()),
            _ => return (404, Json::Null),
        }
        (200, Json::Null)
    }

    /// Replaces the ids of definitions in a question by the definitions, and adds the goals of the
    /// project to a question for them.
    fn with_definitions(&self, path: &str, body: Json) -> Json {
        let Json::Object(mut fields) = body else { return body };
        let defined = |id: &Json| {
            let found = self.definitions.iter().find(|(known, _)| id.text() == Some(known));
            found.map_or_else(|| id.clone(), |(_, definition)| definition.clone())
        };
        for name in ["segment", "goal"] {
            if let Some(definition) = fields.get_mut(name) {
                *definition = defined(definition);
            }
        }
        if let Some(Json::List(people)) = fields.get_mut("people") {
            let conditions = people.iter_mut().filter_map(|json| if let Json::Object(parts) = json { Some(parts) } else { None });
            for events in conditions.flat_map(|parts| parts.values_mut()) {
                if let Json::Object(events) = events
                    && let Some(goal) = events.get_mut("goal")
                {
                    *goal = defined(goal);
                }
            }
        }
        if let Some(Json::List(steps)) = fields.get_mut("steps") {
            let steps = steps.iter_mut().filter_map(|json| if let Json::Object(step) = json { Some(step) } else { None });
            steps.filter_map(|step| step.get_mut("goal")).for_each(|goal| *goal = defined(goal));
        }
        if let Some(project) = path.strip_suffix("/analytics/goals") {
            let prefix = format!("goal {} ", project.trim_start_matches("/projects/"));
            let goals = self.definitions.iter().filter(|(id, _)| id.starts_with(&prefix)).map(|(_, goal)| goal.clone());
            fields.insert("goals".to_owned(), Json::list(goals));
        }
        Json::Object(fields)
    }

    fn ask(&self, request: &Request) -> (u16, Json) {
        let body = request.body.as_deref().map(|body| Json::parse(body).expect("JSON"));
        let body = body.map(|body| self.with_definitions(&request.path, body));
        let question = Question { method: request.method, path: request.path.clone(), query: request.query.clone(), body };
        let answer = self.model.answer(self.now_ms, &question);
        (answer.status, spelled(answer.body))
    }
}

impl Subject for ServedModel {
    fn now_ms(&mut self) -> i64 {
        self.now_ms
    }

    fn request(&mut self, request: &Request) -> (u16, Json) {
        let body = request.body.as_deref().unwrap_or("null");
        let json = || Json::parse(body).expect("JSON");
        match (&request.credential, request.method, request.path.as_str()) {
            (Credential::PublicKey(key), Method::Post, "/track") => {
                self.track(project_of(key), body, &Sender::with(&request.headers))
            }
            (Credential::Owner, Method::Post, path) if path.ends_with("/track") => {
                let project = path.trim_start_matches("/projects/").trim_end_matches("/track");
                self.track(project, body, &Sender::server())
            }
            (Credential::PublicKey(key), Method::Post, "/i/batch") => self.batch(key, body),
            (_, Method::Patch, "/organization") => (200, self.patch_organization(&json())),
            (_, Method::Patch, path) if path.contains("/goals/") => self.change_goal(path, &json()),
            (_, Method::Patch, path) if path.starts_with("/projects/") => {
                (200, self.patch_project(path.trim_start_matches("/projects/"), &json()))
            }
            (_, Method::Post, "/projects") => (201, self.add_project(&json())),
            (_, Method::Post, "/privacy-requests") => self.erase(&json()),
            (_, Method::Post, path) if path.ends_with("/goals") && !path.ends_with("/analytics/goals") => {
                self.define("goal", path.trim_start_matches("/projects/").trim_end_matches("/goals"), json())
            }
            (_, Method::Post, path) if path.ends_with("/segments") => {
                self.define("segment", path.trim_start_matches("/projects/").trim_end_matches("/segments"), json())
            }
            (_, Method::Get, path) if path.starts_with("/privacy-requests/") => {
                let id = Json::from(path.rsplit('/').next().unwrap_or_default());
                let found = self.requests.iter().find(|request| *request.field("id") == id);
                found.map_or((404, Json::Null), |request| (200, request.clone()))
            }
            _ => self.ask(request),
        }
    }
}

fn project_of(key: &str) -> &str {
    key.strip_prefix("pk_").expect("a public key of the model")
}

/// Reads rates in the form of `PATCH /organization`.
#[must_use]
pub fn rates(given: &BTreeMap<String, Json>) -> Rates {
    given.iter().filter_map(|(currency, rate)| Some((currency.clone(), rate.number()?))).collect()
}

/// Reads a project's settings in the form of `POST /projects`.
#[must_use]
pub fn project_setup(body: &Json) -> ProjectSetup {
    ProjectSetup {
        currency: body.field("currency").text().unwrap_or("USD").to_owned(),
        record_bots: body.field("bots").text() == Some("record"),
        signals: match body.field("signals_policy").text() {
            Some("anonymize") => Signals::Anonymize,
            Some("drop") => Signals::Drop,
            _ => Signals::Record,
        },
        server_only_revenue: *body.field("server_only_revenue") == Json::Bool(true),
        cookieless: *body.field("cookieless") != Json::Bool(false),
        ignored: ignored(body),
    }
}

/// Reads the hosts that a project ignores as referrers in the form of `POST` and `PATCH /projects`.
/// Both lists are always given.
#[must_use]
pub fn ignored(body: &Json) -> Vec<String> {
    let lists = ["own_domains", "ignored_referrers"].into_iter().flat_map(|list| body.field(list).items());
    lists.filter_map(Json::text).map(str::to_owned).collect()
}

/// Replaces the ids of an answer by their names.
fn spelled(answer: Json) -> Json {
    match answer {
        Json::Id(name) => Json::Text(name),
        Json::List(items) => Json::list(items.into_iter().map(spelled)),
        Json::Object(fields) => Json::Object(fields.into_iter().map(|(key, value)| (key, spelled(value))).collect()),
        other => other,
    }
}

/// Returns the name of a company's identifier, by its key: a domain, or the reported id.
#[must_use]
pub fn company_id(key: &str) -> String {
    company_id_name(key)
}
