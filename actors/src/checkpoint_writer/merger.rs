//! Merging runs of external ids, on a thread of its own: a large merge takes minutes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, PoisonError};

use headcount_storage::external_ids::{ExternalIdsError, Merge, Written};

use super::claim::Claim;
use super::report::{Outcome, Reply};

/// Runs of one partition to be merged.
pub(crate) struct MergeJob {
    pub(crate) reply: Reply,
    pub(crate) claim: Arc<Claim>,
    pub(crate) merge: Merge,
}

/// Tells both threads to come to an end.
#[derive(Debug, Default)]
pub(super) struct Stop {
    stopped: AtomicBool,
    merging: Mutex<Option<Arc<Claim>>>,
}

impl Stop {
    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        if let Some(claim) = &*self.merging.lock().unwrap_or_else(PoisonError::into_inner) {
            claim.stop();
        }
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }

    fn set_merging(&self, claim: Option<Arc<Claim>>) {
        *self.merging.lock().unwrap_or_else(PoisonError::into_inner) = claim;
    }
}

/// Merges what comes, one after another.
pub(super) fn merge_all(inbox: &Receiver<MergeJob>, stop: &Stop) {
    while let Ok(MergeJob { reply, claim, merge }) = inbox.recv() {
        // Known before it is looked whether to stop, so that one of the two is seen.
        stop.set_merging(Some(Arc::clone(&claim)));
        let merged = if stop.is_stopped() { None } else { merge_one(&reply, &claim, &merge) };
        stop.set_merging(None);
        drop(merge);
        reply.finish(Outcome::Merged(merged));
    }
}

fn merge_one(reply: &Reply, claim: &Claim, merge: &Merge) -> Option<Written> {
    let _running = claim.begin()?;
    match merge.write(claim.stopped()) {
        Ok(written) => Some(written),
        Err(ExternalIdsError::Stopped) => None,
        Err(error) => {
            tracing::warn!(partition = reply.partition(), %error, "external ids not merged; that can wait");
            None
        }
    }
}
