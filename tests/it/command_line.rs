//! The commands beside the server, as an operator runs them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::client::Call;
use crate::server::{TestServer, command};

/// The time limit of a command.
const TIMEOUT: Duration = Duration::from_secs(60);

fn run(name: &str, dir: &Path, arguments: &[&str]) -> Output {
    command(name, dir).args(arguments).output().unwrap()
}

fn printed(output: &Output) -> (String, String) {
    (String::from_utf8_lossy(&output.stdout).into_owned(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// A directory and everything in it, with modes.
fn modes(dir: &Path) -> Vec<(PathBuf, u32)> {
    let mode = |path: &Path| fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777;
    let mut all = vec![(dir.to_owned(), mode(dir))];
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { all.extend(modes(&path)) } else { all.push((path.clone(), mode(&path))) }
    }
    all
}

#[test]
fn init_follows_its_flags_and_prints_lines_for_a_shell() {
    let dir = tempfile::tempdir().unwrap();
    let made = run("init", dir.path(), &["--currency", "EUR", "--timezone", "Europe/Berlin", "--name", "Acme"]);
    let (text, errors) = printed(&made);
    assert!(made.status.success(), "{errors}");
    let file: Value = serde_json::from_slice(&fs::read(dir.path().join("credentials.json")).unwrap()).unwrap();
    for (variable, field) in [("PK", "public_key"), ("TOKEN", "api_token"), ("PROJECT", "project_id")] {
        let line = format!("export {variable}={}", file[field].as_str().unwrap());
        assert!(text.lines().any(|it| it == line), "{line} is not in {text}");
    }
    assert!(text.contains("credentials.json"), "{text}");
    let (_, errors) = printed(&run("serve", &dir.path().join("credentials.json/x"), &["--listen", "127.0.0.1:0"]));
    assert!(errors.contains("credentials.json/x"), "{errors}");
}

#[test]
fn openapi_prints_the_document_that_the_server_answers() {
    let dir = tempfile::tempdir().unwrap();
    let (text, errors) = printed(&run("openapi", dir.path(), &[]));
    let server = TestServer::shared();
    let answer = server.send(&Call::get("/openapi.json"));
    assert_eq!((text.trim_end(), errors.as_str()), (answer.text().as_str(), ""));
}

#[test]
fn a_data_directory_that_was_open_to_others_is_made_private() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    fs::create_dir(&data).unwrap();
    fs::set_permissions(&data, fs::Permissions::from_mode(0o755)).unwrap();
    let file = dir.path().join("events");
    fs::write(&file, "{\"name\":\"a\",\"user_id\":\"u\"}\n").unwrap();
    assert!(run("init", &data, &[]).status.success());
    let import = [file.to_str().unwrap(), "--min-free-bytes", "0"];
    assert!(run("import", &data, &import).status.success());
    let is_open = |(path, mode): &(PathBuf, u32)| {
        let allowed = if path.is_dir() { 0o700 } else { 0o600 };
        mode & !allowed != 0
    };
    let open: Vec<_> = modes(&data).into_iter().filter(is_open).collect();
    assert!(open.is_empty(), "{open:?}");
    for (path, mode) in modes(&data) {
        fs::set_permissions(&path, fs::Permissions::from_mode(mode | 0o055)).unwrap();
    }
    let (_, errors) = printed(&run("import", &data, &import));
    assert!(errors.contains("permissions of other users"), "{errors}");
    let open: Vec<_> = modes(&data).into_iter().filter(is_open).collect();
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn mistaken_settings_are_reported() {
    let dir = tempfile::tempdir().unwrap();
    let output = command("config", dir.path()).env("HEADCOUNT_MEMROY", "1GiB").output().unwrap();
    assert!(output.status.success());
    assert!(printed(&output).1.contains("HEADCOUNT_MEMROY"), "{output:?}");
    let (_, errors) = printed(&run("config", dir.path(), &["--log", "verbose"]));
    assert!(errors.contains("--log") && errors.contains("error, warn, info"), "{errors}");
    assert!(run("config", dir.path(), &["--memory", "512MB"]).status.success());
}

/// Appends orders of 1 dollar, each by a user of its own.
fn append_orders(path: &Path, orders: std::ops::Range<u32>) {
    use std::io::Write;
    let order = |number| format!("{{\"name\":\"purchase\",\"timestamp\":1431857103000,\"user_id\":\"u{number}\",\"value\":1}}\n");
    let text: String = orders.map(order).collect();
    fs::OpenOptions::new().append(true).create(true).open(path).unwrap().write_all(text.as_bytes()).unwrap();
}

/// How many lines were imported, as the journals say.
fn imported(data_dir: &Path) -> u64 {
    let Ok(journals) = fs::read_dir(data_dir.join("imports")) else { return 0 };
    let journals = journals.map(|entry| entry.unwrap().path()).filter(|path| path.extension().is_some_and(|it| it == "ndjson"));
    let lines = |path: PathBuf| {
        let text = fs::read_to_string(path).unwrap();
        let reached: Value = serde_json::from_str(text.lines().nth(1).unwrap()).unwrap();
        reached["reached"]["done"]["lines"].as_u64().unwrap()
    };
    journals.map(lines).sum()
}

const ROUNDS: u32 = 5;
/// The number of orders that a round adds: more than one batch.
const ORDERS: u32 = 4_000;

/// Imports a file that grows, killing the import in every round when its journal goes on, or when
/// it has the second batch.
fn import_with_kills(data_dir: &Path, file: &Path) {
    for round in 0..ROUNDS {
        append_orders(file, round * ORDERS..(round + 1) * ORDERS);
        let before = imported(data_dir) + u64::from(round % 2 * ORDERS / 2);
        let mut import = command("import", data_dir);
        import.args([file.to_str().unwrap(), "--min-free-bytes", "0", "--follow"]).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = import.spawn().unwrap();
        wait_for(|| imported(data_dir) > before);
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let output = run("import", data_dir, &[file.to_str().unwrap(), "--min-free-bytes", "0"]);
    assert!(output.status.success(), "{output:?}");
}

fn assert_orders(server: &TestServer, orders: u32) {
    let path = format!("/projects/{}/revenue/metrics?start_date=2015-05-01&end_date=2015-05-31", server.initial("project_id"));
    let metrics = server.send(&Call::get(path).bearer(server.initial("api_token"))).ok(200);
    assert_eq!(
        (metrics["orders"].as_u64(), metrics["total_revenue"].as_f64()),
        (Some(u64::from(orders)), Some(f64::from(orders)))
    );
}

#[test]
fn an_import_that_is_killed_again_and_again_records_everything_once() {
    let server = TestServer::start();
    let dir = tempfile::tempdir().unwrap();
    // Through the server, which is killed too.
    import_with_kills(server.data_dir(), &dir.path().join("first"));
    server.kill();
    assert_orders(&server, ROUNDS * ORDERS);
    // Into the data directory itself.
    assert!(server.stop().success());
    import_with_kills(server.data_dir(), &dir.path().join("second"));
    server.kill();
    assert_orders(&server, 2 * ROUNDS * ORDERS);
}

#[test]
fn exit_codes_of_an_import() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    assert!(run("init", &data, &[]).status.success());
    let file = dir.path().join("events");
    let event = "{\"name\":\"a\",\"user_id\":\"u\"}\n";
    let (mixed, cut) = (format!("nonsense\n{event}"), format!("{event}{{\"name\":"));
    for (content, expected) in [("nonsense\n", 1), (&*mixed, 0), (&*cut, 1), ("", 0)] {
        fs::write(&file, content).unwrap();
        let output = run("import", &data, &[file.to_str().unwrap(), "--min-free-bytes", "0"]);
        assert_eq!(output.status.code(), Some(expected), "{content:?}: {output:?}");
    }
    let server = TestServer::start();
    for (content, expected) in
        [("nonsense\n", 1), ("{\"name\":[5]}\n", 1), ("{\"name\":[5]}\nnonsense\n", 1), (&*mixed, 0), ("", 0)]
    {
        fs::write(&file, content).unwrap();
        let output = run("import", server.data_dir(), &[file.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(expected), "through a server, {content:?}: {output:?}");
    }
    // Of lines that were all refused, the next run says so, too.
    fs::write(&file, "{\"name\":[5]}\n".repeat(3)).unwrap();
    for _ in 0..2 {
        assert_eq!(run("import", server.data_dir(), &[file.to_str().unwrap()]).status.code(), Some(1));
        assert_eq!(run("import", &data, &[file.to_str().unwrap(), "--min-free-bytes", "0"]).status.code(), Some(1));
    }
    // A signal stops an import that waits for a silent pipe.
    let fresh = dir.path().join("fresh");
    assert!(run("init", &fresh, &[]).status.success());
    let mut import = command("import", &fresh);
    let import = import.args(["-", "--min-free-bytes", "0"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let child = import.spawn().unwrap();
    // It catches signals before it opens the data directory.
    wait_for(|| fresh.join("log").exists());
    let code = terminate(child);
    assert_eq!(code, Some(1), "it was cut short");
}

#[test]
fn following_a_file_ends_cleanly() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    assert!(run("init", &data, &[]).status.success());
    let file = dir.path().join("events");
    append_orders(&file, 0..10);
    let mut import = command("import", &data);
    import.args([file.to_str().unwrap(), "--follow", "--min-free-bytes", "0"]).stdout(Stdio::null()).stderr(Stdio::null());
    let child = import.spawn().unwrap();
    wait_for(|| imported(&data) == 10);
    assert_eq!(terminate(child), Some(0));
}

/// The names of the users of all events.
fn users(data_dir: &Path) -> Vec<String> {
    let (text, errors) = printed(&run("export", data_dir, &[]));
    let user = |line: &str| {
        let row: Value = serde_json::from_str(line).unwrap_or_else(|_| panic!("{line} {errors}"));
        row["user_id"].as_str().unwrap().to_owned()
    };
    text.lines().map(user).collect()
}

/// As log rotation leaves it: renamed and written to until its program notices, or copied and
/// truncated.
#[test]
fn a_followed_file_may_be_renamed_or_truncated() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    assert!(run("init", &data, &[]).status.success());
    let (file, renamed) = (dir.path().join("events"), dir.path().join("events.1"));
    append_orders(&file, 0..40);
    let mut import = command("import", &data);
    import.args([file.to_str().unwrap(), "--follow", "--min-free-bytes", "0"]).stdout(Stdio::null()).stderr(Stdio::null());
    let child = import.spawn().unwrap();
    wait_for(|| imported(&data) == 40);
    fs::rename(&file, &renamed).unwrap();
    append_orders(&renamed, 40..50);
    wait_for(|| imported(&data) == 50);
    append_orders(&file, 50..80);
    wait_for(|| imported(&data) == 80);
    fs::OpenOptions::new().write(true).open(&file).unwrap().set_len(0).unwrap();
    append_orders(&file, 80..90);
    wait_for(|| imported(&data) == 90);
    append_orders(&file, 90..95);
    wait_for(|| imported(&data) == 95);
    assert_eq!(terminate(child), Some(0));
    let expected: Vec<String> = (0..95).map(|number| format!("u{number}")).collect();
    assert_eq!(users(&data), expected);
}

#[track_caller]
fn wait_for(is_so: impl Fn() -> bool) {
    let since = Instant::now();
    while !is_so() {
        assert!(since.elapsed() < TIMEOUT, "it did not happen");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[track_caller]
fn terminate(mut child: Child) -> Option<i32> {
    let sent = std::process::Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
    let since = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        if since.elapsed() > TIMEOUT {
            child.kill().unwrap();
            panic!("it did not end");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn completions_and_manual_pages_have_every_command() {
    let dir = tempfile::tempdir().unwrap();
    for (shell, expected) in [
        ("bash", "complete -F _headcount"),
        ("zsh", "#compdef headcount"),
        ("fish", "complete -c headcount"),
        ("elvish", "edit:completion:arg-completer[headcount]"),
        ("powershell", "Register-ArgumentCompleter"),
    ] {
        let (script, errors) = printed(&run("completions", dir.path(), &[shell]));
        assert!(script.contains(expected) && script.contains("audit-log"), "{shell}: {errors}");
    }
    let unknown = run("completions", dir.path(), &["tcsh"]);
    assert_eq!(unknown.status.code(), Some(2), "{unknown:?}");

    let pages = dir.path().join("share/man1");
    for _ in 0..2 {
        assert!(run("man", dir.path(), &[pages.to_str().unwrap()]).status.success(), "written over, too");
    }
    for page in ["headcount.1", "headcount-serve.1", "headcount-project-create.1", "headcount-man.1"] {
        let text = fs::read_to_string(pages.join(page)).unwrap();
        assert!(text.contains(".TH headcount") && text.contains(".SH OPTIONS"), "{page}: {text}");
    }
    let taken = dir.path().join("taken");
    fs::write(&taken, "").unwrap();
    let (_, errors) = printed(&run("man", dir.path(), &[taken.to_str().unwrap()]));
    assert!(errors.contains("taken: "), "{errors}");
}

#[test]
fn brokers_that_do_not_answer_can_not_carry_a_cluster() {
    let dir = tempfile::tempdir().unwrap();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let address = format!("nats://name:secret@{free}");
    for arguments in [&["cluster", "check", &address][..], &["cluster", "check", &address, "--json"]] {
        let checked = command(arguments[0], dir.path()).args(&arguments[1..]).output().unwrap();
        let (text, errors) = printed(&checked);
        assert_eq!(checked.status.code(), Some(1), "{text} {errors}");
        assert!(text.contains(&format!("nats://{free} does not answer")), "{text}");
        assert!(!format!("{text}{errors}").contains("secret"), "{text} {errors}");
    }
    let refused = run("cluster", dir.path(), &["check"]);
    assert_eq!(refused.status.code(), Some(2));
}
