//! The properties of sessions that exist only in questions about sessions.

use std::borrow::Cow;

use super::{BuiltIn, Field, Scalar, page};
use crate::intake::event::Event;
use crate::named_values;

named_values! {
    /// A property of a session, shared by all of its events.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum SessionField by as_str {
        /// The source of the first interactive event that has one.
        Source = "source",
        /// The medium of the same event; of the entry, if none has a source.
        Medium = "medium",
        /// The campaign of the same event.
        Campaign = "campaign",
        /// The `url` of the latest interactive event that has one.
        ExitUrl = "exit_url",
    }
}

/// The interactive event of a session that decides a property of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decider {
    /// The first one with the address of a page.
    FirstPage,
    /// The first one with a source, else the entry.
    Source,
    /// The last one with the address of a page.
    LastPage,
}

impl Field {
    /// Returns the event of a session that decides the property; `None` if each event has its own
    /// value.
    #[must_use]
    pub const fn decider(&self) -> Option<Decider> {
        match self {
            Field::BuiltIn(BuiltIn::EntryUrl) => Some(Decider::FirstPage),
            Field::BuiltIn(BuiltIn::AcquisitionChannel) => Some(Decider::Source),
            Field::Session(SessionField::ExitUrl) => Some(Decider::LastPage),
            Field::Session(_) => Some(Decider::Source),
            Field::BuiltIn(_) | Field::Metadata(_) => None,
        }
    }

    /// Returns the value of a property of a session that `event` decides; null for other
    /// properties.
    #[must_use]
    pub fn decided_by<'e>(&self, event: &'e Event) -> Scalar<'e> {
        let acquisition = event.details.acquisition.as_ref();
        let text = match self {
            Field::BuiltIn(BuiltIn::EntryUrl) | Field::Session(SessionField::ExitUrl) => {
                event.details.url.as_deref().and_then(page).map(Cow::Owned)
            }
            Field::BuiltIn(BuiltIn::AcquisitionChannel) => acquisition.map(|from| Cow::Borrowed(from.channel.name())),
            Field::Session(SessionField::Source) => acquisition.map(|from| Cow::Borrowed(from.source.as_str())),
            Field::Session(SessionField::Medium) => acquisition.map(|from| Cow::Borrowed(from.medium.as_str())),
            Field::Session(SessionField::Campaign) => acquisition.map(|from| Cow::Borrowed(from.campaign.as_str())),
            Field::BuiltIn(_) | Field::Metadata(_) => None,
        };
        text.map_or(Scalar::Null, Scalar::Text)
    }
}
