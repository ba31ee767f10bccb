//! A broker on loopback.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::server::command;

/// A broker that ends with the value.
pub(crate) struct Broker {
    process: Child,
    command: Command,
    pub(crate) address: String,
}

impl Broker {
    /// Starts a broker with its data in `dir`. `None`: there is no program.
    pub(crate) fn start(dir: &Path) -> Option<Self> {
        let Some(program) = std::env::var_os("HEADCOUNT_NATS_SERVER").map(PathBuf::from) else {
            assert!(std::env::var_os("HEADCOUNT_REQUIRE_CLUSTER").is_none(), "no nats-server: set HEADCOUNT_NATS_SERVER");
            eprintln!("SKIPPED cluster: no nats-server");
            return None;
        };
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let config = format!(
            "listen: \"{address}\"\nmax_payload: 8MB\njetstream {{ store_dir: \"{}\", max_file_store: 1GB }}\n",
            dir.display()
        );
        let file = dir.join("broker.conf");
        std::fs::write(&file, config).unwrap();
        let mut command = Command::new(program);
        command.arg("-c").arg(file).stdout(Stdio::null()).stderr(Stdio::null());
        let broker = Self { process: command.spawn().unwrap(), command, address: format!("nats://{address}") };
        broker.wait_until_ready();
        Some(broker)
    }

    fn wait_until_ready(&self) {
        let began = Instant::now();
        while TcpStream::connect(self.address.trim_start_matches("nats://")).is_err() {
            assert!(began.elapsed() < Duration::from_secs(30), "the broker is not ready");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Stops it in good order (SIGTERM), and starts it again.
    pub(crate) fn restart(&mut self) {
        assert!(Command::new("kill").arg(self.process.id().to_string()).status().unwrap().success());
        self.process.wait().unwrap();
        self.process = self.command.spawn().unwrap();
        self.wait_until_ready();
    }

    /// Runs a command of `cluster`.
    pub(crate) fn run(&self, name: &str, dir: &Path, arguments: &[&str]) -> Output {
        command("cluster", dir).args([name, &self.address]).args(arguments).output().unwrap()
    }

    /// Kills it.
    pub(crate) fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// The last message of a stream with this subject, in base 64.
    pub(crate) fn last_message(&self, stream: &str, subject: &str) -> String {
        let asked = format!("{{\"last_by_subj\":\"{subject}\"}}");
        let mut connection = TcpStream::connect(self.address.trim_start_matches("nats://")).unwrap();
        let length = asked.len();
        write!(
            connection,
            "CONNECT {{\"verbose\":false}}\r\nSUB answer 1\r\nPUB $JS.API.STREAM.MSG.GET.{stream} answer {length}\r\n{asked}\r\n"
        )
        .unwrap();
        let answered = BufReader::new(connection).lines().map_while(Result::ok).find(|line| line.starts_with('{')).unwrap();
        let answer: serde_json::Value = serde_json::from_str(&answered).unwrap();
        answer["message"]["data"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
    }

    /// Sends an empty request, and waits for its answer.
    pub(crate) fn request(&self, subject: &str) {
        let mut stream = TcpStream::connect(self.address.trim_start_matches("nats://")).unwrap();
        write!(stream, "CONNECT {{\"verbose\":false}}\r\nSUB answer 1\r\nPUB {subject} answer 0\r\n\r\n").unwrap();
        let answered = BufReader::new(stream).lines().map_while(Result::ok).find(|line| line.contains("\"success\""));
        assert!(answered.unwrap().contains("\"success\":true"));
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

pub(crate) fn printed(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}
