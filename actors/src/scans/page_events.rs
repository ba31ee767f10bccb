//! The latest events for a page, as far as there is room.

use std::collections::BTreeMap;

use headcount_domain::facts::Moment;
use headcount_domain::{Event, Instant, Position};

/// The most bytes of events in a page. A page of larger events has fewer of them, and at least one.
const PAGE_BYTES: usize = 4 << 20;

/// The events of a page so far, in ascending order.
pub(super) struct PageEvents {
    limit: usize,
    bytes: usize,
    pub(super) events: BTreeMap<Moment, Box<Event>>,
    /// The greatest moment of an event that found no room. Events before it find none either.
    pub(super) cut: Option<Moment>,
}

impl PageEvents {
    pub(super) fn new(limit: usize) -> Self {
        Self { limit: limit.max(1), bytes: 0, events: BTreeMap::new(), cut: None }
    }

    pub(super) fn is_full(&self) -> bool {
        self.events.len() >= self.limit || self.bytes >= PAGE_BYTES
    }

    /// Adds an event of the order of recording, which is not full.
    pub(super) fn append(&mut self, position: Position, event: Box<Event>) {
        self.bytes += size_of_event(&event);
        // All have one time, so that their positions order them.
        self.events.insert(Moment { time: Instant(0), position }, event);
    }

    /// Takes an event, in any order.
    pub(super) fn offer(&mut self, at: Moment, event: Box<Event>) {
        if self.cut.is_some_and(|cut| at < cut) {
            return;
        }
        self.bytes += size_of_event(&event);
        self.events.insert(at, event);
        while self.events.len() > self.limit || self.bytes > PAGE_BYTES && self.events.len() > 1 {
            let Some((at, event)) = self.events.pop_first() else { return };
            self.bytes -= size_of_event(&event);
            self.cut = Some(at);
        }
    }
}

/// About how much memory an event takes.
fn size_of_event(event: &Event) -> usize {
    let Event { name, who, external_id, details, .. } = event;
    let texts = [
        &who.user_id,
        &who.anonymous_id,
        external_id,
        &details.url,
        &details.hostname,
        &details.referrer,
        &details.referrer_host,
        &details.screen,
        &details.language,
        &details.channel,
        &details.message,
        &details.group_id,
        &details.email,
        &details.privacy_categories,
        &details.privacy_signals,
        &details.consent_source,
        &details.metadata,
    ];
    size_of::<Event>() + name.len() + texts.into_iter().flatten().map(|text| text.len()).sum::<usize>()
}
