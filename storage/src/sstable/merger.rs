//! Threads that merge tables in the background.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use super::merge::{MergePlan, plan, plan_at_rest};
use super::set::TableSet;
use crate::background::{self, Tempo};
use parking_lot::Mutex;

/// The maximum number of threads, but at most half the number of processors.
const MAX_THREADS: usize = 4;

/// A set to merge, and the plan.
type Order = (Arc<TableSet>, MergePlan);

/// Merges the sets that are sent to it.
pub(crate) struct Merger {
    orders: Option<Sender<Order>>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Merger {
    /// Starts the threads.
    pub(crate) fn spawn() -> std::io::Result<Self> {
        let (orders, inbox) = channel();
        let inbox = Arc::new(Mutex::new(inbox));
        let mut merger = Self { orders: Some(orders), stop: Arc::default(), threads: Vec::new() };
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        for _ in 0..(processors / 2).clamp(1, MAX_THREADS) {
            let (inbox, stop) = (Arc::clone(&inbox), Arc::clone(&merger.stop));
            let thread = std::thread::Builder::new().name("merge".into());
            merger.threads.push(thread.spawn(move || merge_all(&inbox, &stop))?);
        }
        Ok(merger)
    }

    /// Merges a set in the background if the sizes of its tables suggest it.
    pub(crate) fn merge_if_needed(&self, set: &Arc<TableSet>) {
        if set.needs_merge() {
            self.order(set, plan);
        }
    }

    /// Merges all tables of a set at rest, in the background.
    pub(crate) fn merge_at_rest(&self, set: &Arc<TableSet>) {
        self.order(set, plan_at_rest);
    }

    fn order(&self, set: &Arc<TableSet>, plan: MergePlan) {
        if let Some(orders) = &self.orders
            && set.queue_merge()
        {
            // Without the threads, sets are merged when they have too many tables.
            let _ = orders.send((Arc::clone(set), plan));
        }
    }
}

impl Drop for Merger {
    /// Ends the threads. An unfinished merge is abandoned.
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.orders = None;
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn merge_all(inbox: &Mutex<Receiver<Order>>, stop: &AtomicBool) {
    let merging = Rc::<RefCell<Option<Arc<TableSet>>>>::default();
    let awaited = Rc::clone(&merging);
    background::begin(move || Tempo::urgent_if(awaited.borrow().as_ref().is_some_and(|set| set.is_awaited())));
    loop {
        let order = inbox.lock().recv();
        let Ok((set, plan)) = order else { return };
        if stop.load(Ordering::Relaxed) {
            return;
        }
        *merging.borrow_mut() = Some(Arc::clone(&set));
        let merged = set.merge_queued(plan, stop);
        *merging.borrow_mut() = None;
        if let Err(error) = merged {
            tracing::warn!(tables = %set.space.describe(), %error, "could not merge tables; a later merge will");
        }
    }
}
