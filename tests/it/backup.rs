//! `headcount backup` and `restore`: of a server under load and of a stopped one, compared with the
//! naive model.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use headcount_histories::{History, Rng, Served, Size, Step, Subject as _, compare, model_of, questions, run};
use headcount_model::subject::{Request, Subject};
use headcount_model::{Ids, Json, Model, Question, Sender};
use serde_json::{Value, json};

use crate::client::Call;
use crate::errors::assert_refused;
use crate::not_yet::is_not_yet;
use crate::server::{TestServer, command};
use crate::tenant::{BROWSER, Tenant, now_ms};

/// A directory for backups.
fn place() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Runs a command on a data directory.
fn outcome(name: &str, data_dir: &Path, arguments: &[&str]) -> Output {
    command(name, data_dir).args(arguments).output().unwrap()
}

/// What a command that fails writes to standard error.
#[track_caller]
fn failure(name: &str, data_dir: &Path, arguments: &[&str]) -> String {
    let output = outcome(name, data_dir, arguments);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{errors}");
    errors
}

fn manifest(dir: &Path) -> Value {
    serde_json::from_slice(&fs::read(dir.join("manifest.json")).unwrap()).unwrap()
}

/// A tenant whose restart is a move: a backup beside the running server, which is killed and loses
/// its data, and a restore.
struct Moving(Tenant);

impl Subject for Moving {
    fn now_ms(&mut self) -> i64 {
        self.0.now_ms()
    }

    fn request(&mut self, request: &Request) -> (u16, Json) {
        self.0.request(request)
    }

    fn restart(&mut self) {
        let place = place();
        let dir = place.path().join("backup");
        self.0.server.run("backup", &[text(&dir)]);
        self.0.server.replace_by(&dir);
    }
}

fn can_be_asked(question: &Question) -> bool {
    !is_not_yet(&question.path)
}

/// Visitors without ids are others after a restore, since no backup has their salts: such projects
/// count none.
fn without_visitors(mut history: History) -> History {
    for project in &mut history.projects {
        if let Json::Object(fields) = &mut project.body {
            fields.insert("cookieless".to_owned(), Json::from(false));
        }
    }
    history
}

/// The history of a seed, with moves, and without what can't be asked yet.
fn history_with_moves(seed: u64) -> History {
    let history = without_visitors(History::from_seed(seed, now_ms(), Size { events: 60, questions: 40 }));
    let stays = |step: &&Step| !matches!(step, Step::Ask(question) if !can_be_asked(question));
    let mut steps: Vec<Step> = history.steps.iter().filter(stays).cloned().collect();
    for at in [steps.len() * 2 / 3, steps.len() / 3] {
        steps.insert(at, Step::Restart);
    }
    history.with_steps(steps)
}

#[test]
fn histories_go_on_after_a_restore_as_if_nothing_had_happened() {
    for seed in 500..503 {
        let server = Arc::new(TestServer::start());
        let history = history_with_moves(seed);
        let outcome = run(&history, &mut Served::new(Moving(Tenant::on(&server))), model_of(&history));
        assert!(outcome.is_ok(), "seed {seed}: {}\n{history}", outcome.unwrap_err());
    }
}

/// An event as a client sent it, and the position that it got.
#[derive(Clone)]
struct Sent {
    position: u64,
    project: String,
    body: String,
}

/// Clients that send the events of a history at once, each as soon as it has an answer.
struct Load {
    /// The names, ids and keys of the projects.
    projects: Vec<(String, String, String)>,
    events: Vec<(String, String)>,
    next: AtomicUsize,
    sent: Mutex<Vec<Sent>>,
}

impl Load {
    fn new(tenant: &Tenant, history: &History) -> Load {
        let listed = tenant.get("/projects").ok(200);
        let field = |value: &Value| value.as_str().unwrap().to_owned();
        let projects = listed["projects"].as_array().unwrap().iter();
        let projects = projects.map(|it| (field(&it["name"]), field(&it["project_id"]), field(&it["public_keys"][0]))).collect();
        let mut events = Vec::new();
        for step in &history.steps {
            match step {
                Step::Track { project, body } => events.push((project.clone(), body.clone())),
                Step::Batch { project, bodies } => events.extend(bodies.iter().map(|body| (project.clone(), body.clone()))),
                _ => {}
            }
        }
        Load { projects, events, next: AtomicUsize::new(0), sent: Mutex::default() }
    }

    /// Sends an event. Returns its status and position.
    fn track(&self, tenant: &Tenant, project: &str, body: &str) -> (u16, Value) {
        let key = &self.projects.iter().find(|(name, ..)| name == project).unwrap().2;
        let call = Call::post("/track").key(key).agent(BROWSER).text("application/json", body);
        let answer = tenant.send(call);
        (answer.status, answer.json())
    }

    fn send_all(&self, tenant: &Tenant) {
        while let Some((project, body)) = self.events.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            let (status, answer) = self.track(tenant, project, body);
            assert!(matches!(status, 202 | 400), "{body}: {status} {answer}");
            if answer["status"] == "recorded" {
                let position = answer["position"].as_u64().unwrap();
                self.sent.lock().unwrap().push(Sent { position, project: project.clone(), body: body.clone() });
            }
        }
    }

    /// The recorded events in order.
    fn recorded(&self) -> Vec<Sent> {
        let mut sent = self.sent.lock().unwrap().clone();
        sent.sort_by_key(|sent| sent.position);
        sent
    }
}

fn record(model: &mut Model, events: &[Sent]) {
    for Sent { project, body, .. } in events {
        model.record(project, body, now_ms(), &Sender::browser()).unwrap();
    }
}

/// Compares every answer with the model.
fn compare_all(history: &History, served: &mut Served<Tenant>, model: &Model) {
    let mut ids = Ids::default();
    let asked = questions(history, &mut Rng::new(history.seed), 120);
    let mut compared = 0;
    // The ids of companies are the server's own.
    let is_fit = |question: &&Question| can_be_asked(question) && !question.path.contains("{company:");
    for question in asked.iter().filter(is_fit) {
        let now_ms = now_ms();
        let expected = model.answer(now_ms, question);
        let same = compare(expected, served.ask(question), &mut ids);
        assert!(same.is_ok(), "{question:?}: {same:?}");
        compared += 1;
    }
    assert!(compared > 50, "{compared}");
}

/// Batches of another organization, as fast as they are taken, until `stop`.
fn flood(tenant: &Tenant, stop: &AtomicBool) {
    let events: Vec<Value> = (0..500).map(|n| json!({"name": "flood", "user_id": format!("u{n}")})).collect();
    let body = json!({ "events": events });
    while !stop.load(Ordering::Relaxed) {
        let answer = tenant.send(Call::post("/i/batch").key(&tenant.key).agent(BROWSER).json(&body));
        assert!(matches!(answer.status, 202 | 503), "{}", answer.text());
    }
}

#[test]
fn a_backup_under_load_has_everything_up_to_its_position_and_nothing_after() {
    let of_seed = |seed| without_visitors(History::from_seed(seed, now_ms(), Size { events: 3_000, questions: 0 }));
    let is_fit = |history: &History| !history.live && history.steps.len() > 1_000 && history.projects.len() > 1;
    let history = (700..).map(of_seed).find(is_fit).unwrap();
    let server = Arc::new(TestServer::start());
    let (mut served, flooded) = (Served::new(Tenant::on(&server)), Tenant::on(&server));
    served.setup(&history);
    let load = Load::new(&served.server, &history);
    let (place, stop) = (place(), AtomicBool::new(false));
    let dir = place.path().join("backup");
    let acknowledged = std::thread::scope(|scope| {
        let senders: Vec<_> = (0..6).map(|_| scope.spawn(|| load.send_all(&served.server))).collect();
        let floods: Vec<_> = (0..3).map(|_| scope.spawn(|| flood(&flooded, &stop))).collect();
        let third = load.events.len() / 3;
        while load.next.load(Ordering::Relaxed) < third {
            std::thread::sleep(Duration::from_millis(1));
        }
        let acknowledged = load.recorded().last().map_or(0, |sent| sent.position);
        server.run("backup", &[text(&dir)]);
        let under_way = load.next.load(Ordering::Relaxed);
        senders.into_iter().for_each(|sender| sender.join().unwrap());
        stop.store(true, Ordering::Relaxed);
        floods.into_iter().for_each(|flood| flood.join().unwrap());
        assert!(under_way < load.events.len(), "the load ended before the backup");
        acknowledged
    });
    let manifest = manifest(&dir);
    let position = manifest["projects"][0]["position"].as_u64().unwrap();
    assert!(position >= acknowledged, "{position} < {acknowledged}");
    assert!(manifest["projects"].as_array().unwrap().iter().all(|project| project["position"] == position));
    server.replace_by(&dir);
    let recorded = load.recorded();
    let (kept, lost) = recorded.split_at(recorded.partition_point(|sent| sent.position <= position));
    assert!(!kept.is_empty() && !lost.is_empty(), "{} and {}", kept.len(), lost.len());
    let mut model = model_of(&history);
    record(&mut model, kept);
    compare_all(&history, &mut served, &model);
    // Only the events of the backup are known by their external ids.
    for (events, status) in [(kept, "duplicate"), (lost, "recorded")] {
        let with_id = |sent: &&Sent| {
            serde_json::from_str::<Value>(&sent.body)
                .is_ok_and(|body| body["external_id"].as_str().is_some_and(|id| !id.trim().is_empty()))
        };
        for Sent { project, body, .. } in events.iter().filter(|sent| status == "recorded" || with_id(sent)) {
            let (_, answer) = load.track(&served.server, project, body);
            assert_eq!(answer["status"], status, "{body}: {answer}");
        }
    }
    record(&mut model, lost);
    compare_all(&history, &mut served, &model);
}

/// A server with some events, and the answer that tells how many.
fn with_events() -> (Arc<TestServer>, Tenant) {
    let server = Arc::new(TestServer::start());
    let tenant = Tenant::on(&server);
    for number in 0..20 {
        tenant.recorded(
            &json!({"name": "order", "user_id": "ada", "external_id": format!("e{number}"), "value": 2, "currency": "USD"}),
        );
    }
    (server, tenant)
}

#[test]
fn tags_of_the_former_life_are_not_answered_with_304() {
    let (server, tenant) = with_events();
    let path = tenant.path("revenue/metrics");
    let before = tenant.get(&path);
    let known = |tag: &str| tenant.send(Call::get(&path).bearer(&tenant.token).header("if-none-match", tag));
    assert_eq!(known(&before.etag()).status, 304);
    let place = place();
    let dir = place.path().join("backup");
    server.run("backup", &[text(&dir)]);
    server.replace_by(&dir);
    let after = known(&before.etag());
    assert_eq!(after.ok(200), before.json());
    assert_ne!(after.etag(), before.etag());
}

#[test]
fn a_backup_holds_no_plain_token_and_no_salt() {
    let (server, tenant) = with_events();
    tenant.recorded(&json!({"name": "pageview", "url": "https://acme.com/"}));
    let place = place();
    let dirs = ["running", "stopped"].map(|name| place.path().join(name));
    server.run("backup", &[text(&dirs[0])]);
    let tokens = [tenant.token.clone(), server.initial("root_token").to_owned(), server.operator()];
    assert!(server.stop().success());
    server.run("backup", &[text(&dirs[1])]);
    let salts = fs::read(server.data_dir().join("keys/salts")).unwrap();
    for dir in &dirs {
        let files = crate::secrets::files(dir);
        let names: Vec<_> = files.iter().map(|path| path.strip_prefix(dir).unwrap().to_str().unwrap()).collect();
        for name in ["FORMAT", "SHA256SUMS", "keys/hash.key", "manifest.json", "log/00000000000000000001.seg"] {
            assert!(names.contains(&name), "{name} is not in {names:?}");
        }
        for (path, contents) in files.iter().map(|path| (path, fs::read(path).unwrap())) {
            let holds = |needle: &[u8]| contents.windows(needle.len()).any(|window| window == needle);
            assert!(!tokens.iter().any(|token| holds(token.as_bytes())) && !holds(&salts), "{}", path.display());
        }
    }
    let (one, other) = (manifest(&dirs[0]), manifest(&dirs[1]));
    assert_eq!(one["format"], "headcount.backup.v1");
    assert_eq!(one["projects"], other["projects"]);
    assert!(!server.data_dir().join("backup.tmp").exists());
}

#[test]
fn a_stopped_directory_is_backed_up_in_steps_and_restored() {
    let (server, tenant) = with_events();
    assert!(server.stop().success());
    let place = place();
    let dirs = ["one", "two"].map(|name| place.path().join(name));
    server.run("backup", &[text(&dirs[0])]);
    let printed = server.run("backup", &[text(&dirs[1]), "--incremental-from", text(&dirs[0]), "--json"]);
    let printed: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(printed["bytes"], printed["linked_bytes"], "{printed}");
    let errors = failure("backup", server.data_dir(), &[text(&dirs[1])]);
    assert!(errors.contains("is not empty"), "{errors}");
    let errors = failure("backup", server.data_dir(), &[text(&place.path().join("x")), "--incremental-from", text(place.path())]);
    assert!(errors.contains("is not a complete backup"), "{errors}");
    let errors = failure("backup", &place.path().join("none"), &[text(&place.path().join("x"))]);
    assert!(errors.contains("is not a data directory"), "{errors}");
    let errors = failure("restore", server.data_dir(), &[text(&dirs[1])]);
    assert!(errors.contains("is not empty"), "{errors}");
    server.replace_by(&dirs[1]);
    let metrics = tenant.get(&tenant.path("revenue/metrics")).ok(200);
    assert_eq!(metrics["orders"], 20, "{metrics}");
}

#[test]
fn a_damaged_backup_is_refused_before_anything_is_written() {
    let (server, _) = with_events();
    let place = place();
    let (dir, to) = (place.path().join("backup"), place.path().join("data"));
    server.run("backup", &[text(&dir)]);
    for path in crate::secrets::files(&dir) {
        let sound = fs::read(&path).unwrap();
        let mut flipped = sound.clone();
        let middle = sound.len() / 2;
        flipped[middle] ^= 1;
        fs::write(&path, flipped).unwrap();
        let errors = failure("restore", &to, &[text(&dir)]);
        assert!(errors.contains("the backup is damaged"), "{}: {errors}", path.display());
        assert!(!to.exists());
        fs::write(&path, sound).unwrap();
    }
    fs::remove_file(dir.join("manifest.json")).unwrap();
    assert!(failure("restore", &to, &[text(&dir)]).contains("is not a complete backup"));
    assert!(!to.exists());
}

/// Begins a backup, and reads only the head of the answer.
fn begin_slowly(server: &TestServer) -> TcpStream {
    let mut stream = TcpStream::connect(server.address()).unwrap();
    let operator = server.operator();
    write!(stream, "POST /admin/backup HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {operator}\r\ncontent-length: 0\r\n\r\n")
        .unwrap();
    let mut head = [0; 64];
    stream.read_exact(&mut head).unwrap();
    assert!(head.starts_with(b"HTTP/1.1 200 "), "{}", String::from_utf8_lossy(&head));
    stream
}

#[test]
fn one_backup_at_a_time_and_a_client_that_goes_away_leaves_nothing() {
    let (server, tenant) = with_events();
    // More than sockets and the stream take without a reader.
    let metadata =
        |n: u64| (0..16).map(|key| (format!("k{key}"), random(n * 16 + key, 500).into())).collect::<serde_json::Map<_, _>>();
    let events: Vec<Value> =
        (0..100).map(|n| json!({"name": "a", "user_id": format!("u{n}"), "metadata": metadata(n)})).collect();
    for _ in 0..40 {
        let call = Call::post("/i/batch").key(&tenant.key).agent(BROWSER).json(&json!({ "events": events }));
        assert_eq!(tenant.send(call).ok(202)["recorded"], 100);
    }
    let slow = begin_slowly(&server);
    let staging = server.data_dir().join("backup.tmp");
    assert!(staging.exists());
    let again = || tenant.send(Call::post("/admin/backup").bearer(&server.operator()));
    assert_refused("the second", &again(), 409, "backup_running", None);
    let place = place();
    let errors = failure("backup", server.data_dir(), &[text(&place.path().join("backup"))]);
    assert!(errors.contains("another backup is being made"), "{errors}");
    // Events are recorded meanwhile.
    tenant.recorded(&json!({"name": "a", "user_id": "meanwhile"}));
    drop(slow);
    let since = Instant::now();
    while staging.exists() {
        assert!(since.elapsed() < Duration::from_secs(30), "{}", server.log());
        std::thread::sleep(Duration::from_millis(10));
    }
    server.run("backup", &[text(&place.path().join("backup"))]);
    // A kill leaves the second names behind, and the next start removes them.
    let slow = begin_slowly(&server);
    server.kill();
    assert!(!staging.exists());
    drop(slow);
}

/// A text that can't be packed.
fn random(seed: u64, length: usize) -> String {
    let mut rng = Rng::new(seed);
    (0..length).map(|_| char::from(b'a' + u8::try_from(rng.below(26)).unwrap())).collect()
}

#[test]
fn a_restore_that_is_killed_leaves_nothing_usable_or_everything() {
    let (server, tenant) = with_events();
    let place = place();
    let dir = place.path().join("backup");
    server.run("backup", &[text(&dir)]);
    assert!(server.stop().success());
    let mut whole = 0;
    for micros in (0..20).map(|step| step * 700) {
        let to: PathBuf = place.path().join(format!("data-{micros}"));
        let mut child = command("restore", &to).arg(&dir).spawn().unwrap();
        std::thread::sleep(Duration::from_micros(4_000 + micros));
        let _ = child.kill();
        let _ = child.wait();
        if to.join("FORMAT").exists() {
            whole += 1;
        } else if to.join("RESTORING").exists() {
            let errors = failure("serve", &to, &["--listen", "127.0.0.1:0"]);
            assert!(errors.contains("a restore was interrupted"), "{errors}");
            let errors = failure("restore", &to, &[text(&dir)]);
            assert!(errors.contains("empty the directory and restore again"), "{errors}");
        }
    }
    println!("{whole} of 20 were complete");
    server.replace_by(&dir);
    assert_eq!(tenant.get(&tenant.path("revenue/metrics")).ok(200)["orders"], 20);
}
