//! Making a cluster of a real broker. Without a `nats-server`, this test says so, and does nothing;
//! with `HEADCOUNT_REQUIRE_CLUSTER` it fails instead.

use std::fs::File;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::broker::{Broker, printed};
use crate::cluster_nodes::PATIENCE;
use crate::server::command;

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
            "cluster {incarnation}: 64 partitions, replicas: 1\nlevels: log 1, control 1, files 1, nodes 1, fold 1\n1 control records\n\
             0 messages in the partitions, 0 bytes\n64 partitions have no node\n"
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
    std::fs::remove_file(data.join("node")).unwrap();
    let refused = broker.run("init", &other, &size);
    assert!(
        !refused.status.success() && printed(&refused).contains("use the data directory of the earlier attempt"),
        "{}",
        printed(&refused)
    );
    let again = broker.run("init", &data, &[&size[..], &["--json"]].concat());
    assert!(again.status.success(), "{}", printed(&again));
    let again: Value = serde_json::from_slice(&again.stdout).unwrap();
    assert!(printed(&made).contains(again["api_token"].as_str().unwrap()), "the same keys");
    let shown: Value = serde_json::from_slice(&broker.run("status", &other, &["--json"]).stdout).unwrap();
    assert_eq!(shown["control_records"], 1);
}

#[test]
fn a_node_that_reaches_no_broker_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let mut serve = command("serve", dir.path());
    // Nobody listens at this port.
    serve.args(["--listen", "127.0.0.1:0", "--cluster", "nats://127.0.0.1:1"]);
    let ended = serve.output().unwrap();
    assert!(!ended.status.success(), "{}", printed(&ended));
    assert!(printed(&ended).contains("Connection refused") && !printed(&ended).contains("panicked"), "{}", printed(&ended));
}

#[test]
fn a_node_that_can_not_reach_its_files_says_so_when_it_starts() {
    let dir = tempfile::tempdir().unwrap();
    let Some(broker) = Broker::start(dir.path()) else { return };
    let (data, log) = (dir.path().join("data"), dir.path().join("log"));
    let made = broker.run("init", &data, &["--replicas", "1", "--max-bytes", "8MiB"]);
    assert!(made.status.success(), "{}", printed(&made));
    let mut serve = command("serve", &data);
    serve.args(["--listen", "127.0.0.1:0", "--cluster", &broker.address, "--shards", "1", "--workers", "1"]);
    serve.args(["--files", "s3://files/some", "--log", "warn"]);
    // Nobody listens at this port.
    serve.envs([("AWS_ENDPOINT", "http://127.0.0.1:1"), ("AWS_ALLOW_HTTP", "true"), ("AWS_REGION", "us-east-1")]);
    serve.envs([("AWS_ACCESS_KEY_ID", "key"), ("AWS_SECRET_ACCESS_KEY", "secret")]);
    let mut node = serve.stdout(Stdio::null()).stderr(File::create(&log).unwrap()).spawn().unwrap();
    let began = Instant::now();
    let has_said = || std::fs::read_to_string(&log).unwrap().contains("files can't be written or read");
    while !has_said() && began.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(50));
    }
    let is_running = node.try_wait().unwrap().is_none();
    node.kill().unwrap();
    node.wait().unwrap();
    assert!(has_said() && is_running, "{}", std::fs::read_to_string(&log).unwrap());
}
