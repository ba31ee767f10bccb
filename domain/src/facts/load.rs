//! Loads exactly the pages that a step needs before it runs.

use super::daily_count::DailyCount;
use super::dirty_range::{DirtyRange, Span, Times};
use super::entity::Facts;
use super::group_ref::GroupRef;
use super::lists::{FactsPage, group_sort_key};
use super::session::{SESSION_GAP_MS, Session};
use crate::cache::paged::{SortKey, day_sort_key, first_in_day, last_in_day};
use crate::fault::Fault;
use crate::moment::Moment;
use crate::time::{CohortInterval, Day, Instant};

/// Loads a page by its serial number.
pub trait LoadFactsPage: FnMut(u32) -> Result<FactsPage, Fault> {}

impl<F: FnMut(u32) -> Result<FactsPage, Fault>> LoadFactsPage for F {}

impl Facts {
    /// Loads all pages.
    ///
    /// # Errors
    /// Returns whatever error `page` returns.
    pub(crate) fn load_all(&mut self, mut page: impl LoadFactsPage) -> Result<(), Fault> {
        let (first, last) = (SortKey::MIN, SortKey::MAX);
        self.days.load(first, last, &mut page)?;
        self.named.load(first, last, &mut page)?;
        self.sessions.load(first, last, &mut page)?;
        self.touches.load(first, last, &mut page)?;
        self.orders.load(first, last, &mut page)?;
        self.daily_counts.load(first, last, page)
    }

    /// Loads the days of `span`.
    ///
    /// # Errors
    /// Returns whatever error `page` returns.
    pub(crate) fn load_days(&mut self, span: Span, page: impl LoadFactsPage) -> Result<(), Fault> {
        self.days.load(day_sort_key(span.first), day_sort_key(span.last), page)
    }

    /// Loads the group days of `span`.
    ///
    /// # Errors
    /// Returns whatever error `page` returns.
    pub(crate) fn load_named(&mut self, span: Span, page: impl LoadFactsPage) -> Result<(), Fault> {
        self.named.load(first_in_day(span.first), last_in_day(span.last), page)
    }

    /// Loads the sessions whose entries lie in `times`.
    ///
    /// # Errors
    /// Returns whatever error `page` returns.
    pub(crate) fn load_sessions(&mut self, times: Times, page: impl LoadFactsPage) -> Result<(), Fault> {
        self.sessions.load(times.from.sort_key(), times.to.sort_key(), page)
    }

    /// Loads the pages for [`Facts::touch_at`].
    ///
    /// # Errors
    /// Returns whatever error `page` returns.
    pub(crate) fn load_touch_at(&mut self, time: Instant, page: impl LoadFactsPage) -> Result<(), Fault> {
        // For earlier touches the digests suffice.
        let last = Moment::last_of(time).sort_key();
        self.touches.load(last, last, page)
    }

    /// Loads the page for [`Facts::session_at`].
    ///
    /// # Errors
    /// Returns whatever error `page` returns.
    pub(crate) fn load_session_at(&mut self, time: Instant, mut page: impl LoadFactsPage) -> Result<(), Fault> {
        let after = Moment::last_of(time).sort_key().saturating_add(1);
        self.sessions.load_before(after, &mut page)?;
        self.sessions.before(after).map_or(Ok(()), |entry| self.sessions.load(entry, entry, page))
    }

    /// Loads the counts of `span`.
    ///
    /// # Errors
    /// Returns whatever error `page` returns.
    pub(crate) fn load_counts(&mut self, span: Span, page: impl LoadFactsPage) -> Result<(), Fault> {
        self.daily_counts.load(first_in_day(span.first), last_in_day(span.last), page)
    }

    /// Loads the pages for [`Facts::change_of_day`] and [`Facts::add_day`].
    ///
    /// # Errors
    /// Returns whatever error `page` returns.
    pub(crate) fn load_day(&mut self, day: Day, named: Option<GroupRef>, mut page: impl LoadFactsPage) -> Result<(), Fault> {
        self.days.load(day_sort_key(day), day_sort_key(day), &mut page)?;
        let Some(known) = self.days.get(day_sort_key(day)) else { return Ok(()) };
        for named in [named, known.named.as_deref().copied()] {
            let number = group_sort_key(day, named);
            self.named.load(number, number, &mut page)?;
        }
        Ok(())
    }

    /// Loads the pages for [`Facts::met_by`], [`Facts::change_of_sessions`] and
    /// [`Facts::replace_sessions`].
    ///
    /// # Errors
    /// Returns whatever error `page` returns.
    pub(crate) fn load_session(&mut self, session: &Session, mut page: impl LoadFactsPage) -> Result<(), Fault> {
        let last = Moment::last_of(Instant(session.last.0.saturating_add(SESSION_GAP_MS))).sort_key();
        // One preceding session may meet it, and the session before that one is read.
        let mut first = session.at.sort_key();
        for _ in 0..2 {
            self.sessions.load_before(first, &mut page)?;
            first = self.sessions.before(first).unwrap_or(first);
        }
        self.sessions.load(first, last, page)
    }

    /// Loads the pages for [`Facts::change_of_touch`], [`Facts::add_touch`] and
    /// [`Facts::remove_touch`].
    ///
    /// # Errors
    /// Returns whatever error `page` returns.
    pub(crate) fn load_touch(&mut self, at: Moment, mut page: impl LoadFactsPage) -> Result<(), Fault> {
        let last = Moment::last_of(at.time).sort_key();
        self.touches.load(at.sort_key(), at.sort_key(), &mut page)?;
        self.touches.load(last, last, page)
    }

    /// Loads the pages for [`Facts::add_order`] and [`Facts::remove_order`].
    ///
    /// # Errors
    /// Returns whatever error `page` returns.
    pub(crate) fn load_order(&mut self, at: Moment, page: impl LoadFactsPage) -> Result<(), Fault> {
        self.orders.load(at.sort_key(), at.sort_key(), page)
    }

    /// Loads the pages for [`Facts::add_count`].
    ///
    /// # Errors
    /// Returns whatever error `page` returns.
    pub(crate) fn load_count(&mut self, hit: &DailyCount, page: impl LoadFactsPage) -> Result<(), Fault> {
        self.daily_counts.load(hit.sort_key(), hit.sort_key(), page)
    }

    /// Loads the days that contributions to cohorts read within `change`, in addition to those of
    /// [`Facts::load_change`].
    ///
    /// # Errors
    /// Returns whatever error `page` returns.
    pub(crate) fn load_followed(&mut self, change: DirtyRange, page: impl LoadFactsPage) -> Result<(), Fault> {
        let Some(first) = self.first_day() else { return Ok(()) };
        let interval = match (change.first_week, change.first_month) {
            (_, true) => CohortInterval::Month,
            (true, false) => CohortInterval::Week,
            (false, false) => return Ok(()),
        };
        // A month's cohort is followed for longer than a week's. If the first day becomes an
        // earlier one, less is followed afterwards.
        self.load_days(Span { first, last: interval.last_followed(first) }, page)
    }

    /// Loads the pages that contributions within `change` read.
    ///
    /// # Errors
    /// Returns whatever error `page` returns.
    pub(crate) fn load_change(&mut self, change: DirtyRange, mut page: impl LoadFactsPage) -> Result<(), Fault> {
        if change.days.first <= change.days.last {
            self.load_days(change.days, &mut page)?;
            self.days.load_before(day_sort_key(change.days.first), &mut page)?;
        }
        if !change.sessions.is_empty() {
            self.load_sessions(change.sessions, &mut page)?;
        }
        for orders in [change.orders, change.orders_by_first].into_iter().filter(|orders| !orders.is_empty()) {
            self.orders.load(orders.from.sort_key(), orders.to.sort_key(), &mut page)?;
        }
        let inline = if self.orders.has_pages() { self.between_runs(change.inline) } else { Vec::new() };
        for gap in inline {
            self.orders.load(gap.from.sort_key(), gap.to.sort_key(), &mut page)?;
        }
        for times in [change.orders, change.inline, change.runs].into_iter().filter(|times| !times.is_empty()) {
            // Touches between the ends are part of the change; for earlier touches the digests
            // suffice.
            for at in [times.from, times.to] {
                let number = Moment::last_of(at.time).sort_key();
                self.touches.load(number, number, &mut page)?;
            }
        }
        Ok(())
    }
}
