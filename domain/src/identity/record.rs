//! The records of identities.

use serde::{Deserialize, Serialize};

use crate::facts::{Facts, FactsPage, Moment};
use crate::identity::IdentityId;
use crate::ids::RecordKey;
use crate::intake::event::Position;
use crate::records::{Record, page_key};

/// The value of an id's key: the identity, or its link.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum IdentitySlot {
    /// The identity itself.
    Canonical(Box<Identity>),
    /// An anonymous id that is permanently linked to a user.
    Alias {
        /// The user.
        user: RecordKey,
        /// The position of the event that linked it.
        since: Position,
    },
}

impl Record for IdentitySlot {
    const SPACE: u8 = 0;
    const PAGE_SPACE: u8 = 3;
    const NAME: &'static str = "identity";
    const VERSION: u8 = 1;
    type Page = FactsPage;

    fn dirty_pages(&self, _: RecordKey, visit: &mut dyn FnMut(RecordKey, &FactsPage)) {
        if let Self::Canonical(identity) = self {
            identity.facts.dirty(&mut |serial, page| visit(page_key(identity.history_key, serial), page));
        }
    }

    fn saved(&mut self) {
        if let Self::Canonical(identity) = self {
            identity.facts.saved();
        }
    }

    fn weight(&self) -> usize {
        let identity = match self {
            Self::Canonical(identity) => identity,
            Self::Alias { .. } => return size_of::<Self>(),
        };
        let email: usize = identity.emails.iter().map(|latest| size_of_val(latest) + latest.0.len()).sum();
        // The allocator's overhead for an identity and its lists.
        size_of::<Self>() + size_of::<Identity>() + 64 + email + identity.facts.weight()
    }

    fn has_pages(&self) -> bool {
        matches!(self, Self::Canonical(identity) if identity.facts.has_pages())
    }

    fn shed(&mut self) {
        if let Self::Canonical(identity) = self {
            identity.facts.shed();
        }
    }
}

/// The record of one identity in one project.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Identity {
    /// The canonical id.
    pub id: IdentityId,
    /// The key of its history in groups and pages. When two identities merge, the larger history
    /// keeps its key and the smaller one moves, so this may be the key of an id that is linked to
    /// this identity.
    pub history_key: RecordKey,
    /// The company: the first recorded association.
    pub company: Option<Association>,
    /// The moments of its first and last event.
    pub seen: Option<(Moment, Moment)>,
    /// The latest e-mail address. The index has all addresses, since an identity may have any
    /// number.
    pub emails: LatestEmail,
    /// The facts.
    pub facts: Facts,
}

impl Identity {
    /// Creates an identity without facts.
    pub fn new(id: IdentityId, key: RecordKey) -> Self {
        Self { id, history_key: key, company: None, seen: None, emails: LatestEmail::default(), facts: Facts::default() }
    }

    /// Extends the range of its events.
    pub fn saw(&mut self, first: Moment, last: Moment) {
        let seen = self.seen.map_or((first, last), |(a, b)| (a.min(first), b.max(last)));
        self.seen = Some(seen);
    }
}

/// The most recently reported e-mail address and its time, if any.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LatestEmail(Option<Box<(Box<str>, Moment)>>);

impl LatestEmail {
    /// Records an address reported at a moment. Returns `false` if it was already the latest one.
    pub fn report(&mut self, email: &str, at: Moment) -> bool {
        match &mut self.0 {
            Some(latest) if *latest.0 == *email => {
                latest.1 = at.max(latest.1);
                return false;
            }
            Some(latest) if at < latest.1 => {}
            latest => *latest = Some(Box::new((email.into(), at))),
        }
        true
    }

    /// Returns the address and the time of its last report, if any.
    pub fn iter(&self) -> impl Iterator<Item = &(Box<str>, Moment)> {
        self.0.as_deref().into_iter()
    }

    /// Whether no address is known.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }
}

/// An identity's company, and the event that reported it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Association {
    /// The position of the event that recorded it.
    pub since: Position,
    /// The company under its reported key, which may be linked to a domain.
    pub company: RecordKey,
}
