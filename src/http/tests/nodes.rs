//! Two nodes that share an organization, and owners that only pretend, for the tests of requests
//! that travel.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use headcount_actors::{Common, Engine, EngineConfig};
use headcount_common::{Owners, PARTITIONS, partition_of};
use headcount_control::NewProject;
use headcount_domain::ProjectId;
use serde_json::{Value, json};
use tempfile::TempDir;
use ureq::http::{Request, Response, request};

use crate::server::{HttpConfig, RunningServer, Server};

/// How long anything may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A project.
#[derive(Debug, Clone)]
pub(crate) struct Keys {
    pub(crate) id: ProjectId,
    pub(crate) public_key: String,
}

/// A node.
pub(crate) struct Node {
    pub(crate) engine: Engine,
    server: Option<RunningServer>,
    pub(crate) url: String,
    pub(crate) owners: Arc<Owners>,
    _dir: TempDir,
}

/// Two nodes.
pub(crate) struct Nodes {
    /// The token of the organization's owner.
    pub(crate) token: String,
    /// The node that requests reach.
    pub(crate) first: Node,
    /// The other node.
    pub(crate) other: Node,
    /// The project of the first node.
    pub(crate) here: Keys,
    /// The project of the other node.
    pub(crate) there: Keys,
}

impl Node {
    async fn start(dir: TempDir, change: impl FnOnce(&mut HttpConfig)) -> Self {
        let owners = Arc::new(Owners::unknown());
        owners.live(Duration::MAX);
        let config = EngineConfig { shards: 1, min_free_bytes: 0, ..EngineConfig::new(dir.path()) };
        let common = Common { owners: Arc::clone(&owners), ..Common::local(&config).unwrap() };
        let engine = actix_web::rt::task::spawn_blocking(move || Engine::open_on(config, common).unwrap()).await.unwrap();
        let mut http = HttpConfig { workers: 1, ..HttpConfig::new("127.0.0.1:0") };
        change(&mut http);
        let server = Server::start(engine.clone(), http).unwrap();
        Self { engine, url: server.url(), server: Some(server), owners, _dir: dir }
    }

    /// Takes the node for the owner of a project.
    pub(crate) fn own(&self, project: &Keys) {
        self.owners.hold(partition_of(project.id), Duration::MAX);
    }

    /// Takes whoever answers at `url` for the owner of a project.
    pub(crate) fn look_for(&self, project: &Keys, url: &str) {
        self.owners.note_elsewhere(partition_of(project.id), Some(url.into()));
    }

    /// Accepts no more connections.
    pub(crate) async fn stop(&mut self) {
        if let Some(server) = self.server.take() {
            server.stop().await.unwrap();
        }
    }

    /// The figure of a line of `/metrics`.
    pub(crate) async fn metric(&self, name: &str) -> u64 {
        let text = text(get(&format!("{}/metrics", self.url))).await.1;
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("{name} is not in {text}")).parse().unwrap()
    }
}

impl Nodes {
    pub(crate) async fn start() -> Self {
        Self::start_with(|_| {}, |_| {}).await
    }

    /// The same, with other settings of the first and the other node.
    pub(crate) async fn start_with(first: impl FnOnce(&mut HttpConfig), other: impl FnOnce(&mut HttpConfig)) -> Self {
        let (first_dir, other_dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let config = EngineConfig { shards: 1, min_free_bytes: 0, ..EngineConfig::new(first_dir.path()) };
        let engine = Engine::open(config).unwrap();
        let (registry, now) = (engine.registry(), engine.clock().now());
        let initial = registry.initialize(now).unwrap();
        let here = Keys { id: initial.project_id, public_key: initial.public_key };
        let there = loop {
            let new = NewProject { name: "there".to_owned(), ..NewProject::default() };
            let project = registry.create_project(initial.organization_id, new, now).unwrap();
            if partition_of(project.id) != partition_of(here.id) {
                let public_key = project.public_keys[0].clone();
                break Keys { id: project.id, public_key };
            }
        };
        let token = initial.api_token.expose().to_owned();
        engine.close().await;
        drop(engine);
        copy(first_dir.path(), other_dir.path());
        let (first, other) = (Node::start(first_dir, first).await, Node::start(other_dir, other).await);
        for partition in 0..PARTITIONS {
            let is_there = partition == partition_of(there.id);
            let (owner, elsewhere) = if is_there { (&other, &first) } else { (&first, &other) };
            owner.owners.hold(partition, Duration::MAX);
            elsewhere.owners.note_elsewhere(partition, Some(owner.url.as_str().into()));
        }
        Self { token, first, other, here, there }
    }

    /// A request to the first node about the project of the other, by its path after `/projects/{project_id}`.
    pub(crate) fn about_there(&self, method: &str, rest: &str) -> request::Builder {
        let uri = format!("{}/projects/{}{rest}", self.first.url, self.there.id);
        Request::builder().method(method).uri(uri).header("authorization", format!("Bearer {}", self.token))
    }

    /// The same request to the other node.
    pub(crate) fn at_owner(&self, method: &str, rest: &str) -> request::Builder {
        let uri = format!("{}/projects/{}{rest}", self.other.url, self.there.id);
        Request::builder().method(method).uri(uri).header("authorization", format!("Bearer {}", self.token))
    }

    /// How many events of the other's project have this name, as the first node answers.
    pub(crate) async fn count(&self, name: &str) -> u64 {
        let question = json!({"start_date": "2020-01-01", "group_by": "name"});
        let request = self.about_there("POST", "/analytics/aggregate").header("content-type", "application/json");
        let (response, body) = text(request.body(question.to_string()).unwrap()).await;
        assert_eq!(response.status(), 200, "{body}");
        let answer: Value = serde_json::from_str(&body).unwrap();
        let rows = answer["rows"].as_array().unwrap_or_else(|| panic!("{answer}"));
        rows.iter().find(|row| row["value"] == name).map_or(0, |row| row["count"].as_u64().unwrap())
    }
}

pub(crate) fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

pub(crate) fn get(uri: &str) -> Request<String> {
    Request::get(uri).body(String::new()).unwrap()
}

/// Sends a request from a thread of its own, and hands over the answer as it arrives.
pub(crate) async fn send(request: Request<String>) -> Response<ureq::Body> {
    let send = move || {
        let config = ureq::Agent::config_builder().http_status_as_error(false).max_redirects(0).timeout_global(Some(PATIENCE));
        let agent: ureq::Agent = config.build().into();
        let (head, body) = request.into_parts();
        if body.is_empty() && head.method != "POST" {
            return agent.run(Request::from_parts(head, ())).unwrap();
        }
        agent.run(Request::from_parts(head, body)).unwrap()
    };
    actix_web::rt::task::spawn_blocking(send).await.unwrap()
}

/// The same, with the whole answer.
pub(crate) async fn bytes(request: Request<String>) -> (Response<()>, Vec<u8>) {
    let (head, body) = send(request).await.into_parts();
    let read = move || {
        let mut bytes = Vec::new();
        body.into_reader().read_to_end(&mut bytes).unwrap();
        bytes
    };
    (Response::from_parts(head, ()), actix_web::rt::task::spawn_blocking(read).await.unwrap())
}

pub(crate) async fn text(request: Request<String>) -> (Response<()>, String) {
    let (head, body) = bytes(request).await;
    (head, String::from_utf8(body).unwrap())
}

/// Status and code of a refusal.
pub(crate) async fn refusal(request: Request<String>) -> (u16, String) {
    let (head, body) = text(request).await;
    let answer: Value = serde_json::from_str(&body).unwrap_or_else(|_| panic!("{head:?} {body}"));
    (head.status().as_u16(), answer["error"]["code"].as_str().unwrap_or_default().to_owned())
}

/// Who pretends to be the owner: answers each request on a connection, until the script ends the connection.
pub(crate) struct FakeOwner {
    pub(crate) url: String,
    /// The heads of the requests so far, and their bodies.
    requests: Arc<Mutex<Vec<String>>>,
    connections: Arc<AtomicUsize>,
}

impl FakeOwner {
    /// Answers by `script`, which gets the connection and the number of its request, from 0. Whether the connection goes on.
    pub(crate) fn start(script: impl Fn(&mut TcpStream, usize) -> bool + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (requests, connections) = (Arc::<Mutex<Vec<String>>>::default(), Arc::<AtomicUsize>::default());
        let (seen, counted, script) = (Arc::clone(&requests), Arc::clone(&connections), Arc::new(script));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                counted.fetch_add(1, Ordering::Relaxed);
                let (seen, script, mut stream) = (Arc::clone(&seen), Arc::clone(&script), stream.unwrap());
                std::thread::spawn(move || {
                    let mut reader = BufReader::new(stream.try_clone().unwrap());
                    let mut number = 0;
                    while let Some(request) = read_request(&mut reader) {
                        seen.lock().unwrap().push(request);
                        if !script(&mut stream, number) {
                            break;
                        }
                        number += 1;
                    }
                });
            }
        });
        Self { url, requests, connections }
    }

    /// Answers each request with this, and keeps the connection.
    pub(crate) fn answering(answer: &'static str) -> Self {
        Self::start(move |stream, _| stream.write_all(answer.as_bytes()).is_ok())
    }

    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }
}

/// Reads a request whose body has a length.
fn read_request(reader: &mut impl BufRead) -> Option<String> {
    let (mut request, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line == "\r\n" {
            break;
        }
        request += &line;
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(request + &String::from_utf8_lossy(&body))
}
