//! A single server that moves into a cluster: histories go on there as if nothing had happened,
//! compared with the naive model. And the way back.

use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::NaiveDate;
use headcount_histories::{BatchReply, History, Rng, Served, Size, Step, Subject, TrackReply, model_of, run};
use headcount_model::subject::{Method, Request};
use headcount_model::{Json, Question, Rates};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::broker::{Broker, printed};
use crate::client::{Answer, Call};
use crate::cluster_backup::{back_up, send};
use crate::cluster_nodes::{NAMES, Node, PATIENCE};
use crate::histories::{can_be_asked, number};
use crate::server::{TestServer, command};
use crate::tenant::{Tenant, body_of, call_of, now_ms};

const SIZE: [&str; 4] = ["--replicas", "1", "--max-bytes", "8MiB"];

/// What moves in.
#[derive(Clone, Copy)]
enum MovesFrom {
    Backup,
    /// The same, with everything in the archive. The cluster has a place for files, so that events
    /// may have been removed.
    SealedBackup,
    StoppedServer,
}

/// A cluster that has what a server had.
struct NewHome {
    nodes: Vec<Node>,
    /// What `cluster init` printed.
    printed: Value,
    broker: Broker,
    dir: TempDir,
}

impl NewHome {
    /// Moves the data of a server in, which is stopped for good. `None`: there is no broker.
    fn of(server: &TestServer, from: MovesFrom) -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let broker = Broker::start(dir.path())?;
        let backup = dir.path().join("backup");
        let place = dir.path().join("files");
        std::fs::create_dir(&place).unwrap();
        let files = match from {
            MovesFrom::SealedBackup => vec!["--files".to_owned(), format!("file://{}", place.display())],
            MovesFrom::Backup | MovesFrom::StoppedServer => Vec::new(),
        };
        let files: Vec<&str> = files.iter().map(String::as_str).collect();
        if let MovesFrom::SealedBackup = from {
            seal_and_remove(server);
        }
        let origin = match from {
            MovesFrom::StoppedServer => server.data_dir(),
            MovesFrom::Backup | MovesFrom::SealedBackup => {
                server.run("backup", &[backup.to_str().unwrap()]);
                &backup
            }
        };
        assert!(server.stop().success());
        let data = dir.path().join(NAMES[0]);
        let made = init_from(&broker, &data, origin, &[&files[..], &["--json"]].concat());
        assert!(made.status.success(), "{}", printed(&made));
        let again = init_from(&broker, &data, origin, &files);
        assert!(!again.status.success() && printed(&again).contains("have a cluster already"), "{}", printed(&again));
        for name in &NAMES[1..] {
            std::fs::create_dir_all(dir.path().join(name).join("keys")).unwrap();
            std::fs::copy(data.join("keys/hash.key"), dir.path().join(name).join("keys/hash.key")).unwrap();
        }
        let settings = [&["--log", "warn"], &files[..]].concat();
        let nodes = NAMES.map(|name| Node::start_with(&broker, &dir.path().join(name), &settings, Stdio::inherit())).into();
        let made: Value = serde_json::from_slice(&made.stdout).unwrap();
        println!("moved in: {}", made["moved"]);
        Some(Self { nodes, printed: made, broker, dir })
    }

    /// Moves everything back to a server that was stopped, by a backup through a node.
    fn back_to(self, server: &TestServer, node: usize) {
        let (backup, began) = (self.dir.path().join("back"), Instant::now());
        loop {
            let made = back_up(&self.nodes[node], &backup);
            if made.status.success() {
                break;
            }
            // Partitions are taken over.
            assert!(began.elapsed() < PATIENCE, "{}", printed(&made));
        }
        server.replace_by(&backup);
    }

    /// Sends a request to a node, again until no longer all that it concerns is being taken over.
    fn send(&self, node: usize, call: &Call) -> Answer {
        send(&self.nodes[node], call)
    }
}

/// Seals everything, and waits until no event of a day before a floor is left.
fn seal_and_remove(server: &TestServer) {
    server.run("archive", &["seal"]);
    // All projects are looked at after a start.
    server.restart();
    let began = Instant::now();
    let pending = || {
        let metrics = server.send(&Call::get("/metrics").header("host", "localhost")).text();
        let pending = metrics.lines().find_map(|line| line.strip_prefix("headcount_retention_pending "));
        pending.unwrap_or_else(|| panic!("{metrics}")).to_owned()
    };
    while pending() != "0" {
        assert!(began.elapsed() < PATIENCE, "{} projects have events to be removed", pending());
        std::thread::sleep(Duration::from_millis(50));
    }
}

pub(crate) fn init_from(broker: &Broker, data: &Path, from: &Path, more: &[&str]) -> std::process::Output {
    broker.run("init", data, &[&SIZE[..], &["--from", from.to_str().unwrap()], more].concat())
}

/// A tenant whose restart is the move into a cluster.
struct Emigrant {
    tenant: Tenant,
    from: MovesFrom,
    moved: Option<NewHome>,
    rng: Rng,
}

impl headcount_model::subject::Subject for Emigrant {
    fn now_ms(&mut self) -> i64 {
        now_ms()
    }

    fn request(&mut self, request: &Request) -> (u16, Json) {
        match &self.moved {
            None => self.tenant.request(request),
            Some(moved) => {
                let answer = moved.send(self.rng.below(NAMES.len()), &call_of(request, &self.tenant.token));
                (answer.status, body_of(&answer))
            }
        }
    }

    fn restart(&mut self) {
        match self.moved.take() {
            None => self.moved = Some(NewHome::of(&self.tenant.server, self.from).unwrap()),
            Some(moved) => moved.back_to(&self.tenant.server, self.rng.below(NAMES.len())),
        }
    }
}

/// The subject of a history: a floor is raised once its owner has seen the retention.
struct EmigrantHistory(Served<Emigrant>);

impl Subject for EmigrantHistory {
    fn now_ms(&mut self) -> i64 {
        now_ms()
    }

    fn setup(&mut self, history: &History) {
        self.0.setup(history);
    }

    fn track(&mut self, project: &str, body: &str) -> TrackReply {
        self.0.track(project, body)
    }

    fn batch(&mut self, project: &str, bodies: &[String]) -> BatchReply {
        self.0.batch(project, bodies)
    }

    fn rates(&mut self, rates: &Rates) {
        self.0.rates(rates);
    }

    fn settings(&mut self, project: &str, body: &Json) {
        self.0.settings(project, body);
    }

    fn restart(&mut self) {
        self.0.restart();
    }

    fn raise_floor(&mut self, project: &str, day: NaiveDate) {
        let mut shown = self.0.retain_from(project, day);
        let began = Instant::now();
        while shown.field("retention_floor").text() < Some(&day.to_string()) {
            assert!(began.elapsed() < PATIENCE, "the floor {day} of {project} is not raised: {shown}");
            std::thread::sleep(Duration::from_millis(50));
            let (id, _) = self.0.project(project).expect("the project");
            let path = format!("/projects/{id}");
            let request = Request { body: None, ..Request::owner(Method::Get, &path, "") };
            shown = headcount_model::subject::Subject::request(&mut self.0.server, &request).1;
        }
    }

    fn ask(&mut self, question: &Question) -> (u16, Json) {
        self.0.ask(question)
    }
}

/// The history of a seed with one move, after two thirds of it, or with one there and back. Backups
/// have no visitor salts: visitors without ids are others afterwards.
fn history_of(seed: u64, from: MovesFrom, comes_back: bool) -> History {
    let mut history = History::from_seed(seed, now_ms(), Size { events: 90, questions: 60 });
    if !matches!(from, MovesFrom::StoppedServer) {
        for project in &mut history.projects {
            if let Json::Object(fields) = &mut project.body {
                fields.insert("cookieless".to_owned(), Json::from(false));
            }
        }
    }
    let history = history.with_floors();
    let stays = |step: &&Step| match step {
        Step::Ask(question) => can_be_asked(question),
        Step::Restart => false,
        _ => true,
    };
    let mut steps: Vec<Step> = history.steps.iter().filter(stays).cloned().collect();
    steps.insert(steps.len() * 2 / 3, Step::Restart);
    if comes_back {
        steps.insert(steps.len() / 3, Step::Restart);
    }
    history.with_steps(steps)
}

#[test]
fn cluster_histories_go_on_after_moving_in_as_if_nothing_had_happened() {
    let place = tempfile::tempdir().unwrap();
    if Broker::start(place.path()).is_none() {
        return;
    }
    let moves = [MovesFrom::Backup, MovesFrom::SealedBackup, MovesFrom::StoppedServer];
    // `HEADCOUNT_TRIALS` says how many of each.
    let trials = usize::try_from(number("HEADCOUNT_TRIALS", 1)).unwrap();
    for (seed, from) in (700..).zip(moves.into_iter().cycle().take(moves.len() * trials)) {
        let server = Arc::new(TestServer::start());
        let history = history_of(seed, from, false);
        let mover = Emigrant { tenant: Tenant::on(&server), from, moved: None, rng: Rng::new(seed) };
        let outcome = run(&history, &mut EmigrantHistory(Served::new(mover)), model_of(&history));
        assert!(outcome.is_ok(), "seed {seed}: {}\n{history}", outcome.unwrap_err());
    }
}

#[test]
fn cluster_histories_come_back_as_if_nothing_had_happened() {
    let place = tempfile::tempdir().unwrap();
    if Broker::start(place.path()).is_none() {
        return;
    }
    let moves = [MovesFrom::Backup, MovesFrom::SealedBackup];
    let trials = usize::try_from(number("HEADCOUNT_TRIALS", 1)).unwrap();
    for (seed, from) in (720..).zip(moves.into_iter().cycle().take(moves.len() * trials)) {
        let server = Arc::new(TestServer::start());
        let history = history_of(seed, from, true);
        let mover = Emigrant { tenant: Tenant::on(&server), from, moved: None, rng: Rng::new(seed) };
        let outcome = run(&history, &mut EmigrantHistory(Served::new(mover)), model_of(&history));
        assert!(outcome.is_ok(), "seed {seed}: {}\n{history}", outcome.unwrap_err());
    }
}

#[test]
fn cluster_takes_a_project_that_has_lost_events_only_with_files_and_if_all_others_are_sealed() {
    let server = Arc::new(TestServer::start());
    let tenant = Tenant::on(&server);
    let record = |days: i64| {
        let at = chrono::DateTime::from_timestamp_millis(now_ms() - days * 86_400_000).unwrap().to_rfc3339();
        tenant.recorded(&json!({"name": "order", "user_id": "ada", "timestamp": at}));
    };
    [0, 1, 40, 41].into_iter().for_each(record);
    server.run("archive", &["seal"]);
    tenant.patch(&format!("/projects/{}", tenant.project), &json!({"retention_days": 10})).ok(200);
    // The base has it, and the archive has not.
    record(2);
    server.restart();
    let manifest = server.data_dir().join(format!("archive/project={}/manifest.json", tenant.project));
    let has_base = || std::fs::read_to_string(&manifest).unwrap().contains("state-");
    let began = Instant::now();
    while !has_base() {
        assert!(began.elapsed() < PATIENCE, "nothing is removed");
        std::thread::sleep(Duration::from_millis(1));
    }
    let dir = tempfile::tempdir().unwrap();
    let refusal = |name: &str| {
        let backup = dir.path().join(name);
        server.run("backup", &[backup.to_str().unwrap()]);
        let mut init = command("cluster", &dir.path().join("data"));
        let refused = init.args(["init", "nats://127.0.0.1:1", "--from"]).arg(&backup).output().unwrap();
        assert!(!refused.status.success() && !dir.path().join("data").exists(), "{}", printed(&refused));
        printed(&refused)
    };
    // A running server soon seals what its log has.
    server.killed(|| {
        let said = refusal("unsealed");
        assert!(said.contains(&tenant.project) && said.contains("not all others are sealed"), "{said}");
    });
    server.run("archive", &["seal"]);
    let said = refusal("sealed");
    assert!(said.contains(&tenant.project) && said.contains("name a place for files (--files)"), "{said}");
}

/// A method, a path and a body.
type Asked = (&'static str, String, Option<Value>);

fn asked(token: &str, (method, path, body): &Asked) -> Call {
    let call = Call::new(method, path.clone()).bearer(token);
    match body {
        Some(body) => call.json(body),
        None => call,
    }
}

fn users(answer: &Value) -> u64 {
    answer["total_unique_users"].as_u64().unwrap()
}

#[test]
fn cluster_takes_a_server_in_and_gives_a_project_back() {
    let server = Arc::new(TestServer::start());
    let tenant = Tenant::on(&server);
    let event = |n: u64| {
        let day = 1 + n % 28;
        json!({"name": "order", "user_id": format!("u{}", n % 40), "external_id": format!("o{n}"), "value": 2.5, "currency": "EUR",
               "timestamp": format!("2024-03-{day:02}T10:00:00Z")})
    };
    tenant.patch("/organization", &json!({"fx_rates": {"EUR": 1.25}})).ok(200);
    (0..120).for_each(|n| drop(tenant.recorded(&event(n))));
    tenant.post("/webhooks", &json!({"url": "https://hooks.example/x", "project_id": tenant.project})).ok(201);
    tenant.post("/members", &json!({"email": "ada@acme.example", "role": "admin"})).ok(201);
    let second = tenant.token("member", &["analytics:read"], Some(&tenant.project));
    let erased = tenant.post("/privacy-requests", &json!({"type": "erasure", "user_id": "u39"})).ok(201);
    let began = Instant::now();
    while tenant.get(&format!("/privacy-requests/{}", erased["id"].as_str().unwrap())).ok(200)["status"] != "completed" {
        assert!(began.elapsed() < PATIENCE, "u39 is not erased");
        std::thread::sleep(Duration::from_millis(50));
    }
    // What stays of its events still has their external ids, and nothing of it is recorded any
    // more.
    let again = |n: u64| Call::post("/track").key(&tenant.key).json(&event(n));
    let of_erased = server.send(&again(39)).json();
    let questions = [
        (
            "POST",
            tenant.path("analytics/count-unique-users-per-day"),
            Some(json!({"start_date": "2024-03-01", "end_date": "2024-03-31"})),
        ),
        ("GET", tenant.path("revenue/metrics?start_date=2024-03-01&end_date=2024-03-31"), None),
        ("GET", tenant.path("events?start_date=2024-03-01&end_date=2024-03-31&limit=50"), None),
        ("GET", "/organization".to_owned(), None),
        ("GET", "/projects".to_owned(), None),
        ("GET", "/members".to_owned(), None),
        ("GET", "/api-tokens".to_owned(), None),
        ("GET", "/audit-log?limit=100".to_owned(), None),
        ("GET", "/webhooks".to_owned(), None),
        ("GET", "/privacy-requests".to_owned(), None),
    ];
    let before: Vec<Answer> = questions.iter().map(|question| server.send(&asked(&tenant.token, question))).collect();
    assert_eq!(before[0].status, 200, "{}", before[0].text());
    let Some(moved) = NewHome::of(&server, MovesFrom::Backup) else { return };
    assert_eq!(moved.printed["moved"]["events"], 120, "{}", moved.printed);
    // The webhook, and the request of the erasure.
    assert_eq!(moved.printed["moved"]["documents"], 2, "{}", moved.printed);
    assert_eq!(moved.printed["moved"]["left_behind"]["webhooks"], 0, "{}", moved.printed);
    for (question, before) in questions.iter().zip(&before) {
        for node in 0..NAMES.len() {
            let after = moved.send(node, &asked(&tenant.token, question));
            let (before, after) =
                ((before.status, without_positions(before.json())), (after.status, without_positions(after.json())));
            assert!(before == after, "{question:?}:\n{}\n{}", before.1, after.1);
        }
    }
    assert_eq!(moved.send(0, &asked(&second, &questions[0])).status, 200);
    assert_eq!(moved.send(0, &asked(&second, &questions[3])).status, 403);
    for n in 0..120 {
        let answer = moved.send((n % 3) as usize, &again(n));
        match n % 40 {
            39 => assert_eq!(answer.json(), of_erased, "{n}"),
            _ => assert_eq!(answer.ok(202)["status"], "duplicate", "{n}"),
        }
    }
    // With the external id of an erased event.
    let taken = Call::post("/track").key(&tenant.key).json(&json!({"name": "order", "user_id": "u1", "external_id": "o39"}));
    assert_eq!(moved.send(1, &taken).ok(202)["status"], "duplicate");
    assert_eq!(moved.send(1, &again(200)).ok(202)["status"], "recorded");
    gives_back(&moved, &tenant, &questions[..2]);
}

/// Positions are others in a cluster.
pub(crate) fn without_positions(mut answer: Value) -> Value {
    match &mut answer {
        Value::Object(fields) => {
            for name in ["position", "next"] {
                fields.remove(name);
            }
            let taken = std::mem::take(fields);
            *fields = taken.into_iter().map(|(name, value)| (name, without_positions(value))).collect();
        }
        Value::Array(items) => {
            *items = std::mem::take(items).into_iter().map(without_positions).collect();
        }
        _ => {}
    }
    answer
}

/// Exports the project from the nodes, imports it into a new server, and compares.
fn gives_back(moved: &NewHome, tenant: &Tenant, questions: &[Asked]) {
    let file = moved.dir.path().join("events.ndjson");
    let mut export = command("export", &moved.dir.path().join("nowhere"));
    export.args(["--url", &moved.nodes[2].url, "--token", &tenant.token, "--project", &tenant.project, "--output"]).arg(&file);
    let exported = export.output().unwrap();
    assert!(exported.status.success(), "{}", printed(&exported));
    let back = TestServer::start();
    let (token, project) = (back.initial("api_token"), back.initial("project_id"));
    let rates = Call::patch("/organization").bearer(token).json(&json!({"fx_rates": {"EUR": 1.25}}));
    back.send(&rates).ok(200);
    back.run("import", &[file.to_str().unwrap(), "--project", project]);
    for (method, path, body) in questions {
        let here = (*method, path.replace(&tenant.project, project), body.clone());
        let wanted = moved.send(0, &asked(&tenant.token, &(*method, path.clone(), body.clone()))).ok(200);
        assert_eq!(without_positions(back.send(&asked(token, &here)).ok(200)), without_positions(wanted), "{path}");
    }
    let (method, path, body) = &questions[0];
    let counted = moved.send(2, &asked(&tenant.token, &(*method, path.clone(), body.clone()))).ok(200);
    assert_eq!(users(&counted), 39);
    assert!(printed(&moved.broker.run("status", &moved.dir.path().join(NAMES[0]), &[])).contains("64 partitions"));
}
