//! Servers that are nodes of a cluster, over a real broker: whichever is asked answers, and one
//! that is killed is replaced.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::broker::{Broker, printed};
use crate::server::command;

/// How long a node may take to start, and others to take its place.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// Has the program stand for its next version.
pub(crate) const NEXT: &str = "TEST_HEADCOUNT_IS_NEXT";
const DAY: &str = "2024-03-01";

/// A server, which is killed with the value.
pub(crate) struct Node {
    child: Child,
    pub(crate) url: String,
    pub(crate) dir: PathBuf,
}

impl Node {
    pub(crate) fn start(broker: &Broker, dir: &Path) -> Self {
        Self::start_with(broker, dir, &["--log", "warn"], Stdio::inherit())
    }

    /// Starts it with more settings; its log goes to `log`.
    pub(crate) fn start_with(broker: &Broker, dir: &Path, settings: &[&str], log: Stdio) -> Self {
        Self::start_as(broker, dir, settings, log, false)
    }

    /// The same, perhaps as one of the next version.
    pub(crate) fn start_as(broker: &Broker, dir: &Path, settings: &[&str], log: Stdio, is_next: bool) -> Self {
        let mut command = command("serve", dir);
        if is_next {
            command.env(NEXT, "1");
        }
        command.args(["--listen", "127.0.0.1:0", "--cluster", &broker.address]);
        command.args(["--shards", "1", "--workers", "1", "--min-free-bytes", "64MiB"]).args(settings);
        let mut child = command.stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let url = lines.into_iter().find_map(|line| line.strip_prefix("listening on ").map(str::to_owned)).unwrap();
        Self { child, url, dir: dir.to_owned() }
    }

    /// The id that its data directory has.
    pub(crate) fn id(&self) -> String {
        std::fs::read_to_string(self.dir.join("node")).unwrap().trim().to_owned()
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub(crate) fn stop(&mut self) {
        self.signal("TERM");
        assert!(self.child.wait().unwrap().success());
    }

    /// Sends its process a signal.
    pub(crate) fn signal(&self, name: &str) {
        assert!(Command::new("kill").args(["-s", name, &self.child.id().to_string()]).status().unwrap().success());
    }

    /// Sends a request. `None`: nobody answers.
    pub(crate) fn send(&self, method: &str, path: &str, credential: (&str, &str), body: Option<&Value>) -> Option<(u16, Value)> {
        let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
        let request = ureq::http::Request::builder().method(method).uri(format!("{}{path}", self.url));
        let request = request.header(credential.0, credential.1).header("content-type", "application/json");
        let answer = match body {
            Some(body) => agent.run(request.body(body.to_string()).unwrap()),
            None => agent.run(request.body(()).unwrap()),
        };
        let mut answer = answer.ok()?;
        let text = answer.body_mut().read_to_string().unwrap();
        Some((answer.status().as_u16(), serde_json::from_str(&text).unwrap_or(Value::Null)))
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The data directories of nodes.
pub(crate) const NAMES: [&str; 3] = ["n0", "n1", "n2"];

/// Makes a cluster of a single broker, with the data directories of its nodes in `dir`. Returns
/// what was printed.
pub(crate) fn make(broker: &Broker, dir: &Path) -> Value {
    let data = dir.join(NAMES[0]);
    let made = broker.run("init", &data, &["--replicas", "1", "--max-bytes", "8MiB", "--json"]);
    assert!(made.status.success(), "{}", printed(&made));
    for name in &NAMES[1..] {
        std::fs::create_dir_all(dir.join(name).join("keys")).unwrap();
        std::fs::copy(data.join("keys/hash.key"), dir.join(name).join("keys/hash.key")).unwrap();
    }
    serde_json::from_slice(&made.stdout).unwrap()
}

/// A cluster with three nodes, and what opens its organization.
pub(crate) struct Cluster {
    pub(crate) nodes: Vec<Node>,
    pub(crate) broker: Broker,
    pub(crate) public_key: String,
    pub(crate) token: String,
    pub(crate) project: String,
    pub(crate) organization: String,
}

impl Cluster {
    /// `None`: there is no broker.
    pub(crate) fn start(dir: &Path) -> Option<Self> {
        Self::start_with(dir, &["--log", "warn"])
    }

    /// The same, with more settings of nodes.
    pub(crate) fn start_with(dir: &Path, settings: &[&str]) -> Option<Self> {
        let broker = Broker::start(dir)?;
        let made = make(&broker, dir);
        let nodes = NAMES.map(|name| Node::start_with(&broker, &dir.join(name), settings, Stdio::inherit())).into();
        let text = |name: &str| made[name].as_str().unwrap().to_owned();
        let (public_key, token) = (text("public_key"), text("api_token"));
        Some(Self { nodes, broker, public_key, token, project: text("project_id"), organization: text("organization_id") })
    }

    pub(crate) fn ask(&self, node: usize, method: &str, path: &str, token: &str, body: Option<&Value>) -> Option<(u16, Value)> {
        self.nodes[node].send(method, path, ("authorization", &format!("Bearer {token}")), body)
    }

    /// Waits until all nodes know for certain what changed: on a busy machine, one may have lost
    /// the others for a moment.
    pub(crate) fn wait_until_ready(&self) {
        let began = Instant::now();
        for node in 0..3 {
            while self.ask(node, "GET", "/readyz", &self.token, None).is_none_or(|(status, _)| status != 200) {
                assert!(began.elapsed() < Duration::from_secs(30), "node {node} is not ready");
                std::thread::sleep(Duration::from_millis(50));
            }
        }
    }

    /// Sends an event of a user to a node, again until it is recorded.
    pub(crate) fn record(&self, node: usize, public_key: &str, user: &str) {
        let event = json!({"name": "order", "user_id": user, "external_id": user, "timestamp": format!("{DAY}T10:00:00Z")});
        let began = Instant::now();
        loop {
            let answer = self.nodes[node].send("POST", "/i", ("x-service-pk", public_key), Some(&event));
            match answer {
                Some((202, _)) => return,
                // Nobody answers, or its owner is not known or has just lost it.
                None | Some((500 | 503, _)) => {}
                _ => panic!("{user}: {answer:?}"),
            }
            assert!(began.elapsed() < PATIENCE, "{user}: {answer:?}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Sends an event of a browser that has no id to a node, again until it is recorded.
    fn visit(&self, node: usize) {
        let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
        let browser = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";
        let event = json!({"name": "pageview", "timestamp": format!("{DAY}T10:00:00Z")});
        let began = Instant::now();
        loop {
            let request = agent.post(format!("{}/i", self.nodes[node].url)).header("x-service-pk", &self.public_key);
            let request = request.header("user-agent", browser).header("content-type", "application/json");
            let status = request.send(event.to_string()).unwrap().status().as_u16();
            if status == 202 {
                return;
            }
            assert!(matches!(status, 500 | 503) && began.elapsed() < PATIENCE, "{status}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn users(&self, node: usize, project: &str) -> Option<u64> {
        let path = format!("/projects/{project}/analytics/count-unique-users-per-day");
        let days = json!({"start_date": DAY, "end_date": DAY});
        match self.ask(node, "POST", &path, &self.token, Some(&days))? {
            (200, answer) => answer["total_unique_users"].as_u64(),
            (503, _) => None,
            answer => panic!("{answer:?}"),
        }
    }

    /// Waits until a node counts.
    fn wait_for_users(&self, node: usize) -> u64 {
        self.wait_for_users_of(node, &self.project)
    }

    pub(crate) fn wait_for_users_of(&self, node: usize, project: &str) -> u64 {
        let began = Instant::now();
        loop {
            if let Some(users) = self.users(node, project) {
                return users;
            }
            assert!(began.elapsed() < PATIENCE, "node {node} does not answer");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// The id of the node that has each partition.
    fn owners(&self) -> Vec<Value> {
        let shown = self.broker.run("status", &self.nodes[0].dir, &["--json"]);
        let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
        shown["partitions"].as_array().unwrap().iter().map(|partition| partition["node"].clone()).collect()
    }

    /// The node that has most partitions.
    pub(crate) fn owner(&self) -> usize {
        let owners = self.owners();
        let of = |node: &Node| owners.iter().filter(|owner| **owner == node.id()).count();
        (0..self.nodes.len()).max_by_key(|node| of(&self.nodes[*node])).unwrap()
    }

    /// The node that has a partition; `None` while it moves.
    pub(crate) fn owner_of(&self, partition: usize) -> Option<usize> {
        let owner = self.owners()[partition].clone();
        (0..self.nodes.len()).find(|node| owner == self.nodes[*node].id())
    }
}

#[test]
fn nodes_answer_for_each_other_and_replace_one_that_is_killed() {
    let dir = tempfile::tempdir().unwrap();
    let Some(mut cluster) = Cluster::start(dir.path()) else { return };
    let project = cluster.project.clone();
    cluster.record(0, &cluster.public_key, "u0");
    (0..3).for_each(|node| assert_eq!(cluster.wait_for_users(node), 1));
    // What one node has answered, any other counts at once.
    for user in 1..30 {
        cluster.record(user % 3, &cluster.public_key, &format!("u{user}"));
        assert_eq!(cluster.users((user + 1) % 3, &project), Some(user as u64 + 1));
    }
    // The event is counted once, wherever it is sent again.
    (0..3).for_each(|node| cluster.record(node, &cluster.public_key, "u7"));
    assert_eq!(cluster.users(2, &project), Some(30));
    drain_and_undo(&cluster);
    let owner = cluster.owner();
    let (other, third) = ((owner + 1) % 3, (owner + 2) % 3);
    // A visitor without ids, who comes again after another node has taken the project over.
    cluster.visit(other);
    assert_eq!(cluster.users(third, &project), Some(31));
    cluster.nodes[owner].kill();
    let killed = Instant::now();
    cluster.record(other, &cluster.public_key, "u30");
    cluster.visit(third);
    println!("another node records {:.1} s after the kill", killed.elapsed().as_secs_f64());
    for node in [other, third] {
        assert_eq!(cluster.wait_for_users(node), 32, "node {node}");
    }
    // It comes back, and passes requests on.
    let again = Node::start(&cluster.broker, &cluster.nodes[owner].dir);
    assert_eq!(again.id(), cluster.nodes[owner].id());
    cluster.nodes[owner] = again;
    assert_eq!(cluster.wait_for_users(owner), 32);
    // The other two stop in good order: it has everything soon.
    cluster.nodes[other].stop();
    cluster.nodes[third].stop();
    let stopped = Instant::now();
    cluster.record(owner, &cluster.public_key, "u31");
    println!("the last node records {:.1} s after the others stopped", stopped.elapsed().as_secs_f64());
    cluster.visit(owner);
    assert_eq!(cluster.users(owner, &project), Some(33));
    // Nothing but a node opens the directory of one.
    let refused = command("project", &cluster.nodes[other].dir).arg("list").output().unwrap();
    assert!(!refused.status.success() && printed(&refused).contains("data directory of a node"), "{}", printed(&refused));
}

#[test]
fn any_node_has_all_of_them_seal() {
    let (dir, files) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let place = format!("file://{}", files.path().display());
    let Some(mut cluster) = Cluster::start_with(dir.path(), &["--log", "warn", "--files", &place]) else { return };
    let mut projects = vec![(cluster.public_key.clone(), cluster.project.clone())];
    for number in 0..5 {
        let made = cluster.ask(0, "POST", "/projects", &cluster.token, Some(&json!({"name": format!("p{number}")}))).unwrap();
        let text = |name: &str| made.1[name].as_str().unwrap().to_owned();
        projects.push((text("public_key"), text("project_id")));
    }
    let seal = |cluster: &Cluster, node: usize| {
        let operator = std::fs::read_to_string(cluster.nodes[node].dir.join("operator-token")).unwrap();
        cluster.ask(node, "POST", "/admin/archive/seal", operator.trim(), None).unwrap()
    };
    // While partitions are taken over, not all of them can be sealed. Returns how many events were.
    let seal_all = || {
        let began = Instant::now();
        for attempt in 0.. {
            let (status, answer) = seal(&cluster, 1);
            if status == 200 {
                assert_eq!(answer["waiting_projects"], json!([]));
                return (attempt, answer["events"].as_u64().unwrap());
            }
            assert!(status == 503 && began.elapsed() < PATIENCE, "{answer}");
            std::thread::sleep(Duration::from_millis(200));
        }
        unreachable!()
    };
    assert_eq!(seal_all().1, 0);
    for (key, project) in &projects {
        (0..10).for_each(|user| cluster.record(user % 3, key, &format!("u{user}")));
        assert_eq!(cluster.wait_for_users_of(0, project), 10);
    }
    let (attempt, events) = seal_all();
    assert!(events == 60 || attempt > 0, "{events} events of all nodes");
    (0..3).for_each(|node| assert_eq!(seal(&cluster, node).1["events"], 0, "node {node}"));
    for (_, project) in &projects {
        assert_eq!(cluster.wait_for_users_of(2, project), 10);
    }
    // What a node has that can't be reached is not sealed, and the answer says so.
    let owner = cluster.owner();
    let (other, gone) = ((owner + 1) % 3, cluster.nodes[owner].url.clone());
    cluster.nodes[owner].kill();
    let (status, answer) = seal(&cluster, other);
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(status == 503 && (message.contains(&gone) || message.contains("are on no node")), "{answer}");
}

/// Signs browsers in with codes of another node: each code once, whichever nodes are asked at once.
fn sign_in(cluster: &Cluster) {
    for turn in 0..3 {
        cluster.wait_until_ready();
        let made = cluster.ask(turn, "POST", "/session/codes", &cluster.token, Some(&json!({}))).unwrap();
        assert_eq!(made.0, 201, "{made:?}");
        let code = json!({"code": made.1["code"]});
        let begin = |node: usize| cluster.nodes[node].send("POST", "/session", ("x-request-id", "a"), Some(&code)).unwrap().0;
        let mut statuses = std::thread::scope(|scope| {
            let asked: Vec<_> = (0..3).map(|node| scope.spawn(move || begin(node))).collect();
            asked.into_iter().map(|asked| asked.join().unwrap()).collect::<Vec<_>>()
        });
        statuses.sort_unstable();
        assert_eq!(statuses, [204, 401, 401]);
        assert_eq!(begin((turn + 1) % 3), 401, "it was used");
    }
    let wrong = json!({"code": format!("lc_{}", "0".repeat(32))});
    assert_eq!(cluster.nodes[0].send("POST", "/session", ("x-request-id", "a"), Some(&wrong)).unwrap().0, 401);
}

/// Has a node hand its partitions over by the command, and take some again after a minute.
fn drain_and_undo(cluster: &Cluster) {
    let node = &cluster.nodes[1];
    let drained = cluster.broker.run("drain", &node.dir, &[&node.id(), "--json"]);
    let shown: Value = serde_json::from_slice(&drained.stdout).unwrap_or_else(|_| panic!("{}", printed(&drained)));
    assert_eq!(shown, json!({"node": node.id(), "drains": true, "partitions": 0}));
    // It passes requests on.
    assert_eq!(cluster.wait_for_users(1), 30);
    let shown = printed(&cluster.broker.run("status", &node.dir, &[]));
    let line = format!("node {} at {} (version {}), is being drained, has", node.id(), node.url, env!("CARGO_PKG_VERSION"));
    assert!(shown.contains(&line), "{shown}");
    let undone = printed(&cluster.broker.run("drain", &node.dir, &[&node.url, "--undo"]));
    assert!(undone.contains("has 0 partitions, and takes more"), "{undone}");
    let unknown = cluster.broker.run("drain", &node.dir, &["nobody"]);
    assert!(
        !unknown.status.success() && printed(&unknown).contains("no node is \"nobody\"; known are: "),
        "{}",
        printed(&unknown)
    );
}

#[test]
fn a_node_that_is_stopped_while_it_joins_ends_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let Some(cluster) = Cluster::start(dir.path()) else { return };
    (0..3).for_each(|node| drop(cluster.ask(node, "GET", "/readyz", &cluster.token, None)));
    std::fs::create_dir_all(dir.path().join("n3/keys")).unwrap();
    std::fs::copy(dir.path().join("n0/keys/hash.key"), dir.path().join("n3/keys/hash.key")).unwrap();
    // Without the salt of the day, it would wait for that of the others first.
    cluster.broker.request("$JS.API.STREAM.DELETE.KV_hc_salts");
    let mut joining = Node::start(&cluster.broker, &dir.path().join("n3"));
    let began = Instant::now();
    joining.stop();
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}

#[test]
fn a_change_is_known_everywhere_once_it_is_answered() {
    let dir = tempfile::tempdir().unwrap();
    let Some(mut cluster) = Cluster::start(dir.path()) else { return };
    cluster.record(0, &cluster.public_key, "u0");
    (0..3).for_each(|node| assert_eq!(cluster.wait_for_users(node), 1));
    for turn in 0..20 {
        let at = |step: usize| (turn + step) % 3;
        // A project takes events at any node at once.
        let made = cluster.ask(at(0), "POST", "/projects", &cluster.token, Some(&json!({"name": format!("p{turn}")}))).unwrap();
        assert_eq!(made.0, 201, "{made:?}");
        let (key, id) = (made.1["public_key"].as_str().unwrap(), made.1["project_id"].as_str().unwrap());
        cluster.record(at(1), key, "a");
        assert_eq!(cluster.wait_for_users_of(at(2), id), 1);
        // It is unknown at any node once it is deleted.
        let deleted = cluster.ask(at(turn / 3), "DELETE", &format!("/projects/{id}"), &cluster.token, None).unwrap();
        assert_eq!(deleted.0, 204, "{deleted:?}");
        for node in 0..3 {
            let shown = cluster.ask(node, "GET", &format!("/projects/{id}"), &cluster.token, None).unwrap();
            assert_eq!(shown.0, 404, "node {node}: {shown:?}");
            let path = format!("/projects/{id}/analytics/retention?interval=week");
            let asked = cluster.ask(node, "GET", &path, &cluster.token, None).unwrap();
            assert_eq!(asked.0, 404, "node {node}: {asked:?}");
            let sent =
                cluster.nodes[node].send("POST", "/i", ("x-service-pk", key), Some(&json!({"name": "order", "user_id": "b"})));
            assert!(sent.as_ref().is_some_and(|sent| (400..500).contains(&sent.0)), "node {node}: {sent:?}");
        }
        // A token is valid at any node once it is made, and at none once it is revoked.
        let new = json!({"name": format!("t{turn}"), "role": "owner", "scopes": ["analytics:read"]});
        let made = cluster.ask(at(1), "POST", "/api-tokens", &cluster.token, Some(&new)).unwrap();
        assert_eq!(made.0, 201, "{made:?}");
        let (token, id) = (made.1["token"].as_str().unwrap(), made.1["token_id"].as_str().unwrap());
        let path = format!("/projects/{}/analytics/retention?interval=week", cluster.project);
        let status = |node| cluster.ask(node, "GET", &path, token, None).unwrap().0;
        (0..3).for_each(|node| assert!(matches!(status(node), 200 | 503), "node {node}: {}", status(node)));
        let revoked = cluster.ask(at(2), "DELETE", &format!("/api-tokens/{id}"), &cluster.token, None).unwrap();
        assert_eq!(revoked.0, 204, "{revoked:?}");
        (0..3).for_each(|node| assert_eq!(status(node), 401, "node {node}"));
    }
    sign_in(&cluster);
    webhooks(&cluster);
    // Without brokers, a node soon knows nothing for certain, and says so.
    cluster.broker.kill();
    let began = Instant::now();
    for node in 0..3 {
        for path in [
            "/readyz".to_owned(),
            "/projects".to_owned(),
            format!("/projects/{}/analytics/retention?interval=week", cluster.project),
        ] {
            while cluster.ask(node, "GET", &path, &cluster.token, None).unwrap().0 != 503 {
                assert!(began.elapsed() < Duration::from_secs(15), "node {node} still answers {path}");
                std::thread::sleep(Duration::from_millis(100));
            }
        }
        assert_eq!(cluster.ask(node, "GET", "/healthz", &cluster.token, None).unwrap().0, 200);
    }
}

/// Any node makes webhooks, shows and changes them, whoever sends.
fn webhooks(cluster: &Cluster) {
    let ask = |node: usize, method: &str, path: &str, body: Option<&Value>| {
        let answer = cluster.ask(node % 3, method, path, &cluster.token, body).unwrap();
        (answer.0, answer.1)
    };
    for node in 0..3 {
        let new = json!({"project_id": cluster.project, "url": "https://receiver.example/"});
        let made = ask(node, "POST", "/webhooks", Some(&new));
        assert_eq!(made.0, 201, "{made:?}");
        let path = format!("/webhooks/{}", made.1["id"].as_str().unwrap());
        for other in 0..3 {
            assert_eq!(ask(other, "GET", &path, None).0, 200);
            let deliveries = ask(other, "GET", &format!("{path}/deliveries"), None);
            assert_eq!((deliveries.0, &deliveries.1["deliveries"]), (200, &json!([])), "{deliveries:?}");
        }
        let paused = ask(node + 1, "PATCH", &path, Some(&json!({"status": "paused"})));
        assert_eq!((paused.0, paused.1["status"].as_str()), (200, Some("paused")), "{paused:?}");
        assert_eq!(ask(node + 2, "POST", &format!("{path}/rotate-secret"), Some(&json!({}))).0, 200);
        assert_eq!(ask(node + 2, "POST", &format!("{path}/replay"), Some(&json!({"from_position": 0}))).0, 202);
        let page = ask(node, "GET", "/webhooks", None);
        assert_eq!(page.1["webhooks"][0]["status"].as_str(), Some("paused"), "{page:?}");
        assert_eq!(ask(node + 1, "DELETE", &path, None).0, 204);
        assert!((0..3).all(|other| ask(other, "GET", &path, None).0 == 404));
    }
    // What does not exist is not there at any node.
    let unknown = json!({"project_id": "prj_AAAAAAAAAAA", "url": "https://receiver.example/"});
    (0..3).for_each(|node| assert_eq!(ask(node, "POST", "/webhooks", Some(&unknown)).0, 404));
}
