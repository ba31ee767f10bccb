//! A server as a subject of histories.

use crate::generate::{is_of_server, sent_headers};
use crate::history::History;
use crate::run::{BatchReply, Subject, TrackReply};
use crate::values::goals;
use chrono::NaiveDate;
use chrono_tz::Tz;
use headcount_model::subject::{Credential, Method, Request};
use headcount_model::time::day_of;
use headcount_model::{Json, Question, Rates};
use std::collections::BTreeMap;

/// Adapts a server that answers requests to a subject of histories.
#[derive(Debug)]
pub struct Served<S> {
    /// The server.
    pub server: S,
    /// The ids and public keys of projects, by name.
    projects: BTreeMap<String, (String, String)>,
    timezone: Tz,
    /// The ids of definitions, by the path that makes them and their JSON.
    definitions: BTreeMap<(String, String), String>,
    /// The filters of changed goals, by the project and the goal.
    changed: BTreeMap<(String, String), Json>,
}

impl<S: headcount_model::Subject> Served<S> {
    /// Returns the id and the public key of a project.
    #[must_use]
    pub fn project(&self, name: &str) -> Option<(String, String)> {
        self.projects.get(name).cloned()
    }

    /// Adapts a server without projects and events.
    pub fn new(server: S) -> Served<S> {
        Served { server, projects: BTreeMap::new(), timezone: Tz::UTC, definitions: BTreeMap::new(), changed: BTreeMap::new() }
    }

    /// Sets the retention of a project so that it keeps a day and all later ones. Returns what the
    /// server says of the project.
    pub fn retain_from(&mut self, project: &str, day: NaiveDate) -> Json {
        let today = day_of(self.server.now_ms(), self.timezone);
        let days = usize::try_from((today - day).num_days() + 1).expect("a day of the past");
        let body = Json::object([("retention_days", Json::from(days))]);
        let path = format!("/projects/{}", self.projects[project].0);
        self.done(&Request::owner(Method::Patch, &path, &body.to_string()), 200)
    }

    /// Returns the id of a segment or a goal, which is made if it is not there.
    fn defined(&mut self, project: &str, kind: &str, definition: &Json) -> Json {
        let path = format!("{project}/{kind}s");
        let key = (path.clone(), definition.to_string());
        if let Some(id) = self.definitions.get(&key) {
            return Json::from(id.as_str());
        }
        let (status, made) = self.server.request(&Request::owner(Method::Post, &path, &key.1));
        // A deleted project has none, whatever a question names.
        if status == 404 {
            return Json::from(format!("{kind}_0000000000000000"));
        }
        assert_eq!(status, 201, "{key:?} answered {made}");
        let id = text(&made, &format!("{kind}_id")).expect("an id");
        self.definitions.insert(key, id.clone());
        Json::from(id)
    }

    /// Gives a goal of a project these filters, or its own.
    fn change_goal(&mut self, project: &str, goal: &Json, filters: &Json) {
        let id = self.defined(project, "goal", goal);
        let key = (project.to_owned(), goal.to_string());
        if self.changed.get(&key).unwrap_or(goal.field("filters")) == filters {
            return;
        }
        let path = format!("{project}/goals/{}", id.text().expect("an id"));
        let body = Json::object([("filters", if *filters == Json::Null { Json::list([]) } else { filters.clone() })]);
        let (status, answer) = self.server.request(&Request::owner(Method::Patch, &path, &body.to_string()));
        assert!(matches!(status, 200 | 404), "{goal} answered {answer}");
        self.changed.insert(key, filters.clone());
    }

    /// Replaces the definitions in the body of a question by their ids. A project has all goals,
    /// with the filters that a question about goals gives them; else with their own.
    fn with_ids(&mut self, project: &str, body: &Json) -> Json {
        let Json::Object(fields) = body else { return body.clone() };
        let mut fields = fields.clone();
        let is_named = fields.values().any(|value| value.to_string().contains("\"goal\"")) || fields.contains_key("goal");
        let all = Json::list(goals());
        let asked = fields.remove("goals").or_else(|| is_named.then(|| all.clone()));
        for (goal, asked) in all.items().iter().zip(asked.iter().flat_map(Json::items)) {
            self.change_goal(project, goal, asked.field("filters"));
        }
        for kind in ["segment", "goal"] {
            if let Some(definition) = fields.get_mut(kind) {
                *definition = self.defined(project, kind, definition);
            }
        }
        if let Some(Json::List(people)) = fields.get_mut("people") {
            let conditions = people.iter_mut().filter_map(|json| if let Json::Object(parts) = json { Some(parts) } else { None });
            conditions.flat_map(|parts| parts.values_mut()).for_each(|events| self.with_goal_id(project, events));
        }
        if let Some(Json::List(steps)) = fields.get_mut("steps") {
            steps.iter_mut().for_each(|step| self.with_goal_id(project, step));
        }
        Json::Object(fields)
    }

    /// Replaces the goal in the events of a condition, or in a step, by its id.
    fn with_goal_id(&mut self, project: &str, events: &mut Json) {
        if let Json::Object(events) = events
            && let Some(goal) = events.get_mut("goal")
        {
            *goal = self.defined(project, "goal", goal);
        }
    }

    fn done(&mut self, request: &Request, status: u16) -> Json {
        let (got, body) = self.server.request(request);
        assert_eq!(got, status, "{request:?} answered {body}");
        body
    }

    fn send(&mut self, project: &str, path: &str, body: String, headers: Vec<(String, String)>) -> (u16, Json) {
        let credential = Credential::PublicKey(self.projects[project].1.clone());
        let (path, body) = (path.to_owned(), Some(body));
        self.server.request(&Request { method: Method::Post, path, query: Vec::new(), body, credential, headers })
    }
}

fn table(rates: &Rates) -> Json {
    Json::Object(rates.iter().map(|(currency, rate)| (currency.clone(), Json::from(*rate))).collect())
}

fn text(body: &Json, name: &str) -> Option<String> {
    body.field(name).text().map(str::to_owned)
}

fn shown_warning(warning: &Json) -> String {
    let of = |name| text(warning, name).unwrap_or_default();
    format!("{} {}", of("code"), of("param"))
}

fn count(body: &Json, name: &str) -> usize {
    let number = body.field(name).number().and_then(headcount_model::decimal::Decimal::whole);
    number.and_then(|number| usize::try_from(number).ok()).unwrap_or(usize::MAX)
}

impl<S: headcount_model::Subject> Subject for Served<S> {
    fn now_ms(&mut self) -> i64 {
        self.server.now_ms()
    }

    fn setup(&mut self, history: &History) {
        self.timezone = history.timezone();
        let organization = Json::object([
            ("timezone", Json::from(history.timezone().name())),
            ("currency", Json::from(history.organization.currency.as_str())),
            ("fx_rates", table(&history.organization.fx_rates)),
        ]);
        self.done(&Request::owner(Method::Patch, "/organization", &organization.to_string()), 200);
        for project in &history.projects {
            let made = self.done(&Request::owner(Method::Post, "/projects", &project.body.to_string()), 201);
            let known = (text(&made, "project_id"), text(&made, "public_key"));
            let known = known.0.zip(known.1).expect("an id and a key of the project");
            self.projects.insert(project.name.clone(), known);
        }
    }

    fn track(&mut self, project: &str, body: &str) -> TrackReply {
        let (status, got) = match is_of_server(body) {
            true => {
                let path = format!("/projects/{}/track", self.projects[project].0);
                self.server.request(&Request::owner(Method::Post, &path, body))
            }
            false => self.send(project, "/track", body.to_owned(), sent_headers(body)),
        };
        match status {
            202 => TrackReply::Accepted {
                status: text(&got, "status").unwrap_or_default(),
                reason: text(&got, "reason"),
                clamped: *got.field("clamped") == Json::Bool(true),
                id: text(&got, "id"),
                warnings: got.field("warnings").items().iter().map(shown_warning).collect(),
            },
            400 => TrackReply::Refused { param: text(got.field("error"), "param") },
            _ => panic!("{body} to {project} answered {status} {got}"),
        }
    }

    fn batch(&mut self, project: &str, bodies: &[String]) -> BatchReply {
        let (status, got) = self.send(project, "/i/batch", format!("{{\"events\": [{}]}}", bodies.join(", ")), Vec::new());
        assert_eq!(status, 202, "a batch to {project} answered {got}");
        let errors = got.field("errors").items().iter();
        BatchReply {
            recorded: count(&got, "recorded"),
            duplicates: count(&got, "duplicates"),
            dropped: count(&got, "dropped"),
            errors: errors.map(|error| (count(error, "index"), text(error, "param"))).collect(),
        }
    }

    fn rates(&mut self, rates: &Rates) {
        let body = Json::object([("fx_rates", table(rates))]);
        self.done(&Request::owner(Method::Patch, "/organization", &body.to_string()), 200);
    }

    fn settings(&mut self, project: &str, body: &Json) {
        let path = format!("/projects/{}", self.projects[project].0);
        let _project = self.done(&Request::owner(Method::Patch, &path, &body.to_string()), 200);
    }

    fn restart(&mut self) {
        self.server.restart();
    }

    fn raise_floor(&mut self, project: &str, day: NaiveDate) {
        let set = self.retain_from(project, day);
        assert!(set.field("retention_floor").text() >= Some(&day.to_string()), "{day} in {set}");
    }

    fn ask(&mut self, question: &Question) -> (u16, Json) {
        let mut path = question.path.clone();
        for (name, (id, _)) in &self.projects {
            path = path.replace(&format!("{{{name}}}"), id);
        }
        let project = path.split("/analytics").next().unwrap_or_default().trim_end_matches("/explain").to_owned();
        let body = question.body.as_ref().map(|body| self.with_ids(&project, body).to_string());
        self.server.request(&Request {
            method: question.method,
            path,
            query: question.query.clone(),
            body,
            credential: Credential::Owner,
            headers: Vec::new(),
        })
    }
}
