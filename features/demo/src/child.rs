//! Child processes of the demo. They end with it, however it ends.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use headcount_api::command::Failure;
use rustix::process::{Pid, Signal, kill_process};

/// How long a process may take to end before it is killed.
const END_TIMEOUT: Duration = Duration::from_secs(25);
const POLL: Duration = Duration::from_millis(20);

/// A program and the file for its output.
#[derive(Clone)]
pub(super) struct Launch {
    pub(super) program: PathBuf,
    pub(super) arguments: Vec<OsString>,
    /// The file to which output is appended.
    pub(super) log: PathBuf,
}

/// A process of the demo. Dropping the value kills it.
pub(super) struct DemoChild {
    child: Child,
    launch: Launch,
    /// When [`DemoChild::restart_after`] found that it had ended.
    ended: Option<Instant>,
}

impl Launch {
    fn spawn(&self) -> Result<Child, Failure> {
        let failed = |error: io::Error| Failure::new(format!("{} could not be started", self.program.display()), error);
        let output = OpenOptions::new().create(true).append(true).open(&self.log).map_err(failed)?;
        let mut command = Command::new(std::env::current_exe()?);
        for (variable, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("HEADCOUNT_")) {
            command.env_remove(variable);
        }
        command.args(["demo", "--child-of", &std::process::id().to_string(), "--"]);
        command.arg(&self.program).args(&self.arguments);
        // Control-C reaches only the demo, which ends the other processes in order.
        command.process_group(0).stdin(Stdio::null()).stderr(output.try_clone().map_err(failed)?);
        command.stdout(output);
        command.spawn().map_err(failed)
    }
}

impl DemoChild {
    /// Starts a program.
    ///
    /// The kernel kills it when the thread that called this ends, so that must be the main one.
    pub(super) fn start(launch: Launch) -> Result<Self, Failure> {
        Ok(Self { child: launch.spawn()?, launch, ended: None })
    }

    /// Restarts the program if it ended at least `pause` ago. Returns whether it did.
    ///
    /// A time counts from the call that first found the process ended. Like [`DemoChild::start`],
    /// this must run on the main thread.
    pub(super) fn restart_after(&mut self, pause: Duration) -> Result<bool, Failure> {
        if !self.has_ended() {
            return Ok(false);
        }
        if self.ended.get_or_insert_with(Instant::now).elapsed() < pause {
            return Ok(false);
        }
        // If the start fails, the next attempt comes after another pause.
        self.ended = None;
        self.child = self.launch.spawn()?;
        Ok(true)
    }

    /// Sets the arguments for the next restart.
    pub(super) fn set_arguments(&mut self, arguments: Vec<OsString>) {
        self.launch.arguments = arguments;
    }

    /// Its id.
    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether it has ended by itself.
    pub(super) fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Asks it to end.
    pub(super) fn ask_to_end(&mut self) {
        if !self.has_ended()
            && let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw)
        {
            // A process that has just ended is fine, too.
            let _has_ended = kill_process(pid, Signal::TERM);
        }
    }

    /// Waits until it has ended; kills it if that takes too long.
    pub(super) fn end(mut self) {
        self.ask_to_end();
        let began = Instant::now();
        while !self.has_ended() && began.elapsed() < END_TIMEOUT {
            std::thread::sleep(POLL);
        }
    }
}

impl Drop for DemoChild {
    fn drop(&mut self) {
        if !self.has_ended() {
            drop(self.child.kill());
            drop(self.child.wait());
        }
    }
}

/// Replaces this process by a program. The kernel kills the program when the parent, `demo`, ends.
/// Returns only on failure.
pub(super) fn become_program(demo: u32, arguments: &[OsString]) -> Failure {
    let [program, arguments @ ..] = arguments else { return Failure("there is no program".into()) };
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::set_parent_process_death_signal(Some(Signal::KILL)) {
        return Failure::new("the program would not end with the demo", error);
    }
    // The demo may have ended before.
    if std::os::unix::process::parent_id() != demo {
        return Failure("the demo has ended".into());
    }
    let error = Command::new(program).args(arguments).exec();
    Failure::new(program.to_string_lossy(), error)
}
