//! The clock of a server that is wrong, and jumps while the server runs.

use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicI64, Ordering};

use tempfile::TempDir;

/// See the module. The server of the tests reads the file that this variable names.
const VARIABLE: &str = "HEADCOUNT_CLOCK_AHEAD";

pub(crate) struct WrongClock {
    dir: TempDir,
    ahead_ms: AtomicI64,
}

impl WrongClock {
    /// One that is right until it is set.
    pub(crate) fn right() -> WrongClock {
        WrongClock { dir: tempfile::tempdir().expect("a directory"), ahead_ms: AtomicI64::new(0) }
    }

    /// How far it is ahead, in milliseconds.
    pub(crate) fn ahead_ms(&self) -> i64 {
        self.ahead_ms.load(Ordering::SeqCst)
    }

    /// Sets it.
    pub(crate) fn set_ahead(&self, ahead_ms: i64) {
        let next = self.dir.path().join("next");
        std::fs::write(&next, ahead_ms.to_string()).expect("it is written");
        std::fs::rename(next, self.file()).expect("it is set");
        self.ahead_ms.store(ahead_ms, Ordering::SeqCst);
    }

    /// Has a program go by it.
    pub(crate) fn tell(&self, command: &mut Command) {
        command.env(VARIABLE, self.file());
    }

    fn file(&self) -> PathBuf {
        self.dir.path().join("ahead")
    }
}
