//! `headcount demo --cluster`: it answers through each node, also after one is killed, restarts it,
//! and leaves nothing behind.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::broker::printed;
use crate::client::{Call, Connection};
use crate::server::command;

/// How long it may take to start, and to end.
const PATIENCE: Duration = Duration::from_secs(180);

/// One demo at a time: each has six processes.
static TURN: Mutex<()> = Mutex::new(());

fn nats_server() -> Option<PathBuf> {
    let program = std::env::var_os("HEADCOUNT_NATS_SERVER").map(PathBuf::from);
    if program.is_none() {
        assert!(std::env::var_os("HEADCOUNT_REQUIRE_CLUSTER").is_none(), "no nats-server: set HEADCOUNT_NATS_SERVER");
        eprintln!("SKIPPED cluster: no nats-server");
    }
    program
}

/// A demo in a directory of its own, and what it printed.
struct ClusterDemo {
    child: Child,
    /// The lines with a name: node-1 and so on, project, public key, API token.
    named: BTreeMap<String, String>,
    place: TempDir,
    _turn: MutexGuard<'static, ()>,
}

impl ClusterDemo {
    fn start(nats_server: &Path) -> Self {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let place = tempfile::tempdir().unwrap();
        let mut command = command("demo", &place.path().join("unused"));
        command.args(["--cluster", "--nats-server"]).arg(nats_server).args(["--restart-after", "20s"]);
        command.env("TMPDIR", place.path());
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let mut named = BTreeMap::new();
        // The last line that it prints.
        for line in lines.take_while(|line| !line.starts_with("headcount login")) {
            if let Some((name, value)) = line.split_once("  ") {
                named.insert(name.to_owned(), value.trim().to_owned());
            }
        }
        assert!(named.contains_key("node-3"), "{named:?}");
        Self { child, named, place, _turn: turn }
    }

    /// The address of a node or broker, and its process.
    fn node(&self, name: &str) -> (String, String) {
        let (url, process) = self.named[name].split_once("  process ").unwrap();
        (url.trim_start_matches("http://").to_owned(), process.to_owned())
    }

    fn users(&self, node: &str) -> Option<u64> {
        let path = format!("/projects/{}/analytics/count-unique-users-per-day", self.named["project"]);
        let call = Call::post(path).bearer(&self.named["API token"]).json(&json!({}));
        let (answer, _) = Connection::open(self.node(node).0.parse().unwrap()).ok()?.send(&call).ok()?;
        let answer: Option<Value> = (answer.status == 200).then(|| answer.json());
        answer?["total_unique_users"].as_u64()
    }

    fn wait_for_users(&self, node: &str) -> u64 {
        let began = Instant::now();
        loop {
            if let Some(users) = self.users(node) {
                return users;
            }
            assert!(began.elapsed() < PATIENCE, "{node} does not answer");
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    /// The processes that have the directory among their arguments.
    fn processes(&self) -> Vec<u32> {
        let place = self.place.path().to_str().unwrap();
        let of = |entry: std::io::Result<std::fs::DirEntry>| {
            let id: u32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
            let arguments = std::fs::read(format!("/proc/{id}/cmdline")).ok()?;
            let is_its = String::from_utf8_lossy(&arguments).contains(place);
            (is_its && id != self.child.id()).then_some(id)
        };
        std::fs::read_dir("/proc").unwrap().filter_map(of).collect()
    }

    fn wait_for_processes(&self, count: usize) {
        let began = Instant::now();
        while self.processes().len() != count {
            assert!(began.elapsed() < PATIENCE, "{:?}", self.processes());
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for ClusterDemo {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn signal(name: &str, process: &str) {
    assert!(Command::new("kill").args(["-s", name, process]).status().unwrap().success());
}

#[test]
fn cluster_demo_answers_after_a_node_is_killed_restarts_it_and_leaves_nothing() {
    let Some(program) = nats_server() else { return };
    let mut demo = ClusterDemo::start(&program);
    assert_eq!(demo.processes().len(), 6);
    let users = demo.wait_for_users("node-1");
    assert!(users > 1000, "{users}");
    for node in ["node-2", "node-3"] {
        assert_eq!(demo.wait_for_users(node), users, "{node}");
    }
    signal("KILL", &demo.node("node-2").1);
    for node in ["node-1", "node-3"] {
        assert_eq!(demo.wait_for_users(node), users, "{node}");
    }
    signal("KILL", &demo.node("broker-1").1);
    assert_eq!(demo.wait_for_users("node-2"), users, "restarted at its former address");
    demo.wait_for_processes(6);
    signal("INT", &demo.child.id().to_string());
    assert!(demo.child.wait().unwrap().success());
    assert_eq!(demo.processes(), [0_u32; 0]);
    assert_eq!(std::fs::read_dir(demo.place.path()).unwrap().count(), 0, "everything is removed");
}

#[test]
fn cluster_demo_that_is_killed_takes_its_processes_along() {
    let Some(program) = nats_server() else { return };
    let mut demo = ClusterDemo::start(&program);
    assert_eq!(demo.processes().len(), 6);
    demo.child.kill().unwrap();
    demo.child.wait().unwrap();
    demo.wait_for_processes(0);
}

#[test]
fn cluster_demo_says_how_to_install_the_brokers() {
    let place = tempfile::tempdir().unwrap();
    let refused = command("demo", place.path()).arg("--cluster").env("PATH", place.path()).output().unwrap();
    assert_eq!(refused.status.code(), Some(1));
    assert!(printed(&refused).contains("apt-get install nats-server"), "{}", printed(&refused));
    let refused = command("demo", place.path()).args(["--cluster", "--nats-server", "/nowhere"]).output().unwrap();
    assert!(printed(&refused).contains("--nats-server /nowhere"), "{}", printed(&refused));
}
