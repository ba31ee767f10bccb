//! The process: its runtime, signals, files, clock and standard output.

use std::fmt::Display;
use std::io::{self, Write};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::process::{Resource, getrlimit, setrlimit};
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};

use super::failure::Failure;

/// Creates a runtime on the calling thread.
pub(crate) fn runtime() -> Result<Runtime, Failure> {
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| Failure::new("could not start", error))
}

/// Returns a future that ends on SIGTERM or SIGINT (control-C). Catches the signals from this call
/// on.
pub(crate) fn stop_signal() -> Result<impl Future<Output = ()>, Failure> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

/// The time since the Unix epoch, which distinguishes this run from others.
pub(crate) fn since_epoch() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Makes the files of this process private, whatever the umask of the shell, since the file of
/// projects has keys and tokens.
pub(crate) fn keep_files_private() {
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
}

/// Raises the limit on open files, and so on connections, to the maximum. Shells usually start with
/// 1,024.
pub(crate) fn allow_many_files() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // With too few files, connecting fails, and the report shows it.
    let _ = setrlimit(Resource::Nofile, limit);
}

/// Prints one line of JSON, or text.
pub(crate) fn print(json: bool, value: &impl serde::Serialize, text: impl FnOnce() -> String) -> Result<(), Failure> {
    let line = if json { serde_json::to_string(value)? } else { text() };
    write_line(&mut io::stdout(), &line).map_err(|error| Failure::new("the results could not be written", error))
}

/// Writes a line. A closed reader, such as `head`, is no failure.
fn write_line(output: &mut impl Write, text: &impl Display) -> io::Result<()> {
    match output.write_all(format!("{text}\n").as_bytes()).and_then(|()| output.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails to write.
    struct Failing(io::ErrorKind);

    impl Write for Failing {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_reader_that_has_gone_is_no_failure_and_a_full_disk_is() {
        assert!(write_line(&mut Failing(io::ErrorKind::BrokenPipe), &"ready").is_ok());
        let full = write_line(&mut Failing(io::ErrorKind::StorageFull), &"ready");
        assert_eq!(full.unwrap_err().kind(), io::ErrorKind::StorageFull);
    }

    #[test]
    fn as_many_files_as_allowed_may_be_open() {
        allow_many_files();
        let limit = getrlimit(Resource::Nofile);
        assert_eq!(limit.current, limit.maximum);
    }
}
