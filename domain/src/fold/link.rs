//! Whose an event is: raw ids, links, and two histories that become one.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::contribution::Sign;
use crate::facts::Span;
use crate::facts::{DirtyRange, GroupRef, Times};
use crate::fault::Fault;
use crate::fold::{Fold, contribute_own};
use crate::identity::{Association, Identity, IdentitySlot};
use crate::ids::{IdentityId, RecordKey};
use crate::intake::event::Event;
use crate::records::Source;
use crate::records::{Record, page_key};

/// How many items a history has at most that is moved to a user who has fewer.
static SHORT_HISTORY: AtomicUsize = AtomicUsize::new(64);

/// Changes what counts as a short history: answers don't depend on it, and tests show that with none.
pub fn set_short_history(items: usize) {
    SHORT_HISTORY.store(items, Ordering::Relaxed);
}

impl<S: Source> Fold<'_, S> {
    /// Whose event it is. Links the anonymous id on the way, if this is its first link.
    pub(super) fn subject(&mut self, event: &Event) -> Result<RecordKey, Fault> {
        let who = &event.who;
        match (&who.user_id, &who.anonymous_id, who.visitor) {
            (Some(user), None, _) => {
                let key = self.hasher.user(user);
                self.ensure_person(key, || IdentityId::User(user.clone()))?;
                Ok(key)
            }
            (Some(user), Some(anonymous), _) => {
                let key = self.hasher.user(user);
                self.ensure_person(key, || IdentityId::User(user.clone()))?;
                self.link(self.hasher.anonymous(anonymous), key)?;
                Ok(key)
            }
            (None, Some(anonymous), _) => {
                let key = self.hasher.anonymous(anonymous);
                let key = self.project.resolve(key, self.source)?;
                self.ensure_person(key, || IdentityId::Anonymous(anonymous.clone()))?;
                Ok(key)
            }
            (None, None, visitor) => {
                let id = visitor.map_or(IdentityId::Nobody, IdentityId::Visitor);
                let key = self.hasher.identity(&id);
                self.ensure_person(key, || id)?;
                Ok(key)
            }
        }
    }

    fn ensure_person(&mut self, key: RecordKey, id: impl FnOnce() -> IdentityId) -> Result<(), Fault> {
        let source = self.source;
        if self.project.people.get(key, || source.record(key))?.is_none() {
            self.project.people.insert(key, IdentitySlot::Canonical(Box::new(Identity::new(id(), key))));
        }
        Ok(())
    }

    /// Gives the whole history of an anonymous id to a user, unless it has been linked before.
    fn link(&mut self, anonymous: RecordKey, user: RecordKey) -> Result<(), Fault> {
        let source = self.source;
        let former = match self.project.people.get(anonymous, || source.record(anonymous))? {
            Some(IdentitySlot::Alias(_)) => return Ok(()),
            Some(IdentitySlot::Canonical(_)) => self.take_identity(anonymous)?,
            None => None,
        };
        self.project.people.insert(anonymous, IdentitySlot::Alias(user));
        if let Some(former) = former
            && let Some(user_identity) = self.take_identity(user)?
        {
            let merged = self.merge(user_identity, former)?;
            self.put_identity(user, merged);
        }
        Ok(())
    }

    /// Both histories as one. Costs what the smaller side holds, or a short history's items (so that most users go by their
    /// own key), unless the larger one's company changes.
    fn merge(&mut self, user: Box<Identity>, other: Box<Identity>) -> Result<Box<Identity>, Fault> {
        let id = user.id.clone();
        let (mut base, mut small) = if other.facts.len() > user.facts.len().max(SHORT_HISTORY.load(Ordering::Relaxed)) {
            (other, user)
        } else {
            (user, other)
        };
        self.load_all(&mut small)?;
        self.contribute(&small, Sign::Minus)?;
        self.adopt_company(&mut base, small.company)?;
        base.id = id;
        self.record_alias(&base);
        for (day, named, sums) in small.facts.named_days(Span::ALL) {
            self.add_day(&mut base, day, named, sums)?;
        }
        for session in small.facts.sessions(Times::ALL) {
            self.add_session(&mut base, session.clone())?;
        }
        for order in small.facts.orders(Times::ALL) {
            self.add_order(&mut base, order.clone())?;
        }
        for hit in small.facts.daily_counts(Span::ALL) {
            self.add_count(&mut base, hit)?;
        }
        if let Some((first, last)) = small.seen {
            base.saw(first, last);
        }
        // Addresses find the linked id, and that finds the user.
        for (email, told) in small.emails.iter() {
            base.emails.tell(email, *told);
        }
        self.project
            .orphans
            .extend(small.facts.serials().map(|serial| (IdentitySlot::PAGE_SPACE, page_key(small.history_key, serial))));
        Ok(base)
    }

    /// Of two associations the one that was recorded first counts for both histories.
    fn adopt_company(&mut self, base: &mut Identity, other: Option<Association>) -> Result<(), Fault> {
        let company = base.company.into_iter().chain(other).min();
        if company.map(|told| told.company) == base.company.map(|told| told.company) {
            base.company = company;
            return Ok(());
        }
        self.load_all(base)?;
        self.contribute(base, Sign::Minus)?;
        base.company = company;
        self.contribute(base, Sign::Plus)
    }

    /// Puts in or takes out everything that an identity contributes, at every level. All its pages must be there.
    pub(super) fn contribute(&mut self, identity: &Identity, sign: Sign) -> Result<(), Fault> {
        contribute_own(self.project, identity, &DirtyRange::ANY, sign);
        let own = identity.company.map(|association| association.company);
        for (day, named, sums) in identity.facts.named_days(Span::ALL) {
            self.share_day(identity, day, named, sums, sign)?;
        }
        for session in identity.facts.sessions(Times::ALL) {
            if let Some(company) = session.company.as_deref().copied().or(own) {
                self.share_session(company, session, sign)?;
            }
        }
        for order in identity.facts.orders(Times::ALL) {
            if let Some(company) = order.company.as_deref().copied().or(own) {
                self.share_order(company, order, sign)?;
            }
        }
        Ok(())
    }

    /// Takes an identity out of its slot, to be changed; [`Fold::put_identity`] puts it back. Only the box moves.
    pub(super) fn take_identity(&mut self, key: RecordKey) -> Result<Option<Box<Identity>>, Fault> {
        let source = self.source;
        Ok(match self.project.people.get_mut(key, || source.record(key))? {
            Some(person @ IdentitySlot::Canonical(_)) => match std::mem::replace(person, IdentitySlot::Alias(key)) {
                IdentitySlot::Canonical(identity) => Some(identity),
                IdentitySlot::Alias(_) => None,
            },
            _ => None,
        })
    }

    pub(super) fn put_identity(&mut self, key: RecordKey, identity: Box<Identity>) {
        self.project.people.put_back(key, IdentitySlot::Canonical(identity));
    }

    /// The company that an event of this identity belongs to.
    pub(super) fn company_of(identity: &Identity, named: Option<GroupRef>) -> Option<RecordKey> {
        named.and_then(GroupRef::company).or(identity.company.map(|association| association.company))
    }
}
