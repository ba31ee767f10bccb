//! The server, as a process of its own.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::trouble::{Result, Trouble, harness, violation};

/// How long a start may take.
const START_TIMEOUT: Duration = Duration::from_secs(120);
/// How long a clean stop may take. The server's own limits add up to less.
const STOP_TIMEOUT: Duration = Duration::from_secs(40);
/// How often something is looked at again.
const TICK: Duration = Duration::from_millis(2);

/// How a server is started.
#[derive(Debug, Clone)]
pub struct Launch {
    /// The program.
    pub binary: PathBuf,
    /// Its data directory.
    pub data_dir: PathBuf,
    /// More flags.
    pub flags: Vec<String>,
    /// The mistake to make, in builds that can.
    pub fault: Option<String>,
    /// Other variables of its environment.
    pub environment: Vec<(&'static str, String)>,
}

/// What a server wrote to standard error.
#[derive(Debug, Clone, Default)]
pub struct Log(Arc<Mutex<String>>);

impl Log {
    /// All of it so far.
    #[must_use]
    pub fn text(&self) -> String {
        self.0.lock().unwrap().clone()
    }

    /// Whether it says this.
    #[must_use]
    pub fn says(&self, text: &str) -> bool {
        self.0.lock().unwrap().contains(text)
    }

    /// Its last lines, for people.
    #[must_use]
    pub fn tail(&self) -> String {
        let text = self.text();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(12)..].join("\n    ")
    }
}

/// A process that is a server, or is on its way to be one. Killed when dropped.
#[derive(Debug)]
pub struct Starting {
    child: Child,
    log: Log,
    address: Receiver<SocketAddr>,
    began: Instant,
}

/// What came of a start that may fail.
#[derive(Debug)]
pub enum Started {
    /// It listens.
    Listening(Server),
    /// It ended.
    Ended(Ended),
}

/// A process that ended by itself, or was told to.
#[derive(Debug)]
pub struct Ended {
    /// How.
    pub status: ExitStatus,
    /// What it wrote to standard error.
    pub log: Log,
    /// How long it took since it was last waited for.
    pub took: Duration,
}

/// A server that listens. Killed when dropped.
#[derive(Debug)]
pub struct Server {
    process: Starting,
    /// Where it listens.
    pub address: SocketAddr,
    /// How long it took from its start until it listened.
    pub started_in: Duration,
}

impl Launch {
    /// The program with these arguments, and the environment that a server gets.
    #[must_use]
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.binary);
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

    /// Starts the process.
    ///
    /// # Errors
    /// The program can't be run.
    pub fn spawn(&self) -> Result<Starting> {
        let mut command = self.command(&["serve", "--listen", "127.0.0.1:0"]);
        let child = command.args(&self.flags).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = child.map_err(|error| harness(format!("{}: {error}", self.binary.display())))?;
        let log = Log::default();
        let (stdout, stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        let (found, address) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(std::result::Result::ok) {
                if let Some(address) = line.strip_prefix("listening on http://").and_then(|address| address.parse().ok()) {
                    let _ = found.send(address);
                }
            }
        });
        let to = log.clone();
        std::thread::spawn(move || collect(stderr, &to));
        Ok(Starting { child, log, address, began: Instant::now() })
    }

    /// Starts a server that is expected to come up.
    ///
    /// # Errors
    /// A violation if it doesn't.
    pub async fn start(&self) -> Result<Server> {
        self.spawn()?.listening().await
    }
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
    /// Waits until it listens.
    ///
    /// # Errors
    /// A violation if it ends, or takes too long.
    pub async fn listening(self) -> Result<Server> {
        match self.listening_or_ended().await? {
            Started::Listening(server) => Ok(server),
            Started::Ended(Ended { status, log, .. }) => {
                Err(violation(format!("the server did not start ({status}); it said:\n    {}", log.tail())))
            }
        }
    }

    /// Waits until it listens or ends.
    ///
    /// # Errors
    /// A violation if it takes too long.
    pub async fn listening_or_ended(mut self) -> Result<Started> {
        while self.began.elapsed() < START_TIMEOUT {
            if let Ok(address) = self.address.try_recv() {
                let started_in = self.began.elapsed();
                return Ok(Started::Listening(Server { process: self, address, started_in }));
            }
            if let Some(status) = self.child.try_wait()? {
                tokio::time::sleep(Duration::from_millis(50)).await;
                return Ok(Started::Ended(Ended { status, log: self.log.clone(), took: self.began.elapsed() }));
            }
            tokio::time::sleep(TICK).await;
        }
        Err(violation(format!("the server did not start within {START_TIMEOUT:?}; it said:\n    {}", self.log.tail())))
    }

    /// Waits until it ends without ever having listened, and returns what it said.
    ///
    /// # Errors
    /// A violation if it listens, or ends as if all were well.
    pub async fn refusal(mut self) -> Result<String> {
        while self.began.elapsed() < START_TIMEOUT {
            if let Some(status) = self.child.try_wait()? {
                tokio::time::sleep(Duration::from_millis(50)).await;
                let said = self.log.text();
                return if status.success() { Err(violation(format!("it ended with success, saying {said}"))) } else { Ok(said) };
            }
            if self.address.try_recv().is_ok() {
                return Err(violation("it started, as if all were well"));
            }
            tokio::time::sleep(TICK).await;
        }
        Err(violation(format!("it neither started nor ended within {START_TIMEOUT:?}")))
    }

    /// SIGKILL, and waits for the end.
    ///
    /// # Errors
    /// The operating system's.
    pub fn kill(mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    fn signal(&self, signal: Signal) -> Result<()> {
        let pid =
            i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).ok_or_else(|| harness("a process without an id"))?;
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
    /// What it wrote to standard error.
    #[must_use]
    pub fn log(&self) -> &Log {
        &self.process.log
    }

    /// SIGKILL, and waits for the end.
    ///
    /// # Errors
    /// The operating system's.
    pub fn kill(self) -> Result<()> {
        self.process.kill()
    }

    /// SIGTERM, and waits for the end.
    ///
    /// # Errors
    /// A violation if it takes too long, or ends as if something were wrong.
    pub async fn terminate(self) -> Result<Duration> {
        let Ended { status, took, .. } = self.stop().await?;
        if status.success() { Ok(took) } else { Err(violation(format!("after SIGTERM it ended with {status}"))) }
    }

    /// SIGTERM, and waits for the end, whatever it is.
    ///
    /// # Errors
    /// A violation if it takes too long.
    pub async fn stop(mut self) -> Result<Ended> {
        self.process.signal(Signal::TERM)?;
        let ended = self.ended_within(STOP_TIMEOUT).await?;
        ended.ok_or_else(|| violation(format!("it did not stop within {STOP_TIMEOUT:?} of SIGTERM")))
    }

    /// Waits for the end. `None`: it has not ended by then.
    ///
    /// # Errors
    /// The operating system's.
    pub async fn ended_within(&mut self, limit: Duration) -> Result<Option<Ended>> {
        let began = Instant::now();
        loop {
            if let Some(status) = self.process.child.try_wait()? {
                tokio::time::sleep(Duration::from_millis(50)).await;
                return Ok(Some(Ended { status, log: self.log().clone(), took: began.elapsed() }));
            }
            if began.elapsed() > limit {
                return Ok(None);
            }
            tokio::time::sleep(TICK).await;
        }
    }

    /// SIGSTOP.
    ///
    /// # Errors
    /// The operating system's.
    pub fn freeze(&self) -> Result<()> {
        self.process.signal(Signal::STOP)
    }

    /// SIGCONT.
    ///
    /// # Errors
    /// The operating system's.
    pub fn thaw(&self) -> Result<()> {
        self.process.signal(Signal::CONT)
    }

    /// Fails if the process has ended by itself.
    ///
    /// # Errors
    /// A violation, with what it said.
    pub fn is_alive(&mut self) -> Result<()> {
        match self.process.child.try_wait()? {
            None => Ok(()),
            Some(status) => Err(violation(format!("the server ended by itself ({status}); it said:\n    {}", self.log().tail()))),
        }
    }

    /// The memory that the process has in use.
    ///
    /// # Errors
    /// It has ended.
    pub fn resident_bytes(&self) -> Result<u64> {
        let path = format!("/proc/{}/status", self.process.child.id());
        let status = std::fs::read_to_string(path)?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.and_then(|line| line.trim().split(' ').next()?.parse::<u64>().ok());
        kib.map(|kib| kib << 10).ok_or_else(|| Trouble::Harness("no VmRSS".to_owned()))
    }
}
