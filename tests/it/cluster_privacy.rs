//! Privacy requests through nodes of a cluster: any node takes and shows them, and one that is
//! killed is replaced.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use headcount_common::home_of;
use headcount_domain::OrganizationId;
use serde_json::{Value, json};

use crate::cluster_nodes::{Cluster, Node, PATIENCE};
use crate::privacy_exports::exported;
use crate::server::TestServer;
use crate::tenant::Tenant;

const PATH: &str = "/privacy-requests";
/// How many projects the organization has: they are on all nodes.
const PROJECTS: usize = 8;

/// What happened in a project: some of it is Ada's.
fn events(project: usize) -> Vec<Value> {
    let at = |minute: usize| format!("2025-03-{:02}T10:{minute:02}:00.000Z", project + 1);
    let (anonymous, id) = (format!("a{project}"), |minute: usize| format!("e{project}-{minute}"));
    let page = "https://shop.example/a?utm_source=news";
    vec![
        json!({"name": "pageview", "anonymous_id": anonymous, "url": page, "timestamp": at(0), "external_id": id(0)}),
        json!({"name": "click", "anonymous_id": anonymous, "timestamp": at(5), "external_id": id(5), "metadata": {"deep": [1]}}),
        json!({"name": "identify", "anonymous_id": anonymous, "user_id": "ada", "timestamp": at(10), "external_id": id(10),
               "metadata": {"email": "Ada@Acme.com", "plan": format!("p{project}")}}),
        json!({"name": "order", "user_id": "ada", "value": 5.25, "timestamp": at(15), "external_id": id(15),
               "group_type": "team", "group_id": "t-1"}),
        json!({"name": "refund", "user_id": "ada", "value": -1, "timestamp": at(20), "external_id": id(20), "group_id": "acme.com"}),
        json!({"name": "pageview", "user_id": "bob", "timestamp": at(25), "external_id": id(25)}),
    ]
}

/// The names of the projects of a cluster by their ids, and their public keys.
struct Projects {
    names: BTreeMap<String, String>,
    keys: Vec<String>,
}

/// Makes the projects, and records all events, each at another node.
fn with_ada(cluster: &Cluster) -> Projects {
    let mut projects =
        Projects { names: BTreeMap::from([(cluster.project.clone(), name(0))]), keys: vec![cluster.public_key.clone()] };
    for number in 1..PROJECTS {
        let made = answered(cluster, number % 3, "POST", "/projects", Some(&json!({"name": name(number)})));
        let text = |field: &str| made.1[field].as_str().unwrap().to_owned();
        projects.names.insert(text("project_id"), name(number));
        projects.keys.push(text("public_key"));
    }
    for (number, key) in projects.keys.iter().enumerate() {
        for (turn, event) in events(number).iter().enumerate() {
            let began = Instant::now();
            loop {
                match cluster.nodes[(number + turn) % 3].send("POST", "/i", ("x-service-pk", key), Some(event)) {
                    Some((202, _)) => break,
                    Some((500 | 503, _)) | None if began.elapsed() < PATIENCE => {}
                    other => panic!("{event}: {other:?}"),
                }
                std::thread::sleep(Duration::from_millis(50));
            }
        }
    }
    projects
}

fn name(project: usize) -> String {
    format!("p{project}")
}

/// The answer of a node, once it is no refusal of the moment.
fn answered(cluster: &Cluster, node: usize, method: &str, path: &str, body: Option<&Value>) -> (u16, Value) {
    let began = Instant::now();
    loop {
        match cluster.ask(node, method, path, &cluster.token, body) {
            Some((503, _)) | None if began.elapsed() < PATIENCE => std::thread::sleep(Duration::from_millis(50)),
            Some(answer) => return answer,
            None => panic!("node {node} does not answer {method} {path}"),
        }
    }
}

fn made(cluster: &Cluster, node: usize, subject: &Value) -> Value {
    let (status, made) = answered(cluster, node, "POST", PATH, Some(subject));
    assert_eq!(status, 201, "{made}");
    made
}

fn path_of(request: &Value) -> String {
    format!("{PATH}/{}", request["id"].as_str().unwrap())
}

/// A request once it is completed, as a node shows it.
fn completed(cluster: &Cluster, node: usize, request: &Value) -> Value {
    let began = Instant::now();
    loop {
        let (status, shown) = answered(cluster, node, "GET", &path_of(request), None);
        assert_eq!(status, 200, "{shown}");
        if shown["status"] == "completed" {
            return shown;
        }
        assert!(shown["status"] != "failed" && began.elapsed() < PATIENCE, "{shown}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn downloaded(cluster: &Cluster, node: usize, request: &Value) -> Value {
    let (status, artifact) = answered(cluster, node, "GET", &format!("{}/download", path_of(request)), None);
    assert_eq!(status, 200, "{artifact}");
    artifact
}

/// An artifact without what differs between installations.
fn comparable(artifact: &Value, names: &BTreeMap<String, String>) -> Value {
    match artifact {
        Value::Array(items) => items.iter().map(|item| comparable(item, names)).collect(),
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(name, _)| {
                !["event_id", "position", "received_at", "generated_at", "identity_id", "company_id"].contains(&name.as_str())
            });
            let kept = kept.map(|(name, value)| match value.as_str().and_then(|text| names.get(text)) {
                Some(project) => (name.clone(), json!(project)),
                None => (name.clone(), comparable(value, names)),
            });
            Value::Object(kept.collect())
        }
        other => other.clone(),
    }
}

/// The same, with what may come in any order in one.
fn sorted(artifact: &Value, names: &BTreeMap<String, String>) -> Value {
    let mut artifact = comparable(artifact, names);
    for identity in artifact["identities"].as_array_mut().unwrap() {
        // Those of one time are by project id.
        identity["anonymous_ids"].as_array_mut().unwrap().sort_by_key(ToString::to_string);
    }
    artifact["identity"] = artifact["identities"][0].clone();
    artifact
}

/// What one process exports of the same events.
fn expected() -> Value {
    let tenant = Tenant::on(&std::sync::Arc::new(TestServer::start()));
    let mut names = BTreeMap::from([(tenant.project.clone(), name(0))]);
    let mut keys = vec![tenant.key.clone()];
    for number in 1..PROJECTS {
        let project = tenant.project(&json!({"name": name(number)}));
        names.insert(project.id, name(number));
        keys.push(project.key);
    }
    for (number, key) in keys.iter().enumerate() {
        for event in events(number) {
            let sent = tenant.send(crate::client::Call::post("/i").key(key).json(&event));
            assert_eq!(sent.status, 202, "{}", sent.text());
        }
    }
    sorted(&exported(&tenant, json!({"email": "ada@acme.com"})), &names)
}

/// The files of exports in the data directory of a node.
fn pieces(node: &Node) -> Vec<PathBuf> {
    let listed = std::fs::read_dir(node.dir.join("exports")).unwrap();
    listed.map(|entry| entry.unwrap().path()).collect()
}

/// The node that looks after the organization's requests.
fn home(cluster: &Cluster) -> usize {
    let organization: OrganizationId = cluster.organization.parse().unwrap();
    let partition = usize::from(home_of(organization));
    let began = Instant::now();
    loop {
        let shown = cluster.broker.run("status", &cluster.nodes[0].dir, &["--json"]);
        let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
        let owner = shown["partitions"][partition]["node"].as_str().unwrap_or_default().to_owned();
        if let Some(node) = cluster.nodes.iter().position(|node| node.id() == owner) {
            return node;
        }
        assert!(began.elapsed() < PATIENCE, "{shown}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Waits until a node has no file of an export.
fn wait_until_clean(node: &Node) {
    let began = Instant::now();
    while !pieces(node).is_empty() {
        assert!(began.elapsed() < PATIENCE, "{:?}", pieces(node));
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn any_node_exports_what_one_process_does() {
    let dir = tempfile::tempdir().unwrap();
    let Some(cluster) = Cluster::start(dir.path()) else { return };
    let projects = with_ada(&cluster);
    let expected = expected();
    assert_eq!(expected["events"].as_array().unwrap().len(), 5 * PROJECTS);
    let home = home(&cluster);
    // Made through each node, that which looks after it and those that do not.
    let requests: Vec<Value> =
        (0..3).map(|node| made(&cluster, node, &json!({"type": "export", "email": "ada@acme.com"}))).collect();
    for (number, request) in requests.iter().enumerate() {
        let shown: Vec<Value> = (0..3).map(|node| completed(&cluster, (number + node) % 3, request)).collect();
        assert!(shown.windows(2).all(|two| two[0] == two[1]), "{shown:?}");
        let artifacts: Vec<Value> = (0..3).map(|node| downloaded(&cluster, node, request)).collect();
        assert!(artifacts.windows(2).all(|two| two[0] == two[1]));
        assert_eq!(sorted(&artifacts[0], &projects.names), expected);
    }
    // A list is the same wherever it is asked for.
    let listed: Vec<Value> = (0..3).map(|node| answered(&cluster, node, "GET", PATH, None).1).collect();
    assert!(listed.windows(2).all(|two| two[0] == two[1]), "{listed:?}");
    assert_eq!(listed[0]["privacy_requests"].as_array().unwrap().len(), 3);
    // What is personal lies on one machine.
    for (number, node) in cluster.nodes.iter().enumerate() {
        assert_eq!(pieces(node).len(), if number == home { 3 } else { 0 }, "node {number}");
    }
    refused(&cluster, &requests[0]);
}

/// Nobody gets anything whose token is revoked, or who asks for what is not there.
fn refused(cluster: &Cluster, request: &Value) {
    let new = json!({"name": "t", "role": "owner", "scopes": ["privacy_requests:read", "privacy_requests:write"]});
    let token = answered(cluster, 0, "POST", "/api-tokens", Some(&new)).1;
    let secret = token["token"].as_str().unwrap();
    let statuses = || -> Vec<u16> {
        let paths = [PATH.to_owned(), path_of(request), format!("{}/download", path_of(request))];
        let asked = (0..3).flat_map(|node| paths.iter().map(move |path| (node, path.clone())));
        asked.map(|(node, path)| cluster.ask(node, "GET", &path, secret, None).unwrap().0).collect()
    };
    assert_eq!(statuses(), [200; 9]);
    let revoked = answered(cluster, 1, "DELETE", &format!("/api-tokens/{}", token["token_id"].as_str().unwrap()), None);
    assert_eq!(revoked.0, 204, "{revoked:?}");
    assert_eq!(statuses(), [401; 9]);
    for node in 0..3 {
        let made = cluster.ask(node, "POST", PATH, secret, Some(&json!({"type": "export", "user_id": "ada"}))).unwrap();
        assert_eq!(made.0, 401, "{made:?}");
        let unknown = answered(cluster, node, "POST", PATH, Some(&json!({"type": "export", "user_id": "nobody"})));
        assert_eq!(unknown.0, 404, "{unknown:?}");
    }
}

#[test]
fn an_erasure_withdraws_exports_wherever_they_are() {
    let (dir, files) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let place = format!("file://{}", files.path().display());
    let settings = ["--log", "warn", "--files", &place, "--log-kept", "1s"];
    let Some(cluster) = Cluster::start_with(dir.path(), &settings) else { return };
    with_ada(&cluster);
    let home = home(&cluster);
    let export = made(&cluster, home, &json!({"type": "export", "user_id": "ada"}));
    completed(&cluster, home, &export);
    let erasure = made(&cluster, (home + 1) % 3, &json!({"type": "erasure", "email": "ada@acme.com"}));
    let path = format!("{}/download", path_of(&export));
    for node in 0..3 {
        let began = Instant::now();
        while answered(&cluster, node, "GET", &path, None).0 != 410 {
            assert!(began.elapsed() < PATIENCE, "node {node} still gives it out");
            std::thread::sleep(Duration::from_millis(50));
        }
        let again = answered(&cluster, node, "POST", PATH, Some(&json!({"type": "export", "user_id": "ada"})));
        assert_eq!(again.0, 404, "{again:?}");
    }
    cluster.nodes.iter().for_each(wait_until_clean);
    // Its events leave the streams with others that are sealed, which takes up to ten minutes by
    // itself.
    let began = Instant::now();
    let shown = loop {
        let operator = std::fs::read_to_string(cluster.nodes[home].dir.join("operator-token")).unwrap();
        let _sealed = cluster.ask(home, "POST", "/admin/archive/seal", operator.trim(), None);
        let shown = answered(&cluster, (home + 2) % 3, "GET", &path_of(&erasure), None).1;
        if shown["status"] == "completed" {
            break shown;
        }
        assert!(began.elapsed() < 2 * PATIENCE, "{shown}");
        std::thread::sleep(Duration::from_secs(1));
    };
    assert_eq!(shown["subject"], json!({"email": "[erased]"}));
    let shown = answered(&cluster, home, "GET", &path_of(&export), None).1;
    assert_eq!(shown["subject"], json!({"user_id": "[erased]"}));
    made(&cluster, (home + 2) % 3, &json!({"type": "opt_in", "user_id": "ada"}));
}

#[test]
fn another_node_goes_on_when_the_home_is_killed() {
    let dir = tempfile::tempdir().unwrap();
    let Some(mut cluster) = Cluster::start(dir.path()) else { return };
    let projects = with_ada(&cluster);
    let expected = expected();
    let subject = json!({"type": "export", "user_id": "ada"});
    let done = made(&cluster, 0, &subject);
    let before = completed(&cluster, 1, &done);
    let first_home = home(&cluster);
    // One is completed, and one has just been made.
    let begun = made(&cluster, (first_home + 1) % 3, &subject);
    cluster.nodes[first_home].kill();
    let other = (first_home + 1) % 3;
    let killed = Instant::now();
    for request in [&done, &begun] {
        let shown = completed(&cluster, other, request);
        let artifact = sorted(&downloaded(&cluster, other, request), &projects.names);
        assert_eq!((&artifact["events"], &artifact["identities"]), (&expected["events"], &expected["identities"]));
        assert_eq!(shown["id"], request["id"]);
    }
    println!("both can be downloaded {:.1} s after the kill", killed.elapsed().as_secs_f64());
    assert_eq!(completed(&cluster, other, &done)["expires_at"], before["expires_at"], "it is kept for no longer");
    assert!(!pieces(&cluster.nodes[first_home]).is_empty(), "its disk has what it had");
    let again = Node::start(&cluster.broker, &cluster.nodes[first_home].dir);
    cluster.nodes[first_home] = again;
    wait_until_clean(&cluster.nodes[first_home]);
    // The next home stops in good order.
    let second_home = home(&cluster);
    assert_ne!(second_home, first_home);
    cluster.nodes[second_home].stop();
    let artifact = sorted(&downloaded(&cluster, first_home, &begun), &projects.names);
    assert_eq!(artifact["events"], expected["events"]);
    let again = Node::start(&cluster.broker, &cluster.nodes[second_home].dir);
    cluster.nodes[second_home] = again;
    wait_until_clean(&cluster.nodes[second_home]);
}
