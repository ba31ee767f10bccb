//! A sled database that can be reopened within the process.
//!
//! After one failed write sled 0.34 refuses all later operations, even when the disk has space
//! again. So an I/O error closes the database, and [`Database::reopen`] opens it again. As after a
//! crash, unsynced writes may or may not be there.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::super::error::StoreError;
use super::handle::Handle;
use crate::files::probe_space;
use parking_lot::{Mutex, RwLock};

/// The pause after a failed attempt to reopen. Each attempt takes time, and all threads wait for
/// it.
const REOPEN_AFTER: Duration = Duration::from_millis(200);

/// A sled database that can be reopened.
pub(in crate::store) struct Database {
    dir: PathBuf,
    cache_bytes: u64,
    /// `None` after an I/O error.
    handle: RwLock<Option<Handle>>,
    last_failure: Mutex<Option<Instant>>,
}

impl Database {
    /// Opens or creates the database in `dir`.
    pub(in crate::store) fn open(dir: &Path, cache_bytes: u64) -> Result<Self, StoreError> {
        let handle = RwLock::new(Some(Handle::open(dir, cache_bytes)?));
        Ok(Self { dir: dir.to_owned(), cache_bytes, handle, last_failure: Mutex::default() })
    }

    /// Whether it is open.
    pub(in crate::store) fn is_open(&self) -> bool {
        self.handle.read().is_some()
    }

    /// Calls `work` with the open database. An I/O error closes it.
    ///
    /// # Errors
    /// The errors of `work`, and [`StoreError::Io`] while it is closed.
    pub(in crate::store) fn with<T>(&self, work: impl FnOnce(&Handle) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let outcome = match &*self.handle.read() {
            Some(handle) => work(handle),
            None => return Err(refused("use sled, which is closed after an error")),
        };
        if matches!(outcome, Err(StoreError::Io { .. })) {
            *self.handle.write() = None;
        }
        outcome
    }

    /// Reopens the database, and keeps it open if `check` finds no damage.
    ///
    /// # Errors
    /// [`StoreError::Io`], also for damage: an error of the disk may look like damage inside of
    /// sled, so the next start decides.
    pub(in crate::store) fn reopen<T>(&self, check: impl FnOnce(&Handle) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let mut last_failure = self.last_failure.lock();
        if last_failure.is_some_and(|at| at.elapsed() < REOPEN_AFTER) {
            return Err(refused("reopen sled, which failed a moment ago"));
        }
        let mut present = self.handle.write();
        *present = None;
        let reopen = || {
            // On a full disk sled may panic although its database is intact.
            probe_space(&self.dir).map_err(StoreError::io("write to its disk"))?;
            let handle = Handle::open(&self.dir, self.cache_bytes)?;
            let found = check(&handle)?;
            Ok((handle, found))
        };
        match reopen() {
            Ok((handle, found)) => {
                tracing::info!("sled was reopened");
                (*present, *last_failure) = (Some(handle), None);
                Ok(found)
            }
            Err(error @ StoreError::Io { .. }) => {
                *last_failure = Some(Instant::now());
                Err(error)
            }
            Err(error) => {
                *last_failure = Some(Instant::now());
                Err(StoreError::io("reopen sled")(std::io::Error::other(error)))
            }
        }
    }
}

fn refused(action: &str) -> StoreError {
    StoreError::io(action)(std::io::ErrorKind::ResourceBusy.into())
}
