//! Making a cluster of a real broker. Without a `nats-server`, this test says so, and does nothing; with `HEADCOUNT_REQUIRE_CLUSTER` it fails instead.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::server::command;

/// A broker that ends with the value.
struct Broker {
    process: Child,
    address: String,
}

impl Broker {
    /// Starts a broker with its data in `dir`. `None`: there is no program.
    fn start(dir: &Path) -> Option<Self> {
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
        let broker = Self { process: command.spawn().unwrap(), address: format!("nats://{address}") };
        let began = Instant::now();
        while TcpStream::connect(address).is_err() {
            assert!(began.elapsed() < Duration::from_secs(30), "the broker is not ready");
            std::thread::sleep(Duration::from_millis(50));
        }
        Some(broker)
    }

    /// Runs a command of `cluster`.
    fn run(&self, name: &str, dir: &Path, arguments: &[&str]) -> Output {
        command("cluster", dir).args([name, &self.address]).args(arguments).output().unwrap()
    }

    /// Sends an empty request, and waits for its answer.
    fn request(&self, subject: &str) {
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

fn printed(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn a_cluster_is_made_and_shown() {
    let dir = tempfile::tempdir().unwrap();
    let Some(broker) = Broker::start(dir.path()) else { return };
    let (data, other) = (dir.path().join("data"), dir.path().join("other"));
    let size = ["--replicas", "1", "--max-bytes", "8MiB"];
    let status = broker.run("status", &data, &[]);
    assert!(!status.status.success() && printed(&status).contains("headcount cluster init"), "{}", printed(&status));
    let made = broker.run("init", &data, &[&size[..], &["--name", "Acme", "--currency", "EUR", "--json"]].concat());
    assert!(made.status.success(), "{}", printed(&made));
    let made: Value = serde_json::from_slice(&made.stdout).unwrap();
    let saved: Value = serde_json::from_slice(&std::fs::read(data.join("credentials.json")).unwrap()).unwrap();
    assert_eq!((&made["api_token"], &made["organization_id"]), (&saved["api_token"], &saved["organization_id"]));
    let format = std::fs::read_to_string(data.join("FORMAT")).unwrap();
    let incarnation = made["cluster"]["incarnation"].as_str().unwrap();
    assert!(format.contains(incarnation), "{format}");
    for dir in [&data, &other] {
        let refused = broker.run("init", dir, &size);
        assert!(!refused.status.success() && printed(&refused).contains("have a cluster already"), "{}", printed(&refused));
    }
    let shown = String::from_utf8(broker.run("status", &other, &[]).stdout).unwrap();
    assert_eq!(
        shown,
        format!(
            "cluster {incarnation}: 64 partitions, replicas: 1\n1 control records\n\
             0 messages in the partitions, 0 bytes\nno node holds 64 partitions\n"
        )
    );
    let shown: Value = serde_json::from_slice(&broker.run("status", &other, &["--json"]).stdout).unwrap();
    assert_eq!((&shown["cluster"], shown["partitions"].as_array().unwrap().len()), (&made["cluster"], 64));
    assert!(!other.exists(), "asking makes no directory");
}

#[test]
fn an_organization_whose_keys_were_saved_elsewhere_stops_the_command() {
    let dir = tempfile::tempdir().unwrap();
    let Some(broker) = Broker::start(dir.path()) else { return };
    let (data, other) = (dir.path().join("data"), dir.path().join("other"));
    let size = ["--replicas", "1", "--max-bytes", "8MiB"];
    let made = broker.run("init", &data, &size);
    assert!(made.status.success() && printed(&made).contains("keys/hash.key"), "{}", printed(&made));
    // As if the attempt had been killed before its end.
    broker.request("$JS.API.STREAM.DELETE.KV_hc");
    let refused = broker.run("init", &other, &size);
    assert!(!refused.status.success() && printed(&refused).contains("go on with the data directory"), "{}", printed(&refused));
    let again = broker.run("init", &data, &[&size[..], &["--json"]].concat());
    assert!(again.status.success(), "{}", printed(&again));
    let again: Value = serde_json::from_slice(&again.stdout).unwrap();
    assert!(printed(&made).contains(again["api_token"].as_str().unwrap()), "the same keys");
    let shown: Value = serde_json::from_slice(&broker.run("status", &other, &["--json"]).stdout).unwrap();
    assert_eq!(shown["control_records"], 1);
}
