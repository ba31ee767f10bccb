//! The ids that an event names, and the links from anonymous ids to users.
//!
//! An event with both an anonymous id and a user links the two permanently. The first recorded link
//! of an anonymous id applies to all events of the id, earlier and later ones.

use std::iter::Peekable;

use serde::{Deserialize, Serialize};

use super::id::IdentityId;
use super::record::IdentitySlot;
use crate::ids::{KeyHasher, RecordKey};
use crate::intake::event::{Position, SentIds};

/// The keys of the ids that an event names. An event without ids has no identity.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SentKeys {
    /// The key of the user.
    pub user: Option<RecordKey>,
    /// The key of the anonymous id, or of the visitor if no id was sent.
    pub other: Option<RecordKey>,
}

/// The subject of an event.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EventSubject {
    /// The key of its identity, unless it has none.
    pub identity: Option<RecordKey>,
    /// The key of the anonymous id that it links to its identity, whether or not the link takes
    /// effect.
    pub linked: Option<RecordKey>,
}

impl SentKeys {
    /// Computes the keys of `ids`.
    pub fn of(ids: &SentIds, hasher: &KeyHasher) -> Self {
        let user = ids.user_id.as_deref().map(|user| hasher.user(user));
        let anonymous = ids.anonymous_id.as_deref().map(|id| hasher.anonymous(id));
        let visitor = || ids.visitor.filter(|_| user.is_none()).map(|visitor| hasher.visitor(visitor));
        Self { user, other: anonymous.or_else(visitor) }
    }

    /// The primary key of the event. Its identity has this key, or this key is linked to it.
    pub fn named(self) -> Option<RecordKey> {
        self.user.or(self.other)
    }

    /// Returns the subject if none of the ids is linked.
    pub fn subject(self) -> EventSubject {
        EventSubject { identity: self.named(), linked: self.user.and(self.other) }
    }

    /// Returns the link that the event at `position` records.
    pub fn link(self, position: Position) -> Option<IdentityLink> {
        Some(IdentityLink { anonymous: self.other?, position, user: self.user? })
    }
}

impl SentIds {
    /// Returns the primary id of the event.
    pub fn id(&self) -> IdentityId {
        match (&self.user_id, &self.anonymous_id, self.visitor) {
            (Some(user), _, _) => IdentityId::User(user.clone()),
            (None, Some(anonymous), _) => IdentityId::Anonymous(anonymous.clone()),
            (None, None, visitor) => visitor.map_or(IdentityId::Nobody, IdentityId::Visitor),
        }
    }
}

/// A link recorded by an event. In sorted order, the effective link of an anonymous id is its
/// first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct IdentityLink {
    /// The key of the anonymous id.
    pub anonymous: RecordKey,
    /// The position of the event.
    pub position: Position,
    /// The key of the user.
    pub user: RecordKey,
}

/// Whether a link of the id in `slot` takes effect: only the first one does.
pub fn takes_link(slot: Option<&IdentitySlot>) -> bool {
    !matches!(slot, Some(IdentitySlot::Alias { .. }))
}

/// Resolves ascending keys with sorted links.
pub struct SortedLinks<I: Iterator> {
    links: Peekable<I>,
}

impl<I: Iterator> std::fmt::Debug for SortedLinks<I> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SortedLinks")
    }
}

impl<I: Iterator<Item = Result<IdentityLink, E>>, E> SortedLinks<I> {
    /// Creates the resolver from `links` in ascending order.
    pub fn new(links: I) -> Self {
        Self { links: links.peekable() }
    }

    /// Returns the key of the identity that `key` belongs to.
    ///
    /// # Errors
    /// A link could not be read.
    pub fn resolve(&mut self, key: RecordKey) -> Result<RecordKey, E> {
        while self.links.next_if(|link| link.as_ref().is_ok_and(|link| link.anonymous < key)).is_some() {}
        match self.links.peek() {
            Some(Ok(link)) if link.anonymous == key => Ok(link.user),
            Some(Err(_)) => self.links.next().transpose().map(|_| key),
            _ => Ok(key),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_recorded_link_counts() {
        let link = |anonymous, position, user| IdentityLink { anonymous: RecordKey(anonymous), position, user: RecordKey(user) };
        let mut links = vec![link(5, 9, 50), link(2, 4, 21), link(2, 3, 22), link(5, 2, 51)];
        links.sort_unstable();
        let mut links = SortedLinks::new(links.into_iter().map(Ok::<_, ()>));
        let keys = [1, 2, 2, 3, 5, 6].map(|key| links.resolve(RecordKey(key)).unwrap().0);
        assert_eq!(keys, [1, 22, 22, 3, 51, 6]);
    }

    #[test]
    fn a_link_that_cannot_be_read_is_an_error() {
        let mut links = SortedLinks::new(std::iter::once(Err(7)));
        assert_eq!(links.resolve(RecordKey(1)), Err(7));
    }
}
