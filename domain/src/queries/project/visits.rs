//! The identities and sessions of single events.

use serde::{Deserialize, Serialize};

use crate::acquisition::Channel;
use crate::facts::{Moment, Session};
use crate::fault::Fault;
use crate::identity::{IdentityId, IdentityLink, IdentitySlot};
use crate::ids::RecordKey;
use crate::queries::partial::{Query, Reader};
use crate::records::{Source, page_key};
use crate::time::{Day, Instant};

/// Asks for the identities and sessions of events.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct VisitsQuery {
    /// The primary key of each event, and its moment.
    pub events: Vec<(RecordKey, Moment)>,
}

/// The identity of an event, and its session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventVisit {
    /// The identity, after links.
    pub identity: IdentityId,
    /// The session; `None` for an event that is not interactive and not attached.
    pub session: Option<VisitedSession>,
}

/// The session of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct VisitedSession {
    /// The day of the entry.
    pub day: Day,
    /// The time of the last event.
    pub last: Instant,
    /// The channel.
    pub channel: Channel,
    /// The moment of the first event with the address of a page.
    pub page_at: Option<Moment>,
}

/// Asks for the users that ids are linked to.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LinkedQuery {
    /// The keys of the ids.
    pub ids: Vec<RecordKey>,
}

impl Query for LinkedQuery {
    /// In the order of the ids: the link, unless there is none.
    type Partial = Vec<Option<IdentityLink>>;

    fn answer<S: Source>(&self, reader: &mut Reader<'_, S>) -> Result<Self::Partial, Fault> {
        let source = reader.source;
        let mut linked = |id: &RecordKey| {
            Ok(match reader.project.people.get(*id, || source.record(*id))? {
                Some(IdentitySlot::Alias { user, since }) => Some(IdentityLink { anonymous: *id, position: *since, user: *user }),
                _ => None,
            })
        };
        self.ids.iter().map(&mut linked).collect()
    }
}

impl Query for VisitsQuery {
    /// In the order of the events; `None` for unknown keys.
    type Partial = Vec<Option<EventVisit>>;

    fn answer<S: Source>(&self, reader: &mut Reader<'_, S>) -> Result<Self::Partial, Fault> {
        self.events.iter().map(|(key, at)| reader.visit(*key, *at)).collect()
    }
}

impl<S: Source> Reader<'_, S> {
    fn visit(&mut self, key: RecordKey, at: Moment) -> Result<Option<EventVisit>, Fault> {
        let source = self.source;
        let key = self.project.resolve(key, source)?;
        let Some(IdentitySlot::Canonical(identity)) = self.project.people.get_to_load(key, || source.record(key))? else {
            return Ok(None);
        };
        let member = identity.history_key;
        identity.facts.load_session_at(at.time, |serial| source.page::<IdentitySlot>(page_key(member, serial)))?;
        let visited = |session: &Session| {
            let Session { day, last, channel, .. } = *session;
            VisitedSession { day, last, channel, page_at: session.page_at() }
        };
        Ok(Some(EventVisit { identity: identity.id.clone(), session: identity.facts.session_at(at.time).map(visited) }))
    }
}
