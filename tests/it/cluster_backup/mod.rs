//! `headcount backup` through a node of a cluster: a server that is alone goes on from it, and so
//! does another cluster.

mod busy;
mod retained;

use std::path::Path;
use std::process::{Output, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::broker::{Broker, printed};
use crate::client::Call;
use crate::cluster_nodes::{NAMES, Node, PATIENCE};
use crate::moving_in::init_from;
use crate::server::{TestServer, command};
use crate::webhooks::Receiver;
pub(crate) use busy::send;
use busy::{Asked, Busy, PROJECTS, answer_of, call, day, events, of_user, operator, questions, sale};

/// What no backup may have.
const GONE: [&str; 4] = ["canary-eve-7731", "canary-mallory-4402", "canary-olga-9917", "canary-deleted-2218"];

/// Runs `headcount backup` through a node.
pub(crate) fn back_up(node: &Node, dir: &Path) -> Output {
    let mut backup = command("backup", &dir.with_extension("nowhere"));
    backup.arg(dir).args(["--url", &node.url, "--operator-token", &operator(node), "--json"]).output().unwrap()
}

/// Sends everything: a person who is erased, one whose erasure is under way, one who comes again,
/// and a project that is deleted. Returns the secret of a webhook.
fn fill(busy: &Busy, receiver: &Receiver) -> String {
    let rates = json!({"fx_rates": {"EUR": 1.25}, "capabilities": ["target_accounts"]});
    busy.ask(0, "PATCH", "/organization", Some(rates)).ok(200);
    busy.ask(1, "POST", "/members", Some(json!({"email": "ada@acme.example", "role": "admin"}))).ok(201);
    busy.ask(2, "POST", "/company-profiles", Some(json!({"website": "acme.com", "label": "Acme"}))).ok(201);
    let (gone, key) = busy.project("gone");
    assert_eq!(busy.track(0, &key, &of_user(GONE[3], "d1")), "recorded");
    let hook = json!({"project_id": busy.projects[0].0, "url": receiver.url()});
    let hook = busy.ask(0, "POST", "/webhooks", Some(hook)).ok(201);
    busy.round(0);
    for (number, user) in GONE[..3].iter().enumerate() {
        (0..PROJECTS).for_each(|project| busy.recorded(project, &of_user(user, &format!("g{number}-{project}"))));
    }
    (0..2).for_each(|number| busy.recorded(0, &sale(number)));
    receiver.wait(2);
    let erased = busy.erase(GONE[0]);
    busy.seal();
    let began = Instant::now();
    while busy.ask(2, "GET", &erased, None).ok(200)["status"] != "completed" {
        assert!(began.elapsed() < 2 * PATIENCE, "{} is not erased", GONE[0]);
        std::thread::sleep(Duration::from_millis(500));
        busy.seal();
    }
    busy.round(1);
    let deleted = busy.ask(1, "DELETE", &format!("/projects/{gone}"), None);
    assert_eq!(deleted.status, 204, "{}", deleted.text());
    // Of these, the streams have events still.
    busy.erase(GONE[2]);
    let opted = busy.ask(0, "POST", "/privacy-requests", Some(json!({"type": "opt_in", "user_id": GONE[2]})));
    assert_eq!(opted.status, 201, "{}", opted.text());
    busy.erase(GONE[1]);
    busy.recorded(1, &sale(2));
    hook["secret"].as_str().unwrap().to_owned()
}

/// What a receiver got last is this sale, signed as the webhook was when it was made, and nothing
/// else came again.
fn assert_sent(receiver: &Receiver, secret: &str, count: usize, number: usize) {
    receiver.wait(count);
    std::thread::sleep(Duration::from_millis(500));
    let got = receiver.wait(count);
    assert_eq!(got.len(), count, "{:?}", got.iter().map(|received| received.json()).collect::<Vec<_>>());
    let last = &got[count - 1];
    assert_eq!(last.json()["data"]["message"], json!(format!("sale {number}")), "{}", last.json());
    assert_eq!(last.count_signed_by(secret), 1);
}

/// Makes a backup through a node, and checks its files.
fn back_up_and_verify(node: &Node, backup: &Path) {
    let made = back_up(node, backup);
    assert!(made.status.success(), "{}", printed(&made));
    let verified = command("verify", &backup.with_extension("nowhere")).arg("--backup").arg(backup).output().unwrap();
    assert!(verified.status.success(), "{}", printed(&verified));
}

/// Nothing of those who are gone is in a data directory, whatever its files look like. Returns what
/// the search reports.
fn assert_gone(data: &Path, gone: &[&str]) -> Value {
    let searched = command("verify", data).args(["--erased", "--json"]).args(gone).output().unwrap();
    assert!(searched.status.success(), "{}", printed(&searched));
    let found: Value = serde_json::from_slice(&searched.stdout).unwrap();
    assert_eq!((&found["status"], &found["found"], &found["unfinished"]), (&json!("clean"), &json!([]), &json!(0)), "{found}");
    found
}

#[test]
fn one_server_and_another_cluster_go_on_from_a_backup_of_a_cluster() {
    let [dir, files, place] = [(); 3].map(|()| tempfile::tempdir().unwrap());
    let files = format!("file://{}", files.path().display());
    let settings = ["--log", "warn", "--files", &files, "--log-kept", "1s", "--outbound-allow", "127.0.0.1"];
    let Some(busy) = Busy::start(dir.path(), &settings) else { return };
    let receiver = Receiver::start(&[200]);
    let secret = fill(&busy, &receiver);
    // Time for the progress of the webhook to be written.
    std::thread::sleep(Duration::from_millis(1_500));
    let questions = questions(&busy.projects, day(-9));
    let expected = busy.steady(&questions);
    for (asked, (status, answer)) in questions.iter().zip(&expected) {
        assert_eq!(*status, 200, "{asked:?}: {answer}");
    }
    for node in 0..2 {
        back_up_and_verify(&busy.cluster.nodes[node], &place.path().join(format!("b{node}")));
    }
    let made: Value = serde_json::from_slice(&std::fs::read(place.path().join("b0/manifest.json")).unwrap()).unwrap();
    assert_eq!(made["projects"].as_array().unwrap().len(), PROJECTS, "{made}");
    let (searched, backup) = (place.path().join("searched"), place.path().join("b0"));
    assert!(command("restore", &searched).arg(&backup).output().unwrap().status.success());
    let found = assert_gone(&searched, &GONE);
    assert!(found["events"].as_u64().unwrap() > 70 && found["erasures"] == 3, "{found}");
    goes_on_alone(&busy, (&questions, &expected), &backup, (&receiver, &secret));
    let (token, key) = (busy.cluster.token.clone(), busy.projects[0].1.clone());
    drop(busy);
    let node = goes_on_in_another_cluster(&token, (&questions, &expected), &place.path().join("b1"), &[]);
    assert_eq!(send(&node.1, &Call::post("/track").key(&key).json(&sale(4))).ok(202)["status"], "recorded");
    assert_sent(&receiver, &secret, 4, 4);
}

/// A server on the backup answers the same, and goes on.
fn goes_on_alone(
    busy: &Busy,
    (questions, expected): (&[Asked], &[(u16, Value)]),
    backup: &Path,
    (receiver, secret): (&Receiver, &str),
) {
    let server = TestServer::start_with(&["--outbound-allow", "127.0.0.1"]);
    server.replace_by(backup);
    let token = &busy.cluster.token;
    let answered = |asked: &Asked| answer_of(&server.send(&call(token, asked)));
    for (asked, expected) in questions.iter().zip(expected) {
        let found = answered(asked);
        assert!(found == *expected, "{asked:?}:\n{}\n{}", found.1, expected.1);
    }
    let track = |project: usize, event: &Value| {
        let answer = server.send(&Call::post("/track").key(&busy.projects[project].1).json(event));
        answer.ok(202)["status"].as_str().unwrap().to_owned()
    };
    for project in 0..PROJECTS {
        for event in (0..2).flat_map(|round| events(project, round)) {
            assert_eq!(track(project, &event), "duplicate", "{event}");
        }
        // The ids of erased events are taken.
        assert_eq!(track(project, &of_user("u1", &format!("g0-{project}"))), "duplicate");
    }
    assert_eq!([track(0, &of_user(GONE[0], "late-0")), track(1, &of_user(GONE[1], "late-1"))], ["dropped", "dropped"]);
    assert_eq!(track(2, &of_user(GONE[2], "late-2")), "recorded", "opted in");
    let listed = completed(&server, token, 4);
    assert!(!listed.contains(GONE[1]), "{listed}");
    // What was sent is not sent again, and what comes now is, signed as before.
    assert_eq!(track(0, &sale(3)), "recorded");
    assert_sent(receiver, secret, 3, 3);
    let report: Value = serde_json::from_str(&server.run("verify", &["--json"])).unwrap();
    assert_eq!((&report["status"], &report["differing"]), (&json!("clean"), &json!(0)), "{report}");
}

/// Waits until all privacy requests of a server are completed. Returns the answer that lists them.
fn completed(server: &TestServer, token: &str, count: usize) -> String {
    let began = Instant::now();
    loop {
        let listed = server.send(&Call::get("/privacy-requests").bearer(token)).ok(200);
        let requests = listed["privacy_requests"].as_array().unwrap();
        if requests.iter().all(|request| request["status"] == "completed") {
            assert_eq!(requests.len(), count, "{listed}");
            return listed.to_string();
        }
        assert!(began.elapsed() < PATIENCE, "{listed}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Nodes over other brokers answer the same. `settings` are those of the command that makes the
/// cluster, and of nodes.
fn goes_on_in_another_cluster(
    token: &str,
    (questions, expected): (&[Asked], &[(u16, Value)]),
    backup: &Path,
    settings: &[&str],
) -> (Broker, Node, TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let mut broker = Broker::start(dir.path()).unwrap();
    let data = dir.path().join(NAMES[0]);
    let made = init_from(&broker, &data, backup, &[settings, &["--json"]].concat());
    assert!(made.status.success(), "{}", printed(&made));
    broker.restart();
    let settings = [settings, &["--log", "warn", "--outbound-allow", "127.0.0.1"]].concat();
    let node = Node::start_with(&broker, &data, &settings, Stdio::inherit());
    for (asked, expected) in questions.iter().zip(expected) {
        let found = answer_of(&send(&node, &call(token, asked)));
        assert!(found == *expected, "{asked:?}:\n{}\n{}", found.1, expected.1);
    }
    (broker, node, dir)
}

/// What is acknowledged while backups are made.
struct Load<'b> {
    busy: &'b Busy,
    next: AtomicUsize,
    acknowledged: Mutex<Vec<usize>>,
    is_over: AtomicBool,
}

impl Load<'_> {
    fn event(number: usize) -> Value {
        json!({"name": "order", "user_id": format!("w{number}"), "external_id": format!("l{number}"), "value": 1,
               "timestamp": "2026-03-14T10:00:00.000Z"})
    }

    fn key(&self, number: usize) -> &str {
        &self.busy.projects[number % PROJECTS].1
    }

    /// Sends events, each to a node that may be gone.
    fn run(&self, alive: &[&Node]) {
        while !self.is_over.load(Ordering::SeqCst) {
            let number = self.next.fetch_add(1, Ordering::SeqCst);
            let body = Self::event(number);
            let answer = alive[number % alive.len()].send("POST", "/i", ("x-service-pk", self.key(number)), Some(&body));
            if answer.is_some_and(|(status, _)| status == 202) {
                self.acknowledged.lock().unwrap().push(number);
            }
        }
    }
}

#[test]
fn a_backup_under_load_has_what_was_acknowledged_before_also_when_an_owner_is_killed() {
    let (dir, place) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let Some(mut busy) = Busy::start(dir.path(), &["--log", "warn"]) else { return };
    busy.round(0);
    let owner = busy.cluster.owner();
    let (asked, other) = ((owner + 1) % 3, (owner + 2) % 3);
    let mut killed = busy.cluster.nodes.remove(owner);
    // Their places have moved.
    let at = |node: usize| if node > owner { node - 1 } else { node };
    let load = Load { busy: &busy, next: AtomicUsize::new(0), acknowledged: Mutex::default(), is_over: AtomicBool::new(false) };
    let (first, second) = (place.path().join("first"), place.path().join("second"));
    let mut before = Vec::new();
    let alive = [&busy.cluster.nodes[at(asked)], &busy.cluster.nodes[at(other)]];
    std::thread::scope(|scope| {
        let senders: Vec<_> = (0..2).map(|_| scope.spawn(|| load.run(&alive))).collect();
        let began = Instant::now();
        while load.acknowledged.lock().unwrap().len() < 300 {
            assert!(began.elapsed() < PATIENCE, "too few events are taken");
            std::thread::sleep(Duration::from_millis(20));
        }
        before.push(load.acknowledged.lock().unwrap().clone());
        let made = back_up(alive[0], &first);
        assert!(made.status.success(), "{}", printed(&made));
        // An owner is killed while the next one is made.
        before.push(load.acknowledged.lock().unwrap().clone());
        let backup = scope.spawn(|| back_up(alive[0], &second));
        std::thread::sleep(Duration::from_millis(60));
        killed.kill();
        let made = backup.join().unwrap();
        println!("with an owner that is killed: {}", printed(&made));
        assert_eq!(made.status.success(), second.join("manifest.json").exists(), "{}", printed(&made));
        load.is_over.store(true, Ordering::SeqCst);
        senders.into_iter().for_each(|sender| sender.join().unwrap());
    });
    for (backup, before) in [(first, &before[0]), (second, &before[1])] {
        if !backup.join("manifest.json").exists() {
            continue;
        }
        let server = TestServer::start();
        server.replace_by(&backup);
        for number in before {
            let again = server.send(&Call::post("/i").key(load.key(*number)).json(&Load::event(*number))).ok(202);
            assert_eq!(again["status"], "duplicate", "event {number} of {}", backup.display());
        }
        let report: Value = serde_json::from_str(&server.run("verify", &["--json"])).unwrap();
        assert_eq!((&report["status"], &report["differing"]), (&json!("clean"), &json!(0)), "{report}");
    }
}
