//! `headcount-load`, against the server and against programs that answer what no server should.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a panic is a failed test")]

mod server;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Output;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use server::{Server, Tenant, command};

const PROGRAM: &str = env!("CARGO_BIN_EXE_headcount-load");

/// What the server counts of a project.
const COUNTS: [&str; 3] = ["/revenue/metrics", "/count-unique-users-per-day", "/intake"];
/// The id of a project that no server has.
const PROJECT: &str = "prj_92RppexRAre";

/// Runs the program without a warm-up.
fn load(address: SocketAddr, arguments: &[&str], more: &[&str]) -> Output {
    let url = format!("http://{address}");
    command(PROGRAM).args(["--url", &url, "--warm-up", "0s"]).args(arguments).args(more).output().unwrap()
}

fn texts(output: &Output) -> (String, String) {
    (String::from_utf8_lossy(&output.stdout).into_owned(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Waits for the next day if this one is about to end: counts are of the days up to today.
fn away_from_midnight() {
    const DAY: Duration = Duration::from_secs(86_400);
    let of_day = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() % DAY.as_secs();
    let left = DAY - Duration::from_secs(of_day);
    if left < Duration::from_secs(30) {
        std::thread::sleep(left);
    }
}

fn report(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

/// A program that answers every request with a status and a body, by its path, until it is gone.
struct Pretender {
    address: SocketAddr,
    paths: Arc<Mutex<Vec<String>>>,
}

/// What a pretender counts, by how much it acknowledged.
type Counting = fn(usize) -> u64;
/// What a pretender answers to a path, which is the last of those so far. `None`: it is gone.
type Answers = dyn Fn(&[String]) -> Option<(u16, String)> + Send + Sync;

impl Pretender {
    fn start(answers: impl Fn(&[String]) -> Option<(u16, String)> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let paths = Arc::<Mutex<Vec<String>>>::default();
        let (shared, answers) = (Arc::clone(&paths), Arc::new(answers));
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if shared.lock().unwrap().last().is_some_and(|path| path == "gone") {
                    return;
                }
                let (paths, answers) = (Arc::clone(&shared), Arc::clone(&answers));
                std::thread::spawn(move || serve(stream, address, &paths, &*answers));
            }
        });
        Self { address, paths }
    }

    /// Acknowledges events, and answers questions for counts with `counts`.
    fn acknowledging(counts: impl Fn(usize) -> u64 + Send + Sync + 'static) -> Self {
        Self::start(move |paths| {
            let path = paths.last().unwrap();
            if !COUNTS.iter().any(|it| path.ends_with(it)) {
                return Some((202, json!({"status": "recorded"}).to_string()));
            }
            let acknowledged = paths.iter().filter(|path| *path == "/i").count();
            let count = counts(acknowledged);
            let body = json!({"orders": count.div_ceil(16), "total_unique_users": count, "recorded": count, "duplicates": 0});
            Some((200, body.to_string()))
        })
    }

    fn paths(&self) -> Vec<String> {
        self.paths.lock().unwrap().clone()
    }
}

fn serve(stream: TcpStream, address: SocketAddr, paths: &Mutex<Vec<String>>, answers: &Answers) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut stream = stream;
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head).is_ok_and(|read| read > 0) {
                continue;
            }
            return;
        }
        let lower = head.to_lowercase();
        let length = lower.lines().find_map(|line| line.strip_prefix("content-length: ")).map_or(0, |it| it.parse().unwrap());
        reader.read_exact(&mut vec![0; length]).unwrap();
        let mut paths = paths.lock().unwrap();
        if paths.last().is_some_and(|path| path == "gone") {
            return;
        }
        paths.push(head.split(' ').nth(1).unwrap().to_owned());
        let Some((status, body)) = answers(&paths) else {
            paths.push("gone".into());
            // The listener looks whether it should be there.
            let _ = TcpStream::connect(address);
            return;
        };
        drop(paths);
        let answer = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        if stream.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

/// What the server itself counted of the projects of a file.
fn counted(server: &Server, file: &Path) -> (u64, u64, usize) {
    let text = std::fs::read_to_string(file).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let intake = |line: &Value| {
        let path = format!("/projects/{}/intake", line["project_id"].as_str().unwrap());
        server.get(&path, line["token"].as_str().unwrap())
    };
    let all: Vec<Value> = lines.iter().map(intake).collect();
    let sum = |name: &str| all.iter().map(|one| one[name].as_u64().unwrap()).sum();
    (sum("recorded"), sum("duplicates"), all.len())
}

#[test]
fn a_mix_over_several_projects_is_counted_as_sent() {
    away_from_midnight();
    let tenant = Tenant::new();
    let dir = tempfile::tempdir().unwrap();
    let (file, page) = (dir.path().join("projects"), dir.path().join("page.html"));
    let (file_name, page_name) = (file.to_str().unwrap(), page.to_str().unwrap());
    let server = tenant.server.address;
    let mix = [
        "--mix",
        "single=4,batch=2,poll=3,profile=1",
        "--batch",
        "6",
        "--duplicates",
        "25",
        "--duration",
        "1s",
        "--connections",
        "4",
    ];
    let spread =
        ["--token", &tenant.token, "--projects", "3", "--projects-file", file_name, "--hot", "60", "--html", page_name, "--json"];
    let output = load(server, &mix, &spread);
    assert!(output.status.success(), "{output:?}");
    let report = report(&output);
    let (recorded, duplicates, projects) = counted(&tenant.server, &file);
    let verified = &report["verified"];
    assert_eq!(verified["agrees"], true, "{verified}");
    assert_eq!((verified["events_sent"].as_u64(), verified["events_counted"].as_u64()), (Some(recorded), Some(recorded)));
    assert_eq!((verified["duplicates_sent"].as_u64(), verified["projects"].as_u64()), (Some(duplicates), Some(projects as u64)));
    assert!(recorded > 0 && projects == 3, "{verified}");
    // One of each kind was sent before all else: none is missing, however slow the machine is.
    assert_eq!(report["unexpected"], 0, "{report}");
    assert_eq!(report["settings"]["mix"], "single=4,batch=2,poll=3,profile=1");
    let html = std::fs::read_to_string(&page).unwrap();
    assert!(html.starts_with("<!doctype html>") && html.contains("<svg") && html.contains("as sent"), "{html}");
    // It has keys and tokens.
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o077, 0);
    // The same projects again: what is counted is the increase.
    let again = load(server, &["--projects-file", file_name, "--batch", "3", "--duration", "1s", "--connections", "2"], &[]);
    let (text, errors) = texts(&again);
    assert!(again.status.success() && text.contains("counted  as sent"), "{text}{errors}");
    assert!(counted(&tenant.server, &file).0 > recorded);
    let more = load(server, &["--projects-file", file_name, "--projects", "4"], &[]);
    assert!(texts(&more).1.contains("has 3 projects, not 4"), "{more:?}");
}

#[test]
fn organizations_are_created_with_the_root_token() {
    let server = Server::shared();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("projects");
    let arguments = ["--projects", "3", "--root-token", &server.root_token, "--duration", "1s", "--connections", "2"];
    let output = load(server.address, &arguments, &["--projects-file", file.to_str().unwrap()]);
    assert!(output.status.success(), "{output:?}");
    assert!(texts(&output).0.contains("in 3 projects"), "{output:?}");
    assert_eq!(counted(&server, &file).2, 3);
}

#[test]
fn the_crowd_is_there_until_the_end() {
    let tenant = Tenant::new();
    let pid = std::process::id().to_string();
    let crowd = ["--idle", "20", "--streams", "3", "--dashboards", "2", "--rate", "20", "--connections", "2", "--duration", "1s"];
    let rest = ["--key", &tenant.key, "--token", &tenant.token, "--pid", &pid, "--progress", "--json"];
    let output = load(tenant.server.address, &crowd, &rest);
    assert!(output.status.success(), "{output:?}");
    let report = report(&output);
    assert_eq!(report["idle"], json!({"wanted": 20, "opened": 20, "answered_at_end": 20}));
    let streams = &report["streams"];
    assert_eq!((&streams["opened"], &streams["ended_early"]), (&json!(3), &json!(0)), "{streams}");
    assert_eq!(report["verified"]["agrees"], true, "{report}");
    assert!(report["server"]["memory_after_mib"].as_f64().unwrap() > 0.0, "{report}");
    // Each of them was asked once more at the end.
    assert!(report["kinds"]["idle"]["by_status"]["200"].as_u64() >= Some(20), "{report}");
    assert!(texts(&output).1.contains("requests/s"), "{output:?}");
    let stranger = load(tenant.server.address, &["--key", &tenant.key, "--pid", "4294967295"], &[]);
    assert!(texts(&stranger).1.contains("no such process"), "{stranger:?}");
}

#[test]
fn dashboards_ask_all_their_questions() {
    let pretender = Pretender::acknowledging(|acknowledged| acknowledged as u64);
    let rest =
        ["--key", "pk_x", "--token", "sk_x", "--project", PROJECT, "--rate", "5", "--duration", "1s", "--connections", "1"];
    let output = load(pretender.address, &["--dashboards", "2"], &rest);
    assert!(output.status.success(), "{output:?}");
    let paths = pretender.paths();
    for question in ["/companies/top", "/revenue/ltv-cohorts", "/revenue/by-attribution", "/intake", "level=identity"] {
        assert!(paths.iter().filter(|path| path.ends_with(question)).count() >= 2, "{question}: {paths:?}");
    }
}

#[test]
fn a_server_that_counts_less_or_more_than_it_acknowledged_is_found_out() {
    let cases: [(&str, Counting); 3] = [
        ("as sent", |sent| sent as u64),
        ("NOT AS SENT", |sent| sent.saturating_sub(1) as u64),
        ("NOT AS SENT", |sent| 2 * sent as u64),
    ];
    for (verdict, counts) in cases {
        let pretender = Pretender::acknowledging(counts);
        let rest = ["--project", PROJECT, "--rate", "500", "--duration", "1s", "--connections", "2"];
        let output = load(pretender.address, &["--key", "pk_x", "--token", "sk_x"], &rest);
        let (text, errors) = texts(&output);
        assert!(text.contains(&format!("counted  {verdict}:")), "{text}{errors}");
        assert_eq!(output.status.success(), verdict == "as sent", "{text}{errors}");
    }
}

#[test]
fn a_server_that_goes_away_ends_the_run() {
    let pretender = Pretender::start(|paths| (paths.len() <= 20).then(|| (202, json!({"status": "recorded"}).to_string())));
    let output = load(pretender.address, &["--key", "pk_x", "--rate", "100", "--duration", "10m", "--connections", "4"], &[]);
    let (text, errors) = texts(&output);
    assert_eq!(output.status.code(), Some(1), "{text}{errors}");
    assert!(text.contains("ended early: the server no longer answers") && text.contains("no answer"), "{text}{errors}");
    assert!(errors.contains("the server no longer answers"), "{errors}");
}

#[test]
fn a_ramp_without_a_sustained_step_has_no_knee() {
    // The first request, before the ramp, is taken.
    let pretender = Pretender::start(|paths| {
        Some(if paths.len() == 1 { (202, "\"status\":\"recorded\"".into()) } else { (503, "busy".into()) })
    });
    let rest = ["--ramp", "20..100", "--steps", "3", "--duration", "1s", "--connections", "2", "--json"];
    let output = load(pretender.address, &["--key", "pk_x"], &rest);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let report = report(&output);
    let steps = report["ramp"]["steps"].as_array().unwrap();
    assert_eq!(steps.iter().map(|step| step["target_rate"].as_f64().unwrap()).collect::<Vec<_>>(), [20.0, 20.0], "{report}");
    assert!(steps.iter().all(|step| step["not_sustained"] == "100.0 % of the requests failed"), "{report}");
    assert_eq!((&report["ramp"]["knee"], &report["messages"]["503"]), (&Value::Null, &json!("busy")));
    assert!(texts(&output).1.contains("no request was answered as expected"), "{output:?}");
}

#[test]
fn a_ramp_says_the_highest_rate_that_was_sustained() {
    let tenant = Tenant::new();
    let rest = ["--ramp", "10..30", "--steps", "3", "--duration", "1s", "--connections", "4", "--max-p99", "1h", "--json"];
    let output = load(tenant.server.address, &["--key", &tenant.key, "--token", &tenant.token], &rest);
    let report = report(&output);
    assert_eq!((&report["mode"], &report["verified"]["agrees"]), (&json!("ramp"), &json!(true)), "{report}");
    let steps = report["ramp"]["steps"].as_array().unwrap();
    // How fast the machine is now decides which are sustained; what follows from it does not.
    let sustained = steps.iter().filter(|step| step["not_sustained"].is_null()).filter_map(|step| step["target_rate"].as_f64());
    let highest = sustained.fold(None, |highest: Option<f64>, rate| Some(highest.map_or(rate, |other| other.max(rate))));
    assert_eq!(report["ramp"]["knee"].as_f64(), highest, "{report}");
    assert_eq!(report["target_rate"].as_f64(), Some(highest.unwrap_or(10.0)), "{report}");
    assert_eq!(output.status.success(), highest.is_some(), "{report}");
}

#[test]
fn refusals_are_reported_with_their_reason() {
    let tenant = Tenant::new();
    tenant.change_project(&json!({"rate_limit": 1, "burst": 1}));
    let server = tenant.server.address;
    let rest = ["--duration", "1s", "--connections", "8"];
    let output = load(server, &["--key", &tenant.key, "--token", &tenant.token, "--json"], &rest);
    let report = report(&output);
    assert!(report["by_status"]["429"].as_u64() > Some(0), "{report}");
    assert!(report["messages"]["429"].as_str().unwrap().starts_with("rate_limited: "), "{report}");
    assert_eq!(report["verified"]["agrees"], true, "{report}");
    for (arguments, what) in [
        (vec!["--key", "pk_wrong"], "answered 401 to a single request: invalid_credential"),
        (vec!["--key", &tenant.key, "--token", "sk_wrong"], "401 invalid_credential"),
        (vec!["--key", &tenant.key, "--mix", "single=1,poll=1"], "need --token"),
        (vec!["--key", &tenant.key, "--mix", "profile=1", "--token", &tenant.token], "share of single or batch"),
        (vec!["--projects", "2"], "--projects needs --token"),
        (vec!["--projects-file", "/none"], "/none does not exist"),
    ] {
        let output = load(server, &arguments, &[]);
        let (text, errors) = texts(&output);
        assert!(errors.contains(what) && errors.lines().count() == 1, "{arguments:?}: {errors}");
        assert_eq!((output.status.code(), text.as_str()), (Some(1), ""), "{arguments:?}");
    }
    for arguments in [
        &["--key", "x", "--mix", "all=1"][..],
        &["--key", "x", "--ramp", "5..1"],
        &["--key", "x", "--rate", "1", "--ramp", "1..5"],
        &[],
    ] {
        let output = load(server, arguments, &[]);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
    }
}

#[test]
fn two_runs_are_compared() {
    let pretender = Pretender::acknowledging(|acknowledged| acknowledged as u64);
    let dir = tempfile::tempdir().unwrap();
    let files = ["a.json", "b.json"].map(|name| dir.path().join(name).to_str().unwrap().to_owned());
    for (file, connections) in files.iter().zip(["1", "2"]) {
        let rest = ["--key", "pk_x", "--duration", "1s", "--json", "--connections", connections];
        let output = load(pretender.address, &rest, &[]);
        assert!(output.status.success(), "{output:?}");
        std::fs::write(file, output.stdout).unwrap();
    }
    let compare = |more: &[&str]| command(PROGRAM).args(["--compare", &files[0], &files[1]]).args(more).output().unwrap();
    let text = texts(&compare(&[])).0;
    assert!(text.contains("differs  connections: 1 / 2") && text.contains("single  p99 ms"), "{text}");
    let [a, b] =
        [&files[0], &files[1]].map(|file| serde_json::from_str::<Value>(&std::fs::read_to_string(file).unwrap()).unwrap());
    let pair = report(&compare(&["--json"]))["kinds"]["all"]["requests/s"].clone();
    assert_eq!((&pair["a"], &pair["b"]), (&a["requests_per_second"], &b["requests_per_second"]));
    let ratio = pair["b"].as_f64().unwrap() / pair["a"].as_f64().unwrap();
    assert!((pair["ratio"].as_f64().unwrap() - ratio).abs() < 0.001, "{pair}");
    std::fs::write(&files[1], "{}").unwrap();
    let output = compare(&[]);
    assert!(!output.status.success() && texts(&output).1.contains("b.json is not the output"), "{output:?}");
}
