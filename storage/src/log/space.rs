//! Prepares segment files ahead of time: allocated, filled with zeroes and synced, so that an
//! append only overwrites.
//!
//! Overwriting allocated blocks changes no metadata of the file, which makes the sync of an append
//! about twice as fast as in a growing file. And a full disk is noticed here, before anything is
//! acknowledged.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::durable::{abort, write_zeroes};
use super::segment::{SegmentHeader, segment_path};
use crate::files::{self, File, sync_dir};

/// Bytes between two syncs of a file that is being filled. They are few, so that an append's sync
/// never waits long for one.
const CHUNK_BYTES: u64 = 256 * 1024;
/// The pause after a chunk, as a multiple of the time for the chunk, unless a thread waits for the
/// file. It leaves the disk to the syncs of appends. Disks that slow down after large writes would
/// delay appends by a tenth of a second.
const PAUSE_FACTOR: u32 = 4;
/// The longest pause.
const MAX_PAUSE: Duration = Duration::from_millis(50);

/// Signals that a fill checks between chunks.
#[derive(Debug, Default)]
pub(super) struct FillSignals {
    /// It should give up.
    stop: AtomicBool,
    /// It should continue without pauses.
    is_awaited: AtomicBool,
}

impl FillSignals {
    fn pause_after(&self, chunk: Duration) {
        if !self.is_awaited.load(Ordering::Relaxed) {
            // Until a thread waits for the file.
            std::thread::park_timeout((chunk * PAUSE_FACTOR).min(MAX_PAUSE));
        }
    }
}

/// Fills part of a file with durable zeroes. Tests replace it to simulate a full disk.
pub(super) trait Fill: Send + Sync + 'static {
    /// Allocates and zeroes the bytes from `from` to `to`, and syncs them.
    fn fill(&self, file: &File, from: u64, to: u64, signals: &FillSignals) -> io::Result<()>;
}

/// Fills files on the real disk.
#[derive(Debug)]
pub(super) struct FillOnDisk;

impl Fill for FillOnDisk {
    fn fill(&self, file: &File, from: u64, to: u64, signals: &FillSignals) -> io::Result<()> {
        // Allocates all space at once, so that a nearly full disk is not filled chunk by chunk
        // before it fails.
        file.allocate(from, to)?;
        let mut at = from;
        while at < to {
            if signals.stop.load(Ordering::Relaxed) {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let (end, began) = (to.min(at + CHUNK_BYTES), Instant::now());
            write_zeroes(file, at, end)?;
            file.sync_data()?;
            signals.pause_after(began.elapsed());
            at = end;
        }
        file.sync_all()
    }
}

/// A prepared file that is not yet a segment. It is removed if it is dropped before it becomes one.
#[derive(Debug)]
pub(super) struct PreparedSegment {
    file: File,
    path: PathBuf,
    /// Size in bytes.
    pub(super) bytes: u64,
    installed: bool,
}

impl PreparedSegment {
    fn create(path: PathBuf, bytes: u64, fill: &dyn Fill, signals: &FillSignals) -> io::Result<Self> {
        let file = File::create(&path)?;
        let prepared = PreparedSegment { file, path, bytes, installed: false };
        fill.fill(&prepared.file, 0, bytes, signals)?;
        Ok(prepared)
    }

    /// Gives the file its header and its name; both are durable on return. After an error nothing
    /// has changed.
    pub(super) fn install(mut self, dir: &Path, header: &SegmentHeader) -> io::Result<File> {
        self.file.write_all_at(&header.encode(), 0)?;
        self.file.sync_all()?;
        let path = segment_path(dir, header.first);
        let file = self.file.try_clone()?;
        files::rename(&self.path, &path)?;
        self.installed = true;
        if let Err(error) = sync_dir(dir) {
            // Only the next start can find out whether the name is there.
            abort("sync the directory of", &path, &error);
        }
        Ok(file)
    }
}

impl Drop for PreparedSegment {
    fn drop(&mut self) {
        if !self.installed
            && let Err(error) = files::remove_file(&self.path)
        {
            tracing::warn!(path = %self.path.display(), %error, "could not remove an unused segment file");
        }
    }
}

/// Prepares one segment file at a time, on its own thread.
pub(super) struct Preparer {
    dir: PathBuf,
    fill: Arc<dyn Fill>,
    pending: Option<JoinHandle<io::Result<PreparedSegment>>>,
    signals: Arc<FillSignals>,
    serial: u64,
}

impl Preparer {
    pub(super) fn new(dir: &Path, fill: Arc<dyn Fill>) -> Self {
        Preparer { dir: dir.to_path_buf(), fill, pending: None, signals: Arc::default(), serial: 0 }
    }

    fn next_path(&mut self) -> PathBuf {
        self.serial += 1;
        self.dir.join(format!("prepared-{}.tmp", self.serial))
    }

    /// Begins to prepare a file of `bytes`, unless one is in preparation.
    pub(super) fn start(&mut self, bytes: u64) {
        if self.pending.is_some() {
            return;
        }
        self.signals.is_awaited.store(false, Ordering::Relaxed);
        let (path, fill, signals) = (self.next_path(), Arc::clone(&self.fill), Arc::clone(&self.signals));
        let work = move || PreparedSegment::create(path, bytes, fill.as_ref(), &signals);
        match std::thread::Builder::new().name("log-prepare".into()).spawn(work) {
            Ok(thread) => self.pending = Some(thread),
            Err(error) => tracing::warn!(%error, "could not start a thread to prepare a segment; it will be created when needed"),
        }
    }

    /// Returns the prepared file if it has at least `bytes`, otherwise a new one.
    pub(super) fn take(&mut self, bytes: u64) -> io::Result<PreparedSegment> {
        self.signals.is_awaited.store(true, Ordering::Relaxed);
        if let Some(thread) = self.pending.take() {
            thread.thread().unpark();
            match thread.join() {
                Ok(Ok(prepared)) if prepared.bytes >= bytes => return Ok(prepared),
                Ok(Ok(_too_small)) => {}
                Ok(Err(error)) => tracing::warn!(%error, "could not prepare a segment ahead of time"),
                Err(_panic) => tracing::warn!("the thread that prepares segments panicked"),
            }
        }
        let path = self.next_path();
        PreparedSegment::create(path, bytes, self.fill.as_ref(), &self.signals)
    }

    /// Extends an empty segment. After an error it keeps its length.
    pub(super) fn extend(&self, file: &File, from: u64, to: u64) -> io::Result<()> {
        self.signals.is_awaited.store(true, Ordering::Relaxed);
        self.fill.fill(file, from, to, &self.signals).inspect_err(|_| {
            if let Err(error) = file.set_len(from) {
                tracing::warn!(%error, "could not undo the extension of a segment");
            }
        })
    }
}

impl Drop for Preparer {
    fn drop(&mut self) {
        self.signals.stop.store(true, Ordering::Relaxed);
        self.signals.is_awaited.store(true, Ordering::Relaxed);
        if let Some(thread) = self.pending.take() {
            thread.thread().unpark();
            // The drop of the file removes it.
            let _ = thread.join();
        }
    }
}

impl std::fmt::Debug for Preparer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Preparer").field("dir", &self.dir).field("pending", &self.pending.is_some()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_awaited_is_filled_without_pauses() {
        let pause = |signals: &FillSignals| {
            let began = Instant::now();
            signals.pause_after(MAX_PAUSE);
            began.elapsed()
        };
        let signals = FillSignals::default();
        assert!(pause(&signals) >= MAX_PAUSE);
        signals.is_awaited.store(true, Ordering::Relaxed);
        assert!(pause(&signals) < MAX_PAUSE);
    }
}
