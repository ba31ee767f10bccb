//! The sums and the active members of a group in a window.

use crate::cache::paged::{SortKey, day_sort_key, first_in_day, last_in_day, sort_key_in_day};
use crate::company::group::{Group, GroupSums, LoadGroupPage, MemberDay};
use crate::contribution::Sign;
use crate::fault::Fault;
use crate::ids::RecordKey;
use crate::time::{Day, Window};

impl Group {
    /// Returns the sums of `window`.
    ///
    /// # Errors
    /// A page could not be loaded.
    pub fn sums(&mut self, window: Window, load: impl LoadGroupPage) -> Result<GroupSums, Fault> {
        let (first, last) = (day_sort_key(window.start), day_sort_key(window.end));
        self.sums.load(first, last, load)?;
        let mut total = GroupSums::default();
        self.sums.range(first, last).for_each(|(_, sums)| total.add(sums, Sign::Plus));
        Ok(total)
    }

    /// Whether no member was active after `window`.
    fn is_open(&self, window: Window) -> bool {
        self.by_last.last().is_none_or(|(day, _)| *day <= window.end)
    }

    /// Returns the number of members active in `window`, if it is known without listing them.
    pub(crate) fn count_members(&self, window: Window) -> Option<u64> {
        let from = self.by_last.partition_point(|(day, _)| *day < window.start);
        self.is_open(window).then(|| self.by_last[from..].iter().map(|(_, members)| u64::from(*members)).sum())
    }

    /// Adds the members active in `window` to `members`, each once.
    ///
    /// # Errors
    /// A page could not be loaded.
    pub fn members(&mut self, window: Window, members: &mut Vec<RecordKey>, load: impl LoadGroupPage) -> Result<(), Fault> {
        if !self.is_open(window) {
            let from = members.len();
            members.extend(self.visits(window, load)?.map(|(member, _)| member));
            let mut own = members.split_off(from);
            own.sort_unstable();
            own.dedup();
            members.append(&mut own);
            return Ok(());
        }
        self.roster.load(SortKey::MIN, SortKey::MAX, load)?;
        members.extend(self.roster.iter().filter(|known| known.last >= window.start).map(|known| known.member));
        Ok(())
    }

    /// Returns every active day of every member in `window`.
    ///
    /// # Errors
    /// A page could not be loaded.
    pub fn visits(
        &mut self,
        window: Window,
        load: impl LoadGroupPage,
    ) -> Result<impl Iterator<Item = (RecordKey, MemberDay)>, Fault> {
        let (first, last) = (first_in_day(window.start), last_in_day(window.end));
        self.visits.load(first, last, load)?;
        Ok(self.visits.range(first, last).map(|visit| (visit.member, visit.did)))
    }

    /// Passes every active day in `window` of the members with keys from `first` to `last` to
    /// `visit`.
    ///
    /// # Errors
    /// A page could not be loaded.
    pub(crate) fn visits_of(
        &mut self,
        window: Window,
        (first, last): (RecordKey, RecordKey),
        mut load: impl LoadGroupPage,
        mut visit: impl FnMut(RecordKey, MemberDay),
    ) -> Result<(), Fault> {
        let mut day = Some(window.start);
        while let Some(today) = day.filter(|day| *day <= window.end) {
            let (from, to) = (sort_key_in_day(today, first), sort_key_in_day(today, last));
            self.visits.load(from, to, &mut load)?;
            self.visits.range(from, to).for_each(|known| visit(known.member, known.did));
            // Skip days without activity.
            let end = last_in_day(today);
            self.visits.load(end, end, &mut load)?;
            day = self.visits.after(end).and_then(|next| i32::try_from(next >> 96).ok()).map(Day);
        }
        Ok(())
    }

    /// Returns the number of member days, which is the cost of iterating over them.
    pub(crate) fn count_visits(&self) -> usize {
        self.visits.len()
    }
}
