//! A real server in a process of its own, on an empty data directory.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::client::{Answer, Broken, Call, Connection};
use crate::wrong_clock::WrongClock;

const PROGRAM: &str = env!("CARGO_BIN_EXE_headcount");
/// How long a server may take to start or to stop.
const PATIENCE: Duration = Duration::from_secs(30);
/// Small, so that a test's server starts quickly, and writes checkpoints while it is asked.
const SETTINGS: [&str; 8] = ["--shards", "2", "--workers", "1", "--min-free-bytes", "1MiB", "--checkpoint-interval", "2s"];

/// A server.
pub(crate) struct TestServer {
    /// What `init` printed.
    pub(crate) initial: Value,
    settings: Vec<String>,
    process: Mutex<Process>,
    idle: Mutex<Vec<Connection>>,
    /// What it wrote to standard error, over all its starts.
    log: Arc<Mutex<String>>,
    /// Its clock, if it may be wrong.
    clock: Option<WrongClock>,
    dir: TempDir,
}

struct Process {
    child: Child,
    address: SocketAddr,
    readers: Vec<JoinHandle<()>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl TestServer {
    /// A new server, alone in its process.
    pub(crate) fn start() -> TestServer {
        TestServer::start_with(&[])
    }

    /// The same, with more settings.
    pub(crate) fn start_with(settings: &[&str]) -> TestServer {
        TestServer::start_by(settings, None)
    }

    /// The same, with a clock that may be set.
    pub(crate) fn start_by(settings: &[&str], clock: Option<WrongClock>) -> TestServer {
        let dir = tempfile::tempdir().expect("a directory");
        let initial = init(dir.path());
        let settings: Vec<String> = SETTINGS.iter().chain(settings).map(ToString::to_string).collect();
        let log = Arc::new(Mutex::new(String::new()));
        let process = Mutex::new(Process::start(dir.path(), &settings, &log, clock.as_ref()));
        TestServer { initial, settings, process, idle: Mutex::default(), log, clock, dir }
    }

    /// A server that tests share, each with an organization of its own. It runs as long as one of
    /// them does.
    pub(crate) fn shared() -> Arc<TestServer> {
        static SHARED: Mutex<Weak<TestServer>> = Mutex::new(Weak::new());
        let mut shared = lock(&SHARED);
        shared.upgrade().unwrap_or_else(|| {
            let server = Arc::new(TestServer::start());
            *shared = Arc::downgrade(&server);
            server
        })
    }

    /// Its clock, if it may be wrong.
    pub(crate) fn clock(&self) -> Option<&WrongClock> {
        self.clock.as_ref()
    }

    /// Where its data is.
    pub(crate) fn data_dir(&self) -> &Path {
        self.dir.path()
    }

    /// The operator token of the present start.
    pub(crate) fn operator(&self) -> String {
        let token = std::fs::read_to_string(self.data_dir().join("operator-token")).expect("the operator token");
        token.trim_end().to_owned()
    }

    /// Its logs so far.
    pub(crate) fn log(&self) -> String {
        lock(&self.log).clone()
    }

    /// A field of what `init` printed.
    pub(crate) fn initial(&self, name: &str) -> &str {
        self.initial[name].as_str().unwrap_or_else(|| panic!("init printed no {name}"))
    }

    /// Sends a request on a connection that is kept open.
    #[track_caller]
    pub(crate) fn send(&self, call: &Call) -> Answer {
        loop {
            let idle = lock(&self.idle).pop();
            let mut connection = idle.unwrap_or_else(|| self.connect());
            match connection.send(call) {
                Ok((answer, is_open)) => {
                    if is_open {
                        lock(&self.idle).push(connection);
                    }
                    return answer;
                }
                Err(Broken::Stale) => {}
                Err(Broken::Failed(error)) => panic!("{call:?} was not answered: {error}\n{}", self.log()),
            }
        }
    }

    /// A new connection.
    pub(crate) fn connect(&self) -> Connection {
        let address = lock(&self.process).address;
        Connection::open(address).unwrap_or_else(|error| panic!("{error}\n{}", self.log()))
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        lock(&self.process).address
    }

    /// How much memory the process has, in MiB.
    pub(crate) fn resident_mib(&self) -> u64 {
        let pid = lock(&self.process).child.id();
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("the process runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("it has memory");
        line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") / 1024
    }

    /// Stops it as an operator would, and starts it again on the same data.
    pub(crate) fn restart(&self) {
        self.stopped(|_| ());
    }

    /// Kills it without warning, and starts it again on the same data.
    pub(crate) fn kill(&self) {
        self.killed(|| ());
    }

    /// Kills it without warning, does something, and starts it again on the same data.
    pub(crate) fn killed(&self, work: impl FnOnce()) {
        let mut process = lock(&self.process);
        process.kill();
        work();
        self.start_again(&mut process);
    }

    /// Kills it, removes its data, and starts it again on what a backup restores.
    pub(crate) fn replace_by(&self, backup: &Path) {
        let mut process = lock(&self.process);
        process.kill();
        std::fs::remove_dir_all(self.dir.path()).expect("its data is removed");
        self.run("restore", &[backup.to_str().expect("a path in text")]);
        self.start_again(&mut process);
    }

    /// Stops it, does something to its data, and starts it again.
    pub(crate) fn stopped<T>(&self, work: impl FnOnce(&Path) -> T) -> T {
        let mut process = lock(&self.process);
        let status = process.stop();
        assert!(status.success(), "stopped with {status}\n{}", self.log());
        let result = work(self.dir.path());
        self.start_again(&mut process);
        result
    }

    /// Stops it for good, so that its log is complete.
    pub(crate) fn stop(&self) -> ExitStatus {
        lock(&self.process).stop()
    }

    /// What the program, run once on the server's data, wrote to standard output.
    #[track_caller]
    pub(crate) fn run(&self, name: &str, arguments: &[&str]) -> String {
        let mut command = command(name, self.dir.path());
        self.clock.iter().for_each(|clock| clock.tell(&mut command));
        let output = command.args(arguments).output().expect("the program runs");
        assert!(output.status.success(), "{name} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// What a server with these settings, which must not start, wrote to standard error.
    #[track_caller]
    pub(crate) fn refusal(settings: &[&str]) -> String {
        let dir = tempfile::tempdir().expect("a directory");
        let mut command = command("serve", dir.path());
        command.args(SETTINGS).args(["--listen", "127.0.0.1:0"]).args(settings);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
        let stdout = BufReader::new(child.stdout.take().expect("standard output"));
        if stdout.lines().map_while(Result::ok).any(|line| line.starts_with("listening on")) {
            let _ = child.kill();
            let _ = child.wait();
            panic!("it started with {settings:?}");
        }
        let output = child.wait_with_output().expect("it ended");
        assert_eq!(output.status.code(), Some(1), "{settings:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    fn start_again(&self, process: &mut Process) {
        lock(&self.idle).clear();
        *process = Process::start(self.dir.path(), &self.settings, &self.log, self.clock.as_ref());
    }
}

/// Restores a backup in place of a stopped server's data, without the people that were erased there
/// since. Returns what was printed.
pub(crate) fn restore_without_erased(data: &Path, backup: &Path) -> Value {
    let former = tempfile::tempdir().expect("a directory");
    for entry in std::fs::read_dir(data).expect("its data") {
        let path = entry.expect("an entry").path();
        // Another file system than that of the data may hold temporary directories.
        let moved = Command::new("mv").arg(&path).arg(former.path()).status().expect("mv runs");
        assert!(moved.success(), "{}", path.display());
    }
    let mut restore = command("restore", data);
    let output = restore.arg(backup).args(["--json", "--erasures-from"]).arg(former.path()).output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("restore prints one JSON object")
}

/// Makes the first organization.
fn init(dir: &Path) -> Value {
    let output = command("init", dir).arg("--json").output().expect("the program runs");
    assert!(output.status.success(), "init: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("init prints one JSON object")
}

/// The program, without the settings of the test's own environment.
pub(crate) fn command(name: &str, dir: &Path) -> Command {
    let mut command = Command::new(PROGRAM);
    for (variable, _) in std::env::vars_os().filter(|(variable, _)| variable.to_string_lossy().starts_with("HEADCOUNT_")) {
        command.env_remove(variable);
    }
    command.arg(name).arg("--data-dir").arg(dir);
    command
}

impl Process {
    fn start(dir: &Path, settings: &[String], log: &Arc<Mutex<String>>, clock: Option<&WrongClock>) -> Process {
        let mut command = command("serve", dir);
        clock.into_iter().for_each(|clock| clock.tell(&mut command));
        command.args(["--listen", "127.0.0.1:0"]).args(settings);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let stderr = child.stderr.take().expect("standard error");
        let log_of = Arc::clone(log);
        let errors = std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                let mut log = lock(&log_of);
                log.push_str(&line);
                log.push('\n');
            }
        });
        let mut stdout = BufReader::new(child.stdout.take().expect("standard output"));
        let mut printed = String::new();
        let address = loop {
            let mut line = String::new();
            if stdout.read_line(&mut line).unwrap_or(0) == 0 {
                let _ = child.kill();
                let _ = child.wait();
                panic!("the server did not start:\n{printed}{}", lock(log));
            }
            if let Some(address) = line.trim().strip_prefix("listening on http://") {
                break address.parse().expect("an address and a port");
            }
            printed += &line;
        };
        // Nobody reads on, and the pipe must not fill.
        let rest = std::thread::spawn(move || {
            let _ = std::io::copy(&mut stdout.by_ref(), &mut std::io::sink());
        });
        Process { child, address, readers: vec![errors, rest] }
    }

    fn stop(&mut self) -> ExitStatus {
        if let Ok(Some(status)) = self.child.try_wait() {
            return status;
        }
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args(["-TERM", &pid]).status().expect("kill runs");
        assert!(sent.success(), "kill -TERM {pid}");
        let since = Instant::now();
        let status = loop {
            match self.child.try_wait().expect("the child can be waited for") {
                Some(status) => break status,
                None if since.elapsed() > PATIENCE => {
                    self.kill();
                    panic!("the server did not stop within {PATIENCE:?}");
                }
                None => std::thread::sleep(Duration::from_millis(5)),
            }
        };
        self.read_out();
        status
    }

    fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.read_out();
    }

    fn read_out(&mut self) {
        for reader in self.readers.drain(..) {
            let _ = reader.join();
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}
