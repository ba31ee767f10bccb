//! Mistakes made on purpose, to prove that the crash tests of a cluster notice them.
//!
//! Only builds with the feature `fault-injection` have them. The variable `HEADCOUNT_FAULT` names
//! the mistake to make.

use std::sync::LazyLock;

/// A mistake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mistake {
    /// Messages count as recorded as soon as they are sent.
    AckBeforeQuorum,
    /// An owner begins without an epoch message, so a former owner can still write.
    NoEpochRecord,
    /// A message without an answer is sent again, at the end that the stream has by then.
    ResendAfterUnknown,
    /// An owner treats its lease as renewed whatever the brokers say.
    LeaseIgnored,
}

impl Mistake {
    /// Whether this process makes the mistake.
    pub(crate) fn is_made(self) -> bool {
        static MADE: LazyLock<Option<Mistake>> = LazyLock::new(|| match std::env::var("HEADCOUNT_FAULT").ok()?.as_str() {
            "ack-before-quorum" => Some(Mistake::AckBeforeQuorum),
            "no-epoch-record" => Some(Mistake::NoEpochRecord),
            "resend-after-unknown" => Some(Mistake::ResendAfterUnknown),
            "lease-ignored" => Some(Mistake::LeaseIgnored),
            // The engine knows the other mistakes, and refuses to start with an unknown one.
            _ => None,
        });
        *MADE == Some(self)
    }
}
