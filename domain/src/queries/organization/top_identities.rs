//! The most active identified identities of an organization.
//!
//! Only the events themselves show which identities were active in a range. The reader of the
//! events passes on, project by project, the ids in them, and then the identities with their
//! numbers of events. Their records provide the rest.

use std::cmp::Reverse;

use super::company_users::known;
use super::identity::Subject;
use super::parts::MemberRef;
use super::top_k::NAMED_TOGETHER;
use crate::facts::{Moment, Span};
use crate::fault::Fault;
use crate::identity::{IdentityId, IdentitySlot};
use crate::ids::{ProjectId, RecordKey};
use crate::money::Amount;
use crate::named_values;
use crate::queries::answers::{Listed, TopIdentity};
use crate::queries::partial::{Projects, Query, Reader, rank};
use crate::records::{Source, page_key};
use crate::time::Window;
use serde::{Deserialize, Serialize};

named_values! {
    /// The figure that orders identities.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
    pub enum IdentityOrder by as_str {
        /// The number of events in the range.
        #[default]
        Events = "events",
        /// The revenue of the range.
        Revenue = "revenue",
        /// The time of the last event ever.
        LastSeen = "last_seen",
    }
}

/// Asks for the identities of ids. Leaves out ids without an identified person (with a `user_id` or
/// an e-mail address).
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct IdentifiedQuery {
    /// The keys of the ids, as events name them.
    pub ids: Vec<RecordKey>,
    /// Whether they are ids of cookieless visitors, which are never linked, so that no record must
    /// be read.
    pub are_visitors: bool,
}

impl Query for IdentifiedQuery {
    /// In the order of the ids.
    type Partial = Vec<Option<ActiveIdentity>>;

    fn answer<S: Source>(&self, reader: &mut Reader<'_, S>) -> Result<Self::Partial, Fault> {
        let (source, project) = (reader.source, reader.id);
        if self.are_visitors {
            let identified = |id: &RecordKey| reader.who(*id).1.then_some(ActiveIdentity(MemberRef::Of(project, *id)));
            return Ok(self.ids.iter().map(identified).collect());
        }
        let mut identified = |id: &RecordKey| {
            Ok(match reader.project.people.get(*id, || source.record(*id))? {
                Some(IdentitySlot::Alias { user, .. }) => Some(MemberRef::User(*user)),
                Some(IdentitySlot::Canonical(identity)) => match identity.id {
                    IdentityId::User(_) => Some(MemberRef::User(*id)),
                    _ if identity.emails.is_empty() => None,
                    _ => Some(MemberRef::Of(project, *id)),
                },
                None => None,
            }
            .map(ActiveIdentity))
        };
        self.ids.iter().map(&mut identified).collect()
    }
}

/// An identified identity of an organization, in the form that readers of events use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ActiveIdentity(MemberRef);

impl ActiveIdentity {
    /// The bytes of [`ActiveIdentity::to_bytes`].
    pub const BYTES: usize = 1 + 8 + 16;

    /// Returns the user with a key.
    pub fn user(key: RecordKey) -> Self {
        Self(MemberRef::User(key))
    }

    /// Returns unique bytes of the identity.
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let (project, RecordKey(key)) = match self.0 {
            MemberRef::User(user) => (None, user),
            MemberRef::Of(ProjectId(project), member) => (Some(project), member),
        };
        let mut bytes = [0; Self::BYTES];
        bytes[0] = project.is_some().into();
        bytes[1..9].copy_from_slice(&project.unwrap_or_default().to_be_bytes());
        bytes[9..].copy_from_slice(&key.to_be_bytes());
        bytes
    }

    /// The inverse of [`ActiveIdentity::to_bytes`].
    pub fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        let [kind, rest @ ..] = bytes;
        let (project, key) = rest.split_at(8);
        let project = ProjectId(project.try_into().map_or(0, u64::from_be_bytes));
        let key = RecordKey(key.try_into().map_or(0, u128::from_be_bytes));
        Self(if kind == 0 { MemberRef::User(key) } else { MemberRef::Of(project, key) })
    }
}

/// Asks for the figures of identities.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct IdentityFiguresQuery {
    identities: Vec<MemberRef>,
    window: Window,
}

/// A project's figures of an identity.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct IdentityFigures {
    id: IdentityId,
    /// The most recently reported e-mail address, and when.
    email: Option<(Moment, Box<str>)>,
    last_seen: Option<Moment>,
    /// The events and the revenue of the window, in the organization's currency.
    events: u64,
    revenue: Amount,
}

impl Query for IdentityFiguresQuery {
    type Partial = Vec<Option<IdentityFigures>>;

    fn answer<S: Source>(&self, reader: &mut Reader<'_, S>) -> Result<Self::Partial, Fault> {
        let window = reader.kept(self.window);
        let span = Span { first: window.start, last: window.end };
        let source = reader.source;
        let figures = |who: &MemberRef| {
            let Some(identity) = known(*who, reader)? else { return Ok(None) };
            let member = identity.history_key;
            identity.facts.load_days(span, |serial| source.page::<IdentitySlot>(page_key(member, serial)))?;
            let latest = identity.emails.iter().max_by_key(|(_, reported_at)| *reported_at);
            let (mut events, mut revenue) = (0, Amount::ZERO);
            for entry in identity.facts.days(span) {
                events += u64::from(entry.sums.events);
                revenue += entry.sums.money.as_ref().map(|money| money.organization_revenue).unwrap_or_default();
            }
            Ok(Some(IdentityFigures {
                id: identity.id.clone(),
                email: latest.map(|(email, reported_at)| (*reported_at, email.clone())),
                last_seen: identity.seen.map(|(_, last)| last),
                events,
                revenue,
            }))
        };
        self.identities.iter().map(figures).collect()
    }
}

/// Selects the first identities.
#[derive(Debug)]
pub struct IdentityRanking {
    window: Window,
    order: IdentityOrder,
    limit: usize,
    rows: Vec<TopIdentity>,
    /// The number of identities that were added.
    added: u64,
}

impl IdentityRanking {
    /// Selects `limit` identities by their figures in `window`.
    pub fn new(window: Window, order: IdentityOrder, limit: usize) -> Self {
        Self { window, order, limit, rows: Vec::new(), added: 0 }
    }

    /// Adds active identities of the window, each once, with their numbers of events. Requests the
    /// figures of possible candidates only, so it is faster if identities with many events come
    /// first.
    ///
    /// # Errors
    /// A project did not answer.
    pub async fn add<P: Projects>(&mut self, projects: &P, active: &[(ActiveIdentity, u64)]) -> Result<(), P::Error> {
        for some in active.chunks(NAMED_TOGETHER) {
            self.added += some.len() as u64;
            let may_be_first = |events: u64| match self.limit.checked_sub(1).and_then(|last| self.rows.get(last)) {
                Some(last) if self.order == IdentityOrder::Events => events >= last.events,
                _ => true,
            };
            let some = some.iter().filter(|(_, events)| may_be_first(*events));
            let identities: Vec<MemberRef> = some.map(|(ActiveIdentity(identity), _)| *identity).collect();
            if identities.is_empty() {
                continue;
            }
            let parts = projects.scatter(IdentityFiguresQuery { identities: identities.clone(), window: self.window }).await?;
            let row = |(at, identity): (usize, &MemberRef)| {
                let parts = parts.iter().filter_map(|part| part.get(at)?.as_ref());
                top_identity(projects, *identity, &parts.collect::<Vec<_>>())
            };
            self.rows.extend(identities.iter().enumerate().filter_map(row));
            self.select();
        }
        Ok(())
    }

    /// Keeps the first rows, in order.
    fn select(&mut self) {
        let name = |row: &TopIdentity| (row.resolved_identifier.clone(), Reverse(row.last_seen), row.identity_id.clone());
        match self.order {
            IdentityOrder::Events => rank(&mut self.rows, |row| row.events, name),
            IdentityOrder::Revenue => rank(&mut self.rows, |row| row.revenue, name),
            IdentityOrder::LastSeen => rank(&mut self.rows, |row| row.last_seen, name),
        }
        self.rows.truncate(self.limit);
    }

    /// Returns the list.
    pub fn finish(self) -> Listed<TopIdentity> {
        Listed { truncated: self.added > self.limit as u64, rows: self.rows }
    }
}

/// Merges the projects' figures of an identity.
fn top_identity<P: Projects>(projects: &P, identity: MemberRef, parts: &[&IdentityFigures]) -> Option<TopIdentity> {
    let id = &parts.first()?.id;
    let email = parts.iter().filter_map(|part| part.email.as_ref()).max().map(|(_, email)| email.to_string());
    let project = if let MemberRef::Of(project, _) = identity { Some(project) } else { None };
    Some(TopIdentity {
        identity_id: Subject { id: id.clone(), project }.public(projects.organization()),
        resolved_identifier: email.clone().unwrap_or_else(|| id.text()),
        user_id: id.user_id().map(str::to_owned),
        email,
        events: parts.iter().map(|part| part.events).sum(),
        revenue: parts.iter().map(|part| part.revenue).sum(),
        last_seen: parts.iter().filter_map(|part| part.last_seen).max()?.time,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_reads_back() {
        let identities = [MemberRef::User(RecordKey(u128::MAX)), MemberRef::Of(ProjectId(7), RecordKey(1 << 100))];
        for identity in identities.map(ActiveIdentity) {
            assert_eq!(ActiveIdentity::from_bytes(identity.to_bytes()), identity);
        }
    }
}
