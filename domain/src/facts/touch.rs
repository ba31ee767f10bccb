//! Touches: the source, medium and campaign of a session with a known source.

use serde::{Deserialize, Serialize};

use crate::indexes::dictionary::TermId;
use crate::moment::Moment;

/// The source, medium and campaign of a session with a known source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Touch {
    /// The source; never `(direct)`.
    pub source: TermId,
    /// The medium.
    pub medium: TermId,
    /// The campaign.
    pub campaign: TermId,
}

/// A touch and its moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TouchAt {
    /// The moment of the session's entry.
    pub at: Moment,
    /// The touch.
    pub touch: Touch,
}
