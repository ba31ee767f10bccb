//! A start that takes long, and one that is refused.

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Read};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::Value;

use crate::client::{Answer, Call, Connection};
use crate::server::command;

const PATIENCE: Duration = Duration::from_secs(30);

/// A server whose start waits until a pipe in its data directory is written to.
struct Held {
    child: Child,
    address: SocketAddr,
    dir: tempfile::TempDir,
}

fn serve(dir: &Path, address: SocketAddr) -> Child {
    serve_with(dir, address, &[])
}

fn serve_with(dir: &Path, address: SocketAddr, environment: &[(&str, &str)]) -> Child {
    let mut command = command("serve", dir);
    command.envs(environment.iter().copied());
    command.args(["--shards", "2", "--min-free-bytes", "1MiB", "--listen", &address.to_string()]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn health(dir: &Path, address: SocketAddr) -> (Option<i32>, String) {
    let output = command("health", dir).args(["--listen", &address.to_string()]).output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
}

fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

impl Held {
    fn start() -> Self {
        Self::start_with(&[])
    }

    fn start_with(environment: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        // Made before, so that the directory is one of ours when the pipe is in it.
        assert!(command("init", dir.path()).stdout(Stdio::null()).status().unwrap().success());
        mknodat(CWD, dir.path().join("dead-letters.ndjson"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let address = free_address();
        let child = serve_with(dir.path(), address, environment);
        Self { child, address, dir }
    }

    /// Asks, from when it listens on.
    fn ask(&self, call: &Call) -> Answer {
        let since = Instant::now();
        loop {
            let sent = Connection::open(self.address).ok().and_then(|mut connection| connection.send(call).ok());
            match sent {
                Some((answer, _)) => return answer,
                None => assert!(since.elapsed() < PATIENCE, "it does not listen"),
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Lets the start go on, and waits until it is announced.
    fn release(&mut self) {
        let pipe = self.dir.path().join("dead-letters.ndjson");
        drop(fs::OpenOptions::new().write(true).open(pipe).unwrap());
        let stdout = BufReader::new(self.child.stdout.take().unwrap());
        let announced = format!("listening on http://{}", self.address);
        assert!(stdout.lines().map_while(Result::ok).any(|line| line == announced));
    }

    fn terminate(&mut self) -> ExitStatus {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
        let since = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(since.elapsed() < PATIENCE, "it does not stop");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_server_that_starts_answers_and_says_that_it_is_not_ready() {
    let mut held = Held::start();
    assert_eq!(held.ask(&Call::get("/healthz")).ok(200)["status"], "ok");
    for call in [Call::get("/readyz"), Call::post("/i").text("application/json", "{}"), Call::get("/nothing")] {
        let answer = held.ask(&call);
        let body = answer.ok(503);
        assert_eq!(body["error"]["code"], "overloaded", "{body}");
        assert!(body["error"]["message"].as_str().unwrap().contains("starting"), "{body}");
        assert!(answer.header("retry-after").is_some() && answer.header("x-request-id").is_some());
    }
    held.release();
    assert_eq!(held.ask(&Call::get("/readyz")).ok(200)["status"], "ok");
    assert_eq!(held.ask(&Call::get("/nothing")).status, 404);
    assert!(held.terminate().success());
}

#[test]
fn health_says_whether_the_server_is_ready() {
    let mut held = Held::start();
    held.ask(&Call::get("/healthz")).ok(200);
    let (code, said) = health(held.dir.path(), held.address);
    assert!(code == Some(1) && said.contains("503 overloaded: the server is starting"), "{code:?} {said}");
    held.release();
    assert_eq!(health(held.dir.path(), held.address), (Some(0), "ready\n".to_owned()));
    // The file in the data directory has the address.
    assert_eq!(health(held.dir.path(), free_address()), (Some(0), "ready\n".to_owned()));
    assert!(held.terminate().success());
    let (code, said) = health(held.dir.path(), held.address);
    assert!(code == Some(1) && said.contains("no answer from http://"), "{code:?} {said}");
}

#[test]
fn health_waits_only_so_long() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let dir = tempfile::tempdir().unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let output = command("health", dir.path()).args(["--url", &url, "--timeout", "50ms"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("timeout"), "{output:?}");
}

#[test]
fn the_service_manager_hears_of_the_server_once_it_is_ready() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    let mut held = Held::start_with(&[("NOTIFY_SOCKET", path.to_str().unwrap()), ("WATCHDOG_USEC", "200000")]);
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let receive = || {
        let mut buffer = [0; 256];
        let read = socket.recv(&mut buffer).expect("a message");
        String::from_utf8_lossy(&buffer[..read]).into_owned()
    };
    held.ask(&Call::get("/healthz")).ok(200);
    socket.set_nonblocking(true).unwrap();
    assert!(socket.recv(&mut [0; 256]).is_err(), "it is not ready yet");
    socket.set_nonblocking(false).unwrap();
    held.release();
    assert_eq!(receive(), format!("READY=1\nSTATUS=serving http://{}", held.address));
    assert_eq!([receive(), receive()], ["WATCHDOG=1", "WATCHDOG=1"]);
    assert!(held.terminate().success());
    let last = std::iter::repeat_with(receive).find(|message| message != "WATCHDOG=1");
    assert_eq!(last.as_deref(), Some("STOPPING=1\nSTATUS=stopping"));
}

#[test]
fn a_start_can_be_stopped() {
    let mut held = Held::start();
    held.ask(&Call::get("/healthz")).ok(200);
    assert!(held.terminate().success());
    // The next one is unaffected.
    held.child = serve(held.dir.path(), held.address);
    held.ask(&Call::get("/healthz")).ok(200);
    held.release();
    held.ask(&Call::get("/readyz")).ok(200);
    assert!(held.terminate().success());
}

#[test]
fn a_server_whose_address_is_taken_creates_nothing() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().join("data");
    let mut child = serve(&dir, taken.local_addr().unwrap());
    assert_eq!(child.wait().unwrap().code(), Some(1));
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(said.contains("can't listen on"), "{said}");
    assert!(!dir.exists(), "{:?}", fs::read_dir(&dir).unwrap().flatten().collect::<Vec<_>>());
}

/// The first start of a server whose standard output is `output`.
fn first_start(dir: &Path, output: Stdio) -> Child {
    let mut serve = command("serve", dir);
    serve.args(["--listen", "127.0.0.1:0", "--shards", "1", "--workers", "1", "--min-free-bytes", "1MiB"]);
    serve.stdout(output).stderr(Stdio::piped()).spawn().expect("it runs")
}

/// On a terminal, the first start prints the address after that of the server.
#[test]
fn a_first_start_prints_an_address_that_signs_in() {
    let dir = tempfile::tempdir().expect("a directory");
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&terminal).and_then(|()| unlockpt(&terminal)).expect("a terminal");
    let name = ptsname(&terminal, Vec::new()).expect("its name").into_string().expect("a path");
    let output = OpenOptions::new().read(true).write(true).open(name).expect("it opens");
    let mut child = first_start(dir.path(), output.into());
    let lines: Vec<String> = lines_until(File::from(terminal), "/#code=lc_");
    let _ = child.kill();
    let output = child.wait_with_output().expect("it ended");
    let url = lines.last().filter(|line| line.contains("/#code="));
    let url = url.unwrap_or_else(|| panic!("no address was printed: {}", String::from_utf8_lossy(&output.stderr))).trim_end();
    let (base, code) = url.split_once("/#code=").expect("a code");
    assert!(base.starts_with("http://127.0.0.1:") && code.len() == 35, "{url}");
    assert!(!String::from_utf8_lossy(&output.stderr).contains(code), "the code is in the log");
    assert!(lines.iter().any(|line| line.starts_with("export TOKEN=sk_")), "{lines:?}");
}

/// The output of services and containers is kept, and read by others.
#[test]
fn a_first_start_without_a_terminal_names_the_file_that_has_the_keys() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut child = first_start(dir.path(), Stdio::piped());
    let output = child.stdout.take().expect("standard output");
    let reader = std::thread::spawn(move || lines_until(output, "nothing is like this").join("\n"));
    let (began, file, address) = (Instant::now(), dir.path().join("credentials.json"), dir.path().join("server-url"));
    while !address.exists() {
        assert!(began.elapsed() < PATIENCE, "it does not start");
        std::thread::sleep(Duration::from_millis(20));
    }
    // The address that signs in would come after that of the server.
    std::thread::sleep(Duration::from_millis(500));
    let _ = child.kill();
    let errors = String::from_utf8_lossy(&child.wait_with_output().expect("it ended").stderr).into_owned();
    let output = reader.join().unwrap();
    let keys: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(output.contains("listening on http://") && output.contains(file.to_str().unwrap()), "{output}");
    assert!(output.contains(keys["public_key"].as_str().unwrap()), "{output}");
    for secret in [keys["api_token"].as_str().unwrap(), keys["root_token"].as_str().unwrap(), "sk_", "rk_", "lc_"] {
        assert!(!output.contains(secret) && !errors.contains(secret), "{secret} is in {output}{errors}");
    }
}

/// The lines up to the one with this text.
fn lines_until(output: impl Read, text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    for line in BufReader::new(output).lines().map_while(Result::ok) {
        let is_last = line.contains(text);
        lines.push(line);
        if is_last {
            break;
        }
    }
    lines
}
