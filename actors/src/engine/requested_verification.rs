//! Verifications that other nodes request.
//!
//! A verification takes long, so it is started on another node, and then its result is asked for
//! repeatedly. It ends there when the questions stop.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant as Stopwatch};

use headcount_common::nodes::{AskNodeError, NodeRequest, encode_answer};
use serde::{Deserialize, Serialize};

use super::handle::Engine;
use super::verifications::{RequestedVerification, VerifyProgress};

/// The tag of requests about a verification.
pub(super) const VERIFY: u16 = 1030;
/// How long a node waits for the end before it answers that the verification is in progress.
const PATIENCE: Duration = Duration::from_secs(1);
const POLL: Duration = Duration::from_millis(50);
/// The pause between two looks whether the other node still asks.
const PAUSE: Duration = Duration::from_millis(500);

/// A request of another node.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct VerifyQuestion {
    /// A random number for each verification.
    pub(super) run: u64,
    pub(super) quick: bool,
    pub(super) step: VerifyStep,
}

/// The step that another node requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum VerifyStep {
    /// Begins, unless it has begun.
    Begin,
    /// Asks for the result.
    Look,
    /// Ends and forgets the verification.
    End,
}

impl Engine {
    /// Begins a verification for another node, or returns its progress.
    pub(super) async fn answer_verify(&self, request: &[u8]) -> Result<Vec<u8>, AskNodeError> {
        let VerifyQuestion { run, quick, step } = NodeRequest::<VerifyQuestion>::decode(request)?.question;
        let progress = match step {
            VerifyStep::Begin => self.begin_requested(run, quick),
            VerifyStep::Look => self.look_at_requested(run).await,
            VerifyStep::End => {
                self.inner.verifications.end(run, |_| true);
                VerifyProgress::Unknown
            }
        };
        encode_answer(VERIFY, &progress)
    }

    fn begin_requested(&self, run: u64, quick: bool) -> VerifyProgress {
        let stop = Arc::<AtomicBool>::default();
        if let Some(progress) = self.inner.verifications.request(run, &stop) {
            return progress;
        }
        let (engine, verification) = (self.clone(), self.verify_here(quick, &stop));
        tokio::spawn(async move {
            let (verifications, mut verification) = (&engine.inner.verifications, std::pin::pin!(verification));
            let mut has_ended = false;
            // A result that is not fetched is not kept.
            while !has_ended || !verifications.is_closed() && verifications.requested(run).is_some() {
                tokio::select! {
                    found = &mut verification, if !has_ended => {
                        has_ended = true;
                        let ended = found.map_or_else(|error| VerifyProgress::Failed(error.to_string()), VerifyProgress::Done);
                        if let Some(mut requested) = verifications.requested(run) {
                            requested.ended = Some(ended);
                        }
                    }
                    () = tokio::time::sleep(PAUSE) => verifications.end(run, RequestedVerification::is_forgotten),
                }
            }
        });
        VerifyProgress::UnderWay
    }

    async fn look_at_requested(&self, run: u64) -> VerifyProgress {
        let began = Stopwatch::now();
        loop {
            {
                let Some(mut requested) = self.inner.verifications.requested(run) else { return VerifyProgress::Unknown };
                requested.asked = Stopwatch::now();
                if let Some(ended) = &requested.ended {
                    return ended.clone();
                }
            }
            if began.elapsed() >= PATIENCE {
                return VerifyProgress::UnderWay;
            }
            tokio::time::sleep(POLL).await;
        }
    }
}
