//! A cluster that is lost comes back from copies of its brokers and its files, as
//! `docs/CLUSTER_RUNBOOK.md` says.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::broker::Broker;
use crate::client::{Answer, Call, Connection};
use crate::cluster_nodes::{NAMES, Node};
use crate::cluster_verify::{Verified, settings};
use crate::live::{Sent, Stream};

/// Copies a directory with everything below it.
fn copy_all(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let (path, to) = (entry.as_ref().unwrap().path(), to.join(entry.unwrap().file_name()));
        if path.is_dir() {
            copy_all(&path, &to);
        } else {
            fs::copy(&path, &to).unwrap();
        }
    }
}

/// What the brokers have of a cluster in a directory.
const BROKERS: &str = "jetstream";

impl Verified {
    fn stop_nodes(&mut self) {
        self.cluster.nodes.iter_mut().for_each(Node::stop);
    }

    /// Starts the brokers with what is in a directory.
    fn begin_brokers(&mut self, dir: &Path) {
        self.cluster.broker = Broker::start(dir).unwrap();
    }

    /// Starts nodes that have nothing but the key of the cluster.
    fn begin_nodes(&mut self, dir: &Path, key: &Path) {
        let settings = settings(self.files.path());
        let settings = settings.each_ref().map(String::as_str);
        self.cluster.nodes = NAMES
            .map(|name| {
                fs::create_dir_all(dir.join(name).join("keys")).unwrap();
                fs::copy(key, dir.join(name).join("keys/hash.key")).unwrap();
                Node::start_with(&self.cluster.broker, &dir.join(name), &settings, Stdio::inherit())
            })
            .into();
    }

    /// The first event of a node's live stream of the first project, for a client that has seen the
    /// event `seen`.
    fn first_live_event(&self, node: usize, seen: Option<&str>) -> Sent {
        let address = self.cluster.nodes[node].url.trim_start_matches("http://").parse().unwrap();
        let seen = seen.map_or(String::new(), |id| format!("last-event-id: {id}\r\n"));
        let headers = format!("authorization: Bearer {}\r\n{seen}", self.cluster.token);
        let (path, began) = (format!("/projects/{}/live", self.projects[0].1), Instant::now());
        loop {
            let mut stream = Stream::open_at(address, &path, &headers);
            if stream.head.starts_with("http/1.1 200") {
                return stream.read().unwrap();
            }
            assert!(began.elapsed() < Duration::from_secs(60), "node {node} has no live stream: {}", stream.head);
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Asks a node about the first project, with what is known of the answer, until its owner
    /// answers.
    fn ask(&self, node: usize, path: &str, known: Option<&str>) -> Answer {
        let address = self.cluster.nodes[node].url.trim_start_matches("http://").parse().unwrap();
        let call = Call::get(format!("/projects/{}/{path}", self.projects[0].1)).bearer(&self.cluster.token);
        let call = known.into_iter().fold(call, |call, known| call.header("if-none-match", known));
        let began = Instant::now();
        loop {
            match Connection::open(address).unwrap().send(&call) {
                Ok((answer, _)) if answer.status != 503 => return answer,
                _ => assert!(began.elapsed() < Duration::from_secs(60), "node {node} does not answer about {path}"),
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

/// What `restored` prints, or why it refuses.
fn restored(broker: &Broker, dir: &Path) -> Result<String, String> {
    let output = broker.run("restored", dir, &[]);
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}

const WHO_CAME_BACK: &str = "analytics/retention?interval=week";
const EVENTS: &str = "events?start_date=2024-03-01&end_date=2024-03-01&limit=2";

#[test]
fn a_cluster_is_restored_from_copies_that_were_made_while_it_was_stopped() {
    let [dir, backup, restored_to] = [(); 3].map(|()| tempfile::tempdir().unwrap());
    let Some(mut verified) = Verified::start(dir.path()) else { return };
    // Sealed events, others, and a webhook.
    verified.record(0..6);
    verified.seal();
    verified.record(6..10);
    let new = json!({"project_id": verified.cluster.project, "url": "https://receiver.example/"});
    let made = verified.cluster.ask(1, "POST", "/webhooks", &verified.cluster.token, Some(&new)).unwrap();
    assert_eq!(made.0, 201, "{made:?}");
    let webhook = format!("/webhooks/{}", made.1["id"].as_str().unwrap());
    verified.assert_clean(1, 10);
    // Nodes first: from then on, nothing is published, and nothing that is named is deleted.
    verified.stop_nodes();
    verified.cluster.broker.kill();
    copy_all(&dir.path().join(BROKERS), &backup.path().join(BROKERS));
    copy_all(verified.files.path(), &backup.path().join("files"));
    fs::copy(dir.path().join("n0/keys/hash.key"), backup.path().join("hash.key")).unwrap();
    // It goes on for a while: what is sealed then replaces what the copy has.
    verified.begin_brokers(dir.path());
    verified.begin_nodes(dir.path(), &backup.path().join("hash.key"));
    verified.record(10..14);
    verified.seal();
    verified.assert_clean(2, 14);
    let refused = restored(&verified.cluster.broker, dir.path()).unwrap_err();
    assert!(refused.contains("some nodes run") && refused.contains(&verified.cluster.nodes[1].url), "{refused}");
    let lost = verified.ask(0, WHO_CAME_BACK, None).etag();
    assert_eq!(verified.ask(1, WHO_CAME_BACK, Some(&lost)).status, 304, "{lost} stands for what all nodes answer");
    let page = verified.ask(2, EVENTS, None).ok(200);
    let next = format!("{EVENTS}&cursor={}", page["next"].as_str().unwrap());
    assert_eq!(verified.ask(1, &next, None).status, 200);
    let seen = verified.first_live_event(0, None).id;
    assert_eq!(verified.first_live_event(1, Some(&seen)).event, "delta", "{seen} is resumed at any node");
    verified.stop_nodes();
    verified.cluster.broker.kill();
    // Everything is lost.
    fs::remove_dir_all(verified.files.path()).unwrap();
    copy_all(&backup.path().join("files"), verified.files.path());
    copy_all(&backup.path().join(BROKERS), &restored_to.path().join(BROKERS));
    verified.begin_brokers(restored_to.path());
    let said = restored(&verified.cluster.broker, restored_to.path()).unwrap();
    assert!(said.contains("start the nodes"), "{said}");
    verified.begin_nodes(restored_to.path(), &backup.path().join("hash.key"));
    verified.assert_clean(0, 10);
    let shown = verified.cluster.ask(2, "GET", &webhook, &verified.cluster.token, None).unwrap();
    assert_eq!(shown.0, 200, "{shown:?}");
    for (_, project) in &verified.projects {
        (0..3).for_each(|node| assert_eq!(verified.cluster.wait_for_users_of(node, project), 10));
    }
    // As many events as were lost get their positions. For all that nodes know, they are others.
    verified.record(10..14);
    let answer = verified.ask(1, WHO_CAME_BACK, Some(&lost));
    assert_eq!(answer.status, 200, "{lost} is of the time that is lost");
    assert_eq!(verified.ask(2, WHO_CAME_BACK, Some(&answer.etag())).status, 304, "all nodes have the new one");
    assert_eq!(verified.ask(0, &next, None).status, 410, "the cursor is of the time that is lost, too");
    assert_eq!(verified.first_live_event(1, Some(&seen)).event, "snapshot", "and so is the place in the live stream");
    // What it has counts once, and what comes now counts.
    verified.record(4..16);
    for (_, project) in &verified.projects {
        assert_eq!(verified.cluster.wait_for_users_of(1, project), 16);
    }
    verified.seal();
    std::thread::sleep(Duration::from_millis(500));
    verified.assert_clean(1, 16);
}
