//! The threads that merge runs, and how a checkpoint merges by itself where they don't keep up.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use super::super::StoreError;
use super::{Merged, Slot};
use crate::files::remove_file;
use crate::sstable::merge;
use crate::sstable::reader::RunDir;

/// So many threads merge at most, and no more than half of the processors.
const MOST_THREADS: usize = 4;

/// What is done about the runs of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum MergeState {
    /// Nothing.
    #[default]
    Idle,
    /// They wait for a thread.
    Asked,
    /// They are being merged.
    Running,
}

/// Threads that merge runs.
pub(super) struct Merger {
    orders: Sender<Arc<Slot>>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Merger {
    pub(super) fn spawn(dir: &RunDir) -> std::io::Result<Self> {
        let (orders, inbox) = channel();
        let inbox = Arc::new(Mutex::new(inbox));
        let mut merger = Self { orders, stop: Arc::new(AtomicBool::new(false)), threads: Vec::new() };
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        for _ in 0..(processors / 2).clamp(1, MOST_THREADS) {
            let (dir, inbox, stop) = (dir.clone(), Arc::clone(&inbox), Arc::clone(&merger.stop));
            let thread = std::thread::Builder::new().name("merge".into()).spawn(move || merge_all(&dir, &inbox, &stop));
            match thread {
                Ok(thread) => merger.threads.push(thread),
                Err(error) => {
                    merger.stop();
                    return Err(error);
                }
            }
        }
        Ok(merger)
    }

    /// Has the runs of a partition merged, unless that is asked for already.
    pub(super) fn ask(&self, slot: &Arc<Slot>) {
        let mut state = slot.merging();
        if *state == MergeState::Idle {
            *state = MergeState::Asked;
            // Without the threads, checkpoints merge.
            let _ = self.orders.send(Arc::clone(slot));
        }
    }

    pub(super) fn stop(self) {
        self.stop.store(true, Ordering::Relaxed);
        drop(self.orders);
        for thread in self.threads {
            let _ = thread.join();
        }
    }
}

fn merge_all(dir: &RunDir, inbox: &Mutex<Receiver<Arc<Slot>>>, stop: &AtomicBool) {
    loop {
        let order = inbox.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(slot) = order else { return };
        if stop.load(Ordering::Relaxed) {
            return;
        }
        // Otherwise a checkpoint has done it.
        if slot.merging_from(MergeState::Asked) {
            let _end = EndMerge(&slot);
            if let Err(error) = slot.merge(dir, merge::plan, stop) {
                tracing::warn!(partition = slot.partition.number(), %error, "runs not merged; that can wait");
                if error.is_damage() {
                    *slot.damage.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                }
            }
        }
    }
}

/// Says that a merge is over, however it ended.
struct EndMerge<'s>(&'s Slot);

impl Drop for EndMerge<'_> {
    fn drop(&mut self) {
        *self.0.merging() = MergeState::Idle;
        self.0.merge_ended.notify_all();
    }
}

impl Slot {
    pub(super) fn merging(&self) -> MutexGuard<'_, MergeState> {
        self.merging.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn merging_from(&self, from: MergeState) -> bool {
        let mut state = self.merging();
        let begins = *state == from;
        if begins {
            *state = MergeState::Running;
        }
        begins
    }

    /// Merges the runs of the partition on this thread, or waits for the thread that does. What is merged counts with the next
    /// checkpoint.
    pub(super) fn merge_now(&self, dir: &RunDir) -> Result<(), StoreError> {
        let running = |state: &mut MergeState| *state == MergeState::Running;
        let mut state = self.merge_ended.wait_while(self.merging(), running).unwrap_or_else(PoisonError::into_inner);
        *state = MergeState::Running;
        drop(state);
        let _end = EndMerge(self);
        self.merge(dir, merge::plan_at_once, &AtomicBool::new(false))
    }

    fn merge(
        &self,
        dir: &RunDir,
        plan: fn(&[u64]) -> Option<std::ops::Range<usize>>,
        stop: &AtomicBool,
    ) -> Result<(), StoreError> {
        // In this order: a commit that adopts what was merged shows its runs before it says so, and those that it replaced must not
        // be merged again.
        if self.merged().is_some() {
            return Ok(());
        }
        let runs = self.runs();
        let sizes: Vec<u64> = runs.iter().map(|run| run.file_len()).collect();
        let Some(range) = plan(&sizes) else { return Ok(()) };
        let name = self.name();
        match merge::write(&runs[range.clone()], range.start == 0, dir, name, stop) {
            Ok(Some(run)) => {
                let replaces = runs[range].iter().map(|run| run.footer.name.id).collect();
                *self.merged() = Some(Merged { run: Arc::new(run), replaces });
                Ok(())
            }
            other => {
                let _ = remove_file(&dir.path_of(name));
                other.map(drop)
            }
        }
    }
}
