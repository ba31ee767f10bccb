//! The identity of an event, links between ids, and merges of histories.

use crate::contribution::Sign;
use crate::facts::{DirtyRange, GroupRef, Span, Times};
use crate::fault::Fault;
use crate::fold::{Fold, contribute_own};
use crate::identity::{Association, EventSubject, Identity, IdentityId, IdentityLink, IdentitySlot, SentKeys, takes_link};
use crate::ids::RecordKey;
use crate::intake::event::Event;
use crate::records::{Record, Source, page_key};
use crate::versions::FigureKind;

impl<S: Source> Fold<'_, S> {
    /// Returns the key of the event's facts and the subject of the event. Records the link of its
    /// anonymous id if it is the first.
    pub(super) fn subject(&mut self, event: &Event, keys: SentKeys) -> Result<(RecordKey, EventSubject), Fault> {
        let key = match (keys.named(), &event.who.anonymous_id) {
            (Some(anonymous), Some(_)) if keys.user.is_none() => self.project.resolve(anonymous, self.source)?,
            (Some(key), _) => key,
            (None, _) => self.hasher.nobody(),
        };
        self.ensure_person(key, || event.who.id())?;
        if let Some(link) = keys.link(self.position) {
            self.link(link)?;
        }
        let subject = keys.subject();
        Ok((key, EventSubject { identity: subject.identity.map(|_| key), ..subject }))
    }

    fn ensure_person(&mut self, key: RecordKey, id: impl FnOnce() -> IdentityId) -> Result<(), Fault> {
        let source = self.source;
        if self.project.people.get(key, || source.record(key))?.is_none() {
            self.project.people.insert(key, IdentitySlot::Canonical(Box::new(Identity::new(id(), key))));
        }
        Ok(())
    }

    /// Merges the history of an anonymous id into a user, if the link takes effect.
    fn link(&mut self, IdentityLink { anonymous, user, .. }: IdentityLink) -> Result<(), Fault> {
        let source = self.source;
        let slot = self.project.people.get(anonymous, || source.record(anonymous))?;
        if !takes_link(slot) {
            return Ok(());
        }
        let former = if slot.is_some() { self.take_identity(anonymous)? } else { None };
        self.project.people.insert(anonymous, IdentitySlot::Alias { user, since: self.position });
        if let Some(former) = former
            && let Some(user_identity) = self.take_identity(user)?
        {
            let merged = self.merge(user_identity, former)?;
            self.put_identity(user, merged);
        }
        Ok(())
    }

    /// Merges two histories. The cost is the number of items of the smaller or of a short history
    /// (so that most users keep their own key), unless the company of the larger one changes.
    fn merge(&mut self, user: Box<Identity>, other: Box<Identity>) -> Result<Box<Identity>, Fault> {
        let id = user.id.clone();
        let (mut base, mut small) = if other.facts.len() > user.facts.len().max(self.project.limits.short_history) {
            (other, user)
        } else {
            (user, other)
        };
        self.load_all(&mut small)?;
        // On a day on which both were active, the number of distinct users of an event drops.
        small.facts.active_days(Span::ALL).for_each(|day| self.project.touched.day(FigureKind::Events, day));
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
        for touch in small.facts.touches() {
            self.add_touch(&mut base, touch.clone())?;
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
        // The e-mail index refers to the linked id, which refers to the user.
        for (email, at) in small.emails.iter() {
            base.emails.report(email, *at);
        }
        self.project
            .orphans
            .extend(small.facts.serials().map(|serial| (IdentitySlot::PAGE_SPACE, page_key(small.history_key, serial))));
        Ok(base)
    }

    /// Applies the association that was recorded first to both histories.
    fn adopt_company(&mut self, base: &mut Identity, other: Option<Association>) -> Result<(), Fault> {
        let company = base.company.into_iter().chain(other).min();
        if company.map(|association| association.company) == base.company.map(|association| association.company) {
            base.company = company;
            return Ok(());
        }
        self.load_all(base)?;
        self.contribute(base, Sign::Minus)?;
        base.company = company;
        self.contribute(base, Sign::Plus)
    }

    /// Adds or takes out all contributions of an identity. All its pages must be loaded.
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
        for touch in identity.facts.touches() {
            if let Some(company) = touch.company.as_deref().copied().or(own) {
                self.share_touch(company, touch.touch_at(), sign)?;
            }
        }
        for order in identity.facts.orders(Times::ALL) {
            if let Some(company) = order.company.as_deref().copied().or(own) {
                self.share_order(company, order, sign)?;
            }
        }
        Ok(())
    }

    /// Takes an identity out of its slot for a change; [`Fold::put_identity`] puts it back. Only
    /// the box moves.
    pub(super) fn take_identity(&mut self, key: RecordKey) -> Result<Option<Box<Identity>>, Fault> {
        let source = self.source;
        Ok(match self.project.people.get_mut(key, || source.record(key))? {
            Some(person @ IdentitySlot::Canonical(_)) => {
                match std::mem::replace(person, IdentitySlot::Alias { user: key, since: 0 }) {
                    IdentitySlot::Canonical(identity) => Some(identity),
                    IdentitySlot::Alias { .. } => None,
                }
            }
            _ => None,
        })
    }

    pub(super) fn put_identity(&mut self, key: RecordKey, identity: Box<Identity>) {
        self.project.people.put_back(key, IdentitySlot::Canonical(identity));
    }

    /// Returns the company that an event of this identity belongs to.
    pub(super) fn company_of(identity: &Identity, named: Option<GroupRef>) -> Option<RecordKey> {
        named.and_then(GroupRef::company).or(identity.company.map(|association| association.company))
    }
}
