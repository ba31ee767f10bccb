//! Touches: what brought a session, if it has a source.

use serde::{Deserialize, Serialize};

use super::moment::Moment;
use crate::indexes::dictionary::TermId;

/// What brought a session, if it has a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Touch {
    /// The source; never `(direct)`.
    pub source: TermId,
    /// The medium.
    pub medium: TermId,
    /// The campaign.
    pub campaign: TermId,
}

/// A touch, and when it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TouchAt {
    /// The moment of the session's entry.
    pub at: Moment,
    /// What it was.
    pub touch: Touch,
}
