//! A barrier at which a test holds a thread.

use parking_lot::{Condvar, Mutex};

/// Holds any thread that reaches a step of the archiver until it is opened.
#[derive(Default)]
pub(crate) struct Barrier {
    state: Mutex<BarrierState>,
    changed: Condvar,
}

#[derive(Default)]
struct BarrierState {
    is_reached: bool,
    is_open: bool,
}

impl Barrier {
    pub(crate) fn pass(&self) {
        let mut state = self.state.lock();
        state.is_reached = true;
        self.changed.wait_while(&mut state, |state| !state.is_open);
    }

    pub(crate) fn is_reached(&self) -> bool {
        self.state.lock().is_reached
    }

    pub(crate) fn open(&self) {
        self.state.lock().is_open = true;
        self.changed.notify_all();
    }
}
