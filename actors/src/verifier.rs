//! Verifies store and index: for a short time before the engine serves, and the rest while it does.
//!
//! Every block of the store and every page of the index has a checksum that each read checks, so
//! damage causes an error and never a wrong answer. Reading everything only finds damage early, and
//! takes time in proportion to the data. So a start spends [`BEFORE_SERVING`] on it, which suffices
//! for small data, and a thread verifies the rest slowly. sled's values have no such checksums.
//! They are few, and always verified before the engine serves.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use headcount_domain::{Fault, FaultKind};
use headcount_storage::UncheckedTables;
use headcount_storage::external_ids::{ExternalIds, ExternalIdsError};
use headcount_storage::store::DiskStore;
use parking_lot::Mutex;

use crate::fault;

/// Time that a start spends on the store, and again on the index.
const BEFORE_SERVING: Duration = Duration::from_secs(1);
/// Read rate of the background check: 1 GiB a minute.
const BYTES_A_SECOND: u64 = 16 << 20;
/// Longest sleep of the thread between two checks of the stop flag.
const NAP: Duration = Duration::from_millis(50);

/// Records damage.
#[derive(Debug)]
pub(crate) struct DamageNote {
    store: Weak<DiskStore>,
    found: AtomicBool,
}

impl DamageNote {
    pub(crate) fn new(store: &Arc<DiskStore>) -> Self {
        Self { store: Arc::downgrade(store), found: AtomicBool::new(false) }
    }

    /// Marks the store for a rebuild at the next start if the fault is damage of store or index.
    /// Returns the fault.
    pub(crate) fn noted(&self, fault: Fault) -> Fault {
        match fault.kind {
            FaultKind::DamagedStore | FaultKind::DamagedIndex => {
                if !self.found.swap(true, Ordering::Relaxed) {
                    tracing::error!(%fault, "damage was found; the next start rebuilds the state from the log");
                }
                if let Some(store) = self.store.upgrade() {
                    store.note_damage(&fault.message);
                }
            }
            FaultKind::Io | FaultKind::DamagedLog | FaultKind::DamagedArchive | FaultKind::Defect => {}
        }
        fault
    }

    /// The store; `None` if it is closed.
    pub(crate) fn store(&self) -> Option<Arc<DiskStore>> {
        self.store.upgrade()
    }

    /// Whether damage was found since the start.
    pub(crate) fn found(&self) -> bool {
        self.found.load(Ordering::Relaxed)
    }
}

/// The data that a start has not verified.
#[derive(Debug)]
pub(crate) struct Unchecked {
    until: Instant,
    store: Mutex<Option<UncheckedTables>>,
    /// `None` after the start: an index opened again later was or is being verified.
    index: Mutex<Option<Vec<UncheckedTables>>>,
}

impl Unchecked {
    /// Verifies the store for a while.
    pub(crate) fn begin(store: &DiskStore, before_serving: Duration) -> Result<Self, Fault> {
        let runs = store.verify_until(Instant::now() + before_serving).map_err(fault::of_store)?;
        let until = Instant::now() + before_serving;
        Ok(Self { until, store: Mutex::new(Some(runs)), index: Mutex::new(Some(Vec::new())) })
    }

    /// Creates an empty set: nothing has to be verified.
    pub(crate) fn nothing() -> Self {
        Self { until: Instant::now(), store: Mutex::default(), index: Mutex::default() }
    }

    /// Verifies the index of a partition for a while, during a start.
    pub(crate) fn check(&self, index: &ExternalIds) -> Result<(), ExternalIdsError> {
        if self.index.lock().is_none() {
            return Ok(());
        }
        let left = index.verify_until(Some(self.until))?;
        if let Some(all) = &mut *self.index.lock() {
            all.push(left);
        }
        Ok(())
    }

    /// Takes the rest after the start.
    fn take(&self) -> (Option<UncheckedTables>, Vec<UncheckedTables>) {
        let store = self.store.lock().take();
        let index = self.index.lock().take();
        let index = index.into_iter().flatten().filter(|index| !index.is_empty()).collect();
        (store.filter(|store| !store.is_empty()), index)
    }
}

#[cfg(test)]
impl Default for DamageNote {
    /// Creates a note without a store.
    fn default() -> Self {
        Self { store: Weak::new(), found: AtomicBool::new(false) }
    }
}

#[cfg(test)]
impl Default for Unchecked {
    /// Creates the rest of a start that has checked everything.
    fn default() -> Self {
        Self::nothing()
    }
}

/// The time that a start spends on verification: the configured one, or [`BEFORE_SERVING`].
pub(crate) fn before_serving(set: Option<Duration>) -> Duration {
    set.unwrap_or(BEFORE_SERVING)
}

/// The thread that verifies the rest.
#[derive(Debug)]
pub(crate) struct Verifier {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Verifier {
    /// Starts the thread, if there is a rest. If the thread can't be started, damage is found when
    /// it is read.
    pub(crate) fn spawn(unchecked: &Unchecked, note: Arc<DamageNote>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (store, index) = unchecked.take();
        if store.is_none() && index.is_empty() {
            return Self { stop, thread: None };
        }
        let stopped = Arc::clone(&stop);
        let run = move || check_all(store, &index, &stopped, &note);
        let thread = std::thread::Builder::new().name("verify".into()).spawn(run);
        let thread = thread.inspect_err(|error| tracing::warn!(%error, "store and index are not checked")).ok();
        Self { stop, thread }
    }

    /// Stops the thread.
    pub(crate) fn stop(mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Verifier {
    /// The thread ends soon, without being waited for.
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

fn check_all(store: Option<UncheckedTables>, index: &[UncheckedTables], stop: &AtomicBool, note: &DamageNote) {
    let began = Instant::now();
    let mut bytes = 0;
    let mut pace = |read| {
        bytes += read;
        slow_down(began, bytes, stop)
    };
    let checked = store.map_or(Ok(()), |store| store.check(&mut pace).map_err(|error| fault::of_store(error.into())));
    let index = index.iter().map(|index| index.check(&mut pace).map_err(|error| fault::of_index(error.into())));
    let faults: Vec<Fault> = std::iter::once(checked).chain(index).filter_map(Result::err).collect();
    let damage = |fault: &Fault| matches!(fault.kind, FaultKind::DamagedStore | FaultKind::DamagedIndex);
    for fault in faults.iter().filter(|fault| !damage(fault)) {
        tracing::warn!(%fault, "a part of store or index could not be checked");
    }
    let sound = faults.is_empty();
    for fault in faults.into_iter().filter(damage) {
        note.noted(fault);
    }
    if sound && !stop.load(Ordering::Relaxed) {
        tracing::info!(bytes, took_s = began.elapsed().as_secs(), "store and index are checked");
    }
}

/// Sleeps until `bytes` may have been read.
fn slow_down(began: Instant, bytes: u64, stop: &AtomicBool) -> ControlFlow<()> {
    let due = Duration::from_millis(bytes.saturating_mul(1_000) / BYTES_A_SECOND);
    loop {
        if stop.load(Ordering::Relaxed) {
            return ControlFlow::Break(());
        }
        match due.checked_sub(began.elapsed()) {
            Some(ahead) if !ahead.is_zero() => std::thread::sleep(ahead.min(NAP)),
            _ => return ControlFlow::Continue(()),
        }
    }
}
