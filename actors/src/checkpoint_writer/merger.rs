//! Merges tables of external ids on their own thread, since a large merge takes minutes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;

use headcount_storage::external_ids::{ExternalIdsError, Merge, Written};
use parking_lot::Mutex;

use super::claim::Claim;
use super::report::{JobOutcome, Reply};

/// A merge of one partition's tables.
pub(crate) struct MergeJob {
    pub(crate) reply: Reply,
    pub(crate) claim: Arc<Claim>,
    pub(crate) merge: Merge,
}

/// Tells both threads to stop.
#[derive(Debug, Default)]
pub(super) struct StopSignal {
    stopped: AtomicBool,
    merging: Mutex<Option<Arc<Claim>>>,
}

impl StopSignal {
    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        if let Some(claim) = &*self.merging.lock() {
            claim.stop();
        }
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }

    fn set_merging(&self, claim: Option<Arc<Claim>>) {
        *self.merging.lock() = claim;
    }
}

/// Performs merges, one after another.
pub(super) fn merge_all(inbox: &Receiver<MergeJob>, stop: &StopSignal) {
    while let Ok(MergeJob { reply, claim, merge }) = inbox.recv() {
        // Set before the signal is read, so that a stop is seen either here or by the claim.
        stop.set_merging(Some(Arc::clone(&claim)));
        let merged = if stop.is_stopped() { None } else { merge_one(&reply, &claim, &merge) };
        stop.set_merging(None);
        drop(merge);
        reply.finish(JobOutcome::Merged(merged));
    }
}

fn merge_one(reply: &Reply, claim: &Claim, merge: &Merge) -> Option<Written> {
    let _running = claim.begin()?;
    match merge.write(claim.stopped()) {
        Ok(written) => Some(written),
        Err(ExternalIdsError::Stopped) => None,
        Err(error) => {
            tracing::warn!(partition = reply.partition, %error, "external ids not merged; that can wait");
            None
        }
    }
}
