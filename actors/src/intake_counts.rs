//! Counts of events that were not recorded, or not as they were sent: duplicates, drops by reason,
//! invalid events and repairs, by project and day.
//!
//! No log has these events. They are counted in memory, and added to one file for each day,
//! [`FLUSH_EVERY`] and at the end. After a crash the last counts before it may be missing. A mark
//! in the directory lets the next start know.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use headcount_common::checked_json;
use headcount_domain::intake::admission::DropReason;
use headcount_domain::time::MS_PER_DAY;
use headcount_domain::{Day, Instant, ProjectId, Timezone, Window};
use headcount_storage::files::{PRIVATE_FILE, create_private_dir, list, read_if_there, remove_file, rename, write_atomically};
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

pub use crate::repair_counts::RepairCounts;

/// The directory of the counts in a data directory.
pub(crate) const INTAKE_DIR: &str = "control/intake";
/// How often counts are written.
pub(crate) const FLUSH_EVERY: Duration = Duration::from_secs(10);
/// The number of days kept: the longest range, and the days that timezones add.
const KEPT_DAYS: i64 = 368;
/// How old the mark of a running process may become: a crash was between its time and the next
/// start.
const MARK_EVERY_MS: i64 = 10 * 60 * 1000;
/// The maximum number of separate gaps. Beyond it, the oldest are joined.
const MAX_GAPS: usize = 256;
/// The mark of a running process.
const MARK: &str = "running.json";
/// The list of gaps.
const GAPS: &str = "gaps.json";

/// Events that were not recorded, or not as they were sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DropCounts {
    /// The number of events whose `external_id` was known.
    pub duplicates: u64,
    /// The number of dropped events of bots.
    pub bot: u64,
    /// The number of events dropped for a privacy signal.
    pub consent: u64,
    /// The number of dropped events of erased identities.
    pub opted_out: u64,
    /// The number of dropped events whose day is below the floor.
    pub retention: u64,
    /// The number of refused invalid events.
    pub invalid: u64,
    /// The repairs of recorded events.
    #[serde(skip_serializing_if = "RepairCounts::is_empty")]
    pub repaired: RepairCounts,
}

impl DropCounts {
    /// Counts a dropped event.
    pub fn count(&mut self, reason: DropReason) {
        *match reason {
            DropReason::Bot => &mut self.bot,
            DropReason::Consent => &mut self.consent,
            DropReason::OptedOut => &mut self.opted_out,
            DropReason::Retention => &mut self.retention,
        } += 1;
    }

    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    fn add(&mut self, more: &Self) {
        self.duplicates += more.duplicates;
        self.bot += more.bot;
        self.consent += more.consent;
        self.opted_out += more.opted_out;
        self.retention += more.retention;
        self.invalid += more.invalid;
        self.repaired.add(&more.repaired);
    }
}

/// The counts of one day, by project.
type DayCounts = BTreeMap<ProjectId, DropCounts>;

/// A time without complete counts: from the first to the last instant.
type Gap = (Instant, Instant);

/// The version of the files.
const VERSION: u8 = 1;

/// The counts of a data directory.
#[derive(Debug)]
pub(crate) struct IntakeCounts {
    dir: PathBuf,
    /// The counts that the files lack.
    pending: Mutex<BTreeMap<Day, DayCounts>>,
    files: Mutex<Files>,
}

/// The files besides those of days. Only the holder of the lock accesses them.
#[derive(Debug)]
struct Files {
    gaps: Vec<Gap>,
    /// The time of the mark; `None` if there is none.
    marked: Option<Instant>,
    /// The sums of days that could not be written. Their files may have them or not.
    unwritten: BTreeMap<Day, DayCounts>,
}

impl IntakeCounts {
    /// Opens the counts in `dir`, or creates it. Records a gap if the last process did not end
    /// properly. Removes counts of days that are too old at `known`, the time as of which data may
    /// be removed.
    ///
    /// # Errors
    /// A file can't be read or written.
    pub(crate) fn open(dir: &Path, now: Instant, known: Instant) -> io::Result<Self> {
        create_private_dir(dir)?;
        let counts = Self {
            dir: dir.to_owned(),
            pending: Mutex::default(),
            files: Mutex::new(Files { gaps: Vec::new(), marked: None, unwritten: BTreeMap::new() }),
        };
        {
            let mut files = counts.files.lock();
            files.gaps = counts.read::<Vec<Gap>>(GAPS, &mut Vec::new())?.unwrap_or_default();
            let mut damaged = Vec::new();
            let mark = counts.read::<Instant>(MARK, &mut damaged)?;
            // The time of a damaged mark is unknown, so all kept days may lack counts.
            let began = mark.or((!damaged.is_empty()).then_some(Instant(now.0.saturating_sub(KEPT_DAYS * MS_PER_DAY))));
            if let Some(began) = began {
                counts.note_gap(&mut files, (began.min(now), now.max(began)))?;
            }
            counts.remove_old(known)?;
            counts.mark(&mut files, now)?;
        }
        Ok(counts)
    }

    /// Counts events that arrived on `day`.
    pub(crate) fn add(&self, project: ProjectId, day: Day, counts: &DropCounts) {
        if !counts.is_empty() {
            self.pending.lock().entry(day).or_default().entry(project).or_default().add(counts);
        }
    }

    /// Returns the counts of a project on the days of a window, and whether some may be missing.
    ///
    /// # Errors
    /// A file can't be read.
    pub(crate) fn of(&self, project: ProjectId, window: Window, timezone: Timezone) -> io::Result<(DropCounts, bool)> {
        let mut files = self.files.lock();
        let mut sum = DropCounts::default();
        for day in window.days() {
            if let Some(counts) = self.read_day(&mut files, day)?.get(&project) {
                sum.add(counts);
            }
            if let Some(counts) = self.pending.lock().get(&day).and_then(|day| day.get(&project)) {
                sum.add(counts);
            }
        }
        let touches = |(first, last): &Gap| timezone.day_of(*first) <= window.end && timezone.day_of(*last) >= window.start;
        Ok((sum, files.gaps.iter().any(touches)))
    }

    /// Writes the counts that the files lack.
    ///
    /// # Errors
    /// A file can't be read or written. Its counts stay in memory.
    pub(crate) fn flush(&self, now: Instant) -> io::Result<()> {
        let mut files = self.files.lock();
        let mut first_error = Ok(());
        let mut days = std::mem::take(&mut *self.pending.lock());
        for day in files.unwritten.keys() {
            days.entry(*day).or_default();
        }
        for (day, counts) in days {
            first_error = first_error.and(self.write_day(&mut files, day, counts));
        }
        if files.marked.is_none_or(|marked| now.0.saturating_sub(marked.0) >= MARK_EVERY_MS) {
            first_error = first_error.and(self.mark(&mut files, now));
        }
        first_error
    }

    /// Writes the counts that the files lack, and removes the mark.
    ///
    /// # Errors
    /// Returns the same errors as [`Self::flush`]; then the next start records a gap.
    pub(crate) fn close(&self, now: Instant) -> io::Result<()> {
        self.flush(now)?;
        let mut files = self.files.lock();
        if files.marked.is_some() {
            remove_file(&self.dir.join(MARK))?;
            files.marked = None;
        }
        Ok(())
    }

    /// Returns the names of the files in `dir` that a backup needs. Each file is only ever replaced
    /// as a whole.
    pub(crate) fn names(dir: &Path) -> io::Result<Vec<String>> {
        let names = match list(dir) {
            Ok(paths) => paths.into_iter().filter_map(|path| path.file_name()?.to_str().map(str::to_owned)).collect(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error),
        };
        Ok(names.into_iter().filter(|name: &String| name == GAPS || day_of(name).is_some()).collect())
    }

    fn mark(&self, files: &mut Files, now: Instant) -> io::Result<()> {
        self.write(MARK, &now)?;
        files.marked = Some(now);
        Ok(())
    }

    fn note_gap(&self, files: &mut Files, gap: Gap) -> io::Result<()> {
        files.gaps.push(gap);
        while files.gaps.len() > MAX_GAPS {
            let (first, _) = files.gaps.remove(0);
            files.gaps[0].0 = files.gaps[0].0.min(first);
        }
        self.write(GAPS, &files.gaps)
    }

    fn remove_old(&self, now: Instant) -> io::Result<()> {
        for path in list(&self.dir)? {
            let day = path.file_name().and_then(|name| day_of(name.to_str()?));
            if day.is_some_and(|day| i64::from(day.0) < now.utc_day() - KEPT_DAYS) {
                remove_file(&path)?;
            }
        }
        Ok(())
    }

    fn read_day(&self, files: &mut Files, day: Day) -> io::Result<DayCounts> {
        if let Some(sums) = files.unwritten.get(&day) {
            return Ok(sums.clone());
        }
        let mut damaged = Vec::new();
        let counts = self.read(&format!("{day}.json"), &mut damaged)?.unwrap_or_default();
        if !damaged.is_empty() {
            // Noon belongs to the same day in any timezone.
            let noon = i64::from(day.0) * MS_PER_DAY;
            self.note_gap(files, (Instant(noon), Instant(noon + MS_PER_DAY - 1)))?;
        }
        Ok(counts)
    }

    /// Adds to a day. After an error the sums stay in memory, or `counts` are pending again.
    fn write_day(&self, files: &mut Files, day: Day, counts: DayCounts) -> io::Result<()> {
        let mut sums = match self.read_day(files, day) {
            Ok(sums) => sums,
            Err(error) => {
                let mut pending = self.pending.lock();
                let back = pending.entry(day).or_default();
                counts.iter().for_each(|(project, counts)| back.entry(*project).or_default().add(counts));
                return Err(error);
            }
        };
        counts.iter().for_each(|(project, counts)| sums.entry(*project).or_default().add(counts));
        let written = self.write(&format!("{day}.json"), &sums);
        match written {
            Ok(()) => drop(files.unwritten.remove(&day)),
            Err(_) => drop(files.unwritten.insert(day, sums)),
        }
        written
    }

    fn write<T: Serialize>(&self, name: &str, content: &T) -> io::Result<()> {
        write_atomically(&self.dir.join(name), &checked_json::encode(VERSION, content)?, PRIVATE_FILE)
    }

    /// Reads a file; `None` if it doesn't exist. Sets a damaged file aside, and adds its name to
    /// `damaged`.
    fn read<T: DeserializeOwned>(&self, name: &str, damaged: &mut Vec<String>) -> io::Result<Option<T>> {
        let path = self.dir.join(name);
        let Some(bytes) = read_if_there(&path)? else { return Ok(None) };
        if let Some(content) = checked_json::decode(VERSION, &bytes) {
            return Ok(Some(content));
        }
        tracing::error!(path = %path.display(), "damaged counts of dropped events: set aside; the counts of its days are lacking");
        rename(&path, &path.with_extension("json.damaged"))?;
        damaged.push(name.to_owned());
        Ok(None)
    }
}

/// The day of a file with this name.
fn day_of(name: &str) -> Option<Day> {
    Day::parse(name.strip_suffix(".json")?)
}

#[cfg(test)]
mod tests {
    use headcount_storage::files::switch::{Plan, Switch};

    use super::*;

    const NOW: Instant = Instant(1_790_000_000_000);
    const PROJECT: ProjectId = ProjectId(7);

    fn today() -> Day {
        Timezone::UTC.day_of(NOW)
    }

    fn bots(bot: u64) -> DropCounts {
        DropCounts { bot, ..DropCounts::default() }
    }

    fn of(counts: &IntakeCounts, days: u32) -> (u64, bool) {
        let (sum, approximate) = counts.of(PROJECT, Window::last_days(days, Timezone::UTC, NOW), Timezone::UTC).unwrap();
        (sum.bot, approximate)
    }

    #[test]
    fn counts_stay_after_an_end_in_order() {
        let dir = tempfile::tempdir().unwrap();
        let counts = IntakeCounts::open(dir.path(), NOW, NOW).unwrap();
        counts.add(PROJECT, today(), &bots(3));
        counts.add(PROJECT, today().plus(-1), &bots(4));
        counts.add(ProjectId(8), today(), &bots(100));
        assert_eq!((of(&counts, 1), of(&counts, 2)), ((3, false), (7, false)));
        counts.flush(NOW).unwrap();
        counts.add(PROJECT, today(), &bots(1));
        assert_eq!(of(&counts, 2), (8, false));
        counts.close(NOW).unwrap();
        assert_eq!(of(&IntakeCounts::open(dir.path(), NOW, NOW).unwrap(), 2), (8, false));
    }

    #[test]
    fn a_crash_is_reported_for_its_days_only() {
        let dir = tempfile::tempdir().unwrap();
        let earlier = NOW.plus_ms(-10 * MS_PER_DAY);
        let counts = IntakeCounts::open(dir.path(), earlier, earlier).unwrap();
        counts.add(PROJECT, Timezone::UTC.day_of(earlier), &bots(3));
        counts.flush(earlier).unwrap();
        drop(counts);
        let counts = IntakeCounts::open(dir.path(), earlier.plus_ms(1_000), earlier).unwrap();
        assert_eq!((of(&counts, 11), of(&counts, 10)), ((3, true), (0, false)));
        counts.close(earlier).unwrap();
        let counts = IntakeCounts::open(dir.path(), NOW, NOW).unwrap();
        assert_eq!((of(&counts, 11), of(&counts, 10)), ((3, true), (0, false)));
    }

    #[test]
    fn a_damaged_file_is_set_aside_and_reported() {
        let dir = tempfile::tempdir().unwrap();
        let counts = IntakeCounts::open(dir.path(), NOW, NOW).unwrap();
        counts.add(PROJECT, today(), &bots(3));
        counts.flush(NOW).unwrap();
        let path = dir.path().join(format!("{}.json", today()));
        let text = std::fs::read_to_string(&path).unwrap().replace("\"bot\":3", "\"bot\":4");
        std::fs::write(&path, text).unwrap();
        assert_eq!((of(&counts, 1), path.exists()), ((0, true), false));
        assert!(path.with_extension("json.damaged").exists());
        counts.add(PROJECT, today(), &bots(2));
        counts.flush(NOW).unwrap();
        assert_eq!(of(&counts, 1), (2, true));
    }

    #[test]
    fn gaps_and_days_are_bounded() {
        let dir = tempfile::tempdir().unwrap();
        for second in 0..300 {
            drop(IntakeCounts::open(dir.path(), NOW.plus_ms(second * 1_000), NOW).unwrap());
        }
        let counts = IntakeCounts::open(dir.path(), NOW, NOW).unwrap();
        assert_eq!(counts.files.lock().gaps.len(), MAX_GAPS);
        assert!(of(&counts, 1).1);
        counts.add(PROJECT, today(), &bots(1));
        counts.close(NOW).unwrap();
        let later = NOW.plus_ms(400 * MS_PER_DAY);
        // A clock that is not believed removes nothing.
        drop(IntakeCounts::open(dir.path(), later, NOW).unwrap());
        assert_eq!(IntakeCounts::names(dir.path()).unwrap().len(), 2);
        drop(IntakeCounts::open(dir.path(), later, later).unwrap());
        assert_eq!(IntakeCounts::names(dir.path()).unwrap(), [GAPS]);
    }

    /// Each operation fails once: no count is lost or counted twice, and a proper end is no gap.
    #[test]
    fn every_operation_may_fail() {
        let dir = tempfile::tempdir().unwrap();
        IntakeCounts::open(dir.path(), NOW, NOW).unwrap().close(NOW).unwrap();
        let mut failed = 0;
        for nth in 1..200 {
            let switch = Switch::arm(dir.path(), Plan { at: nth, ..Plan::default() });
            let counts = loop {
                if let Ok(counts) = IntakeCounts::open(dir.path(), NOW, NOW) {
                    break counts;
                }
            };
            counts.add(PROJECT, today(), &bots(1));
            while counts.flush(NOW).is_err() {}
            let window = Window::last_days(1, Timezone::UTC, NOW);
            let read = std::iter::repeat_with(|| counts.of(PROJECT, window, Timezone::UTC)).find_map(Result::ok);
            assert_eq!(read.unwrap().0.bot, nth);
            while counts.close(NOW).is_err() {}
            let done = switch.failed().is_empty();
            drop(switch);
            let counts = IntakeCounts::open(dir.path(), NOW, NOW).unwrap();
            failed += u64::from(!done);
            assert_eq!(of(&counts, 1).0, nth, "after failure {nth}");
            counts.close(NOW).unwrap();
            if done {
                break;
            }
        }
        assert!(failed > 5, "{failed}");
    }
}
