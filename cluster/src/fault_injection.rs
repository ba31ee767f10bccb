//! Mistakes to make on purpose: a crash test of a cluster that doesn't notice them proves nothing.
//!
//! Only in builds with the feature `fault-injection`, and only the one that the variable `HEADCOUNT_FAULT` names.

use std::sync::LazyLock;

/// A mistake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mistake {
    /// Messages count as recorded once they are sent.
    AckBeforeQuorum,
    /// An owner begins without an epoch message, so that a former one may go on.
    NoEpochRecord,
    /// A message without an answer is sent again wherever the stream ends by then.
    ResendAfterUnknown,
    /// An owner takes its lease for renewed, whatever the brokers say.
    LeaseIgnored,
}

impl Mistake {
    /// Whether the process makes it.
    pub(crate) fn is_made(self) -> bool {
        static MADE: LazyLock<Option<Mistake>> = LazyLock::new(|| match std::env::var("HEADCOUNT_FAULT").ok()?.as_str() {
            "ack-before-quorum" => Some(Mistake::AckBeforeQuorum),
            "no-epoch-record" => Some(Mistake::NoEpochRecord),
            "resend-after-unknown" => Some(Mistake::ResendAfterUnknown),
            "lease-ignored" => Some(Mistake::LeaseIgnored),
            // The engine knows the others, and refuses to start with one that nobody knows.
            _ => None,
        });
        *MADE == Some(self)
    }
}
