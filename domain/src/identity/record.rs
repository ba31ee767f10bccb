//! Whom events are of: the records of identities, and the index of their e-mail addresses.

use serde::{Deserialize, Serialize};

use crate::facts::{Facts, FactsPage, Moment};
use crate::ids::{IdentityId, RecordKey};
use crate::intake::event::Position;
use crate::records::{Record, page_key};

/// What a raw id stands for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum IdentitySlot {
    /// An identity of its own.
    Canonical(Box<Identity>),
    /// An anonymous id that was linked to this user; for ever.
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
    /// The key under which groups and pages know it. It stays with the larger side when two become one, so that the smaller
    /// one moves; it may be the key of an id that is linked to this one.
    pub history_key: RecordKey,
    /// Its company: the first association that was recorded.
    pub company: Option<Association>,
    /// When it was first and last seen.
    pub seen: Option<(Moment, Moment)>,
    /// Its latest e-mail address. All of them are in the index: one identity may have any number.
    pub emails: LatestEmail,
    /// What is known of it.
    pub facts: Facts,
}

impl Identity {
    /// An identity of which nothing is known.
    #[must_use]
    pub fn new(id: IdentityId, key: RecordKey) -> Self {
        Self { id, history_key: key, company: None, seen: None, emails: LatestEmail::default(), facts: Facts::default() }
    }

    /// It was seen at these moments.
    pub fn saw(&mut self, first: Moment, last: Moment) {
        let seen = self.seen.map_or((first, last), |(a, b)| (a.min(first), b.max(last)));
        self.seen = Some(seen);
    }
}

/// Of all e-mail addresses that an identity was told to have the one told latest, and when that was; none, if it has none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LatestEmail(Option<(Box<str>, Moment)>);

impl LatestEmail {
    /// Takes note of an address that was told at a moment. `true`: it may be a new one, `false`: it was the latest before.
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

    /// The address, and when it was last told.
    pub fn iter(&self) -> impl Iterator<Item = &(Box<str>, Moment)> {
        self.0.iter()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }
}

/// An identity's company, and when that was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Association {
    /// The position of the event that told it.
    pub since: Position,
    /// The company, as it was told (which may be linked to a domain).
    pub company: RecordKey,
}
