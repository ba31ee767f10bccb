//! The messages between nodes about a verification that one node makes for another.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant as Stopwatch};

use serde::{Deserialize, Serialize};

use crate::verify::VerifyReport;

/// How long a verification continues after the other node's last question, and how long its result
/// is kept.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(60);

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

/// The progress of a verification for another node.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) enum VerifyProgress {
    UnderWay,
    Done(NodeReport),
    /// The verification failed for this reason.
    Failed(String),
    /// The verification is unknown.
    Unknown,
}

/// The result of a node.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct NodeReport {
    pub(super) verified: BTreeSet<u16>,
    pub(super) report: VerifyReport,
}

/// The verification that this node makes for another one.
#[derive(Debug)]
pub(super) struct ForeignVerification {
    pub(super) run: u64,
    pub(super) stop: Arc<AtomicBool>,
    pub(super) asked: Stopwatch,
    /// The result; `None` while it is in progress.
    pub(super) ended: Option<VerifyProgress>,
}

impl ForeignVerification {
    /// Whether the other node has stopped asking for it.
    pub(super) fn is_forgotten(&self) -> bool {
        self.asked.elapsed() > FORGOTTEN_AFTER
    }
}
