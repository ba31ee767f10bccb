//! Runs the server as a child process.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::error::{CampaignError, Result, harness, violation};

/// Maximum duration of a start.
const START_TIMEOUT: Duration = Duration::from_secs(120);
/// Maximum duration of a clean stop: longer than all limits of the server together.
const STOP_TIMEOUT: Duration = Duration::from_secs(40);
/// Polling interval.
const TICK: Duration = Duration::from_millis(2);

/// The command line and environment of a server.
#[derive(Debug, Clone)]
pub struct Launch {
    /// Path of the binary.
    pub binary: PathBuf,
    /// Data directory.
    pub data_dir: PathBuf,
    /// What runs the server: a program and its arguments, such as those that end the server with
    /// the harness, or none.
    pub runner: Vec<String>,
    /// The address to listen at.
    pub listen: SocketAddr,
    /// Additional flags.
    pub flags: Vec<String>,
    /// The mistake to make, in builds with fault injection.
    pub fault: Option<String>,
    /// Additional environment variables.
    pub environment: Vec<(&'static str, String)>,
}

/// Standard error of a server.
#[derive(Debug, Clone, Default)]
pub struct Log(Arc<Mutex<String>>);

impl Log {
    /// Returns the output so far.
    #[must_use]
    pub fn text(&self) -> String {
        self.0.lock().unwrap().clone()
    }

    /// Returns whether the output contains `text`.
    #[must_use]
    pub fn contains(&self, text: &str) -> bool {
        self.0.lock().unwrap().contains(text)
    }

    /// Returns the last lines, for messages.
    #[must_use]
    pub fn tail(&self) -> String {
        let text = self.text();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(12)..].join("\n    ")
    }
}

/// A server process that may not listen yet. Dropping it kills the process.
#[derive(Debug)]
pub struct Starting {
    child: Child,
    log: Log,
    address: Receiver<SocketAddr>,
    began: Instant,
}

/// Result of a start that may fail.
#[derive(Debug)]
pub enum Started {
    /// The server listens.
    Listening(Server),
    /// The process exited.
    Exited(Exited),
}

/// A process that has exited.
#[derive(Debug)]
pub struct Exited {
    /// Exit status.
    pub status: ExitStatus,
    /// Standard error.
    pub log: Log,
    /// Duration of the wait for its exit.
    pub took: Duration,
}

/// A listening server. Dropping it kills the process.
#[derive(Debug)]
pub struct Server {
    process: Starting,
    /// Its listen address.
    pub address: SocketAddr,
    /// Time from the start of the process until it listened.
    pub started_in: Duration,
}

impl Launch {
    /// Returns the command with these arguments, the data directory and the environment.
    #[must_use]
    pub fn command(&self, arguments: &[&str]) -> Command {
        self.command_of(&[], arguments)
    }

    fn command_of(&self, runner: &[String], arguments: &[&str]) -> Command {
        let mut command = command_of(runner, &self.binary);
        command.args(arguments).arg("--data-dir").arg(&self.data_dir).stdin(Stdio::null());
        for variable in std::env::vars_os().map(|(name, _)| name).filter(|name| name.to_string_lossy().starts_with("HEADCOUNT_"))
        {
            command.env_remove(variable);
        }
        if let Some(fault) = &self.fault {
            command.env("HEADCOUNT_FAULT", fault);
        }
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Starts the process without waiting for it to listen.
    ///
    /// # Errors
    /// The binary can't be executed.
    pub fn spawn(&self) -> Result<Starting> {
        let mut command = self.command_of(&self.runner, &["serve", "--listen", &self.listen.to_string()]);
        let child = command.args(&self.flags).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = child.map_err(|error| harness(format!("{}: {error}", self.binary.display())))?;
        let log = Log::default();
        let (stdout, stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        let (sender, address) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(std::result::Result::ok) {
                if let Some(address) = line.strip_prefix("listening on http://").and_then(|address| address.parse().ok()) {
                    let _ = sender.send(address);
                }
            }
        });
        let to = log.clone();
        std::thread::spawn(move || collect(stderr, &to));
        Ok(Starting { child, log, address, began: Instant::now() })
    }

    /// Starts a server, and waits until it listens.
    ///
    /// # Errors
    /// A violation if it exits or takes too long.
    pub async fn start(&self) -> Result<Server> {
        self.spawn()?.wait_until_listening().await
    }
}

/// Returns the command that runs `program` by `runner`, if there is one.
#[must_use]
pub fn command_of(runner: &[String], program: &Path) -> Command {
    let Some((first, rest)) = runner.split_first() else { return Command::new(program) };
    let mut command = Command::new(first);
    command.args(rest).arg(program);
    command
}

/// The address at which the system chooses a port.
#[must_use]
pub fn any_port() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

fn collect(mut stderr: impl Read, log: &Log) {
    let mut chunk = [0; 4096];
    while let Ok(read) = stderr.read(&mut chunk) {
        if read == 0 {
            return;
        }
        log.0.lock().unwrap().push_str(&String::from_utf8_lossy(&chunk[..read]));
    }
}

impl Starting {
    /// Waits until the server listens.
    ///
    /// # Errors
    /// A violation if it exits or takes too long.
    pub async fn wait_until_listening(self) -> Result<Server> {
        match self.wait_until_listening_or_exit().await? {
            Started::Listening(server) => Ok(server),
            Started::Exited(Exited { status, log, .. }) => {
                Err(violation(format!("the server did not start ({status}); its log:\n    {}", log.tail())))
            }
        }
    }

    /// Waits until the server listens or exits.
    ///
    /// # Errors
    /// A violation if it takes too long.
    pub async fn wait_until_listening_or_exit(mut self) -> Result<Started> {
        while self.began.elapsed() < START_TIMEOUT {
            if let Ok(address) = self.address.try_recv() {
                let started_in = self.began.elapsed();
                return Ok(Started::Listening(Server { process: self, address, started_in }));
            }
            if let Some(status) = self.child.try_wait()? {
                tokio::time::sleep(Duration::from_millis(50)).await;
                return Ok(Started::Exited(Exited { status, log: self.log.clone(), took: self.began.elapsed() }));
            }
            tokio::time::sleep(TICK).await;
        }
        Err(violation(format!("the server did not start within {START_TIMEOUT:?}; its log:\n    {}", self.log.tail())))
    }

    /// Waits until the log has a text.
    ///
    /// # Errors
    /// A violation if it exits first, or takes too long.
    pub async fn wait_for_log(&mut self, text: &str) -> Result<()> {
        while self.began.elapsed() < START_TIMEOUT && self.child.try_wait()?.is_none() {
            if self.log.contains(text) {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        Err(violation(format!("the server does not log {text:?}; its log:\n    {}", self.log.tail())))
    }

    /// Whether it has begun to listen, before [`Starting::wait_until_listening`] knows.
    #[must_use]
    pub fn listens(&self) -> bool {
        self.address.try_recv().is_ok()
    }

    /// Waits until the process exits without having listened, and returns its standard error.
    ///
    /// # Errors
    /// A violation if it listens or exits with success.
    pub async fn wait_for_failed_start(mut self) -> Result<String> {
        while self.began.elapsed() < START_TIMEOUT {
            if let Some(status) = self.child.try_wait()? {
                tokio::time::sleep(Duration::from_millis(50)).await;
                let log = self.log.text();
                return if status.success() {
                    Err(violation(format!("the server exited with success; its log: {log}")))
                } else {
                    Ok(log)
                };
            }
            if self.address.try_recv().is_ok() {
                return Err(violation("the server started although it should have refused to"));
            }
            tokio::time::sleep(TICK).await;
        }
        Err(violation(format!("the server neither started nor exited within {START_TIMEOUT:?}")))
    }

    /// Sends SIGKILL, and waits for the exit.
    ///
    /// # Errors
    /// A system call fails.
    pub fn kill(mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    fn signal(&self, signal: Signal) -> Result<()> {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).ok_or_else(|| harness("the process has no id"))?;
        kill_process(pid, signal).map_err(|error| harness(format!("can't send {signal:?}: {error}")))
    }
}

impl Drop for Starting {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    /// Returns its standard error.
    #[must_use]
    pub fn log(&self) -> &Log {
        &self.process.log
    }

    /// Sends SIGKILL, and waits for the exit.
    ///
    /// # Errors
    /// A system call fails.
    pub fn kill(self) -> Result<()> {
        self.process.kill()
    }

    /// Sends SIGTERM, waits for the exit, and returns how long it took.
    ///
    /// # Errors
    /// A violation if it takes too long or exits with an error.
    pub async fn terminate(self) -> Result<Duration> {
        let Exited { status, took, .. } = self.stop().await?;
        if status.success() { Ok(took) } else { Err(violation(format!("the server exited with {status} after SIGTERM"))) }
    }

    /// Sends SIGTERM, and waits for the exit with any status.
    ///
    /// # Errors
    /// A violation if it takes too long.
    pub async fn stop(mut self) -> Result<Exited> {
        self.process.signal(Signal::TERM)?;
        let ended = self.wait_for_exit(STOP_TIMEOUT).await?;
        ended.ok_or_else(|| violation(format!("the server did not stop within {STOP_TIMEOUT:?} of SIGTERM")))
    }

    /// Waits for the exit; `None` if the process still runs after `limit`.
    ///
    /// # Errors
    /// A system call fails.
    pub async fn wait_for_exit(&mut self, limit: Duration) -> Result<Option<Exited>> {
        let began = Instant::now();
        loop {
            if let Some(status) = self.process.child.try_wait()? {
                tokio::time::sleep(Duration::from_millis(50)).await;
                return Ok(Some(Exited { status, log: self.log().clone(), took: began.elapsed() }));
            }
            if began.elapsed() > limit {
                return Ok(None);
            }
            tokio::time::sleep(TICK).await;
        }
    }

    /// Suspends the process (SIGSTOP).
    ///
    /// # Errors
    /// The signal can't be sent.
    pub fn freeze(&self) -> Result<()> {
        self.process.signal(Signal::STOP)
    }

    /// Resumes the process (SIGCONT).
    ///
    /// # Errors
    /// The signal can't be sent.
    pub fn thaw(&self) -> Result<()> {
        self.process.signal(Signal::CONT)
    }

    /// Returns the id of the process.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.process.child.id()
    }

    /// Fails if the process has exited.
    ///
    /// # Errors
    /// A violation with the end of its log.
    pub fn check_alive(&mut self) -> Result<()> {
        match self.process.child.try_wait()? {
            None => Ok(()),
            Some(status) => {
                Err(violation(format!("the server exited unexpectedly ({status}); its log:\n    {}", self.log().tail())))
            }
        }
    }

    /// Returns the resident memory of the process.
    ///
    /// # Errors
    /// The process has exited.
    pub fn resident_bytes(&self) -> Result<u64> {
        let path = format!("/proc/{}/status", self.process.child.id());
        let status = std::fs::read_to_string(path)?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.and_then(|line| line.trim().split(' ').next()?.parse::<u64>().ok());
        kib.map(|kib| kib << 10).ok_or_else(|| CampaignError::Harness("no VmRSS".to_owned()))
    }
}
