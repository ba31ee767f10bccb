//! An open sled database. Its `flush` only hands the data to the kernel (`sync_file_range`), so an
//! `fdatasync` of its file follows.
//!
//! All calls into sled are guarded: on damaged files sled 0.34 returns errors, but also panics.
//! Both become
//! [`StoreError::Damaged`].

use std::any::Any;
use std::collections::BTreeMap;
use std::fs::TryLockError;
use std::io::{self, ErrorKind};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use sled::{Batch, Db, IVec};

use super::super::error::StoreError;
use crate::files::{File, Operation, make_private, make_private_dir, run_at};

/// How long to wait for another handle's lock.
const LOCK_PATIENCE: Duration = Duration::from_secs(5);
const LOCK_RETRY: Duration = Duration::from_millis(10);

/// Keys with their new values; `None` removes the key.
pub(in crate::store) type PairChanges = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

/// An open sled database and its data file.
pub(in crate::store) struct Handle {
    db: Option<Db>,
    dir: PathBuf,
    data: File,
}

impl Handle {
    pub(super) fn open(dir: &Path, cache_bytes: u64) -> Result<Self, StoreError> {
        make_private_dir(dir).map_err(StoreError::io("create a directory"))?;
        let config = sled::Config::new().path(dir).cache_capacity(cache_bytes).flush_every_ms(None).mode(sled::Mode::LowSpace);
        let db = open_patiently(dir, &config)?;
        // Everything that this process reads from now on must survive a power cut.
        let sync_all = |path: &Path| File::open(path).and_then(|file| file.sync_all().map(|()| file));
        let data = sync_all(&dir.join("db")).map_err(StoreError::io("sync sled's file"))?;
        for name in ["conf", "blobs", "."] {
            sync_all(&dir.join(name)).map_err(StoreError::io("sync sled's directory"))?;
        }
        for name in ["db", "conf", "blobs"] {
            make_private(&dir.join(name));
        }
        Ok(Self { db: Some(db), dir: dir.to_owned(), data })
    }

    fn db(&self) -> Result<&Db, StoreError> {
        self.db.as_ref().ok_or_else(|| StoreError::damaged("sled is closed"))
    }

    /// The value of a key.
    pub(in crate::store) fn get(&self, key: &[u8]) -> Result<Option<IVec>, StoreError> {
        let db = self.db()?;
        guarded(&self.dir, "reading", || db.get(key))
    }

    /// Visits the pairs under a prefix in order.
    pub(in crate::store) fn scan(
        &self,
        prefix: &[u8],
        mut visit: impl FnMut(&[u8], &[u8]) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let db = self.db()?;
        let mut pairs = db.scan_prefix(prefix);
        while let Some((key, value)) = guarded(&self.dir, "scanning", || pairs.next().transpose())? {
            visit(&key, &value)?;
        }
        Ok(())
    }

    /// Whether there are no pairs.
    pub(super) fn is_empty(&self) -> Result<bool, StoreError> {
        let db = self.db()?;
        guarded(&self.dir, "reading", || db.iter().next().transpose()).map(|first| first.is_none())
    }

    /// Writes changes as one batch and makes them durable. After an error all, some or none of them
    /// may be there.
    pub(in crate::store) fn write(&self, pairs: &PairChanges) -> Result<(), StoreError> {
        let db = self.db()?;
        let mut batch = Batch::default();
        for (key, value) in pairs {
            match value {
                Some(value) => batch.insert(key.as_slice(), value.as_slice()),
                None => batch.remove(key.as_slice()),
            }
        }
        guarded(&self.dir, "writing", || db.apply_batch(batch))?;
        guarded(&self.dir, "flushing", || db.flush())?;
        self.data.sync_data().map_err(StoreError::io("sync sled's file"))
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // sled flushes on drop, and may panic then on a damaged or full disk.
        let db = self.db.take();
        let _ = catch_unwind(AssertUnwindSafe(|| drop(db)));
    }
}

/// Opens sled. A dropped database releases its lock a moment later, on sled's thread, so this waits
/// for a lock.
fn open_patiently(dir: &Path, config: &sled::Config) -> Result<Db, StoreError> {
    let began = Instant::now();
    loop {
        match guarded(dir, "opening", || config.open()) {
            Err(StoreError::Io { source, .. }) if is_locked(&source) && began.elapsed() < LOCK_PATIENCE => {
                std::thread::sleep(LOCK_RETRY);
            }
            result => return result,
        }
    }
}

/// Whether sled could not lock its file; sled has no specific error for that.
fn is_locked(error: &io::Error) -> bool {
    error.to_string().contains("could not acquire lock")
}

/// Waits until the database in `dir` is closed: after a drop, threads of sled run for a moment.
///
/// # Errors
/// [`StoreError::Io`] if that takes too long.
pub(in crate::store) fn wait_until_closed(dir: &Path) -> Result<(), StoreError> {
    let file = match std::fs::File::open(dir.join("db")) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(StoreError::io("open sled's file")(error)),
    };
    let began = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) if began.elapsed() < LOCK_PATIENCE => std::thread::sleep(LOCK_RETRY),
            Err(error) => return Err(StoreError::io("lock sled's file")(error.into())),
        }
    }
}

/// Calls sled; its errors and panics become a [`StoreError`].
fn guarded<T>(dir: &Path, doing: &str, call: impl FnOnce() -> sled::Result<T>) -> Result<T, StoreError> {
    let call = || run_at(Operation::Sled, dir, || Ok(catch_unwind(AssertUnwindSafe(call))));
    let refused = StoreError::io(format!("go on {doing} in sled"));
    match call() {
        Ok(Ok(Ok(answer))) => Ok(answer),
        // A short read is damage. A refusal is not: permissions, a full disk, the lock of another
        // process.
        Ok(Ok(Err(sled::Error::Io(source)))) if !is_damage(source.kind()) => Err(refused(source)),
        Ok(Ok(Err(error))) => Err(StoreError::damaged(format!("sled, {doing}: {error}"))),
        Ok(Err(panic)) => {
            let text = panic_text(&*panic);
            Err(refusal_in(text).map_or_else(|| StoreError::damaged(format!("sled panicked, {doing}: {text}")), refused))
        }
        Err(source) => Err(refused(source)),
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message")
}

/// Returns the operating system's error in a panic message of sled, if any, since sled unwraps some
/// I/O errors. The store may be intact.
fn refusal_in(text: &str) -> Option<io::Error> {
    let after = |marker: &str| text.split_once(marker).map(|(_, rest)| rest);
    let rest = after("Os { code: ").or_else(|| after("(os error "))?;
    let digits = rest.split(|character: char| !character.is_ascii_digit()).next()?;
    let error = io::Error::from_raw_os_error(digits.parse().ok()?);
    (!is_damage(error.kind())).then_some(error)
}

fn is_damage(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::UnexpectedEof | ErrorKind::InvalidData | ErrorKind::InvalidInput | ErrorKind::NotFound)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_that_sled_panics_over_is_no_damage() {
        let too_many = io::Error::from_raw_os_error(24);
        for panic in [format!("called `Result::unwrap()` on an `Err` value: Io({too_many:?})"), format!("can't open: {too_many}")]
        {
            let failed = guarded::<()>(Path::new("."), "opening", || std::panic::panic_any(panic.clone())).unwrap_err();
            assert!(matches!(&failed, StoreError::Io { source, .. } if source.raw_os_error() == Some(24)), "{failed}");
        }
        let short = io::Error::from(ErrorKind::UnexpectedEof);
        for panic in ["index out of bounds".to_owned(), format!("{short:?}")] {
            assert!(
                guarded::<()>(Path::new("."), "opening", || std::panic::panic_any(panic.clone())).unwrap_err().is_damage(),
                "{panic}"
            );
        }
    }
}
