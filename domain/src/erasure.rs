//! Erased identities: which events belong to them, and what remains of an event.
//!
//! The state after an erasure is the state of a history without the identity's events. Two things
//! remain of an erased event: its report about a company or a group, and its taken `external_id`.

use std::collections::BTreeMap;

use crate::company::normalise_email;
use crate::identity::SentKeys;
use crate::ids::{KeyHasher, RecordKey};
use crate::intake::event::{Details, Event, Position, SentIds};
use crate::intake::fields::metadata_text;

/// The keys of erased ids of one project, each with the last position at which its events are
/// erased.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ErasedKeys {
    keys: BTreeMap<RecordKey, Position>,
}

/// The result of an erasure for an event.
#[derive(Debug, Clone, PartialEq)]
pub enum AfterErasure {
    /// The event is unchanged.
    Unchanged,
    /// The event belongs to another identity, and lost an erased id.
    WithoutId,
    /// The event is gone; this remainder stays.
    Gone(Option<Box<Event>>),
}

impl ErasedKeys {
    /// Adds a key. Events with positions up to `until` are erased.
    pub fn add(&mut self, key: RecordKey, until: Position) {
        let known = self.keys.entry(key).or_default();
        *known = until.max(*known);
    }

    /// Whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Whether events of a key are erased at any position.
    pub fn contains(&self, key: RecordKey) -> bool {
        self.keys.contains_key(&key)
    }

    /// Returns the keys whose events are all erased up to a position. They apply to a state that
    /// contains the events up to there.
    #[must_use]
    pub fn up_to(&self, position: Position) -> Self {
        let theirs = self.keys.iter().filter(|(_, until)| **until >= position);
        Self { keys: theirs.map(|(key, until)| (*key, *until)).collect() }
    }

    fn has(&self, key: Option<RecordKey>, position: Position) -> bool {
        key.and_then(|key| self.keys.get(&key)).is_some_and(|until| position <= *until)
    }

    /// Erases from the event at a position. The event belongs to its user, or, without one, to its
    /// anonymous id.
    pub fn erase(&self, position: Position, event: &mut Event, hasher: &KeyHasher) -> AfterErasure {
        if self.is_empty() {
            return AfterErasure::Unchanged;
        }
        let keys = SentKeys::of(&event.who, hasher);
        if self.has(keys.named(), position) {
            return AfterErasure::Gone(event.remainder(hasher).map(Box::new));
        }
        if keys.user.is_some() && self.has(keys.other, position) {
            event.who.anonymous_id = None;
            return AfterErasure::WithoutId;
        }
        AfterErasure::Unchanged
    }
}

/// The keys of the e-mail addresses that identify the event's person: the reported address, and the
/// user id if it is an address.
pub fn address_keys<'e>(who: &'e SentIds, email: Option<&'e str>, hasher: &'e KeyHasher) -> impl Iterator<Item = RecordKey> + 'e {
    let texts = [email, who.user_id.as_deref()].into_iter().flatten();
    texts.filter_map(normalise_email).map(|email| hasher.email(&email))
}

impl Event {
    /// Whether this is the remainder of an erased event. No other event has an empty name.
    pub fn is_remainder(&self) -> bool {
        self.name.is_empty()
    }

    /// The fingerprint of the `external_id` of the erased event.
    pub fn taken_id(&self) -> Option<u128> {
        let hex = self.details.message.as_deref().filter(|_| self.is_remainder())?;
        u128::from_str_radix(hex, 16).ok()
    }

    /// Returns the remainder of the event.
    fn remainder(&self, hasher: &KeyHasher) -> Option<Self> {
        let taken = self.external_id.as_deref().map(|id| hasher.external_id(self.project, id));
        let tells = &*self.name == "group" && (self.company.is_some() || self.details.group_id.is_some());
        if taken.is_none() && !tells {
            return None;
        }
        let mut details = Details { message: taken.map(|taken| format!("{taken:032x}").into()), ..Details::default() };
        let (mut company, mut company_domain) = (None, None);
        if tells {
            let name = self.details.metadata.as_deref().and_then(|json| metadata_text(json, "name"));
            details.metadata = name.map(|name| serde_json::json!({ "name": name }).to_string().into());
            (details.group_type, details.group_id) = (self.details.group_type.clone(), self.details.group_id.clone());
            (company, company_domain) = (self.company.clone(), self.company_domain.clone());
        }
        Some(Self {
            project: self.project,
            time: self.time,
            received: self.received,
            day: self.day,
            interactive: false,
            name: "".into(),
            who: SentIds::default(),
            external_id: None,
            money: None,
            company,
            company_domain,
            email_company: None,
            details,
        })
    }
}
