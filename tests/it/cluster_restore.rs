//! A cluster that is lost comes back from copies of its brokers and its files, as `docs/CLUSTER.md` says.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::json;

use crate::broker::Broker;
use crate::cluster_nodes::{NAMES, Node};
use crate::cluster_verify::{Verified, settings};

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

    /// Starts the brokers with what is in a directory, and nodes that have nothing but the key of the cluster.
    fn begin_anew(&mut self, dir: &Path, key: &Path) {
        self.cluster.broker = Broker::start(dir).unwrap();
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
}

#[test]
fn a_cluster_is_restored_from_copies_that_were_made_while_it_was_stopped() {
    let [dir, backup, restored] = [(); 3].map(|()| tempfile::tempdir().unwrap());
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
    verified.begin_anew(dir.path(), &backup.path().join("hash.key"));
    verified.record(10..14);
    verified.seal();
    verified.assert_clean(2, 14);
    verified.stop_nodes();
    verified.cluster.broker.kill();
    // Everything is lost.
    fs::remove_dir_all(verified.files.path()).unwrap();
    copy_all(&backup.path().join("files"), verified.files.path());
    copy_all(&backup.path().join(BROKERS), &restored.path().join(BROKERS));
    verified.begin_anew(restored.path(), &backup.path().join("hash.key"));
    verified.assert_clean(0, 10);
    let shown = verified.cluster.ask(2, "GET", &webhook, &verified.cluster.token, None).unwrap();
    assert_eq!(shown.0, 200, "{shown:?}");
    for (_, project) in &verified.projects {
        (0..3).for_each(|node| assert_eq!(verified.cluster.wait_for_users_of(node, project), 10));
    }
    // What it has counts once, and what comes now counts.
    verified.record(4..16);
    for (_, project) in &verified.projects {
        assert_eq!(verified.cluster.wait_for_users_of(1, project), 16);
    }
    verified.seal();
    std::thread::sleep(Duration::from_millis(500));
    verified.assert_clean(1, 16);
}
