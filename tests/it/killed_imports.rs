//! Imports that are killed at random moments, into a data directory and through a server. The files
//! have lines of somebody who was erased, lines below the floor, refused and empty ones: every
//! other line is recorded once.
//!
//! `HEADCOUNT_KILLS` says how many kills of each kind, `HEADCOUNT_FIRST_SEED` from which seed on.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use headcount_histories::Rng;
use serde_json::{Value, json};

use crate::client::Call;
use crate::histories::number;
use crate::server::{TestServer, command};
use crate::tenant::{away_from_midnight, now_ms};

/// How many kills of each kind, unless `HEADCOUNT_KILLS` says otherwise.
const KILLS: u64 = 3;
/// How many of them one file has.
const KILLS_OF_FILE: u64 = 3;

/// What a file has.
#[derive(Debug)]
struct Lines {
    /// The users of the orders to be recorded, each with how many it has.
    users: BTreeMap<String, u32>,
    refused: u64,
    text: String,
}

fn lines(seed: u64, rng: &mut Rng) -> Lines {
    let (mut made, now) = (Lines { users: BTreeMap::new(), refused: 0, text: String::new() }, now_ms());
    for line in 0..12_000 {
        let (user, hours) = match rng.below(20) {
            0..2 => {
                made.text.push('\n');
                continue;
            }
            2 => {
                made.refused += 1;
                made.text.push_str("{\"name\":[5]}\n");
                continue;
            }
            3..5 => (format!("gone-{seed}"), 1),
            5..7 => (format!("old-{seed}-{line}"), 24 * 60),
            _ => {
                let user = format!("u-{seed}-{}", line / 2);
                *made.users.entry(user.clone()).or_default() += 1;
                (user, 1)
            }
        };
        let at = now - hours * 3_600_000;
        writeln!(made.text, "{{\"name\":\"purchase\",\"timestamp\":{at},\"user_id\":\"{user}\",\"value\":1}}").unwrap();
    }
    made
}

fn import(dir: &Path, project: &str, file: &Path) -> Command {
    let mut import = command("import", dir);
    import.args([file.to_str().unwrap(), "--project", project, "--json"]).stdin(Stdio::null());
    import
}

/// Kills an import at some moment of the time that it would take. Returns whether it was still
/// running.
fn killed(dir: &Path, project: &str, file: &Path, moment: Duration) -> bool {
    let mut child = import(dir, project, file).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    std::thread::sleep(moment);
    let was_running = child.try_wait().unwrap().is_none();
    child.kill().unwrap();
    child.wait().unwrap();
    was_running
}

/// Imports the whole file, or the rest of it.
fn finished(dir: &Path, project: &str, file: &Path, flags: &[&str]) -> Value {
    let output = import(dir, project, file).args(flags).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{errors}"))
}

/// The users of all events of a project, each with how many it has.
fn exported(dir: &Path, project: &str) -> BTreeMap<String, u32> {
    let output = command("export", dir).args(["--project", project]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut users = BTreeMap::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        *users.entry(row["user_id"].as_str().unwrap().to_owned()).or_default() += 1;
    }
    users
}

/// A project that keeps 30 days, in an organization that has erased somebody.
fn project(server: &TestServer, seed: u64) -> String {
    let post = |path: &str, body: &Value| server.send(&Call::post(path).bearer(server.initial("api_token")).json(body));
    let project = post("/projects", &json!({"name": format!("killed {seed}"), "retention_days": 30}));
    assert_eq!(project.status, 201, "{}", project.text());
    let id = project.field("project_id");
    let gone = json!({"name": "a", "user_id": format!("gone-{seed}")});
    assert_eq!(post(&format!("/projects/{id}/batch"), &json!({"events": [gone]})).json()["recorded"], 1);
    let erasure = post("/privacy-requests", &json!({"type": "erasure", "user_id": format!("gone-{seed}")}));
    assert!(erasure.status < 300, "{}", erasure.text());
    id
}

/// Imports one file, with kills after which something happens. Returns how many imports were
/// running.
fn trial(
    dir: &Path,
    project: &str,
    (seed, rng): (u64, &mut Rng),
    longest: Duration,
    between: impl Fn(usize, &Path, Duration),
) -> usize {
    let made = lines(seed, rng);
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), &made.text).unwrap();
    let mut kills = 0;
    for _ in 0..KILLS_OF_FILE {
        let mut moment = || Duration::from_micros(rng.below(usize::try_from(longest.as_micros()).unwrap()) as u64);
        let (now, later) = (moment(), moment());
        kills += usize::from(killed(dir, project, file.path(), now));
        between(rng.below(3), file.path(), later);
    }
    let counted = |answer: &Value| ["recorded", "refused"].map(|name| answer[name].as_u64().unwrap());
    finished(dir, project, file.path(), &[]);
    assert_eq!(exported(dir, project), made.users, "seed {seed}");
    let again = finished(dir, project, file.path(), &["--again"]);
    assert_eq!((counted(&again), exported(dir, project)), ([0, made.refused], made.users), "seed {seed}: {again}");
    kills
}

/// How long an import of such a file takes, begun with the program.
fn measured(dir: &Path, project: &str, rng: &mut Rng) -> Duration {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), lines(0, rng).text).unwrap();
    let began = Instant::now();
    finished(dir, project, file.path(), &[]);
    began.elapsed()
}

#[test]
fn imports_that_are_killed_into_a_data_directory_record_every_line_once() {
    away_from_midnight();
    let server = TestServer::start();
    let (first, wanted) = (number("HEADCOUNT_FIRST_SEED", 1), number("HEADCOUNT_KILLS", KILLS));
    let seeds = first..=first + wanted.div_ceil(KILLS_OF_FILE);
    let projects: Vec<String> = seeds.clone().map(|seed| project(&server, seed)).collect();
    server.stopped(|dir| {
        let (mut rng, mut kills) = (Rng::new(first), 0);
        let longest = measured(dir, &projects[0], &mut rng);
        for (seed, project) in seeds.zip(&projects).skip(1) {
            kills += trial(dir, project, (seed, &mut rng), longest, |choice, _, _| match choice {
                // Others that open the directory may move all that the log has into the archive.
                0 => assert!(command("archive", dir).arg("seal").output().unwrap().status.success()),
                1 => drop(exported(dir, project)),
                _ => {}
            });
        }
        println!("{kills} kills, of imports that would take {longest:?}");
    });
}

#[test]
fn imports_that_are_killed_through_a_server_record_every_line_once() {
    away_from_midnight();
    let server = TestServer::start();
    let (first, wanted) = (number("HEADCOUNT_FIRST_SEED", 1), number("HEADCOUNT_KILLS", KILLS));
    let (mut rng, mut kills, dir) = (Rng::new(first), 0, server.data_dir());
    let longest = measured(dir, &project(&server, first), &mut rng);
    for seed in first + 1..=first + wanted.div_ceil(KILLS_OF_FILE) {
        let project = project(&server, seed);
        kills += trial(dir, &project, (seed, &mut rng), longest, |choice, file, moment| match choice {
            0 => server.kill(),
            // The other way, for a while.
            1 => {
                let _was_running = server.stopped(|dir| killed(dir, &project, file, moment));
            }
            _ => {}
        });
    }
    println!("{kills} kills, of imports that would take {longest:?}");
}
