//! Runs a server on imported data.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

/// A running server, and the token that `init` saved in its directory. Dropping it kills the
/// process.
pub(super) struct Server {
    child: Child,
    url: String,
    token: String,
}

impl Server {
    pub(super) fn start(data_dir: &Path) -> Server {
        let saved = std::fs::read(data_dir.join("credentials.json")).unwrap();
        let saved: Value = serde_json::from_slice(&saved).unwrap();
        let token = saved["api_token"].as_str().unwrap_or_else(|| panic!("no token among {:?}", saved.as_object())).to_owned();
        let mut command = Command::new(env!("CARGO_BIN_EXE_headcount"));
        command.arg("serve").arg("--data-dir").arg(data_dir);
        command.args(["--listen", "127.0.0.1:0", "--min-free-bytes", "1048576"]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let url = lines.into_iter().find_map(|line| line.trim().strip_prefix("listening on ").map(str::to_owned));
        Server { url: url.unwrap(), token, child }
    }

    pub(super) fn get(&self, target: &str) -> Value {
        let request = ureq::get(format!("{}{target}", self.url)).header("authorization", format!("Bearer {}", self.token));
        let answer = request.call().unwrap().body_mut().read_to_string().unwrap();
        serde_json::from_str(&answer).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
