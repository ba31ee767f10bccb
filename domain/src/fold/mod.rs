//! Folding: an event changes the facts of its identity, and the change is propagated to every
//! rollup. Nothing else changes the state.

mod accounts;
mod apply;
mod fill;
mod forget;
mod forgotten_texts;
mod groups;
mod link;
mod look_ahead;

use crate::acquisition::Channel;
use crate::contribution::{EntityKind, Sign};
use crate::facts::{CountKey, DailyCount, DirtyRange, FactsPage, GroupRef, Moment, Order, Session, Touch, TouchEvent};
use crate::fault::Fault;
use crate::identity::{Association, EmailOwners, EventSubject, Identity, IdentityId, IdentitySlot, SentKeys};
use crate::ids::{KeyHasher, RecordKey};
use crate::indexes::dictionary::{TermId, TermKind};
use crate::intake::event::{Event, Position};
use crate::project::Project;
use crate::records::page_key;
pub use crate::records::{NoSource, Source};
use crate::text;
use crate::versions::FigureKind;
pub use forget::Forgetting;

impl Project {
    /// Folds one recorded event, or the remainder of an erased event. Call it once per event, in
    /// the order of `position`, and never for duplicates or events that the project
    /// [drops](Project::drops). Returns the subject of the event.
    ///
    /// # Errors
    /// A record could not be read. The state is then inconsistent: drop and rebuild it.
    pub fn apply<S: Source>(
        &mut self,
        event: &Event,
        position: Position,
        hasher: &KeyHasher,
        source: &S,
    ) -> Result<EventSubject, Fault> {
        let keys = SentKeys::of(&event.who, hasher);
        self.apply_with_keys(event, keys, position, hasher, source)
    }

    /// [`Project::apply`] with the keys of the event's ids.
    ///
    /// # Errors
    /// A record could not be read. The state is then inconsistent: drop and rebuild it.
    pub fn apply_with_keys<S: Source>(
        &mut self,
        event: &Event,
        keys: SentKeys,
        position: Position,
        hasher: &KeyHasher,
        source: &S,
    ) -> Result<EventSubject, Fault> {
        let mut fold = Fold { project: self, position, hasher, source };
        let mut subject = EventSubject::default();
        if event.is_remainder() {
            // Only its report about a group.
            fold.named(event)?;
        } else {
            let (identity_key, of_event) = fold.subject(event, keys)?;
            let named = fold.named(event)?;
            fold.record(event, identity_key, named)?;
            subject = of_event;
            self.rollups.receipts.count_receipt(event, position);
        }
        self.rollups.drain(&mut self.touched);
        if let Some(floor) = self.floor {
            self.touched.retain_from(floor);
        }
        self.versions.touch(&self.touched, position);
        self.touched.clear();
        Ok(subject)
    }

    /// Returns the key of the identity that `key` belongs to, even if it has no events.
    ///
    /// # Errors
    /// A record could not be read.
    pub fn resolve<S: Source>(&mut self, key: RecordKey, source: &S) -> Result<RecordKey, Fault> {
        Ok(match self.people.get(key, || source.record(key))? {
            Some(IdentitySlot::Alias { user, .. }) => *user,
            _ => key,
        })
    }
}

struct Fold<'a, S> {
    project: &'a mut Project,
    position: Position,
    hasher: &'a KeyHasher,
    source: &'a S,
}

impl<S: Source> Fold<'_, S> {
    /// Adds the event to its identity, with the company and the e-mail address that it may report.
    fn record(&mut self, event: &Event, identity_key: RecordKey, named: Option<GroupRef>) -> Result<(), Fault> {
        self.project.touched.day(FigureKind::Events, event.day);
        self.project.touched.day(FigureKind::Activity, event.day);
        let Some(mut identity) = self.take_identity(identity_key)? else { return Ok(()) };
        let at = Moment { time: event.time, position: self.position };
        self.associate(&mut identity, event, named)?;
        let is_identity = identity.id != IdentityId::Nobody;
        let (is_visit, has_source) = (is_identity && event.interactive, is_identity && event.has_source());
        // Most events only extend the last session.
        let extends = is_visit && identity.facts.extends_last_session(at, has_source, event.has_page());
        let tells = has_source || is_visit && !extends;
        let touch = if tells { self.touch(event)? } else { None };
        self.add_day(&mut identity, event.day, named, &event.sums())?;
        if extends {
            self.extend_last_session(&mut identity, event.day, event.time);
        } else if is_visit {
            self.add_session(&mut identity, session(event, at, named, touch))?;
        }
        if let Some(touch) = touch.filter(|_| has_source) {
            let company = named.and_then(GroupRef::company).map(Box::new);
            self.add_touch(&mut identity, TouchEvent { at, touch, company })?;
        }
        if is_identity {
            identity.saw(at, at);
            self.report_email(&mut identity, identity_key, event, at)?;
            self.count_texts(&mut identity, event)?;
        }
        if let Some((revenue, orders)) = event.order() {
            let company = named.and_then(GroupRef::company).map(Box::new);
            self.add_order(&mut identity, Order { at, day: event.day, revenue, orders, company })?;
        }
        self.put_identity(identity_key, identity);
        Ok(())
    }

    /// Records the company of an identity, unless it has one. The first association applies to all
    /// events of the identity, including earlier ones.
    fn associate(&mut self, identity: &mut Identity, event: &Event, named: Option<GroupRef>) -> Result<(), Fault> {
        if identity.company.is_some() || identity.id == IdentityId::Nobody {
            return Ok(());
        }
        let reported = match (named.and_then(GroupRef::company), &event.email_company) {
            (Some(company), _) => company,
            (None, Some(key)) => self.company(key)?,
            (None, None) => return Ok(()),
        };
        let association = Association { since: self.position, company: reported };
        if identity.facts.is_empty() {
            identity.company = Some(association);
            return Ok(());
        }
        self.load_all(identity)?;
        self.contribute(identity, Sign::Minus)?;
        identity.company = Some(association);
        self.contribute(identity, Sign::Plus)
    }

    /// Returns the event's source, medium and campaign; `None` if all are unknown.
    fn touch(&mut self, event: &Event) -> Result<Option<Touch>, Fault> {
        let acquisition = event.details.acquisition.as_ref();
        let Some(acquisition) = acquisition.filter(|acquisition| !acquisition.is_unknown()) else { return Ok(None) };
        let source = match acquisition.is_direct() {
            true => Touch::NO_SOURCE,
            false => self.intern(&acquisition.source, TermKind::Source)?,
        };
        Ok(Some(Touch {
            source,
            medium: self.intern(&acquisition.medium, TermKind::Source)?,
            campaign: self.intern(&acquisition.campaign, TermKind::Source)?,
        }))
    }

    fn report_email(&mut self, identity: &mut Identity, identity_key: RecordKey, event: &Event, at: Moment) -> Result<(), Fault> {
        let Some(email) = &event.details.email else { return Ok(()) };
        if !identity.emails.report(email, at) {
            return Ok(());
        }
        self.record_alias(identity);
        let (key, source, limits) = (self.hasher.email(email), self.source, &self.project.limits);
        let emails = &mut self.project.emails;
        let page = |serial| source.page::<EmailOwners>(page_key(key, serial));
        let Some(owners) = emails.get_to_load(key, || source.record(key))? else {
            emails.insert(key, EmailOwners::new(identity_key, limits));
            return Ok(());
        };
        // An unchanged record is not saved again.
        if !owners.has(identity_key, page)? {
            emails.get_mut(key, || Ok(None))?.into_iter().for_each(|owners| owners.add(identity_key, limits));
        }
        Ok(())
    }

    fn count_texts(&mut self, identity: &mut Identity, event: &Event) -> Result<(), Fault> {
        let details = &event.details;
        if let Some(url) = details.url.as_deref().filter(|_| event.is_pageview()) {
            let page = self.intern(text::page(url), TermKind::Page)?;
            self.add_count(identity, DailyCount { day: event.day, what: CountKey::Page(page), count: 1 })?;
        }
        if let Some(host) = &details.referrer_host {
            let referrer = self.intern(host, TermKind::Source)?;
            self.add_count(identity, DailyCount { day: event.day, what: CountKey::Referrer(referrer), count: 1 })?;
        }
        Ok(())
    }

    fn intern(&mut self, text: &str, kind: TermKind) -> Result<TermId, Fault> {
        self.project.dictionary.intern(text, kind, self.hasher, self.source)
    }

    fn load_all(&mut self, identity: &mut Identity) -> Result<(), Fault> {
        let page = self.pages_of(identity);
        identity.facts.load_all(page)
    }

    /// Returns the loader of an identity's pages.
    fn pages_of(&self, identity: &Identity) -> impl Fn(u32) -> Result<FactsPage, Fault> + Copy + use<'_, S> {
        let (source, member) = (self.source, identity.history_key);
        move |serial| source.page::<IdentitySlot>(page_key(member, serial))
    }
}

/// Creates a session from a single event.
fn session(event: &Event, at: Moment, named: Option<GroupRef>, touch: Option<Touch>) -> Session {
    let channel = event.details.acquisition.as_ref().map_or(Channel::Direct, |acquisition| acquisition.channel);
    let (has_page, company) = (event.has_page(), named.and_then(GroupRef::company).map(Box::new));
    Session { at, day: event.day, last: event.time, events: 1, touch, channel, has_page, later: None, company }
}

fn level(identity: &Identity) -> EntityKind {
    match identity.id {
        IdentityId::Nobody => EntityKind::Nobody,
        _ => EntityKind::Identity,
    }
}

/// Adds or takes out the contributions of `facts` as an identity and, without a company, as its own
/// account.
fn contribute_own(project: &mut Project, identity: &Identity, change: &DirtyRange, sign: Sign) {
    let level = level(identity);
    project.rollups.contribute(level, &identity.facts, sign, change);
    if level == EntityKind::Identity && identity.company.is_none() {
        project.rollups.contribute(EntityKind::Account, &identity.facts, sign, change);
    }
    if change.new_day && identity.id.is_sent() {
        project.rollups.contribute(EntityKind::WithId, &identity.facts, sign, change);
    }
}
