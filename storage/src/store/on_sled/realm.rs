//! One realm of an open store: what readers see, and who may change it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};
use std::time::Duration;

use super::super::Realm;
use super::frame::RealmState;
use super::journal::{Changes, Journal};

/// How often a commit looks whether the scans it waits for are over.
const PATIENCE: Duration = Duration::from_micros(200);

/// A committed checkpoint that sled does not hold yet: readers look here first.
#[derive(Debug)]
pub(super) struct Overlay {
    pub(super) journal: Journal,
    pub(super) changes: Changes,
}

/// One state of a realm. While a reader holds it, sled's part of it does not change.
#[derive(Debug, Default)]
pub(super) struct View {
    pub(super) overlay: Option<Arc<Overlay>>,
    pub(super) state: RealmState,
}

/// A realm and its present view.
#[derive(Debug)]
pub(super) struct RealmSlot {
    pub(super) realm: Realm,
    view: RwLock<Arc<View>>,
    retired: Mutex<Vec<Weak<View>>>,
    open: AtomicBool,
    stopped: AtomicBool,
}

impl RealmSlot {
    /// A realm in this state, all of it in sled.
    pub(super) fn new(realm: Realm, state: RealmState) -> Self {
        Self {
            realm,
            view: RwLock::new(Arc::new(View { overlay: None, state })),
            retired: Mutex::default(),
            open: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
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

    /// Claims the realm for a checkpoint; false if it is taken.
    pub(super) fn claim(&self) -> bool {
        !self.open.swap(true, Ordering::AcqRel)
    }

    /// Gives the realm free for the next checkpoint.
    pub(super) fn release(&self) {
        self.open.store(false, Ordering::Release);
    }

    /// Refuses checkpoints from now on.
    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
    }

    /// Whether [`RealmSlot::stop`] was called.
    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }
}
