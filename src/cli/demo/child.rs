//! Processes that end with the demo, however it ends.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::cli::failure::Failure;

/// How long a process may take to end before it is killed.
const END_TIMEOUT: Duration = Duration::from_secs(25);
const POLL: Duration = Duration::from_millis(20);

/// A process of the demo. It is killed with the value.
pub(super) struct DemoChild(Child);

impl DemoChild {
    /// Starts a program. Its output goes to the file `log`.
    ///
    /// The kernel kills it when the thread that called this ends, so that must be the main one.
    pub(super) fn start(program: &Path, arguments: &[OsString], log: &Path) -> Result<Self, Failure> {
        let failed = |error: io::Error| Failure::new(format!("{} could not be started", program.display()), error);
        let output = File::create(log).map_err(failed)?;
        let mut command = Command::new(std::env::current_exe()?);
        for (variable, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("HEADCOUNT_")) {
            command.env_remove(variable);
        }
        command.args(["demo", "--child-of", &std::process::id().to_string(), "--"]).arg(program).args(arguments);
        // Control-C reaches the demo alone, which ends the others in their order.
        command.process_group(0).stdin(Stdio::null()).stderr(output.try_clone().map_err(failed)?);
        command.stdout(output);
        command.spawn().map(Self).map_err(failed)
    }

    /// Its id.
    pub(super) fn id(&self) -> u32 {
        self.0.id()
    }

    /// Whether it has ended by itself.
    pub(super) fn has_ended(&mut self) -> bool {
        !matches!(self.0.try_wait(), Ok(None))
    }

    /// Asks it to end.
    pub(super) fn ask_to_end(&mut self) {
        if !self.has_ended()
            && let Some(pid) = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw)
        {
            // One that has just ended is what was asked for.
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
            drop(self.0.kill());
            drop(self.0.wait());
        }
    }
}

/// Replaces this process by a program that the kernel kills when the process `demo` ends, which has started this one. Returns only if that fails.
pub(super) fn become_program(demo: u32, arguments: &[OsString]) -> Failure {
    let [program, arguments @ ..] = arguments else { return Failure("there is no program".into()) };
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::set_parent_process_death_signal(Some(Signal::KILL)) {
        return Failure::new("the program would not end with the demo", error);
    }
    // It may have ended before.
    if std::os::unix::process::parent_id() != demo {
        return Failure("the demo has ended".into());
    }
    let error = Command::new(program).args(arguments).exec();
    Failure::new(program.to_string_lossy(), error)
}
