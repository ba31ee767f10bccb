//! One partition of an open store: what readers see, and who may change it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};
use std::time::Duration;

use super::super::PartitionId;
use super::frame::PartitionState;
use super::journal::{Changes, Journal, Undecided};

/// How often a commit looks whether the scans it waits for are over.
const PATIENCE: Duration = Duration::from_micros(200);

/// A committed checkpoint that sled does not hold yet: readers look here first.
#[derive(Debug)]
pub(super) struct Overlay {
    pub(super) journal: Journal,
    pub(super) changes: Changes,
}

/// One state of a partition. While a reader holds it, sled's part of it does not change.
#[derive(Debug, Default)]
pub(super) struct View {
    pub(super) overlay: Option<Arc<Overlay>>,
    pub(super) state: PartitionState,
}

/// A partition and its present view.
#[derive(Debug)]
pub(super) struct PartitionSlot {
    pub(super) partition: PartitionId,
    view: RwLock<Arc<View>>,
    retired: Mutex<Vec<Weak<View>>>,
    open: AtomicBool,
    /// A commit that failed, and that would perhaps count after a crash.
    undecided: Mutex<Option<Undecided>>,
}

impl PartitionSlot {
    /// A partition in this state, all of it in sled.
    pub(super) fn new(partition: PartitionId, state: PartitionState) -> Self {
        Self {
            partition,
            view: RwLock::new(Arc::new(View { overlay: None, state })),
            retired: Mutex::default(),
            open: AtomicBool::new(false),
            undecided: Mutex::default(),
        }
    }

    /// What a reader that begins now sees.
    pub(super) fn view(&self) -> Arc<View> {
        self.view.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Lets readers that begin from now on see `view`.
    pub(super) fn publish(&self, view: View) {
        let mut present = self.view.write().unwrap_or_else(PoisonError::into_inner);
        let old = std::mem::replace(&mut *present, Arc::new(view));
        let mut retired = self.retired.lock().unwrap_or_else(PoisonError::into_inner);
        retired.push(Arc::downgrade(&old));
    }

    /// Waits until nobody reads an older view than the present one; then sled may be changed.
    pub(super) fn wait_for_readers(&self) {
        let mut retired = self.retired.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            retired.retain(|view| view.strong_count() > 0);
            if retired.is_empty() {
                return;
            }
            std::thread::sleep(PATIENCE);
        }
    }

    /// Claims the partition for a checkpoint; false if it is taken.
    pub(super) fn claim(&self) -> bool {
        !self.open.swap(true, Ordering::AcqRel)
    }

    /// Gives the partition free for the next checkpoint.
    pub(super) fn release(&self) {
        self.open.store(false, Ordering::Release);
    }

    /// Takes back a commit that failed half way. After an error it may be tried again.
    pub(super) fn take_back(&self) -> std::io::Result<()> {
        let mut undecided = self.undecided();
        if let Some(journal) = &*undecided {
            journal.take_back()?;
        }
        *undecided = None;
        Ok(())
    }

    /// The commit that has to be taken back before the next one can begin, if any.
    pub(super) fn undecided(&self) -> MutexGuard<'_, Option<Undecided>> {
        self.undecided.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
