//! Nodes of two versions of the program over a broker, under load: one joins, goes back, and then
//! all are upgraded, one after the other. Whichever is asked answers the same, and an `ETag` stands
//! for one answer.
//!
//! The later version is the same program, which stands for it (`TEST_HEADCOUNT_IS_NEXT`): what it
//! folds, records and answers has other version numbers, and the earlier one can't read it.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::process::{Output, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use headcount_common::partition_of;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::broker::{Broker, printed};
use crate::client::{Answer, Call, Connection};
use crate::cluster_nodes::{NAMES, NEXT, Node, make};
use crate::server::command;
use crate::tenant::{away_from_midnight, now_ms, rfc3339};

const PATIENCE: Duration = Duration::from_secs(120);
/// So many that some move from one version to the other.
const PROJECTS: usize = 32;
const WINDOW: &str = "start_date=2024-03-01&end_date=2024-03-31";

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Project {
    id: String,
    key: String,
    users: AtomicU64,
}

type Addresses = Mutex<[Option<SocketAddr>; NAMES.len()]>;

/// A broker and three nodes, each of one of the versions.
struct Versions {
    /// First, so that they end before their directories.
    nodes: Vec<Option<Node>>,
    broker: Broker,
    dir: TempDir,
    token: String,
    files: String,
    /// Those who are asked; `None`: it is being replaced.
    addresses: Arc<Addresses>,
    is_next: [bool; NAMES.len()],
    /// What each question was answered with each tag.
    answers: BTreeMap<(String, String), Vec<u8>>,
}

/// Sends events of one user each to any node.
struct Load {
    addresses: Arc<Addresses>,
    projects: Mutex<Vec<Project>>,
    /// Held for each event.
    turn: Mutex<u64>,
    is_over: AtomicBool,
}

/// The tags of all questions, by node and question.
type Tags = BTreeMap<(usize, String), String>;

fn send(address: SocketAddr, call: &Call) -> Option<Answer> {
    let mut connection = Connection::open_for(address, Duration::from_secs(20)).ok()?;
    connection.send(call).ok().map(|(answer, _)| answer)
}

impl Versions {
    fn start() -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let broker = Broker::start(dir.path())?;
        let made = make(&broker, dir.path());
        let place = dir.path().join("files");
        std::fs::create_dir(&place).unwrap();
        let (token, files) = (made["api_token"].as_str().unwrap().to_owned(), format!("file://{}", place.display()));
        let (nodes, answers) = ((0..3).map(|_| None).collect(), BTreeMap::new());
        Some(Self { broker, dir, token, files, nodes, addresses: Arc::default(), is_next: [false; 3], answers })
    }

    fn data_dir(&self, place: usize) -> std::path::PathBuf {
        self.dir.path().join(NAMES[place])
    }

    /// Starts a node as one of a version, and waits until it answers.
    fn begin(&mut self, place: usize, is_next: bool) {
        let settings = ["--log", "warn", "--files", &self.files, "--checkpoint-interval", "2s"];
        let node = Node::start_as(&self.broker, &self.data_dir(place), &settings, Stdio::inherit(), is_next);
        let address = node.url.strip_prefix("http://").unwrap().parse().unwrap();
        self.nodes[place] = Some(node);
        self.is_next[place] = is_next;
        let began = Instant::now();
        while send(address, &Call::get("/readyz")).is_none_or(|answer| answer.status != 200) {
            assert!(began.elapsed() < PATIENCE, "node {place} is not ready");
            std::thread::sleep(Duration::from_millis(50));
        }
        lock(&self.addresses)[place] = Some(address);
    }

    fn end(&mut self, place: usize) {
        lock(&self.addresses)[place] = None;
        self.nodes[place].take().unwrap().stop();
    }

    /// Upgrades a node as the runbook says.
    fn upgrade(&mut self, place: usize) {
        self.drain(place);
        self.end(place);
        self.begin(place, true);
    }

    fn drain(&self, place: usize) {
        let url = &self.nodes[place].as_ref().unwrap().url;
        let drained = self.broker.run("drain", &self.data_dir(place), &[url, "--json"]);
        assert!(drained.status.success(), "{}", printed(&drained));
    }

    /// Runs a command of `cluster` of the later version.
    fn run_next(&self, name: &str) -> Output {
        command("cluster", self.dir.path()).args([name, &self.broker.address]).env(NEXT, "1").output().unwrap()
    }

    fn finalize(&self) -> Result<String, String> {
        let output = self.run_next("finalize");
        if output.status.success() { Ok(printed(&output)) } else { Err(printed(&output)) }
    }

    fn status(&self) -> Value {
        let shown = self.broker.run("status", self.dir.path(), &["--json"]);
        assert!(shown.status.success(), "{}", printed(&shown));
        serde_json::from_slice(&shown.stdout).unwrap()
    }

    /// Whether the owner of each project has the later version. All have an owner.
    fn owners(&self, projects: &[Project]) -> BTreeMap<String, bool> {
        let ids: Vec<String> =
            (0..3).map(|place| std::fs::read_to_string(self.data_dir(place).join("node")).unwrap_or_default()).collect();
        let shown = self.status();
        let of = |project: &Project| {
            let partition = usize::from(partition_of(project.id.parse().unwrap()));
            let node = shown["partitions"][partition]["node"].as_str().unwrap_or_else(|| panic!("nobody has {}", project.id));
            self.is_next[ids.iter().position(|id| id.trim() == node).unwrap()]
        };
        projects.iter().map(|project| (project.id.clone(), of(project))).collect()
    }

    /// Sends a request to a node until it is answered.
    fn ask(&self, place: usize, call: &Call) -> Answer {
        let began = Instant::now();
        loop {
            let address = lock(&self.addresses)[place].unwrap();
            match send(address, call) {
                Some(answer) if answer.status != 503 => return answer,
                answer => assert!(began.elapsed() < PATIENCE, "{call:?} of node {place}: {answer:?}"),
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn create(&self, place: usize, name: &str) -> Project {
        let made = self.ask(place, &Call::post("/projects").bearer(&self.token).json(&json!({"name": name})));
        assert_eq!(made.status, 201, "{}", made.text());
        Project { id: made.field("project_id"), key: made.field("public_key"), users: AtomicU64::new(0) }
    }

    /// Has all nodes move what they have to the place of files.
    fn seal(&self) {
        let operator = std::fs::read_to_string(self.data_dir(0).join("operator-token")).unwrap();
        let sealed = self.ask(0, &Call::post("/admin/archive/seal").bearer(operator.trim()));
        assert_eq!(sealed.status, 200, "{}", sealed.text());
        assert!(sealed.json()["events"].as_u64().unwrap() > 0, "{}", sealed.text());
    }

    /// Asks all running nodes all questions, while nothing is recorded: they answer the same, with
    /// every event, and one tag never stands for two answers.
    fn compare(&mut self, projects: &[Project]) -> Tags {
        let mut tags = Tags::new();
        let asked: Vec<usize> = (0..3).filter(|place| self.nodes[*place].is_some()).collect();
        for (path, users, is_of_project) in questions(projects) {
            let call = Call::get(path.clone()).bearer(&self.token);
            let answers: Vec<Answer> = asked.iter().map(|place| self.ask(*place, &call)).collect();
            for (place, answer) in asked.iter().zip(&answers) {
                assert_eq!((answer.status, answer.text()), (200, answers[0].text()), "{path} at node {place}");
                if let Some(users) = users {
                    assert_eq!(answer.json()["orders"], users, "{path} at node {place}: {}", answer.text());
                }
                let tag = answer.etag();
                let before = self.answers.insert((path.clone(), tag.clone()), answer.body.clone());
                assert!(before.is_none_or(|before| before == answer.body), "{tag} stands for two answers to {path}");
                assert!(!is_of_project || tag == answers[0].etag(), "{path}: each node passes the tag of the owner on");
                tags.insert((*place, path.clone()), tag);
            }
        }
        tags
    }
}

/// What is asked, how many orders it counts, and whether it is about one project.
fn questions(projects: &[Project]) -> Vec<(String, Option<u64>, bool)> {
    let mut questions = Vec::new();
    for (number, Project { id, users, .. }) in projects.iter().enumerate() {
        let users = users.load(Ordering::Relaxed);
        questions.push((format!("/projects/{id}/revenue/metrics?{WINDOW}"), Some(users), true));
        if number % 4 == 0 {
            for path in ["revenue/timeseries", "revenue/by-attribution"] {
                questions.push((format!("/projects/{id}/{path}?{WINDOW}"), None, true));
            }
            for path in ["analytics/retention?interval=week", "revenue/ltv-cohorts"] {
                questions.push((format!("/projects/{id}/{path}"), None, true));
            }
        }
    }
    for path in [
        "/companies/top",
        "/identities/top",
        "/identities/profile?user_id=u1",
        "/companies/lookup?domain=c1.com",
        "/groups/top?group_type=team",
    ] {
        questions.push((path.to_owned(), None, false));
    }
    questions
}

impl Load {
    /// Records events until it is over, each until a node says that it has it.
    fn run(&self) {
        while !self.is_over.load(Ordering::Relaxed) {
            let mut turn = lock(&self.turn);
            *turn += 1;
            self.record(*turn);
            drop(turn);
            // Whoever waits for a turn gets one.
            std::thread::sleep(Duration::from_millis(4));
        }
    }

    fn record(&self, number: u64) {
        let (began, mut attempt) = (Instant::now(), number);
        let projects = lock(&self.projects);
        // Half of all in one, so that its states are worth fetching.
        let place = if number.is_multiple_of(2) { 0 } else { usize::try_from(number / 2).unwrap() % projects.len() };
        let project = &projects[place];
        let of_company = json!({"email": format!("u{number}@c{}.com", number % 7)});
        let event = json!({
            "name": "order", "user_id": format!("u{number}"), "external_id": format!("o{number}"), "value": 5, "metadata": of_company,
            "group_type": "team", "group_id": format!("t{}", number % 5), "timestamp": format!("2024-03-{:02}T10:00:00Z", number % 28 + 1),
        });
        let call = Call::post("/i").key(&project.key).json(&event);
        loop {
            attempt += 1;
            let address = lock(&self.addresses)[usize::try_from(attempt % 3).unwrap()];
            match address.and_then(|address| send(address, &call)) {
                Some(answer) if answer.status == 202 => break,
                Some(answer) => assert!(matches!(answer.status, 500 | 503), "{event}: {} {}", answer.status, answer.text()),
                None => {}
            }
            assert!(began.elapsed() < PATIENCE, "{event} is not recorded");
            std::thread::sleep(Duration::from_millis(20));
        }
        project.users.fetch_add(1, Ordering::Relaxed);
    }
}

/// Says whether each tag changed as it has to between two comparisons with no event between them:
/// if the version of an owner changed, whose answer it is in part.
fn assert_tags_follow(
    versions: &Versions,
    (before, owners_before): (&Tags, &BTreeMap<String, bool>),
    (after, owners_after): (&Tags, &BTreeMap<String, bool>),
) {
    let mut changed = 0;
    for ((place, path), tag) in before {
        let Some(now) = after.get(&(*place, path.clone())) else { continue };
        let of_project = owners_before.keys().find(|id| path.contains(*id));
        let is_other = match of_project {
            Some(id) => owners_before[id] != owners_after[id],
            None => owners_before != owners_after,
        };
        assert_eq!(tag != now, is_other, "{path} at node {place} ({:?}): {tag} and {now}", versions.is_next);
        changed += usize::from(is_other);
    }
    assert!(changed > 0, "no project moved to the other version");
}

/// The first bytes of the last message of a stream, in base 64: its version.
fn version_of_last(versions: &Versions, stream: &str, subject: &str) -> String {
    versions.broker.last_message(stream, subject)[..2].to_owned()
}

const VERSION_1: &str = "AQ";
const VERSION_2: &str = "Ag";

/// Has the load end also when the test fails.
struct UntilTheEnd<'a>(&'a Load);

impl Drop for UntilTheEnd<'_> {
    fn drop(&mut self) {
        self.0.is_over.store(true, Ordering::Relaxed);
    }
}

impl Load {
    /// Waits for the event under way. No other one is sent while the value lives.
    fn pause(&self) -> MutexGuard<'_, u64> {
        lock(&self.turn)
    }

    /// Has all nodes asked, between two events.
    fn compare(&self, versions: &mut Versions) {
        let _pause = self.pause();
        versions.compare(&lock(&self.projects));
    }

    /// Moves projects between versions by `step`, with no event meanwhile, and compares answers and
    /// tags before and after.
    fn compare_across(&self, versions: &mut Versions, step: impl FnOnce(&mut Versions)) {
        let (_pause, projects) = (self.pause(), lock(&self.projects));
        let (before, owners_before) = (versions.compare(&projects), versions.owners(&projects));
        step(versions);
        let (after, owners_after) = (versions.compare(&projects), versions.owners(&projects));
        assert_tags_follow(versions, (&before, &owners_before), (&after, &owners_after));
    }
}

fn url(versions: &Versions, place: usize) -> String {
    versions.nodes[place].as_ref().unwrap().url.clone()
}

/// A node of the later version joins two of the earlier one, and goes back.
fn join_and_go_back(versions: &mut Versions, load: &Load) {
    versions.begin(2, true);
    load.compare_across(versions, |versions| versions.drain(0));
    let made = versions.create(2, "made by the later version");
    lock(&load.projects).push(made);
    std::thread::sleep(Duration::from_secs(2));
    load.compare(versions);
    let refused = versions.finalize().unwrap_err();
    assert!((0..2).all(|place| refused.contains(&url(versions, place))) && !refused.contains(&url(versions, 2)), "{refused}");
    let shown = printed(&versions.broker.run("status", versions.dir.path(), &[]));
    assert!(shown.contains("(version 0.1.0+next: log 2, control 2, files 1, nodes 1, fold 2)"), "{shown}");
    // It writes what the others read.
    assert_eq!(version_of_last(versions, "HC_CTL", "hc.ctl"), VERSION_1);
    load.compare_across(versions, |versions| versions.end(2));
    versions.begin(2, false);
    load.compare(versions);
}

/// Upgrades all, one after the other.
fn upgrade_all(versions: &mut Versions, load: &Load) {
    for place in 0..3 {
        if place == 2 {
            let refused = versions.finalize().unwrap_err();
            assert!(refused.contains(&url(versions, 2)) && !refused.contains(&url(versions, 0)), "{refused}");
        }
        versions.upgrade(place);
        load.compare(versions);
    }
    let finalized = versions.finalize().unwrap();
    assert!(finalized.contains("the cluster now has log 2, control 2, files 1, nodes 1, fold 2"), "{finalized}");
    let again = versions.finalize().unwrap();
    assert!(again.contains("already"), "{again}");
    let shown = printed(&versions.run_next("status"));
    assert!(shown.contains("log 2, control 2, files 1, nodes 1, fold 2 (finalized by version 0.1.0+next)"), "{shown}");
    // All know by now.
    std::thread::sleep(Duration::from_secs(3));
    let made = versions.create(1, "made after the upgrade");
    lock(&load.projects).push(made);
    assert_eq!(version_of_last(versions, "HC_CTL", "hc.ctl"), VERSION_2);
    let partition = partition_of(lock(&load.projects)[0].id.parse().unwrap());
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(version_of_last(versions, &format!("EV_{partition:03}"), &format!("ev.{partition:03}")), VERSION_2);
}

/// The earlier version is refused, and changes nothing.
fn refuse_the_earlier_version(versions: &mut Versions, load: &Load) {
    versions.end(2);
    let mut serve = command("serve", &versions.data_dir(2));
    serve.args(["--listen", "127.0.0.1:0", "--cluster", &versions.broker.address, "--files", &versions.files]);
    let refused = serve.output().unwrap();
    let printed = printed(&refused);
    assert!(!refused.status.success() && printed.contains("install version 0.1.0+next or a later one"), "{printed}");
    versions.begin(2, true);
    load.compare(versions);
}

#[test]
fn nodes_of_two_versions_answer_the_same_and_an_upgrade_goes_back_until_it_is_finalized() {
    away_from_midnight();
    let Some(mut versions) = Versions::start() else { return };
    (0..2).for_each(|place| versions.begin(place, false));
    let projects = (0..PROJECTS).map(|number| versions.create(number % 2, &format!("p{number}"))).collect();
    let (turn, is_over) = (Mutex::default(), AtomicBool::default());
    let load = Load { addresses: Arc::clone(&versions.addresses), projects: Mutex::new(projects), turn, is_over };
    std::thread::scope(|scope| {
        let _end = UntilTheEnd(&load);
        scope.spawn(|| load.run());
        while *load.pause() < 400 {
            std::thread::sleep(Duration::from_millis(100));
        }
        versions.seal();
        load.compare(&mut versions);
        join_and_go_back(&mut versions, &load);
        upgrade_all(&mut versions, &load);
        refuse_the_earlier_version(&mut versions, &load);
        println!("{} events, {} answers", load.pause(), versions.answers.len());
    });
}

/// A node of the version before could not begin with what the later one keeps instead of events.
#[test]
fn days_that_are_not_kept_wait_until_the_upgrade_is_finalized() {
    let Some(mut versions) = Versions::start() else { return };
    versions.begin(0, true);
    let project = versions.create(0, "forgets");
    for days in [0, 40, 41] {
        let at = rfc3339(now_ms() - days * 86_400_000);
        let event = json!({"name": "order", "user_id": "ada", "timestamp": at});
        assert_eq!(versions.ask(0, &Call::post("/i").key(&project.key).json(&event)).status, 202);
    }
    versions.seal();
    let change = Call::patch(format!("/projects/{}", project.id)).bearer(&versions.token).json(&json!({"retention_days": 10}));
    versions.ask(0, &change).ok(200);
    let archive = versions.data_dir(0).join("archive");
    let folder = archive.join(format!("partition={:02}/project={}", partition_of(project.id.parse().unwrap()), project.id));
    // Whether there is a base, after a while in which old days are looked for once the floor is
    // saved.
    let has_base = || {
        std::thread::sleep(Duration::from_secs(3));
        let operator = std::fs::read_to_string(versions.data_dir(0).join("operator-token")).unwrap();
        versions.ask(0, &Call::post("/admin/archive/seal").bearer(operator.trim())).ok(200);
        std::thread::sleep(Duration::from_secs(1));
        let mut names = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name());
        names.any(|name| name.to_string_lossy().starts_with("state-"))
    };
    assert!((0..3).all(|_| !has_base()));
    versions.finalize().unwrap();
    let began = Instant::now();
    while !has_base() {
        assert!(began.elapsed() < PATIENCE, "nothing is removed");
    }
}
