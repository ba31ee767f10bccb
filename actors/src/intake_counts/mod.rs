//! Counts of events that were not recorded, or not as they were sent: duplicates, drops by reason,
//! invalid events and repairs, by project and day.
//!
//! No log has these events. They are counted in memory, and added to shared values [`FLUSH_EVERY`]
//! and when a partition is given up. A cluster has a value for each partition and day, so that the
//! counts follow the partition. One machine has a value for each day.
//!
//! Several processes may add to a day: a former owner adds what it counted last. Each addition is
//! made once, by compare-and-set. The owner's mark tells the next owner that counts of a process
//! that died may be missing: it then records a gap (ADR 34).

mod stored_day;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::time::Duration;

use headcount_common::{PARTITIONS, SharedValues, checked_json, partition_of};
use headcount_domain::time::MS_PER_DAY;
use headcount_domain::{Day, Instant, ProjectId, Timezone, Window};
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

pub use self::stored_day::DropCounts;
use self::stored_day::{Addition, CountsResult, DayCounts, StoredDay, VERSION, encode};
pub use crate::repair_counts::RepairCounts;

/// The kind of the values.
pub(crate) const INTAKE: &str = "intake";
/// How often counts are written.
pub(crate) const FLUSH_EVERY: Duration = Duration::from_secs(10);
/// The number of days kept: the longest range, and the days that timezones add.
const KEPT_DAYS: i64 = 368;
/// How old an owner's mark may become: a crash was between its time and the next takeover.
const MARK_EVERY_MS: i64 = 10 * 60 * 1000;
/// The maximum number of separate gaps. Beyond it, the oldest are joined.
const MAX_GAPS: usize = 256;
/// The key of the owner's mark.
pub(crate) const MARK: &str = "running";
/// The key of the list of gaps.
const GAPS: &str = "gaps";

/// A time without complete counts: from the first to the last instant.
type Gap = (Instant, Instant);

/// The counts of all partitions.
#[derive(Debug)]
pub(crate) struct IntakeCounts {
    values: Arc<dyn SharedValues>,
    /// Identifies this process among all that write the values.
    writer: u64,
    /// The counts that the values lack, by scope and day.
    pending: Mutex<BTreeMap<(usize, Day), DayCounts>>,
    /// Counts with values of their own: those of each partition, or of all together.
    scopes: Vec<Mutex<Scope>>,
}

/// The state of a scope. Only the holder of the lock accesses its values.
#[derive(Debug, Default)]
struct Scope {
    /// The epoch in which this process is the owner.
    epoch: Option<u64>,
    /// The time of the owner's mark; `None` if it is not written yet.
    marked: Option<Instant>,
    /// The number of additions so far.
    additions: u64,
    /// The additions that may have been made or not.
    undecided: BTreeMap<Day, Addition>,
}

/// The mark of an owner.
#[derive(Debug, Default, Serialize, Deserialize)]
struct OwnerMark {
    epoch: u64,
    writer: u64,
    /// When the owner was alive; `None` if it has written all counts.
    at: Option<Instant>,
}

impl IntakeCounts {
    /// Counts of partitions that move between machines, or of one machine that has them all.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub(crate) fn new(values: Arc<dyn SharedValues>, moves: bool) -> io::Result<Self> {
        let scopes = (0..if moves { PARTITIONS } else { 1 }).map(|_| Mutex::default()).collect();
        let writer = getrandom::u64().map_err(|error| io::Error::other(error.to_string()))?;
        Ok(Self { values, writer, pending: Mutex::default(), scopes })
    }

    fn scope_of(&self, partition: u16) -> usize {
        usize::from(partition) % self.scopes.len()
    }

    /// Becomes the owner of the counts of a partition. Records a gap if the former owner has not
    /// written all counts. Removes counts of days that are too old at `known`, the time as of which
    /// data may be removed.
    ///
    /// # Errors
    /// A value can't be read or written. The next [`Self::flush`] tries again.
    pub(crate) fn take(&self, partition: u16, epoch: u64, now: Instant, known: Instant) -> CountsResult<()> {
        let scope = self.scope_of(partition);
        let mut state = self.scopes[scope].lock();
        (state.epoch, state.marked) = (Some(epoch), None);
        self.mark(scope, &mut state, now, known)
    }

    /// Writes all counts of a partition, and notes that for the next owner.
    ///
    /// # Errors
    /// A value can't be read or written; then the next owner records a gap.
    pub(crate) fn give(&self, partition: u16) -> CountsResult<()> {
        let scope = self.scope_of(partition);
        let mut state = self.scopes[scope].lock();
        // The last addition of a former owner may have come first.
        self.write_days(scope, &mut state).or_else(|_| self.write_days(scope, &mut state))?;
        let Some(epoch) = state.epoch else { return Ok(()) };
        if let (Some(mark), revision) = self.read::<OwnerMark>(scope, MARK)?
            && (mark.epoch, mark.writer) == (epoch, self.writer)
        {
            self.write(scope, MARK, &OwnerMark { at: None, ..mark }, revision)?;
        }
        state.epoch = None;
        Ok(())
    }

    /// Counts events that arrived on `day`.
    pub(crate) fn add(&self, project: ProjectId, day: Day, counts: &DropCounts) {
        if !counts.is_empty() {
            let key = (self.scope_of(partition_of(project)), day);
            self.pending.lock().entry(key).or_default().entry(project).or_default().add(counts);
        }
    }

    /// Returns the counts of a project on the days of a window, and whether some may be missing.
    ///
    /// # Errors
    /// A value can't be read or written.
    pub(crate) fn of(&self, project: ProjectId, window: Window, timezone: Timezone) -> CountsResult<(DropCounts, bool)> {
        let scope = self.scope_of(partition_of(project));
        let state = self.scopes[scope].lock();
        let (mut sum, mut is_approximate) = (DropCounts::default(), state.epoch.is_some() && state.marked.is_none());
        let there = self.days(scope)?;
        for day in window.days() {
            let stored = if there.contains(&day) { self.read_day(scope, day)?.0 } else { StoredDay::default() };
            is_approximate |= stored.is_cut;
            let undecided = state.undecided.get(&day).filter(|addition| !stored.has(addition));
            let pending = self.pending.lock();
            let all = [Some(&stored.counts), undecided.map(|(_, counts)| counts), pending.get(&(scope, day))];
            all.into_iter().flatten().filter_map(|counts| counts.get(&project)).for_each(|counts| sum.add(counts));
        }
        let touches = |(first, last): &Gap| timezone.day_of(*first) <= window.end && timezone.day_of(*last) >= window.start;
        Ok((sum, is_approximate || self.read::<Vec<Gap>>(scope, GAPS)?.0.is_none_or(|gaps| gaps.iter().any(touches))))
    }

    /// Writes the counts that the values lack, and the marks of owned partitions.
    ///
    /// # Errors
    /// A value can't be read or written. Its counts stay in memory.
    pub(crate) fn flush(&self, now: Instant, known: Instant) -> CountsResult<()> {
        let flush = |scope: usize| {
            let mut state = self.scopes[scope].lock();
            let written = self.write_days(scope, &mut state);
            let is_due = state.marked.is_none_or(|marked| now.0.saturating_sub(marked.0) >= MARK_EVERY_MS);
            if is_due { written.and(self.mark(scope, &mut state, now, known)) } else { written }
        };
        (0..self.scopes.len()).map(flush).fold(Ok(()), CountsResult::and)
    }

    /// Gives all partitions up.
    ///
    /// # Errors
    /// Returns the same errors as [`Self::give`].
    pub(crate) fn close(&self) -> CountsResult<()> {
        (0..PARTITIONS).take(self.scopes.len()).map(|partition| self.give(partition)).fold(Ok(()), CountsResult::and)
    }

    /// Adds all stored counts to those of one machine.
    ///
    /// # Errors
    /// A value can't be read or written.
    #[cfg(feature = "cluster")]
    pub(crate) fn copy_to(&self, machine: &Self) -> CountsResult<()> {
        let mut days: BTreeMap<Day, Vec<usize>> = BTreeMap::new();
        for scope in 0..self.scopes.len() {
            self.days(scope)?.into_iter().for_each(|day| days.entry(day).or_default().push(scope));
            machine.note_gaps(0, &self.read::<Vec<Gap>>(scope, GAPS)?.0.unwrap_or_default())?;
        }
        for (day, scopes) in days {
            for scope in scopes {
                let stored = self.read_day(scope, day)?.0;
                stored.counts.iter().for_each(|(project, counts)| machine.add(*project, day, counts));
                if stored.is_cut {
                    machine.note_gaps(0, &[whole(day)])?;
                }
            }
            machine.write_days(0, &mut machine.scopes[0].lock())?;
        }
        Ok(())
    }

    /// Writes the mark of this owner, unless a later owner has.
    fn mark(&self, scope: usize, state: &mut Scope, now: Instant, known: Instant) -> CountsResult<()> {
        let Some(epoch) = state.epoch else { return Ok(()) };
        let (mark, revision) = self.read::<OwnerMark>(scope, MARK)?;
        // The time of a damaged mark is unknown, so all kept days may lack counts.
        let mark = mark.unwrap_or_else(|| OwnerMark { at: Some(now.plus_ms(-KEPT_DAYS * MS_PER_DAY)), ..OwnerMark::default() });
        if mark.epoch > epoch {
            state.epoch = None;
            return Ok(());
        }
        if let Some(began) = mark.at.filter(|_| mark.writer != self.writer) {
            self.note_gaps(scope, &[(began.min(now), began.max(now))])?;
        }
        self.write(scope, MARK, &OwnerMark { epoch, writer: self.writer, at: Some(now) }, revision)?;
        state.marked = Some(now);
        let mut old = self.days(scope)?.into_iter().filter(|day| i64::from(day.0) < known.utc_day() - KEPT_DAYS);
        old.try_for_each(|day| self.values.remove(&self.key(scope, &day.to_string())))
    }

    fn note_gaps(&self, scope: usize, more: &[Gap]) -> CountsResult<()> {
        let (gaps, revision) = self.read::<Vec<Gap>>(scope, GAPS)?;
        let mut gaps = gaps.unwrap_or_default();
        for gap in more {
            // An earlier attempt may have noted a part of it.
            match gaps.iter_mut().find(|(first, _)| *first == gap.0) {
                Some((_, last)) => *last = gap.1.max(*last),
                None => gaps.push(*gap),
            }
        }
        gaps.sort_unstable();
        while gaps.len() > MAX_GAPS {
            let (first, last) = gaps.remove(0);
            gaps[0] = (first, last.max(gaps[0].1));
        }
        self.write(scope, GAPS, &gaps, revision)
    }

    /// Returns the days that have a value.
    fn days(&self, scope: usize) -> CountsResult<BTreeSet<Day>> {
        Ok(self.values.keys(&self.key(scope, ""))?.iter().filter_map(|key| Day::parse(key)).collect())
    }

    /// Returns a day and its revision. Removes a damaged one.
    fn read_day(&self, scope: usize, day: Day) -> CountsResult<(StoredDay, u64)> {
        if let (Some(stored), revision) = self.read(scope, &day.to_string())? {
            return Ok((stored, revision));
        }
        self.note_gaps(scope, &[whole(day)])?;
        self.values.remove(&self.key(scope, &day.to_string()))?;
        Ok((StoredDay::default(), 0))
    }

    fn write_days(&self, scope: usize, state: &mut Scope) -> CountsResult<()> {
        let mut days: BTreeSet<Day> = state.undecided.keys().copied().collect();
        days.extend(self.pending.lock().keys().filter(|(of, _)| *of == scope).map(|(_, day)| *day));
        days.into_iter().map(|day| self.write_day(scope, state, day)).fold(Ok(()), CountsResult::and)
    }

    /// Adds to a day. After an error, the addition stays in memory as undecided.
    fn write_day(&self, scope: usize, state: &mut Scope, day: Day) -> CountsResult<()> {
        self.make(scope, state, day)?;
        let counts = self.pending.lock().remove(&(scope, day));
        if let Some(counts) = counts {
            state.additions += 1;
            state.undecided.insert(day, ((self.writer, state.additions), counts));
        }
        self.make(scope, state, day)
    }

    /// Makes the undecided addition to a day, unless it was made. Fails if another one comes first.
    fn make(&self, scope: usize, state: &mut Scope, day: Day) -> CountsResult<()> {
        let Some(addition) = state.undecided.get(&day) else { return Ok(()) };
        let (mut stored, revision) = self.read_day(scope, day)?;
        if !stored.has(addition) {
            let bytes = stored.add(addition, self.values.max_bytes())?;
            self.values.write(&self.key(scope, &day.to_string()), &bytes, revision)?;
        }
        state.undecided.remove(&day);
        Ok(())
    }

    fn key(&self, scope: usize, name: &str) -> String {
        if self.scopes.len() == 1 { name.to_owned() } else { format!("{scope:03}.{name}") }
    }

    fn write<T: Serialize>(&self, scope: usize, name: &str, content: &T, revision: u64) -> CountsResult<()> {
        self.values.write(&self.key(scope, name), &encode(content)?, revision).map(drop)
    }

    /// Returns a value and its revision; `None` for a damaged one.
    fn read<T: Default + DeserializeOwned>(&self, scope: usize, name: &str) -> CountsResult<(Option<T>, u64)> {
        let key = self.key(scope, name);
        let Some((bytes, revision)) = self.values.read(&key)? else { return Ok((Some(T::default()), 0)) };
        let content = checked_json::decode(VERSION, &bytes);
        if content.is_none() {
            tracing::error!(key, "damaged counts of dropped events: the counts of its days are lacking");
        }
        Ok((content, revision))
    }
}

/// Logs that counts are not written yet.
pub(crate) fn logged(written: CountsResult<()>) {
    if let Err(error) = written {
        tracing::warn!(%error, "the counts of dropped events could not be written; a running server tries again");
    }
}

/// A gap of a whole day.
fn whole(day: Day) -> Gap {
    let midnight = i64::from(day.0) * MS_PER_DAY;
    (Instant(midnight), Instant(midnight + MS_PER_DAY - 1))
}

#[cfg(test)]
mod tests;
