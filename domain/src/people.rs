//! Whom events are of: the records of identities, and the index of their e-mail addresses.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::facts::{Facts, FactsPage, Moment};
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
    type Page = FactsPage;

    fn dirty_pages(&self, _: RecordKey, visit: &mut dyn FnMut(RecordKey, &FactsPage)) {
        if let Self::Identity(identity) = self {
            identity.facts.dirty(&mut |serial, page| visit(page_key(identity.member, serial), page));
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
        let email: usize = identity.emails.iter().map(|(email, _)| email.len() + 16).sum();
        // The allocator's own share of an identity and its lists.
        size_of::<Self>() + size_of::<Identity>() + 64 + email + identity.facts.weight()
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
    /// Its latest e-mail address. All of them are in the index: one identity may have any number.
    pub emails: LatestEmail,
    /// What is known of it.
    pub facts: Facts,
}

impl Identity {
    /// An identity of which nothing is known.
    #[must_use]
    pub fn new(id: RawId, key: RecordKey) -> Self {
        Self { id, member: key, company: None, seen: None, emails: LatestEmail::default(), facts: Facts::default() }
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

/// Who ever had an e-mail address: keys of identities, some of which may be linked to others since.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum EmailOwners {
    /// Of nearly all addresses: in order of arrival.
    Few(Vec<RecordKey>),
    /// Of one that everybody uses.
    Many(BTreeSet<RecordKey>),
}

/// From how many owners on they are [`EmailOwners::Many`].
const MANY_OWNERS: usize = 32;

impl EmailOwners {
    /// The first one.
    #[must_use]
    pub fn new(owner: RecordKey) -> Self {
        Self::Few(vec![owner])
    }

    /// Whether `owner` is among them.
    #[must_use]
    pub fn has(&self, owner: RecordKey) -> bool {
        match self {
            Self::Few(owners) => owners.contains(&owner),
            Self::Many(owners) => owners.contains(&owner),
        }
    }

    /// Adds one that is not among them.
    pub fn add(&mut self, owner: RecordKey) {
        match self {
            Self::Few(owners) if owners.len() < MANY_OWNERS => owners.push(owner),
            Self::Few(owners) => *self = Self::Many(owners.drain(..).chain([owner]).collect()),
            Self::Many(owners) => drop(owners.insert(owner)),
        }
    }

    /// Their keys.
    #[must_use]
    pub fn keys(&self) -> Vec<RecordKey> {
        match self {
            Self::Few(owners) => owners.clone(),
            Self::Many(owners) => owners.iter().copied().collect(),
        }
    }
}

impl Record for EmailOwners {
    const SPACE: u8 = 8;
    type Page = ();

    fn weight(&self) -> usize {
        let owners = match self {
            Self::Few(owners) => owners.capacity() * 16 + 16,
            // Nodes are two thirds full.
            Self::Many(owners) => owners.len() * 26,
        };
        size_of::<Self>() + owners
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_are_the_same_few_or_many() {
        let mut owners = EmailOwners::new(RecordKey(0));
        for key in (1..100).map(RecordKey) {
            assert!(!owners.has(key));
            owners.add(key);
            assert!(owners.has(RecordKey(0)) && owners.has(key));
        }
        assert_eq!(owners.keys(), (0..100).map(RecordKey).collect::<Vec<_>>());
        assert!(matches!(owners, EmailOwners::Many(_)));
    }
}
