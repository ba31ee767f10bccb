//! Adds days, sessions, orders and counts to an identity. Each step takes the old contributions
//! out, changes the facts, adds the new contributions, and propagates the change to the identity's
//! company and group.

use crate::contribution::{EntityKind, Sign};
use crate::facts::{DailyCount, DirtyRange, GroupRef, Order, SESSION_GAP_MS, Session, Sums, TouchEvent};
use crate::fault::Fault;
use crate::fold::{Fold, contribute_own};
use crate::identity::Identity;
use crate::records::Source;
use crate::time::{Day, Instant, MS_PER_DAY};
use crate::versions::FigureKind;

/// The number of days that are touched one by one when a session gets another entry. A sender can
/// keep a session going for years.
const MAX_SESSION_DAYS: i32 = 64;

impl<S: Source> Fold<'_, S> {
    /// Adds `sums` of events that name the group `named`, or no group.
    pub(super) fn add_day(
        &mut self,
        identity: &mut Identity,
        day: Day,
        named: Option<GroupRef>,
        sums: &Sums,
    ) -> Result<(), Fault> {
        let page = self.pages_of(identity);
        identity.facts.load_day(day, named, page)?;
        let change = identity.facts.change_of_day(day, sums, Sign::Plus);
        identity.facts.load_change(change, page)?;
        if identity.id.is_sent() {
            identity.facts.load_followed(change, page)?;
        }
        contribute_own(self.project, identity, &change, Sign::Minus);
        // Days without consent never move to another company, so their group is not kept.
        let kept = named.filter(|_| super::level(identity) != EntityKind::Nobody);
        identity.facts.add_day(day, kept, sums, Sign::Plus, &self.project.limits);
        self.project.rollups.activity.count_events(day, sums, Sign::Plus);
        contribute_own(self.project, identity, &change, Sign::Plus);
        self.share_day(identity, day, named, sums, Sign::Plus)
    }

    /// Adds a session, which may be a single event, and merges it with the sessions within 30
    /// minutes. So a late event bridges the sessions on both sides.
    pub(super) fn add_session(&mut self, identity: &mut Identity, session: Session) -> Result<(), Fault> {
        let page = self.pages_of(identity);
        identity.facts.load_session(&session, page)?;
        let met = identity.facts.met_by(&session);
        self.touch_attached(identity, &session);
        let joined = met.iter().cloned().fold(session, Session::join);
        self.touch_fields(&met, &joined);
        self.touch_ends(&joined);
        let change = identity.facts.change_of_sessions(&met, &joined);
        identity.facts.load_change(change, self.pages_of(identity))?;
        contribute_own(self.project, identity, &change, Sign::Minus);
        identity.facts.replace_sessions(&met, joined.clone(), &self.project.limits);
        met.iter().for_each(|session| self.project.rollups.activity.count_duration(session, Sign::Minus));
        self.project.rollups.activity.count_duration(&joined, Sign::Plus);
        contribute_own(self.project, identity, &change, Sign::Plus);
        self.share_replaced_sessions(identity, &met, &joined)
    }

    /// Touches the days of the sessions whose fields change when they are `joined`.
    fn touch_fields(&mut self, met: &[Session], joined: &Session) {
        for session in met.iter().filter(|session| !session.has_fields_of(joined)) {
            self.touch_days(FigureKind::Events, session);
        }
    }

    /// Touches the days after the day of `session` whose events may now be attached to it.
    fn touch_attached(&mut self, identity: &Identity, session: &Session) {
        if identity.facts.last_day().is_some_and(|last| last > session.day) {
            self.touch_days(FigureKind::Events, session);
            self.touch_days(FigureKind::Traffic, session);
        }
    }

    /// Touches the days of a session whose last events or end changed, except the day of the event,
    /// which is touched anyway.
    fn touch_ends(&mut self, session: &Session) {
        if session.events > 1 {
            self.touch_days(FigureKind::Traffic, session);
        }
    }

    fn touch_days(&mut self, figure: FigureKind, session: &Session) {
        // Its last event and its attached events are on one of these days, in any timezone.
        let days = (session.last.0.saturating_sub(session.at.time.0) + SESSION_GAP_MS) / MS_PER_DAY + 1;
        match i32::try_from(days) {
            Ok(days) if days <= MAX_SESSION_DAYS => {
                (0..=days).for_each(|after| self.project.touched.day(figure, Day(session.day.0.saturating_add(after))));
            }
            _ => self.project.touched.all_days(figure),
        }
    }

    /// Adds a touch, and propagates it to the company of its event.
    pub(super) fn add_touch(&mut self, identity: &mut Identity, touch: TouchEvent) -> Result<(), Fault> {
        identity.facts.load_touch(touch.at, self.pages_of(identity))?;
        let change = identity.facts.change_of_touch(touch.at, Sign::Plus);
        self.recut(identity, change)?;
        identity.facts.load_change(change, self.pages_of(identity))?;
        contribute_own(self.project, identity, &change, Sign::Minus);
        identity.facts.defer_attribution(identity.history_key, change, &self.project.limits);
        identity.facts.add_touch(touch.clone(), &self.project.limits);
        contribute_own(self.project, identity, &change, Sign::Plus);
        match touch.company.as_deref().copied().or(identity.company.map(|association| association.company)) {
            Some(company) => self.share_touch(company, touch.touch_at(), Sign::Plus),
            None => Ok(()),
        }
    }

    /// Splits the runs of orders as a change of touches requires.
    fn recut(&mut self, identity: &mut Identity, change: DirtyRange) -> Result<(), Fault> {
        loop {
            let page = self.pages_of(identity);
            identity.facts.load_recut(change, page)?;
            let Some(recut) = identity.facts.recut(change, &self.project.limits) else { return Ok(()) };
            identity.facts.load_change(recut.change(), page)?;
            contribute_own(self.project, identity, &recut.change(), Sign::Minus);
            identity.facts.apply_recut(&recut, identity.history_key);
            contribute_own(self.project, identity, &recut.change(), Sign::Plus);
        }
    }

    /// Extends the last session by an event at `time`. Of its fields only the exit changes; a
    /// bounce ends.
    pub(super) fn extend_last_session(&mut self, identity: &mut Identity, day: Day, time: Instant) {
        let change = match identity.facts.last_session() {
            Some(last) if last.events == 1 => DirtyRange::of_session(last.at),
            _ => DirtyRange::NONE,
        };
        if let Some(last) = identity.facts.last_session().filter(|last| last.day != day).cloned() {
            self.touch_ends(&Session { last: time, events: last.events + 1, ..last });
        }
        if identity.facts.last_day().is_some_and(|last| last > day) {
            let next = Day(day.0.saturating_add(1));
            [FigureKind::Events, FigureKind::Traffic].into_iter().for_each(|figure| self.project.touched.day(figure, next));
        }
        if let Some(last) = identity.facts.last_session() {
            self.project.rollups.activity.lengthen(last.day, time.0.saturating_sub(last.last.0).max(0));
        }
        contribute_own(self.project, identity, &change, Sign::Minus);
        identity.facts.extend_last_session(time, &self.project.limits);
        contribute_own(self.project, identity, &change, Sign::Plus);
    }

    /// Adds to a daily count.
    pub(super) fn add_count(&mut self, identity: &mut Identity, hit: DailyCount) -> Result<(), Fault> {
        let page = self.pages_of(identity);
        identity.facts.load_count(&hit, page)?;
        identity.facts.add_count(hit, &self.project.limits);
        Ok(())
    }

    /// Adds an order or a refund.
    pub(super) fn add_order(&mut self, identity: &mut Identity, order: Order) -> Result<(), Fault> {
        let (change, page) = (DirtyRange::of_order(order.at), self.pages_of(identity));
        identity.facts.load_order(order.at, page)?;
        identity.facts.load_change(change, page)?;
        contribute_own(self.project, identity, &change, Sign::Minus);
        identity.facts.add_order(order.clone(), &self.project.limits);
        contribute_own(self.project, identity, &change, Sign::Plus);
        match order.company.as_deref().copied().or(identity.company.map(|association| association.company)) {
            // Orders without consent have no touch, even if the company has touches.
            Some(company) if super::level(identity) == EntityKind::Identity => self.share_order(company, &order, Sign::Plus),
            _ => Ok(()),
        }
    }
}
