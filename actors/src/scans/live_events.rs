//! The events that a watch has not seen, from the history.

use std::collections::{BTreeSet, HashMap};
use std::ops::ControlFlow;

use super::error::Result;
use headcount_domain::{Event, Position, ProjectId, RecordKey, SentKeys};

use super::events::{IDS_A_QUESTION, Scan};
use super::shared::Scans;
use crate::live::LiveEvent;
use crate::shard::AskError;

/// How many events are read at a time: about 2 MB.
const EVENTS: usize = 20_000;

/// The next events of a watch.
pub(crate) struct NextLiveEvents {
    pub(crate) events: Vec<LiveEvent>,
    /// Up to here, there are no others.
    pub(crate) until: Position,
    /// Whether more follow.
    pub(crate) has_more: bool,
}

impl Scans {
    /// Returns the next events after a position, and asks the shard what their ids are linked to.
    ///
    /// # Errors
    /// See [`AskError`].
    pub(crate) async fn live_events_after(&self, project: ProjectId, after: Position) -> Result<NextLiveEvents, AskError> {
        self.scan(project, move |scan, _| {
            let mut next = NextLiveEvents { events: Vec::new(), until: scan.until.max(after), has_more: false };
            let mut unlinked = BTreeSet::new();
            scan.visit_after(after, None, &mut |position, event| {
                if next.events.len() == EVENTS {
                    next.has_more = true;
                    return Ok(ControlFlow::Break(()));
                }
                next.events.push(scan.live_event(position, &event, &mut unlinked));
                Ok(ControlFlow::Continue(()))
            })?;
            if let Some(last) = next.events.last().filter(|_| next.has_more) {
                next.until = last.position;
            }
            let linked = scan.users_of(&unlinked)?;
            for key in next.events.iter_mut().filter_map(|event| event.subject.identity.as_mut()) {
                *key = linked.get(key).copied().unwrap_or(*key);
            }
            Ok(next)
        })
        .await
    }
}

impl Scan<'_> {
    /// What a watch counts of an event, as if its anonymous id were not linked. The id then joins
    /// `unlinked`.
    fn live_event(&self, position: Position, event: &Event, unlinked: &mut BTreeSet<RecordKey>) -> LiveEvent {
        let keys = SentKeys::of(&event.who, self.hasher());
        if keys.user.is_none() && event.who.anonymous_id.is_some() {
            unlinked.extend(keys.named());
        }
        LiveEvent::new(event, position, keys.subject())
    }

    /// The users that anonymous ids are linked to.
    fn users_of(&self, ids: &BTreeSet<RecordKey>) -> Result<HashMap<RecordKey, RecordKey>> {
        let mut users = HashMap::new();
        let ids: Vec<RecordKey> = ids.iter().copied().collect();
        for ids in ids.chunks(IDS_A_QUESTION) {
            users.extend(self.linked(ids.to_vec())?.map(|link| (link.anonymous, link.user)));
        }
        Ok(users)
    }
}
