//! Whom events are of: the records of identities, and the index of their e-mail addresses.

use serde::{Deserialize, Serialize};

use crate::facts::{Facts, FactsPage, Moment};
use crate::identity::IdentityId;
use crate::ids::RecordKey;
use crate::intake::event::Position;
use crate::records::{Record, page_key};

/// What the key of an id refers to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum IdentitySlot {
    /// The identity itself.
    Canonical(Box<Identity>),
    /// An anonymous id that is linked to this user, for ever.
    Alias(RecordKey),
}

impl Record for IdentitySlot {
    const SPACE: u8 = 0;
    const PAGE_SPACE: u8 = 3;
    const NAME: &'static str = "identity";
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
            Self::Alias(_) => return size_of::<Self>(),
        };
        let email: usize = identity.emails.iter().map(|(email, _)| email.len() + 16).sum();
        // The allocator's own share of an identity and its lists.
        size_of::<Self>() + size_of::<Identity>() + 64 + email + identity.facts.weight()
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
    /// Its canonical id.
    pub id: IdentityId,
    /// The key under which groups and pages hold its history. When two identities merge, the larger history keeps its key and the
    /// smaller one moves; so it may be the key of an id that is linked to this one.
    pub history_key: RecordKey,
    /// Its company: the first association that was recorded.
    pub company: Option<Association>,
    /// When it was first and last seen.
    pub seen: Option<(Moment, Moment)>,
    /// Its latest e-mail address. All of them are in the index: one identity may have any number.
    pub emails: LatestEmail,
    /// Its facts.
    pub facts: Facts,
}

impl Identity {
    /// An identity without facts.
    #[must_use]
    pub fn new(id: IdentityId, key: RecordKey) -> Self {
        Self { id, history_key: key, company: None, seen: None, emails: LatestEmail::default(), facts: Facts::default() }
    }

    /// Extends the time in which it was seen.
    pub fn saw(&mut self, first: Moment, last: Moment) {
        let seen = self.seen.map_or((first, last), |(a, b)| (a.min(first), b.max(last)));
        self.seen = Some(seen);
    }
}

/// The most recently reported e-mail address and its time, if any.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LatestEmail(Option<(Box<str>, Moment)>);

impl LatestEmail {
    /// Records an address reported at a moment. Returns `false` if it was already the latest one.
    pub fn tell(&mut self, email: &str, at: Moment) -> bool {
        match &mut self.0 {
            Some((known, told)) if **known == *email => {
                *told = at.max(*told);
                return false;
            }
            Some((_, told)) if at < *told => {}
            latest => *latest = Some((email.into(), at)),
        }
        true
    }

    /// The address and when it was last reported, if any.
    pub fn iter(&self) -> impl Iterator<Item = &(Box<str>, Moment)> {
        self.0.iter()
    }

    /// Whether no address is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }
}

/// An identity's company, and when that was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Association {
    /// The position of the event that recorded it.
    pub since: Position,
    /// The company under its reported key, which may be linked to a domain.
    pub company: RecordKey,
}
