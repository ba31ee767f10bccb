//! A server for the tests, in a process of its own: the program `headcount` beside this one.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use serde_json::Value;
use tempfile::TempDir;
use ureq::AsSendBody;
use ureq::http::{Request, request};

/// Small, so that it starts quickly, and quiet.
const SETTINGS: [&str; 8] = ["--listen", "127.0.0.1:0", "--shards", "2", "--workers", "1", "--log", "error"];

/// A server on an empty data directory.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) root_token: String,
    child: Child,
    _dir: TempDir,
}

/// An organization of its own on the server that the tests share.
pub(crate) struct Tenant {
    pub(crate) server: Arc<Server>,
    pub(crate) project: String,
    pub(crate) key: String,
    pub(crate) token: String,
}

/// A program without the settings of the test's own environment.
pub(crate) fn command(program: impl Into<PathBuf>) -> Command {
    let mut command = Command::new(program.into());
    for (variable, _) in std::env::vars_os().filter(|(variable, _)| variable.to_string_lossy().starts_with("HEADCOUNT_")) {
        command.env_remove(variable);
    }
    command
}

fn text(value: &Value, name: &str) -> String {
    value[name].as_str().unwrap_or_else(|| panic!("no text {name} in {value}")).to_owned()
}

impl Server {
    /// The server that tests share. It runs as long as one of them uses it.
    pub(crate) fn shared() -> Arc<Server> {
        static SHARED: Mutex<Weak<Server>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        shared.upgrade().unwrap_or_else(|| {
            let server = Arc::new(Server::start());
            *shared = Arc::downgrade(&server);
            server
        })
    }

    fn start() -> Server {
        // This program is in `deps`, below it.
        let program = std::env::current_exe().unwrap().ancestors().nth(2).unwrap().join("headcount");
        assert!(program.exists(), "{} is not there: run `cargo build --workspace --bin headcount`", program.display());
        let dir = tempfile::tempdir().unwrap();
        let data_dir = ["--data-dir".as_ref(), dir.path()];
        let made = command(&program).args(["init", "--json"]).args(data_dir).output().unwrap();
        assert!(made.status.success(), "{made:?}");
        let mut serve = command(&program);
        serve.arg("serve").args(data_dir).args(SETTINGS).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = serve.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let listening = lines.find_map(|line| line.strip_prefix("listening on http://").map(str::to_owned));
        // It goes on printing, and stops if nobody reads.
        std::thread::spawn(move || lines.for_each(drop));
        let address = listening.expect("the server started").parse().unwrap();
        Server { address, root_token: text(&serde_json::from_slice(&made.stdout).unwrap(), "root_token"), child, _dir: dir }
    }

    /// Asks for a path.
    pub(crate) fn get(&self, path: &str, token: &str) -> Value {
        Self::send(Request::get(self.url(path)), token, ())
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Sends a request, which is answered with success.
    fn send(request: request::Builder, token: &str, body: impl AsSendBody) -> Value {
        let request = request.header("authorization", format!("Bearer {token}")).header("content-type", "application/json");
        let answer = ureq::run(request.body(body).unwrap()).unwrap();
        serde_json::from_reader(answer.into_body().into_reader()).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Tenant {
    /// A new organization.
    pub(crate) fn new() -> Tenant {
        let server = Server::shared();
        let request = Request::post(server.url("/organizations"));
        let made = Server::send(request, &server.root_token, "{\"name\": \"tenant\"}");
        Tenant { project: text(&made, "project_id"), key: text(&made, "public_key"), token: text(&made, "api_token"), server }
    }

    /// Changes settings of the project.
    pub(crate) fn change_project(&self, settings: &Value) {
        let request = Request::patch(self.server.url(&format!("/projects/{}", self.project)));
        Server::send(request, &self.token, settings.to_string());
    }
}
