//! The events of a page of an explanation, while a scan finds them in any order.

use std::collections::BTreeMap;

use headcount_domain::facts::Moment;
use headcount_domain::figures::{ExplainPlace, Reason};
use headcount_domain::{Amount, RecordKey};

/// An event that was found.
#[derive(Debug, Clone, Copy)]
pub(super) struct FoundEvent {
    /// The key of its identity, after links.
    pub(super) identity: Option<RecordKey>,
    pub(super) contributes: Amount,
    pub(super) why: Reason,
}

/// The latest events of one list before a moment.
pub(super) struct FoundList {
    limit: usize,
    before: Option<Moment>,
    pub(super) events: BTreeMap<Moment, FoundEvent>,
    /// Whether more events follow.
    pub(super) has_more: bool,
}

impl FoundList {
    fn new(limit: usize, before: Option<Moment>) -> Self {
        Self { limit, before, events: BTreeMap::new(), has_more: false }
    }

    fn offer(&mut self, at: Moment, event: FoundEvent) {
        if self.before.is_some_and(|before| at >= before) {
            return;
        }
        self.events.insert(at, event);
        if self.events.len() > self.limit {
            self.events.pop_first();
            self.has_more = true;
        }
    }

    /// The moment of the last event of this page, or of the pages before.
    pub(super) fn last(&self) -> Option<Moment> {
        self.events.first_key_value().map(|(at, _)| *at).or(self.before)
    }
}

/// The figure so far, and both lists.
pub(super) struct FoundEvents {
    /// The sum of what all events contribute, those of other pages too.
    pub(super) result: Amount,
    pub(super) rows: FoundList,
    pub(super) not_counted: FoundList,
}

impl FoundEvents {
    /// Finds at most `limit` events of each list, from `place` on.
    pub(super) fn new(limit: usize, place: Option<ExplainPlace>) -> Self {
        let [rows, not_counted] = place.map_or([None; 2], |place| place.last);
        let list = |before| FoundList::new(limit.max(1), before);
        Self { result: Amount::ZERO, rows: list(rows), not_counted: list(not_counted) }
    }

    /// Adds an event that contributes.
    pub(super) fn add(&mut self, at: Moment, identity: Option<RecordKey>, contributes: Amount, why: Reason) {
        self.result += contributes;
        self.rows.offer(at, FoundEvent { identity, contributes, why });
    }

    /// Adds an event that is not counted.
    pub(super) fn leave_out(&mut self, at: Moment, identity: Option<RecordKey>, why: Reason) {
        self.not_counted.offer(at, FoundEvent { identity, contributes: Amount::ZERO, why });
    }
}
