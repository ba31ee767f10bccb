//! Whom events are of: the records of identities, and the index of their e-mail addresses.

use serde::{Deserialize, Serialize};

use crate::facts::{Facts, FactsPage, Moment};
use crate::fold::Association;
use crate::ids::{RawId, RecordKey};
use crate::paged::{Item, Number, Paged, number_of_key};
use crate::records::{Fault, Record, page_key};

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
    const NAME: &'static str = "identity";
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

/// An identity that had an e-mail address; it may be linked to another one since.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner(RecordKey);

impl Item for Owner {
    type Page = Vec<Owner>;
    type Digest = ();
    const LIST: u32 = 0;
    const LISTS: u32 = 1;

    fn number(&self) -> Number {
        number_of_key(self.0)
    }

    fn to_page(items: &[Self]) -> Vec<Self> {
        items.to_vec()
    }

    fn of_page(page: Vec<Self>) -> Option<Vec<Self>> {
        Some(page)
    }
}

/// Who ever had an e-mail address, in order of their keys.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct EmailOwners(Paged<Owner>);

impl EmailOwners {
    /// The first one.
    #[must_use]
    pub fn new(owner: RecordKey) -> Self {
        let mut owners = Self::default();
        owners.add(owner);
        owners
    }

    /// Whether `owner` is among them.
    ///
    /// # Errors
    /// What `page` fails with.
    pub fn has(&mut self, owner: RecordKey, page: impl FnMut(u32) -> Result<Vec<Owner>, Fault>) -> Result<bool, Fault> {
        let number = number_of_key(owner);
        self.0.load(number, number, page)?;
        Ok(self.0.get(number).is_some())
    }

    /// Adds one that is [not among them](EmailOwners::has).
    pub fn add(&mut self, owner: RecordKey) {
        self.0.insert(Owner(owner));
    }

    /// The first `most` of those whose keys are not below `from`.
    ///
    /// # Errors
    /// What `page` fails with.
    pub fn from(
        &mut self,
        from: RecordKey,
        most: usize,
        mut page: impl FnMut(u32) -> Result<Vec<Owner>, Fault>,
    ) -> Result<Vec<RecordKey>, Fault> {
        let mut owners = Vec::new();
        let mut next = Some(number_of_key(from));
        while let Some(number) = next.filter(|_| owners.len() < most) {
            // One by one: more may be many pages.
            self.0.load(number, number, &mut page)?;
            owners.extend(self.0.get(number).map(|owner| owner.0));
            next = self.0.after(number);
        }
        Ok(owners)
    }
}

impl Record for EmailOwners {
    const SPACE: u8 = 8;
    const PAGE_SPACE: u8 = 12;
    const NAME: &'static str = "email";
    type Page = Vec<Owner>;

    fn weight(&self) -> usize {
        size_of::<Self>() + self.0.weight()
    }

    fn shed(&mut self) {
        self.0.shed();
    }

    fn dirty_pages(&self, key: RecordKey, visit: &mut dyn FnMut(RecordKey, &Vec<Owner>)) {
        self.0.dirty(&mut |serial, page| visit(page_key(key, serial), page));
    }

    fn saved(&mut self) {
        self.0.saved();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_come_in_parts() {
        let unsaved = |_: u32| Err(Fault::defect("nothing was saved"));
        let key = |number: u128| RecordKey(number << 100);
        let mut owners = EmailOwners::new(key(0));
        for number in 1..5_000 {
            assert!(!owners.has(key(number), unsaved).unwrap());
            owners.add(key(number));
            assert!(owners.has(key(0), unsaved).unwrap() && owners.has(key(number), unsaved).unwrap());
        }
        assert_eq!(owners.from(key(0), 9_999, unsaved).unwrap(), (0..5_000).map(key).collect::<Vec<_>>());
        assert_eq!(owners.from(RecordKey(key(4_000).0 + 1), 3, unsaved).unwrap(), (4_001..4_004).map(key).collect::<Vec<_>>());
    }
}
