//! sled behind a guard. On damaged files sled 0.34 returns errors, but also panics; here both become
//! [`StoreError::Damaged`]. And its `flush` only hands the data to the kernel (`sync_file_range`), so each flush is
//! followed by an `fdatasync` of its file.
//!
//! After one failed write sled refuses all that follow, even when the disk has room again. So a [`Handle`] whose write
//! failed is given up, and [`Tree::reopen`] puts another one in its place. What was written and not synced before is then
//! lost or not, as after a crash.

use std::fs::TryLockError;
use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sled::{Batch, Db, IVec};

use super::super::StoreError;
use crate::files::{File, Operation, make_private, make_private_dir, probe_space, run_at};

/// Pairs per batch written to sled. Its readers wait for a batch, so batches stay small.
const BATCH_PAIRS: usize = 256;
const BATCH_BYTES: usize = 256 << 10;
/// How long another handle's lock is waited for.
const LOCK_PATIENCE: Duration = Duration::from_secs(5);
const LOCK_RETRY: Duration = Duration::from_millis(10);
/// How long a reopening waits for those who still use the old handle.
const READERS_PATIENCE: Duration = Duration::from_secs(5);
const READERS_RETRY: Duration = Duration::from_millis(1);
/// How long after an attempt to reopen that failed there is another one.
const REOPEN_AFTER: Duration = Duration::from_millis(200);

/// The sled database in a directory.
pub(super) struct Tree {
    dir: PathBuf,
    cache_bytes: u64,
    present: Mutex<Present>,
}

/// What [`Tree`] has open. `None`: it could not be opened again.
struct Present {
    handle: Option<Arc<Handle>>,
    last_failure: Option<Instant>,
}

impl Tree {
    /// Opens or creates the database in `dir`.
    pub(super) fn open(dir: &Path, cache_bytes: u64) -> Result<Self, StoreError> {
        let handle = Some(Arc::new(Handle::open(dir, cache_bytes)?));
        let present = Mutex::new(Present { handle, last_failure: None });
        Ok(Self { dir: dir.to_owned(), cache_bytes, present })
    }

    fn present(&self) -> MutexGuard<'_, Present> {
        self.present.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The open database. Waits while it is opened again. One operation uses one handle throughout.
    pub(super) fn handle(&self) -> Result<Arc<Handle>, StoreError> {
        let mut present = self.present();
        match &present.handle {
            Some(handle) => Ok(Arc::clone(handle)),
            None => self.open_again(&mut present),
        }
    }

    /// Puts a new handle in the place of one whose write failed, unless that has happened already.
    pub(super) fn reopen(&self, failed: Arc<Handle>) -> Result<Arc<Handle>, StoreError> {
        // Not held while another caller, which waits for it to be let go of, has the lock. Nothing else can take its place
        // in memory as long as there is a weak reference.
        let weak = Arc::downgrade(&failed);
        drop(failed);
        let mut present = self.present();
        if let Some(handle) = &present.handle
            && !std::ptr::eq(Arc::as_ptr(handle), weak.as_ptr())
        {
            return Ok(Arc::clone(handle));
        }
        present.pause()?;
        let outcome = self.exchange(&mut present);
        present.last_failure = outcome.is_err().then(Instant::now);
        outcome
    }

    fn exchange(&self, present: &mut Present) -> Result<Arc<Handle>, StoreError> {
        // On a full disk sled may panic over a database that is sound.
        probe_space(&self.dir).map_err(StoreError::io("write to its disk"))?;
        let old = present.handle.take();
        let began = Instant::now();
        while let Some(old) = &old
            && Arc::strong_count(old) > 1
        {
            if began.elapsed() > READERS_PATIENCE {
                present.handle = Some(Arc::clone(old));
                let source = ErrorKind::ResourceBusy.into();
                return Err(StoreError::Io { action: "open sled again while it is read".into(), source });
            }
            std::thread::sleep(READERS_RETRY);
        }
        drop(old);
        self.open_again(present)
    }

    /// Opens the database where it is closed. Whether it is damaged is for the next start to say: what an error
    /// of the disk looks like inside sled is not known here.
    fn open_again(&self, present: &mut Present) -> Result<Arc<Handle>, StoreError> {
        let opened = present.pause().and_then(|()| Handle::open(&self.dir, self.cache_bytes));
        match opened {
            Ok(handle) => {
                tracing::info!("sled was opened again");
                *present = Present { handle: Some(Arc::new(handle)), last_failure: None };
                present.handle.clone().ok_or_else(|| StoreError::damaged("unreachable"))
            }
            Err(error) => {
                present.last_failure.get_or_insert_with(Instant::now);
                let source = std::io::Error::other(error.to_string());
                Err(StoreError::Io { action: "open sled again".into(), source })
            }
        }
    }
}

impl Present {
    /// Not again at once after a failure: each attempt takes time, and everybody waits for it.
    fn pause(&mut self) -> Result<(), StoreError> {
        match self.last_failure {
            Some(at) if at.elapsed() < REOPEN_AFTER => Err(StoreError::Io {
                action: "open sled again, which failed a moment ago".into(),
                source: ErrorKind::ResourceBusy.into(),
            }),
            _ => {
                self.last_failure = None;
                Ok(())
            }
        }
    }
}

/// An open sled database and the file that it keeps its data in.
pub(super) struct Handle {
    db: Option<Db>,
    dir: PathBuf,
    data: File,
}

impl Handle {
    fn open(dir: &Path, cache_bytes: u64) -> Result<Self, StoreError> {
        make_private_dir(dir).map_err(StoreError::io("create a directory"))?;
        let config = sled::Config::new().path(dir).cache_capacity(cache_bytes).flush_every_ms(None).mode(sled::Mode::LowSpace);
        let db = open_patiently(dir, &config)?;
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
    pub(super) fn get(&self, key: &[u8]) -> Result<Option<IVec>, StoreError> {
        let db = self.db()?;
        guarded(&self.dir, "reading", || db.get(key))
    }

    /// Visits the pairs under a prefix in order until `visit` returns false.
    pub(super) fn scan(
        &self,
        prefix: &[u8],
        mut visit: impl FnMut(&[u8], &[u8]) -> Result<bool, StoreError>,
    ) -> Result<(), StoreError> {
        let db = self.db()?;
        let mut pairs = db.scan_prefix(prefix);
        while let Some((key, value)) = guarded(&self.dir, "scanning", || pairs.next().transpose())? {
            if !visit(&key, &value)? {
                break;
            }
        }
        Ok(())
    }

    /// Whether there is nothing at all.
    pub(super) fn is_empty(&self) -> Result<bool, StoreError> {
        let db = self.db()?;
        guarded(&self.dir, "reading", || db.iter().next().transpose()).map(|first| first.is_none())
    }

    /// Sets one pair.
    pub(super) fn set(&self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        let db = self.db()?;
        guarded(&self.dir, "writing", || db.insert(key, value)).map(drop)
    }

    /// A writer of many pairs, in small batches.
    pub(super) fn writer(&self) -> TreeWriter<'_> {
        TreeWriter { tree: self, batch: Batch::default(), pairs: 0, bytes: 0 }
    }

    /// Makes everything written so far durable.
    pub(super) fn sync(&self) -> Result<(), StoreError> {
        let db = self.db()?;
        guarded(&self.dir, "flushing", || db.flush())?;
        self.data.sync_data().map_err(StoreError::io("sync sled's file"))
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // sled flushes on drop, which on a damaged or full store may panic.
        let db = self.db.take();
        let _ = catch_unwind(AssertUnwindSafe(|| drop(db)));
    }
}

/// Gathers pairs into batches of bounded size.
pub(super) struct TreeWriter<'a> {
    tree: &'a Handle,
    batch: Batch,
    pairs: usize,
    bytes: usize,
}

impl TreeWriter<'_> {
    /// Sets a pair.
    pub(super) fn set(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        self.batch.insert(key, value);
        self.count(key.len() + value.len())
    }

    /// Removes a key.
    pub(super) fn remove(&mut self, key: &[u8]) -> Result<(), StoreError> {
        self.batch.remove(key);
        self.count(key.len())
    }

    fn count(&mut self, bytes: usize) -> Result<(), StoreError> {
        self.pairs += 1;
        self.bytes += bytes;
        if self.pairs >= BATCH_PAIRS || self.bytes >= BATCH_BYTES { self.write() } else { Ok(()) }
    }

    /// Hands what has gathered to sled.
    pub(super) fn write(&mut self) -> Result<(), StoreError> {
        (self.pairs, self.bytes) = (0, 0);
        let batch = std::mem::take(&mut self.batch);
        let db = self.tree.db()?;
        guarded(&self.tree.dir, "writing", || db.apply_batch(batch))
    }
}

/// A database that was dropped lets go of its lock a moment later, on a thread of sled's: so a lock is waited for.
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

/// Waits until sled has let go of the lock on its file in `dir`.
pub(super) fn wait_until_closed(dir: &Path) -> Result<(), StoreError> {
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

/// Whether sled could not lock its file; it has no error of its own for that.
fn is_locked(error: &std::io::Error) -> bool {
    error.to_string().contains("could not acquire lock")
}

/// Calls sled; what it reports and what it panics with become a [`StoreError`].
fn guarded<T>(dir: &Path, doing: &str, call: impl FnOnce() -> sled::Result<T>) -> Result<T, StoreError> {
    let call = || run_at(Operation::Sled, dir, || Ok(catch_unwind(AssertUnwindSafe(call))));
    match call().map_err(StoreError::io(format!("go on {doing} in sled")))? {
        Ok(Ok(answer)) => Ok(answer),
        // A short read is damage; a refusal (permissions, a full disk, another process's lock) is not.
        Ok(Err(sled::Error::Io(source))) if !is_damage(source.kind()) => {
            Err(StoreError::Io { action: format!("go on {doing} in sled"), source })
        }
        Ok(Err(error)) => Err(StoreError::damaged(format!("sled, {doing}: {error}"))),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
            if let Some(source) = refusal_in(text) {
                return Err(StoreError::Io { action: format!("go on {doing} in sled"), source });
            }
            Err(StoreError::damaged(format!("sled panicked, {doing}: {text}")))
        }
    }
}

/// The refusal of the operating system that a panic of sled tells of, if it does: sled unwraps some. The store may be sound.
fn refusal_in(text: &str) -> Option<std::io::Error> {
    let after = |marker: &str| text.split_once(marker).map(|(_, rest)| rest);
    let rest = after("Os { code: ").or_else(|| after("(os error "))?;
    let digits = rest.split(|character: char| !character.is_ascii_digit()).next()?;
    let error = std::io::Error::from_raw_os_error(digits.parse().ok()?);
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
        let too_many = std::io::Error::from_raw_os_error(24);
        for panic in [format!("called `Result::unwrap()` on an `Err` value: Io({too_many:?})"), format!("can't open: {too_many}")]
        {
            let failed = guarded::<()>(Path::new("."), "opening", || std::panic::panic_any(panic.clone())).unwrap_err();
            assert!(matches!(&failed, StoreError::Io { source, .. } if source.raw_os_error() == Some(24)), "{failed}");
        }
        let short = std::io::Error::from(ErrorKind::UnexpectedEof);
        for panic in ["index out of bounds".to_owned(), format!("{short:?}")] {
            assert!(
                guarded::<()>(Path::new("."), "opening", || std::panic::panic_any(panic.clone())).unwrap_err().is_damage(),
                "{panic}"
            );
        }
    }
}
