//! A project's data about identities, and the owners of e-mail addresses, for privacy requests.

use serde::{Deserialize, Serialize};

use crate::cells::count_of;
use crate::facts::{Moment, Span, Times};
use crate::fault::Fault;
use crate::identity::{EmailOwners, IdentityId, IdentitySlot};
use crate::ids::RecordKey;
use crate::money::Amount;
use crate::queries::partial::{Query, Reader};
use crate::records::{Source, page_key};
use crate::rollups::distinct;
use crate::time::{Day, Instant, Window};

/// A window with all days that events can have.
const ALL_DAYS: Window = Window { start: Day(-(1 << 22)), end: Day(1 << 22) };

/// The lifetime figures of a project, or of some identities in it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LifetimeFigures {
    /// The number of events.
    pub events: u64,
    /// The number of distinct identities.
    pub unique_users: u64,
    /// The number of sessions.
    pub sessions: u64,
    /// The number of orders.
    pub orders: i64,
    /// Orders less refunds, in the project's currency.
    pub revenue: Amount,
}

impl LifetimeFigures {
    /// Returns the difference to `part`, which is included in these figures.
    #[must_use]
    pub fn without(self, part: Self) -> Self {
        Self {
            events: self.events.saturating_sub(part.events),
            unique_users: self.unique_users.saturating_sub(part.unique_users),
            sessions: self.sessions.saturating_sub(part.sessions),
            orders: self.orders.saturating_sub(part.orders),
            revenue: self.revenue - part.revenue,
        }
    }
}

/// Asks for the figures of a project, and for those of some identities in it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SubjectFiguresQuery {
    /// The keys of the identities, possibly including linked ids.
    pub keys: Vec<RecordKey>,
}

/// The figures of a project at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubjectFigures {
    /// The figures of the whole project.
    pub all: LifetimeFigures,
    /// The figures of the identities.
    pub theirs: LifetimeFigures,
    /// The keys of the identities that the project knows, without linked ids.
    pub known: Vec<RecordKey>,
}

impl Query for SubjectFiguresQuery {
    type Partial = SubjectFigures;

    fn answer<S: Source>(&self, reader: &mut Reader<'_, S>) -> Result<SubjectFigures, Fault> {
        let (mut theirs, mut known) = (LifetimeFigures::default(), Vec::new());
        let span = Span { first: ALL_DAYS.start, last: ALL_DAYS.end };
        let source = reader.source;
        for key in &self.keys {
            let slot = reader.project.people.get_to_load(*key, || source.record(*key))?;
            let Some(IdentitySlot::Canonical(identity)) = slot else { continue };
            if identity.facts.is_empty() || identity.id == IdentityId::Nobody {
                continue;
            }
            let history = identity.history_key;
            let page = |serial| source.page::<IdentitySlot>(page_key(history, serial));
            identity.facts.load_days(span, page)?;
            identity.facts.load_sessions(Times::around(span), page)?;
            let events: u64 = identity.facts.days(span).map(|entry| u64::from(entry.sums.events)).sum();
            let sessions = identity.facts.sessions(Times::around(span)).count();
            let money = identity.facts.total_money();
            theirs.events += events;
            theirs.unique_users += 1;
            theirs.sessions += u64::try_from(sessions).unwrap_or(u64::MAX);
            theirs.orders += money.map_or(0, |money| money.orders);
            theirs.revenue += money.map_or(Amount::ZERO, |money| money.revenue);
            known.push(*key);
        }
        Ok(SubjectFigures { all: all(reader), theirs, known })
    }
}

/// The figures of all identities of a project, and of events without one.
fn all<S>(reader: &Reader<'_, S>) -> LifetimeFigures {
    let rollups = &reader.project.rollups;
    let money = rollups.revenue.sums(ALL_DAYS.start, ALL_DAYS.end);
    let recorded: i64 = rollups.receipts.iter().map(|(_, receipts)| receipts.recorded).sum();
    let visits = rollups.traffic.between(ALL_DAYS.start.0, ALL_DAYS.end.0);
    LifetimeFigures {
        events: count_of(recorded),
        unique_users: distinct::total(&rollups.unique_users, ALL_DAYS),
        sessions: count_of(visits.map(|(_, visits)| visits.sessions).sum()),
        orders: money.orders,
        revenue: money.revenue,
    }
}

/// Asks for the keys of the identities that ever had an e-mail address, and of the identities they
/// are linked to.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct EmailKeysQuery {
    /// The key of the address.
    pub email: RecordKey,
    /// The maximum number of identities that had it.
    pub most: usize,
}

impl Query for EmailKeysQuery {
    type Partial = Vec<RecordKey>;

    fn answer<S: Source>(&self, reader: &mut Reader<'_, S>) -> Result<Vec<RecordKey>, Fault> {
        let (email, source) = (self.email, reader.source);
        let page = |serial| source.page::<EmailOwners>(page_key(email, serial));
        let Some(owners) = reader.project.emails.get_to_load(email, || source.record(email))? else { return Ok(Vec::new()) };
        let mut keys = owners.from(RecordKey(0), self.most, page)?;
        for owner in keys.clone() {
            let resolved = reader.project.resolve(owner, source)?;
            if resolved != owner {
                keys.push(resolved);
            }
        }
        Ok(keys)
    }
}

/// Asks a project for its data about some identities.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct KnownIdentitiesQuery {
    /// The keys of ids. A linked id stands for its user.
    pub keys: Vec<RecordKey>,
}

/// A project's data about an identity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownIdentity {
    /// The key of its record.
    pub key: RecordKey,
    /// Its id.
    pub id: IdentityId,
    /// The times of its first and its last event.
    pub seen: Option<(Instant, Instant)>,
    /// Its latest e-mail address, and the time of its report.
    pub email: Option<(Box<str>, Moment)>,
    /// Its company, under the key that was reported first.
    pub company: Option<RecordKey>,
}

impl Query for KnownIdentitiesQuery {
    /// In the order of the keys; `None` for unknown keys.
    type Partial = Vec<Option<KnownIdentity>>;

    fn answer<S: Source>(&self, reader: &mut Reader<'_, S>) -> Result<Self::Partial, Fault> {
        self.keys.iter().map(|key| reader.known_identity(*key)).collect()
    }
}

impl<S: Source> Reader<'_, S> {
    fn known_identity(&mut self, key: RecordKey) -> Result<Option<KnownIdentity>, Fault> {
        let key = self.project.resolve(key, self.source)?;
        let Some(identity) = self.identity(key, None)? else { return Ok(None) };
        let seen = identity.seen.map(|(first, last)| (first.time, last.time));
        let email = identity.emails.iter().next().cloned();
        let company = identity.company.map(|association| association.company);
        Ok(Some(KnownIdentity { key, id: identity.id.clone(), seen, email, company }))
    }
}
