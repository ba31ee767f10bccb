//! `POST /admin/verify` of a cluster: whichever node is asked, each of them verifies what it has,
//! and what is wrong is named with its node.

use std::fs::{self, OpenOptions};
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use headcount_domain::cells::StoredCells as _;
use headcount_domain::cells::packed::Packed;
use headcount_domain::rollups::UniqueUsers;
use headcount_storage::codec;
use headcount_storage::keyspace::{Key, PartitionId};
use headcount_storage::store::{DiskStore, Store as _, StoreOptions};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::cluster_nodes::{Cluster, Node};
use crate::server::command;

/// How long partitions may move, and a verification may take.
const PATIENCE: Duration = Duration::from_secs(120);
/// Events of each project.
const EVENTS: usize = 12;

/// Three nodes with some projects and a place for files.
pub(crate) struct Verified {
    pub(crate) cluster: Cluster,
    pub(crate) files: TempDir,
    pub(crate) projects: Vec<(String, String)>,
}

pub(crate) fn settings(files: &Path) -> [String; 6] {
    let files = format!("file://{}", files.display());
    ["--log", "warn", "--checkpoint-interval", "2s", "--files", &files].map(str::to_owned)
}

impl Verified {
    pub(crate) fn start(dir: &Path) -> Option<Self> {
        let files = tempfile::tempdir().unwrap();
        let settings = settings(files.path());
        let cluster = Cluster::start_with(dir, &settings.each_ref().map(String::as_str))?;
        let mut projects = vec![(cluster.public_key.clone(), cluster.project.clone())];
        for number in 0..5 {
            let new = json!({"name": format!("p{number}")});
            let made = cluster.ask(0, "POST", "/projects", &cluster.token, Some(&new)).unwrap();
            let text = |name: &str| made.1[name].as_str().unwrap().to_owned();
            projects.push((text("public_key"), text("project_id")));
        }
        Some(Self { cluster, files, projects })
    }

    pub(crate) fn record(&self, users: std::ops::Range<usize>) {
        for (key, _) in &self.projects {
            users.clone().for_each(|user| self.cluster.record(user % 3, key, &format!("u{user}")));
        }
    }

    fn operator(&self, node: usize) -> String {
        fs::read_to_string(self.cluster.nodes[node].dir.join("operator-token")).unwrap().trim().to_owned()
    }

    pub(crate) fn seal(&self) {
        self.until(|| self.cluster.ask(0, "POST", "/admin/archive/seal", &self.operator(0), None).unwrap(), |_| true);
    }

    /// Asks until the answer is 200 and one that is wanted.
    fn until(&self, ask: impl Fn() -> (u16, Value), is_wanted: impl Fn(&Value) -> bool) -> Value {
        let began = Instant::now();
        loop {
            let (status, answer) = ask();
            if status == 200 && is_wanted(&answer) {
                return answer;
            }
            assert!(began.elapsed() < PATIENCE, "{status} {answer}");
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    /// What a node answers, once no partition is under way to another node.
    fn verify(&self, node: usize, query: &str) -> Value {
        let ask = || self.cluster.ask(node, "POST", &format!("/admin/verify{query}"), &self.operator(node), None).unwrap();
        self.until(ask, |answer| answer["status"].is_string() && answer["status"] != "incomplete")
    }

    #[track_caller]
    pub(crate) fn assert_clean(&self, node: usize, events: usize) {
        let report = self.verify(node, "");
        assert_eq!((&report["status"], &report["differing"]), (&json!("clean"), &json!(0)), "{report}");
        assert_eq!((&report["damaged"], &report["not_verified"]), (&json!([]), &Value::Null), "{report}");
        let counted = |project: &String| {
            let found = report["projects"].as_array().unwrap().iter().find(|found| found["project_id"] == json!(project));
            found.map(|found| (found["events"].as_u64().unwrap(), found["cells"].as_u64().unwrap() > 0))
        };
        for (_, project) in &self.projects {
            assert_eq!(counted(project), Some((events as u64, true)), "{report}");
        }
        assert_eq!(report["projects"].as_array().unwrap().len(), self.projects.len());
    }

    /// Damages something with `damage`, which gets the owner of a partition, and mends it with
    /// `mend`. Exactly the file that `damage` names, of this node, is damaged meanwhile, as each
    /// kind of verification finds. On a busy machine the partition may move: then it is tried
    /// again.
    #[track_caller]
    fn assert_damaged(&self, partition: usize, damage: impl Fn(&Path) -> String, mend: impl Fn(&Path)) {
        let began = Instant::now();
        loop {
            assert!(began.elapsed() < PATIENCE, "partition {partition} moves again and again");
            let Some(owner) = self.cluster.owner_of(partition) else { continue };
            let (url, dir) = (json!(self.cluster.nodes[owner].url), &self.cluster.nodes[owner].dir);
            let expected = (json!("damaged"), json!(0), json!([[damage(dir), url]]));
            let found = |report: &Value| {
                let named = report["damaged"].as_array().unwrap().iter().map(|one| json!([one["file"], one["node"]]));
                (report["status"].clone(), report["differing"].clone(), named.collect::<Value>())
            };
            let reports = [(0, ""), (1, "?quick=true"), (2, "")].map(|(node, query)| self.verify(node, query));
            mend(dir);
            if self.cluster.owner_of(partition) == Some(owner) {
                reports.iter().for_each(|report| assert_eq!(found(report), expected, "{report}"));
                return;
            }
        }
    }
}

fn below(dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(dir) else { return Vec::new() };
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut paths: Vec<PathBuf> = paths.flat_map(|path| if path.is_dir() { below(&path) } else { vec![path] }).collect();
    paths.sort();
    paths
}

/// Flips a bit of a file in place: a server may have it open.
fn flip(path: &Path, at: u64) {
    let file = OpenOptions::new().read(true).write(true).open(path).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ 1], at).unwrap();
}

#[test]
fn each_node_verifies_what_it_has_and_any_of_them_says_what_all_found() {
    let dir = tempfile::tempdir().unwrap();
    let Some(verified) = Verified::start(dir.path()) else { return };
    verified.record(0..EVENTS / 2);
    verified.assert_clean(0, EVENTS / 2);
    verified.seal();
    verified.record(EVENTS / 2..EVENTS);
    (0..3).for_each(|node| verified.assert_clean(node, EVENTS));
    let quick = verified.verify(1, "?quick=true");
    assert_eq!((&quick["status"], &quick["projects"]), (&json!("clean"), &json!([])), "{quick}");
    let refused = verified.cluster.ask(1, "POST", "/admin/verify", &verified.cluster.token, None).unwrap();
    assert_eq!((refused.0, &refused.1["error"]["code"]), (403, &json!("operator_required")));

    let file = below(verified.files.path()).into_iter().find(|path| path.to_string_lossy().contains(".parquet.")).unwrap();
    let address = || format!("file://{}", file.display());
    let (partition, local) = local_copy(&verified, &file);
    let flip_object = || {
        flip(&file, 300);
        address()
    };
    verified.assert_damaged(partition, |_| flip_object(), |_| drop(flip_object()));
    let away = file.with_extension("away");
    let remove = || {
        fs::rename(&file, &away).unwrap();
        address()
    };
    verified.assert_damaged(partition, |_| remove(), |_| fs::rename(&away, &file).unwrap());
    verified.assert_clean(1, EVENTS);

    let flip_copy = |dir: &Path| {
        flip(&dir.join(&local), 300);
        local.to_str().unwrap().to_owned()
    };
    verified.assert_damaged(partition, flip_copy, |dir| drop(flip_copy(dir)));
    verified.assert_clean(2, EVENTS);

    let owner = verified.cluster.owner();
    let tables = below(&verified.cluster.nodes[owner].dir.join("store/tables"));
    let table = tables.iter().find(|path| path.extension().is_some_and(|extension| extension == "sst")).unwrap();
    flip(table, 100);
    let report = verified.verify((owner + 1) % 3, "?quick=true");
    let name = table.strip_prefix(&verified.cluster.nodes[owner].dir).unwrap().to_str().unwrap();
    let expected = json!({"node": verified.cluster.nodes[owner].url, "file": name, "reason": report["damaged"][0]["reason"]});
    assert_eq!(report["damaged"], json!([expected]), "{report}");
    what_is_gone_is_not_verified(verified, owner);
}

/// The partition of an object, and where its owner has a copy.
fn local_copy(verified: &Verified, file: &Path) -> (usize, PathBuf) {
    // INCARNATION/PARTITION/project=ID/month=YYYY-MM/NAME.SHA256
    let parts: Vec<String> =
        file.strip_prefix(verified.files.path()).unwrap().iter().map(|part| part.to_str().unwrap().to_owned()).collect();
    let name = parts[4].rsplit_once('.').unwrap().0;
    let local = PathBuf::from(format!("archive/partition={}/{}/{}/{name}", parts[1], parts[2], parts[3]));
    (parts[1].parse().unwrap(), local)
}

/// What a node has that is gone is in no report, and the answer says so.
fn what_is_gone_is_not_verified(mut verified: Verified, owner: usize) {
    verified.cluster.nodes[owner].kill();
    let other = (owner + 1) % 3;
    let elsewhere = tempfile::tempdir().unwrap();
    let (url, token) = (verified.cluster.nodes[other].url.clone(), verified.operator(other));
    let output =
        command("verify", elsewhere.path()).args(["--json", "--url", &url, "--operator-token", &token]).output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
    assert_eq!((output.status.code(), &report["status"]), (Some(3), &json!("incomplete")), "{report}");
    let gone = json!(verified.cluster.nodes[owner].url);
    let unverified = report["not_verified"].as_array().unwrap();
    assert!(!unverified.is_empty() && unverified.iter().all(|one| one["node"] == gone || one["node"].is_null()), "{report}");
    // The others take it over, and everything is well: what was damaged was that node's.
    verified.assert_clean(other, EVENTS);
}

/// Changes a row of the unique users of any project in a stored state. Returns whether there was
/// one.
fn change_row(data_dir: &Path) -> bool {
    let store = DiskStore::open(&data_dir.join("store"), StoreOptions::default()).unwrap();
    for partition in 0..64_u16 {
        let mut found = None;
        let visit = &mut |key: &[u8], value: &[u8]| match Key::decode(key) {
            Ok(Key::Cells { tag: UniqueUsers::TAG, .. }) => {
                found = Some((key.to_vec(), value.to_vec()));
                ControlFlow::Break(())
            }
            _ => ControlFlow::Continue(()),
        };
        store.scan(&[&partition.to_be_bytes()[..], &[2]].concat(), visit).unwrap();
        let Some((key, value)) = found else { continue };
        let mut part: Packed = codec::decode(1, &value).unwrap();
        let mut columns = part.columns(0);
        columns[0] ^= 2;
        part.set(0, &columns);
        let mut checkpoint = store.begin(PartitionId::of_key(&key).unwrap()).unwrap();
        checkpoint.put(&key, &codec::encode(1, &part).unwrap()).unwrap();
        checkpoint.commit().unwrap();
        return true;
    }
    false
}

#[test]
fn a_changed_row_of_a_node_is_named_by_any_of_them() {
    let dir = tempfile::tempdir().unwrap();
    let Some(mut verified) = Verified::start(dir.path()) else { return };
    verified.record(0..EVENTS);
    verified.assert_clean(0, EVENTS);
    let owner = verified.cluster.owner();
    for node in 0..3 {
        verified.cluster.nodes[node].stop();
    }
    let data_dir = verified.cluster.nodes[owner].dir.clone();
    assert!(change_row(&data_dir), "the node with most partitions has no project");
    let settings = settings(verified.files.path());
    let settings = settings.each_ref().map(String::as_str);
    // It takes over what it had, since there is no other. The next one takes nothing for a minute.
    for node in [owner, (owner + 1) % 3] {
        let data_dir = verified.cluster.nodes[node].dir.clone();
        verified.cluster.nodes[node] = Node::start_with(&verified.cluster.broker, &data_dir, &settings, Stdio::inherit());
        for (_, project) in &verified.projects {
            assert!(verified.cluster.wait_for_users_of(node, project) > 0);
        }
    }
    for node in [owner, (owner + 1) % 3] {
        let report = verified.verify(node, "");
        assert_eq!((&report["status"], &report["differing"]), (&json!("differs"), &json!(1)), "{report}");
        let cell = &report["cells"][0];
        assert_eq!((&cell["rollup"], &cell["node"]), (&json!("unique_users"), &json!(verified.cluster.nodes[owner].url)));
        assert!(cell["stored"] != cell["recomputed"], "{cell}");
    }
}
