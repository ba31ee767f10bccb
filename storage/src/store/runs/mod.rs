//! Many pairs that are read one by one and written in bulk: sorted runs in files that never change.
//!
//! A checkpoint writes what it changes of a realm as a new run, in one pass; runs of about one size are merged in the
//! background. Which runs a realm has is its *manifest*, a small value that is kept elsewhere and changes with the
//! checkpoint, so that all of it counts at once ([`super::DiskStore`] keeps it in sled). A lookup asks the filters of the
//! runs, newest first, and reads one block of one run; a key that nobody has costs no read.

mod block;
mod check;
mod merge;
mod run;
mod writer;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread::JoinHandle;

use serde::{Deserialize, Serialize};

use super::{Realm, StoreError, Visit};
use crate::codec;
use crate::files::sync_dir;
pub use check::UncheckedRuns;
use merge::MergeCursor;
use run::{Run, RunName, hash_of};
use writer::RunWriter;

/// How much of a checkpoint is put in order before it is written.
const BUFFER_BYTES: usize = 1 << 20;
const MANIFEST_VERSION: u8 = 1;

/// What a realm's runs are.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Manifest {
    /// The number of the next run.
    next: u64,
    /// The numbers of its runs, oldest first.
    runs: Vec<u64>,
}

/// The runs of a realm as a reader sees them: oldest first.
type RunList = Arc<Vec<Arc<Run>>>;

/// A run that can take the place of others from the next checkpoint on.
#[derive(Clone)]
struct Merged {
    run: Arc<Run>,
    replaces: Vec<u64>,
}

pub(super) struct Slot {
    realm: Realm,
    runs: RwLock<RunList>,
    next: AtomicU64,
    merged: Mutex<Option<Merged>>,
    merging: AtomicBool,
    /// What the last merge could not read.
    damage: Mutex<Option<StoreError>>,
    /// Held for reading by a scan that sees more than the runs, and for writing while a commit changes both.
    whole: RwLock<()>,
}

impl Slot {
    fn new(realm: Realm, next: u64, runs: Vec<Arc<Run>>) -> Self {
        Self {
            realm,
            runs: RwLock::new(Arc::new(runs)),
            next: AtomicU64::new(next),
            merged: Mutex::default(),
            merging: AtomicBool::new(false),
            damage: Mutex::default(),
            whole: RwLock::default(),
        }
    }

    fn runs(&self) -> RunList {
        Arc::clone(&self.runs.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn name(&self) -> RunName {
        RunName { realm: self.realm, id: self.next.fetch_add(1, Ordering::Relaxed) }
    }

    fn merged(&self) -> MutexGuard<'_, Option<Merged>> {
        self.merged.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The damage that a merge met, once.
    pub(super) fn damage(&self) -> Result<(), StoreError> {
        self.damage.lock().unwrap_or_else(PoisonError::into_inner).take().map_or(Ok(()), Err)
    }

    /// Until this is dropped, no commit of the realm shows.
    pub(super) fn hold(&self) -> RwLockReadGuard<'_, ()> {
        self.whole.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Until this is dropped, no scan over more than the runs begins.
    pub(super) fn change(&self) -> RwLockWriteGuard<'_, ()> {
        self.whole.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The runs of all realms.
pub(super) struct Runs {
    dir: Arc<Path>,
    slots: RwLock<HashMap<Realm, Arc<Slot>>>,
    merger: Option<Merger>,
}

impl Runs {
    /// Opens the runs in `dir` that the `manifests` name, and removes all others.
    pub(super) fn open(dir: &Path, manifests: Vec<(Realm, Vec<u8>)>) -> Result<Self, StoreError> {
        let mut left_over = files(dir)?;
        let mut slots = HashMap::new();
        for (realm, bytes) in manifests {
            let manifest: Manifest = codec::decode(MANIFEST_VERSION, &bytes)
                .map_err(|error| StoreError::damaged(format!("the list of runs of realm {realm}: {error}")))?;
            let mut runs = Vec::with_capacity(manifest.runs.len());
            for id in manifest.runs {
                let name = RunName { realm, id };
                runs.push(Arc::new(Run::open(&path_of(dir, name), name)?));
                left_over.remove(&path_of(dir, name));
            }
            slots.insert(realm, Arc::new(Slot::new(realm, manifest.next, runs)));
        }
        for path in left_over.keys() {
            fs::remove_file(path).map_err(StoreError::io("remove a left-over"))?;
        }
        let dir: Arc<Path> = dir.into();
        let merger = Merger::spawn(Arc::clone(&dir)).map_err(StoreError::io("start a thread"))?;
        Ok(Self { dir, slots: RwLock::new(slots), merger: Some(merger) })
    }

    /// The runs of a realm; one that nobody has written yet has none.
    pub(super) fn slot(&self, realm: Realm) -> Arc<Slot> {
        if let Some(slot) = self.slots.read().unwrap_or_else(PoisonError::into_inner).get(&realm) {
            return Arc::clone(slot);
        }
        let mut slots = self.slots.write().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(slots.entry(realm).or_insert_with(|| Arc::new(Slot::new(realm, 1, Vec::new()))))
    }

    /// The value of a key.
    pub(super) fn get(&self, realm: Realm, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        let runs = self.slot(realm).runs();
        let hash = hash_of(key);
        for run in runs.iter().rev() {
            if let Some(value) = run.get(key, hash)? {
                return Ok(value);
            }
        }
        Ok(None)
    }

    /// Visits the pairs under a prefix, in order.
    pub(super) fn scan(&self, realm: Realm, prefix: &[u8], visit: &mut Visit<'_>) -> Result<ControlFlow<()>, StoreError> {
        let runs = self.slot(realm).runs();
        let mut pairs = MergeCursor::seek(&runs, prefix)?;
        while pairs.advance()? && pairs.key().starts_with(prefix) {
            if let Some(value) = pairs.value()
                && visit(pairs.key(), value) == ControlFlow::Break(())
            {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Collects changes of a realm.
    pub(super) fn begin(&self, realm: Realm) -> RunChanges {
        let (dir, slot) = (Arc::clone(&self.dir), self.slot(realm));
        let files = NewFiles { dir: Arc::clone(&dir), names: Vec::new() };
        RunChanges { dir, slot, buffer: BTreeMap::new(), buffered: 0, writer: None, written: Vec::new(), files }
    }

    /// Lets readers see a list of runs whose manifest counts, removes what it doesn't name any more, and looks whether runs
    /// should be merged.
    pub(super) fn publish(&self, prepared: Prepared) {
        let Prepared { slot, runs, gone, mut files, .. } = prepared;
        files.keep();
        let sizes: Vec<u64> = runs.iter().map(|run| run.file_len()).collect();
        *slot.runs.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(runs);
        if !gone.is_empty() {
            *slot.merged() = None;
        }
        for id in gone {
            // What can't be removed now is removed at the next open.
            let _ = fs::remove_file(path_of(&self.dir, RunName { realm: slot.realm, id }));
        }
        if merge::plan(&sizes).is_some()
            && !slot.merging.swap(true, Ordering::AcqRel)
            && let Some(merger) = &self.merger
        {
            merger.ask(slot);
        }
    }

    /// Merges nothing more. What is half merged is given up.
    pub(super) fn stop_merging(&mut self) {
        if let Some(merger) = self.merger.take() {
            merger.stop();
        }
    }

    /// The realms with runs that are merged, which the next commit would tell.
    pub(super) fn with_merged(&self) -> Vec<Realm> {
        let slots = self.slots.read().unwrap_or_else(PoisonError::into_inner);
        slots.values().filter(|slot| slot.merged().is_some()).map(|slot| slot.realm).collect()
    }

    /// How many bytes the files take.
    pub(super) fn size_bytes(&self) -> Result<u64, StoreError> {
        Ok(files(&self.dir)?.values().sum())
    }

    /// How many bytes of memory the filters and indexes take.
    #[cfg(test)]
    fn memory_bytes(&self) -> u64 {
        let slots = self.slots.read().unwrap_or_else(PoisonError::into_inner);
        slots.values().flat_map(|slot| slot.runs().to_vec()).map(|run| run.memory_bytes()).sum()
    }
}

impl Drop for Runs {
    fn drop(&mut self) {
        self.stop_merging();
    }
}

fn path_of(dir: &Path, name: RunName) -> PathBuf {
    dir.join(format!("{:05}-{:016x}.run", name.realm.number(), name.id))
}

/// The run files in a directory, and their lengths.
fn files(dir: &Path) -> Result<BTreeMap<PathBuf, u64>, StoreError> {
    let list = || -> std::io::Result<BTreeMap<PathBuf, u64>> {
        let mut found = BTreeMap::new();
        for entry in fs::read_dir(dir)? {
            let entry = entry?;
            if entry.path().extension().is_some_and(|extension| extension == "run") {
                // One that a merge replaced may be gone by now.
                found.insert(entry.path(), entry.metadata().map_or(0, |about| about.len()));
            }
        }
        Ok(found)
    };
    list().map_err(StoreError::io("list its runs"))
}

/// Changes of a realm on their way into runs. They cost little memory if they come in the order of their keys; in another
/// order they become more runs, the last of which counts.
pub(super) struct RunChanges {
    dir: Arc<Path>,
    slot: Arc<Slot>,
    buffer: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
    buffered: usize,
    writer: Option<RunWriter>,
    written: Vec<Run>,
    files: NewFiles,
}

/// Files that no manifest names yet; they go if none ever will.
struct NewFiles {
    dir: Arc<Path>,
    names: Vec<RunName>,
}

impl NewFiles {
    fn keep(&mut self) {
        self.names.clear();
    }
}

impl Drop for NewFiles {
    fn drop(&mut self) {
        for name in &self.names {
            let _ = fs::remove_file(path_of(&self.dir, *name));
        }
    }
}

/// Changes that are durable, and count as soon as their manifest does.
pub(super) struct Prepared {
    slot: Arc<Slot>,
    runs: Vec<Arc<Run>>,
    gone: Vec<u64>,
    files: NewFiles,
    /// The manifest.
    pub(super) manifest: Vec<u8>,
}

impl Prepared {
    /// From here on it may be that the manifest counts, even if that is known only after the next open.
    pub(super) fn may_count(&mut self) {
        self.files.keep();
    }
}

impl RunChanges {
    /// Sets the value of a key; `None`: it holds nothing any more.
    pub(super) fn set(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<(), StoreError> {
        self.buffered += key.len() + value.map_or(0, <[u8]>::len);
        self.buffer.insert(key.to_vec(), value.map(<[u8]>::to_vec));
        if self.buffered >= BUFFER_BYTES { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> Result<(), StoreError> {
        self.buffered = 0;
        let buffer = std::mem::take(&mut self.buffer);
        let Some((first, _)) = buffer.first_key_value() else { return Ok(()) };
        let mut writer = match self.writer.take() {
            Some(writer) if writer.takes(first) => writer,
            before => {
                if let Some(before) = before {
                    self.written.push(before.finish()?);
                }
                let name = self.slot.name();
                self.files.names.push(name);
                RunWriter::create(&path_of(&self.dir, name), name, None)?
            }
        };
        for (key, value) in &buffer {
            writer.push(key, value.as_deref())?;
        }
        self.writer = Some(writer);
        Ok(())
    }

    /// Makes the changes durable. `None`: there is nothing that a manifest would have to say.
    pub(super) fn prepare(mut self) -> Result<Option<Prepared>, StoreError> {
        self.write()?;
        if let Some(writer) = self.writer.take() {
            self.written.push(writer.finish()?);
        }
        let merged = self.slot.merged().clone();
        if self.written.is_empty() && merged.is_none() {
            return Ok(None);
        }
        sync_dir(&self.dir).map_err(StoreError::io("sync a directory"))?;
        let mut runs = self.slot.runs().to_vec();
        let mut gone = Vec::new();
        if let Some(Merged { run, replaces }) = merged {
            // Lists grow at their end only, so what it replaces still stands side by side; nothing else will do.
            let stands = |part: &[Arc<Run>]| part.iter().map(|run| run.footer.name.id).eq(replaces.iter().copied());
            if let Some(place) = runs.windows(replaces.len().max(1)).position(stands) {
                runs.splice(place..place + replaces.len(), [run]);
                gone = replaces;
            } else {
                *self.slot.merged() = None;
            }
        }
        runs.extend(std::mem::take(&mut self.written).into_iter().map(Arc::new));
        let next = self.slot.next.load(Ordering::Relaxed);
        let manifest = Manifest { next, runs: runs.iter().map(|run| run.footer.name.id).collect() };
        let manifest = codec::encode(MANIFEST_VERSION, &manifest)
            .map_err(|error| StoreError::Io { action: "list its runs".into(), source: std::io::Error::other(error) })?;
        Ok(Some(Prepared { slot: self.slot, runs, gone, files: self.files, manifest }))
    }
}

/// One thread that merges runs.
struct Merger {
    orders: Sender<Arc<Slot>>,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Merger {
    fn spawn(dir: Arc<Path>) -> std::io::Result<Self> {
        let (orders, inbox) = channel();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let run = move || merge_all(&dir, &inbox, &stopped);
        let thread = std::thread::Builder::new().name("hc-merge".into()).spawn(run)?;
        Ok(Self { orders, stop, thread })
    }

    fn ask(&self, slot: Arc<Slot>) {
        // Without the thread, runs stay more and smaller.
        let _ = self.orders.send(slot);
    }

    fn stop(self) {
        self.stop.store(true, Ordering::Relaxed);
        drop(self.orders);
        let _ = self.thread.join();
    }
}

fn merge_all(dir: &Path, inbox: &Receiver<Arc<Slot>>, stop: &AtomicBool) {
    while let Ok(slot) = inbox.recv() {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        if let Err(error) = merge_one(dir, &slot, stop) {
            tracing::warn!(realm = slot.realm.number(), %error, "runs not merged; that can wait");
            if error.is_damage() {
                *slot.damage.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            }
        }
        slot.merging.store(false, Ordering::Release);
    }
}

fn merge_one(dir: &Path, slot: &Slot, stop: &AtomicBool) -> Result<(), StoreError> {
    // In this order: a commit that adopts what was merged shows its runs before it says so, and those that it replaced must not
    // be merged again.
    if slot.merged().is_some() {
        return Ok(());
    }
    let runs = slot.runs();
    let sizes: Vec<u64> = runs.iter().map(|run| run.file_len()).collect();
    let Some(range) = merge::plan(&sizes) else { return Ok(()) };
    let name = slot.name();
    let path = path_of(dir, name);
    match merge::write(&runs[range.clone()], range.start == 0, &path, name, stop) {
        Ok(Some(run)) => {
            let replaces = runs[range].iter().map(|run| run.footer.name.id).collect();
            *slot.merged() = Some(Merged { run: Arc::new(run), replaces });
            Ok(())
        }
        other => {
            let _ = fs::remove_file(&path);
            other.map(drop)
        }
    }
}
