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

impl Touch {
    /// Passes its terms to `visit`.
    pub fn terms(self, visit: &mut dyn FnMut(TermId)) {
        [self.source, self.medium, self.campaign].into_iter().for_each(visit);
    }

    /// Replaces its terms.
    #[must_use]
    pub fn with_terms(self, replace: impl Fn(TermId) -> TermId) -> Self {
        Self { source: replace(self.source), medium: replace(self.medium), campaign: replace(self.campaign) }
    }
}

/// A touch and its moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TouchAt {
    /// The moment of the session's entry.
    pub at: Moment,
    /// The touch.
    pub touch: Touch,
}
