//! A backup of a cluster whose projects have lost events by their retention.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::busy::{Asked, Busy, PROJECTS, answer_of, call, day, events, of_user, operator, questions, sale, seal, send};
use super::{GONE, assert_gone, assert_sent, back_up_and_verify, completed, fill, goes_on_in_another_cluster};
use crate::client::Call;
use crate::cluster_nodes::PATIENCE;
use crate::server::TestServer;
use crate::tenant::now_ms;
use crate::webhooks::Receiver;

/// The projects that lose events.
const RETAINED: [usize; 2] = [0, 2];
/// The first day that they keep.
const FLOOR: i64 = 4;
/// Has a retention that removes nothing.
const KEEPS_ALL: usize = 3;
/// Is erased when the backup is made.
const ERASED_LAST: &str = "canary-vic-6640";

/// All files below a directory.
fn files_below(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}

/// Whether a project has a base in these files.
fn has_base(files: &Path, project: &str) -> bool {
    files_below(files).iter().any(|path| {
        let path = path.to_string_lossy();
        path.contains(&format!("project={project}/")) && path.contains("/state-")
    })
}

/// Sets retentions, after which some projects have lost the events of their first days.
fn retain(busy: &Busy, files: &Path) {
    let today = chrono::DateTime::from_timestamp_millis(now_ms()).unwrap().date_naive();
    let days = (today - day(FLOOR)).num_days() + 1;
    for project in RETAINED {
        busy.ask(0, "PATCH", &format!("/projects/{}", busy.projects[project].0), Some(json!({"retention_days": days}))).ok(200);
    }
    let all = json!({"retention_days": days + 60});
    busy.ask(0, "PATCH", &format!("/projects/{}", busy.projects[KEEPS_ALL].0), Some(all)).ok(200);
    let began = Instant::now();
    while !RETAINED.iter().all(|project| has_base(files, &busy.projects[*project].0)) {
        assert!(began.elapsed() < 2 * PATIENCE, "no base is written");
        busy.seal();
        std::thread::sleep(Duration::from_millis(500));
    }
}

#[test]
fn a_server_and_another_cluster_go_on_from_a_backup_of_a_cluster_with_projects_that_have_lost_events() {
    let [dir, files, place] = [(); 3].map(|()| tempfile::tempdir().unwrap());
    let address = format!("file://{}", files.path().display());
    let settings = ["--log", "warn", "--files", &address, "--log-kept", "1s", "--outbound-allow", "127.0.0.1"];
    let Some(busy) = Busy::start(dir.path(), &settings) else { return };
    let receiver = Receiver::start(&[200]);
    let secret = fill(&busy, &receiver);
    (0..PROJECTS).for_each(|project| busy.recorded(project, &of_user(ERASED_LAST, &format!("v-{project}"))));
    retain(&busy, files.path());
    // Of these, nothing is sealed.
    (0..PROJECTS).for_each(|project| busy.recorded(project, &of_user("u1", &format!("w-{project}"))));
    busy.erase(ERASED_LAST);
    std::thread::sleep(Duration::from_millis(1_500));
    let questions: Vec<_> = [day(FLOOR), day(-9)].into_iter().flat_map(|first| questions(&busy.projects, first)).collect();
    let expected = busy.steady(&questions);
    assert!(expected.iter().take(expected.len() / 2).all(|(status, _)| *status == 200));
    // Only the operator of the node may.
    let node = &busy.cluster.nodes[0];
    assert_eq!(send(node, &Call::post("/admin/backup").bearer(&busy.cluster.token)).status, 403);
    let backup = place.path().join("backup");
    back_up_and_verify(node, &backup);
    for (number, (project, _)) in busy.projects.iter().enumerate() {
        assert_eq!(has_base(&backup, project), RETAINED.contains(&number), "{project}");
    }
    let server = TestServer::start_with(&["--outbound-allow", "127.0.0.1"]);
    server.replace_by(&backup);
    for (asked, expected) in questions.iter().zip(&expected) {
        let found = answer_of(&server.send(&call(&busy.cluster.token, asked)));
        assert!(found == *expected, "{asked:?}:\n{}\n{}", found.1, expected.1);
    }
    let track = |project: usize, event: &Value| {
        let answer = server.send(&Call::post("/track").key(&busy.projects[project].1).json(event));
        answer.ok(202)["status"].as_str().unwrap().to_owned()
    };
    for project in 0..PROJECTS {
        for event in (0..2).flat_map(|round| events(project, round)) {
            let (here, there) = (track(project, &event), busy.track(project, &busy.projects[project].1, &event));
            assert!(here == there && here != "recorded", "{event}: {here}, but {there}");
        }
        assert_eq!(track(project, &of_user("u1", &format!("w-{project}"))), "duplicate");
        assert_eq!(track(project, &of_user(ERASED_LAST, &format!("x-{project}"))), "dropped");
    }
    let listed = completed(&server, &busy.cluster.token, 5);
    assert!(![GONE[1], ERASED_LAST].iter().any(|name| listed.contains(name)), "{listed}");
    assert_eq!(track(0, &sale(3)), "recorded");
    assert_sent(&receiver, &secret, 3, 3);
    let report: Value = serde_json::from_str(&server.run("verify", &["--json"])).unwrap();
    assert_eq!((&report["status"], &report["differing"]), (&json!("clean"), &json!(0)), "{report}");
    let found = server.stopped(|data| assert_gone(data, &[&GONE[..], &[ERASED_LAST]].concat()));
    assert_eq!(found["erasures"], 4, "{found}");
    let answered = |asked: &Asked| answer_of(&server.send(&call(&busy.cluster.token, asked)));
    let expected: Vec<_> = questions.iter().map(answered).collect();
    server.run("archive", &["seal"]);
    let again = place.path().join("again");
    server.run("backup", &[again.to_str().unwrap()]);
    assert!(server.stop().success());
    let (token, key) = (busy.cluster.token.clone(), busy.projects[0].1.clone());
    drop(busy);
    moves_into_another_cluster(&token, &key, (&questions, &expected), &again, (&receiver, &secret));
}

/// Nodes over other brokers go on from the backup of a server. The webhook had sent three sales.
fn moves_into_another_cluster(
    token: &str,
    key: &str,
    answers: (&[Asked], &[(u16, Value)]),
    backup: &Path,
    (receiver, secret): (&Receiver, &str),
) {
    let files = tempfile::tempdir().unwrap();
    let settings = ["--files", &format!("file://{}", files.path().display())];
    let (_broker, node, _dir) = goes_on_in_another_cluster(token, answers, backup, &settings);
    let track = |event: &Value| send(&node, &Call::post("/track").key(key).json(event)).ok(202)["status"].clone();
    assert_eq!([track(&of_user("u1", "w-0")), track(&of_user(ERASED_LAST, "y"))], ["duplicate", "dropped"]);
    assert_eq!(track(&sale(4)), "recorded");
    assert_sent(receiver, secret, 4, 4);
    seal(&node);
    let report = send(&node, &Call::post("/admin/verify").bearer(&operator(&node))).ok(200);
    assert_eq!((&report["status"], &report["differing"]), (&json!("clean"), &json!(0)), "{report}");
}
