//! A cluster whose nodes have much to do, and everything that is asked of it.

use std::path::Path;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use chrono::{Days, NaiveDate, TimeDelta};
use serde_json::{Value, json};

use crate::client::{Answer, Call, Connection};
use crate::cluster_nodes::{Cluster, NAMES, Node, PATIENCE};
use crate::moving_in::without_positions;
use crate::tenant::now_ms;

/// How many projects the organization has: they are on all nodes.
pub(super) const PROJECTS: usize = 6;

pub(super) type Asked = (&'static str, String, Option<Value>);

/// Sends a request to a node, again until it is no refusal of the moment.
pub(crate) fn send(node: &Node, call: &Call) -> Answer {
    let address = node.url.trim_start_matches("http://").parse().unwrap();
    let began = Instant::now();
    loop {
        let refused = match Connection::open(address).unwrap().send(call) {
            Ok((answer, _)) if answer.status != 503 => return answer,
            Ok((answer, _)) => answer.text(),
            Err(_) => "no answer".to_owned(),
        };
        assert!(began.elapsed() < PATIENCE, "{call:?}: {refused}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

pub(super) fn call(token: &str, (method, path, body): &Asked) -> Call {
    let call = Call::new(method, path.clone()).bearer(token);
    match body {
        Some(body) => call.json(body),
        None => call,
    }
}

pub(super) fn operator(node: &Node) -> String {
    std::fs::read_to_string(node.dir.join("operator-token")).unwrap().trim().to_owned()
}

/// Has all nodes seal what they have.
pub(super) fn seal(node: &Node) {
    let began = Instant::now();
    loop {
        let answer = send(node, &Call::post("/admin/archive/seal").bearer(&operator(node)));
        if answer.status == 200 {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "{}", answer.text());
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// A cluster with projects, and what is sent to it.
pub(super) struct Busy {
    pub(super) cluster: Cluster,
    /// The ids of the projects, and their public keys.
    pub(super) projects: Vec<(String, String)>,
}

impl Busy {
    pub(super) fn start(dir: &Path, settings: &[&str]) -> Option<Self> {
        let cluster = Cluster::start_with(dir, settings)?;
        let mut busy = Self { projects: vec![(cluster.project.clone(), cluster.public_key.clone())], cluster };
        for number in 1..PROJECTS {
            busy.projects.push(busy.project(&format!("p{number}")));
        }
        Some(busy)
    }

    pub(super) fn send(&self, node: usize, call: &Call) -> Answer {
        send(&self.cluster.nodes[node % NAMES.len()], call)
    }

    pub(super) fn ask(&self, node: usize, method: &'static str, path: &str, body: Option<Value>) -> Answer {
        self.send(node, &call(&self.cluster.token, &(method, path.to_owned(), body)))
    }

    pub(super) fn project(&self, name: &str) -> (String, String) {
        let made = self.ask(0, "POST", "/projects", Some(json!({"name": name}))).ok(201);
        let text = |field: &str| made[field].as_str().unwrap().to_owned();
        (text("project_id"), text("public_key"))
    }

    /// Sends an event, again until it is known what became of it. Returns its status.
    pub(super) fn track(&self, node: usize, key: &str, event: &Value) -> String {
        let began = Instant::now();
        loop {
            let answer = self.send(node, &Call::post("/track").key(key).json(event));
            if answer.status == 202 {
                return answer.json()["status"].as_str().unwrap().to_owned();
            }
            assert!(answer.status == 500 && began.elapsed() < PATIENCE, "{event}: {}", answer.text());
        }
    }

    pub(super) fn recorded(&self, project: usize, event: &Value) {
        assert_eq!(self.track(project, &self.projects[project].1, event), "recorded", "{event}");
    }

    /// Links, orders, refunds, groups and late events of a round, with an external id each.
    pub(super) fn round(&self, round: usize) {
        for project in 0..PROJECTS {
            for (number, event) in events(project, round).into_iter().enumerate() {
                let status = self.track(project + number, &self.projects[project].1, &event);
                assert_eq!(status, "recorded", "{event}");
            }
        }
    }

    pub(super) fn seal(&self) {
        seal(&self.cluster.nodes[0]);
    }

    pub(super) fn erase(&self, user: &str) -> String {
        let body = json!({"type": "erasure", "user_id": user});
        let made = self.ask(1, "POST", "/privacy-requests", Some(body)).ok(201);
        format!("/privacy-requests/{}", made["id"].as_str().unwrap())
    }

    /// The answers once states without erased people are served.
    pub(super) fn steady(&self, questions: &[Asked]) -> Vec<(u16, Value)> {
        let (began, mut answers) = (Instant::now(), self.answers(questions));
        loop {
            std::thread::sleep(Duration::from_secs(2));
            let again = self.answers(questions);
            if again == answers {
                return answers;
            }
            let changed = questions.iter().zip(answers.iter().zip(&again)).find(|(_, (before, after))| before != after);
            assert!(began.elapsed() < PATIENCE, "answers change: {changed:?}");
            answers = again;
        }
    }

    /// Asks for everything, one node after the other.
    pub(super) fn answers(&self, questions: &[Asked]) -> Vec<(u16, Value)> {
        questions.iter().enumerate().map(|(node, asked)| answer_of(&self.send(node, &call(&self.cluster.token, asked)))).collect()
    }
}

pub(super) fn answer_of(answer: &Answer) -> (u16, Value) {
    let mut body = answer.json();
    if let Some(error) = body.get_mut("error").and_then(Value::as_object_mut) {
        error.remove("request_id");
    }
    (answer.status, without_positions(body))
}

/// A day some weeks ago, in the days that are asked about.
pub(super) fn day(number: i64) -> NaiveDate {
    static FIRST: OnceLock<NaiveDate> = OnceLock::new();
    let first = || chrono::DateTime::from_timestamp_millis(now_ms()).unwrap().date_naive() - Days::new(40);
    *FIRST.get_or_init(first) + TimeDelta::days(number)
}

pub(super) fn events(project: usize, round: usize) -> Vec<Value> {
    let at = |minute: usize| format!("{}T10:{minute:02}:00.000Z", day((project + round) as i64));
    let (anonymous, id) = (format!("a{project}-{round}"), |minute: usize| format!("e{project}-{round}-{minute}"));
    let user = format!("u{}", (project + round) % 4);
    vec![
        json!({"name": "pageview", "anonymous_id": anonymous, "url": "https://shop.example/a?utm_source=news", "timestamp": at(0), "external_id": id(0)}),
        json!({"name": "click", "anonymous_id": anonymous, "timestamp": at(5), "external_id": id(5), "metadata": {"deep": [1]}}),
        json!({"name": "identify", "anonymous_id": anonymous, "user_id": user, "timestamp": at(10), "external_id": id(10),
               "metadata": {"email": format!("{user}@acme.com"), "plan": format!("p{project}")}}),
        json!({"name": "order", "user_id": user, "value": 5.25, "currency": "EUR", "timestamp": at(15), "external_id": id(15), "group_type": "team", "group_id": "t-1"}),
        json!({"name": "refund", "user_id": user, "value": -1, "timestamp": at(20), "external_id": id(20), "group_id": "acme.com"}),
        json!({"name": "pageview", "user_id": "bob", "timestamp": format!("{}T09:00:00.000Z", day(-3)), "external_id": id(25)}),
    ]
}

/// Everything that is compared, about the days from the first one on.
pub(super) fn questions(projects: &[(String, String)], first: NaiveDate) -> Vec<Asked> {
    let days = format!("start_date={first}&end_date={}", day(25));
    let window = json!({"start_date": first.to_string(), "end_date": day(25).to_string()});
    let mut asked: Vec<Asked> = Vec::new();
    for (project, _) in projects {
        let path = |rest: &str| format!("/projects/{project}/{rest}");
        asked.extend([
            ("GET", format!("/projects/{project}"), None),
            ("POST", path("analytics/count-unique-users-per-day"), Some(window.clone())),
            ("POST", path("analytics/report"), Some(window.clone())),
            ("GET", path(&format!("analytics/traffic?{days}")), None),
            ("GET", path("analytics/retention?interval=week"), None),
            ("GET", path(&format!("revenue/metrics?{days}")), None),
            ("GET", path(&format!("revenue/by-attribution?{days}&model=first_touch")), None),
            ("GET", path(&format!("revenue/timeseries?{days}")), None),
        ]);
    }
    asked.extend([
        ("GET", "/identities/top?range_days=90&sort=revenue".to_owned(), None),
        ("GET", "/companies/top?range_days=90".to_owned(), None),
        ("GET", "/groups/top?range_days=90&group_type=team".to_owned(), None),
        ("GET", format!("/identities/profile?user_id=u1&{days}"), None),
        ("GET", "/organization".to_owned(), None),
        ("GET", "/projects".to_owned(), None),
        ("GET", "/members".to_owned(), None),
        ("GET", "/api-tokens".to_owned(), None),
        ("GET", "/webhooks".to_owned(), None),
        ("GET", "/company-profiles".to_owned(), None),
        ("GET", "/audit-log?limit=100".to_owned(), None),
    ]);
    asked
}

/// A sale of now, which webhooks send.
pub(super) fn sale(number: usize) -> Value {
    json!({"name": "sale", "notify": true, "message": format!("sale {number}"), "channel": "sales", "external_id": format!("sale-{number}")})
}

pub(super) fn of_user(user: &str, id: &str) -> Value {
    json!({"name": "order", "user_id": user, "value": 3, "external_id": id, "timestamp": format!("{}T11:00:00.000Z", day(9))})
}
