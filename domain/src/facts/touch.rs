//! Touches: events with a known source, and their source, medium and campaign.

use serde::{Deserialize, Serialize};

use crate::ids::RecordKey;
use crate::indexes::dictionary::TermId;
use crate::moment::Moment;

/// The source, medium and campaign of an event or a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Touch {
    /// The source; never `(direct)`. [`Touch::NO_SOURCE`] where only the medium or the campaign is known.
    pub source: TermId,
    /// The medium.
    pub medium: TermId,
    /// The campaign.
    pub campaign: TermId,
}

impl Touch {
    /// Stands for an unknown source. No text has this number.
    pub const NO_SOURCE: TermId = TermId(u32::MAX);

    /// Whether the source is known.
    #[must_use]
    pub fn has_source(&self) -> bool {
        self.source != Self::NO_SOURCE
    }

    /// Returns the source, if it is known.
    #[must_use]
    pub fn source(&self) -> Option<TermId> {
        Some(self.source).filter(|_| self.has_source())
    }

    /// Passes its terms to `visit`.
    pub fn terms(self, visit: &mut dyn FnMut(TermId)) {
        self.source().into_iter().chain([self.medium, self.campaign]).for_each(visit);
    }

    /// Replaces its terms.
    #[must_use]
    pub fn with_terms(self, replace: impl Fn(TermId) -> TermId) -> Self {
        let source = self.source().map_or(Self::NO_SOURCE, &replace);
        Self { source, medium: replace(self.medium), campaign: replace(self.campaign) }
    }
}

/// A touch and its moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TouchAt {
    /// The moment of the event.
    pub at: Moment,
    /// The touch.
    pub touch: Touch,
}

/// An event with a known source, anywhere in a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TouchEvent {
    /// Its moment.
    pub at: Moment,
    /// Its source, medium and campaign.
    pub touch: Touch,
    /// The company that the event names itself. Only for identities.
    pub company: Option<Box<RecordKey>>,
}

impl TouchEvent {
    /// Returns the touch and its moment.
    #[must_use]
    pub fn touch_at(&self) -> TouchAt {
        TouchAt { at: self.at, touch: self.touch }
    }
}

impl From<TouchAt> for TouchEvent {
    fn from(TouchAt { at, touch }: TouchAt) -> Self {
        Self { at, touch, company: None }
    }
}
