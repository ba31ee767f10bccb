//! A switch that makes operations on files fail, for tests and for the crash harness.
//!
//! A [`Switch`] counts the operations under one directory, so that parallel tests do not disturb
//! each other, and fails those that its [`Plan`] selects. A write that fails writes half of its
//! bytes first. Compiled only for tests and with the feature `fault-injection`.
//!
//! ```
//! # #[cfg(feature = "fault-injection")] {
//! use headcount_storage::files::switch::{Errno, Plan, Switch};
//!
//! let dir = std::env::temp_dir().join("headcount-switch-example");
//! let switch = Switch::arm(&dir, Plan { at: 1, ..Plan::default() });
//! let refused = headcount_storage::files::write_atomically(&dir.join("file"), b"", 0o600).unwrap_err();
//! assert_eq!(refused.raw_os_error(), Some(Errno::NoSpace.number()));
//! assert_eq!(switch.failed(), ["Open file.tmp"]);
//! # }
//! ```

use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::operation::Operation;
use parking_lot::Mutex;

/// Target of the log lines about operations: the crash harness enables it by name.
const TARGET: &str = "file_operations";

/// The error of a failed operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Errno {
    /// ENOSPC.
    NoSpace,
    /// EIO.
    Io,
    /// EMFILE.
    TooManyFiles,
}

impl Errno {
    /// The number of the error.
    pub fn number(self) -> i32 {
        match self {
            Self::NoSpace => rustix::io::Errno::NOSPC.raw_os_error(),
            Self::Io => rustix::io::Errno::IO.raw_os_error(),
            Self::TooManyFiles => rustix::io::Errno::MFILE.raw_os_error(),
        }
    }
}

/// Selects the operations that fail, and their error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// The first operation that fails, counted from 1; 0 for none.
    pub at: u64,
    /// The number of operations that fail from there on; with `u64::MAX`, all of them until the
    /// switch is cleared.
    pub failures: u64,
    /// Their error.
    pub errno: Errno,
    /// Whether a failing operation is executed before it reports the error.
    pub done: bool,
}

impl Default for Plan {
    fn default() -> Self {
        Self { at: 0, failures: 1, errno: Errno::NoSpace, done: false }
    }
}

/// The text of a plan, for an environment variable: `at=17,errno=EIO,failures=3`. Each part may be
/// left out; `failures` may be `all`, and `errno` ENOSPC, EIO or EMFILE. `done=true` reports the
/// error after the operation.
impl FromStr for Plan {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut plan = Self::default();
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let refused = || format!("not a part of a plan of faults: {part:?}");
            let (name, value) = part.split_once('=').ok_or_else(refused)?;
            match (name, value) {
                ("at", _) => plan.at = value.parse().map_err(|_| refused())?,
                ("failures", "all") => plan.failures = u64::MAX,
                ("failures", _) => plan.failures = value.parse().map_err(|_| refused())?,
                ("errno", "ENOSPC") => plan.errno = Errno::NoSpace,
                ("errno", "EIO") => plan.errno = Errno::Io,
                ("errno", "EMFILE") => plan.errno = Errno::TooManyFiles,
                ("done", _) => plan.done = value.parse().map_err(|_| refused())?,
                _ => return Err(refused()),
            }
        }
        Ok(plan)
    }
}

/// Counts the operations under a directory and fails some of them, until it is dropped.
#[derive(Debug)]
pub struct Switch(Arc<Armed>);

#[derive(Debug)]
struct Armed {
    dir: PathBuf,
    watcher: Option<Watcher>,
    state: Mutex<State>,
}

type Watch = dyn Fn(Operation, &Path) + Send + Sync;

/// A callback before each operation.
struct Watcher(Box<Watch>);

impl std::fmt::Debug for Watcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Watcher")
    }
}

#[derive(Debug)]
struct State {
    plan: Plan,
    operations: u64,
    failed: Vec<(Operation, PathBuf)>,
}

static SWITCHES: Mutex<Vec<Arc<Armed>>> = Mutex::new(Vec::new());
/// The number of switches. While it is 0, the lock is not taken.
static ARMED: AtomicUsize = AtomicUsize::new(0);

impl Switch {
    /// Begins to count the operations under `dir` and fails those that `plan` selects.
    #[must_use]
    pub fn arm(dir: &Path, plan: Plan) -> Self {
        Self::add(dir, plan, None)
    }

    /// Calls `watcher` before each operation under `dir`, and fails none. A copy of the files in a
    /// callback is what a kill would leave.
    #[must_use]
    pub fn watch(dir: &Path, watcher: impl Fn(Operation, &Path) + Send + Sync + 'static) -> Self {
        Self::add(dir, Plan::default(), Some(Watcher(Box::new(watcher))))
    }

    fn add(dir: &Path, plan: Plan, watcher: Option<Watcher>) -> Self {
        let state = Mutex::new(State { plan, operations: 0, failed: Vec::new() });
        let armed = Arc::new(Armed { dir: dir.to_owned(), watcher, state });
        SWITCHES.lock().push(Arc::clone(&armed));
        ARMED.fetch_add(1, Ordering::Release);
        Self(armed)
    }

    /// Restarts the count with another plan.
    pub fn rearm(&self, plan: Plan) {
        let mut state = self.0.state.lock();
        state.plan = plan;
        state.operations = 0;
    }

    /// Fails no more operations.
    pub fn clear(&self) {
        self.0.state.lock().plan = Plan::default();
    }

    /// The number of operations since it was armed.
    pub fn operations(&self) -> u64 {
        self.0.state.lock().operations
    }

    /// The operations that failed, with the name of the file.
    pub fn failed(&self) -> Vec<String> {
        let name = |path: &Path| path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        self.0.state.lock().failed.iter().map(|(operation, path)| format!("{operation:?} {}", name(path))).collect()
    }

    /// The paths of the operations that failed.
    pub fn failed_paths(&self) -> Vec<PathBuf> {
        self.0.state.lock().failed.iter().map(|(_, path)| path.clone()).collect()
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        SWITCHES.lock().retain(|armed| !Arc::ptr_eq(armed, &self.0));
        ARMED.fetch_sub(1, Ordering::Release);
    }
}

impl Armed {
    fn check(&self, operation: Operation, path: &Path) -> Option<Plan> {
        if let Some(Watcher(watcher)) = &self.watcher {
            watcher(operation, path);
        }
        let mut state = self.state.lock();
        state.operations += 1;
        let (plan, number) = (state.plan, state.operations);
        // Logged under the lock, so that the lines are in the order of the numbers.
        tracing::trace!(target: TARGET, number, ?operation, path = %path.display(), "an operation");
        let fails = plan.at > 0 && number >= plan.at && number - plan.at < plan.failures;
        if !fails {
            return None;
        }
        tracing::debug!(target: TARGET, number, ?operation, path = %path.display(), errno = ?plan.errno, "an operation fails on purpose");
        state.failed.push((operation, path.to_owned()));
        Some(plan)
    }
}

fn check(operation: Operation, path: &Path) -> Option<Plan> {
    if ARMED.load(Ordering::Acquire) == 0 {
        return None;
    }
    let switches = SWITCHES.lock().clone();
    switches.iter().filter(|armed| path.starts_with(&armed.dir)).find_map(|armed| armed.check(operation, path))
}

/// The file of an operation.
#[derive(Debug, Clone)]
pub(super) struct Origin(Arc<Path>);

impl Origin {
    pub(super) fn new(path: &Path) -> Self {
        Self(path.into())
    }

    pub(super) fn run<T>(&self, operation: Operation, call: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        run_at(operation, &self.0, call)
    }

    pub(super) fn write<T>(&self, bytes: &[u8], call: impl FnOnce(&[u8]) -> io::Result<T>) -> io::Result<T> {
        let Some(plan) = check(Operation::Write, &self.0) else { return call(bytes) };
        call(if plan.done { bytes } else { &bytes[..bytes.len() / 2] })?;
        Err(io::Error::from_raw_os_error(plan.errno.number()))
    }
}

/// Calls `call`, unless the operation is to fail.
pub(crate) fn run_at<T>(operation: Operation, path: &Path, call: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let Some(plan) = check(operation, path) else { return call() };
    if plan.done {
        call()?;
    }
    Err(io::Error::from_raw_os_error(plan.errno.number()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::{File, PRIVATE_FILE, write_atomically};

    #[test]
    fn a_plan_is_read_from_text() {
        let plan: Plan = "at=17,errno=EIO,failures=all,done=true".parse().unwrap();
        assert_eq!(plan, Plan { at: 17, failures: u64::MAX, errno: Errno::Io, done: true });
        assert_eq!("".parse(), Ok(Plan::default()));
        assert!("at=soon".parse::<Plan>().is_err());
    }

    #[test]
    fn what_is_planned_fails_under_one_directory_only() {
        let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let path = dir.path().join("file");
        let switch = Switch::arm(dir.path(), Plan::default());
        write_atomically(&path, b"old", PRIVATE_FILE).unwrap();
        let operations = switch.operations();
        for at in 1..=operations {
            switch.rearm(Plan { at, errno: Errno::Io, ..Plan::default() });
            write_atomically(&other.path().join("file"), b"new", PRIVATE_FILE).unwrap();
            let refused = write_atomically(&path, b"new", PRIVATE_FILE).unwrap_err();
            assert_eq!(refused.raw_os_error(), Some(Errno::Io.number()));
            let expected: &[u8] = if at <= operations - 2 { b"old" } else { b"new" };
            assert_eq!(std::fs::read(&path).unwrap(), expected, "{:?}", switch.failed());
        }
        let name = dir.path().file_name().unwrap().to_str().unwrap();
        let (open, sync) = (format!("Open {name}"), format!("Sync {name}"));
        assert_eq!(switch.failed(), ["Open file.tmp", "Write file.tmp", "Sync file.tmp", "Rename file.tmp", &open, &sync]);
    }

    #[test]
    fn a_watcher_sees_the_files_before_each_operation() {
        let dir = tempfile::tempdir().unwrap();
        let (path, seen) = (dir.path().join("file"), Arc::<Mutex<Vec<_>>>::default());
        let (looked_at, noted) = (path.clone(), Arc::clone(&seen));
        let switch = Switch::watch(dir.path(), move |operation, _| noted.lock().push((operation, looked_at.exists())));
        write_atomically(&path, b"new", PRIVATE_FILE).unwrap();
        drop(switch);
        std::fs::remove_file(&path).unwrap();
        write_atomically(&path, b"new", PRIVATE_FILE).unwrap();
        let (open, write, sync, rename) = (Operation::Open, Operation::Write, Operation::Sync, Operation::Rename);
        let expected = [(open, false), (write, false), (sync, false), (rename, false), (open, true), (sync, true)];
        assert_eq!(*seen.lock(), expected);
    }

    #[test]
    fn a_failed_write_writes_half() {
        let dir = tempfile::tempdir().unwrap();
        let file = File::create(&dir.path().join("file")).unwrap();
        let switch = Switch::arm(dir.path(), Plan { at: 1, failures: 2, ..Plan::default() });
        file.write_all_at(b"1234", 0).unwrap_err();
        file.sync_all().unwrap_err();
        assert_eq!(file.len().unwrap(), 2);
        switch.rearm(Plan { at: 1, done: true, ..Plan::default() });
        file.write_all_at(b"1234", 0).unwrap_err();
        assert_eq!(file.len().unwrap(), 4);
    }
}
