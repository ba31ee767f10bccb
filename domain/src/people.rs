//! Whom events are of: the records of identities, and the index of their e-mail addresses.

use serde::{Deserialize, Serialize};

use crate::facts::{Facts, FactsChunk, Moment};
use crate::fold::Association;
use crate::ids::{RawId, RecordKey};
use crate::records::{Record, page_key};

/// What a raw id stands for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Person {
    /// An identity of its own.
    Identity(Box<Identity>),
    /// An anonymous id that was linked to this user; for ever.
    Linked(RecordKey),
}

impl Record for Person {
    const SPACE: u8 = 0;
    const PAGE_SPACE: u8 = 3;
    type Page = FactsChunk;

    fn dirty_pages(&self, _: RecordKey, visit: &mut dyn FnMut(RecordKey, &FactsChunk)) {
        if let Self::Identity(identity) = self {
            for (serial, chunk) in identity.facts.paged().dirty() {
                visit(page_key(identity.member, serial), chunk);
            }
        }
    }

    fn saved(&mut self) {
        if let Self::Identity(identity) = self {
            identity.facts.saved();
        }
    }

    fn weight(&self) -> usize {
        let identity = match self {
            Self::Identity(identity) => identity,
            Self::Linked(_) => return size_of::<Self>(),
        };
        let emails: usize = identity.emails.iter().map(|(email, _)| email.len() + size_of::<(Box<str>, Moment)>() + 16).sum();
        // The allocator's own share of an identity and its four lists.
        size_of::<Self>() + size_of::<Identity>() + 80 + emails + identity.facts.weight()
    }

    fn shed(&mut self) {
        if let Self::Identity(identity) = self {
            identity.facts.shed();
        }
    }
}

/// The record of one identity in one project.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Identity {
    /// Its canonical id.
    pub id: RawId,
    /// The key under which groups and pages know it. It stays with the larger side when two become one, so that the smaller
    /// one moves; it may be the key of an id that is linked to this one.
    pub member: RecordKey,
    /// Its company: the first association that was recorded.
    pub company: Option<Association>,
    /// When it was first and last seen.
    pub seen: Option<(Moment, Moment)>,
    /// Every e-mail address that it was told to have, and when that was last told.
    pub emails: Vec<(Box<str>, Moment)>,
    /// What is known of it.
    pub facts: Facts,
}

impl Identity {
    /// An identity of which nothing is known.
    #[must_use]
    pub fn new(id: RawId, key: RecordKey) -> Self {
        Self { id, member: key, company: None, seen: None, emails: Vec::new(), facts: Facts::default() }
    }

    /// The latest e-mail address.
    #[must_use]
    pub fn email(&self) -> Option<&str> {
        self.emails.iter().max_by_key(|(_, told)| *told).map(|(email, _)| &**email)
    }

    /// Takes note of an address that was told at a moment. `true`: it is a new one.
    pub fn tell_email(&mut self, email: &str, at: Moment) -> bool {
        match self.emails.iter_mut().find(|(known, _)| **known == *email) {
            Some((_, told)) => {
                *told = at.max(*told);
                false
            }
            None => {
                self.emails.push((email.into(), at));
                true
            }
        }
    }

    /// It was seen at these moments.
    pub fn saw(&mut self, first: Moment, last: Moment) {
        let seen = self.seen.map_or((first, last), |(a, b)| (a.min(first), b.max(last)));
        self.seen = Some(seen);
    }
}

/// Who ever had an e-mail address: keys of identities, some of which may be linked to others since.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EmailOwners(pub Vec<RecordKey>);

impl Record for EmailOwners {
    const SPACE: u8 = 8;
    type Page = ();

    fn weight(&self) -> usize {
        size_of::<Self>() + self.0.capacity() * 16 + 16
    }
}
