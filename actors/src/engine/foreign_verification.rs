//! What nodes say to each other about a verification that one makes for another.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant as Stopwatch};

use serde::{Deserialize, Serialize};

use crate::verify::VerifyReport;

/// How long a verification goes on for another node that no longer asks for it, and how long what it found is kept.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(60);

/// What another node wants.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct VerifyQuestion {
    /// Tells one verification from another.
    pub(super) run: u64,
    pub(super) quick: bool,
    pub(super) step: VerifyStep,
}

/// What another node wants to be done about its verification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum VerifyStep {
    /// It is to begin, unless it has.
    Begin,
    /// What it has found is asked for.
    Look,
    /// It is to end, and may be forgotten.
    End,
}

/// How far the verification for another node is.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) enum VerifyProgress {
    UnderWay,
    Done(NodeReport),
    /// It was not made, for this reason.
    Failed(String),
    /// Nothing is known of it.
    Unknown,
}

/// What a node has found.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct NodeReport {
    pub(super) verified: BTreeSet<u16>,
    pub(super) report: VerifyReport,
}

/// The verification that a node makes for another one.
#[derive(Debug)]
pub(super) struct ForeignVerification {
    pub(super) run: u64,
    pub(super) stop: Arc<AtomicBool>,
    pub(super) asked: Stopwatch,
    /// `None`: it is under way.
    pub(super) ended: Option<VerifyProgress>,
}

impl ForeignVerification {
    /// Whether the other node no longer asks for it.
    pub(super) fn is_forgotten(&self) -> bool {
        self.asked.elapsed() > FORGOTTEN_AFTER
    }
}
