//! The goals of a pass: which of them an event fits, once its session is known.

use headcount_archive::ArchiveError;
use headcount_domain::intake::fields::{Decider, Entry};
use headcount_domain::{Event, PartSet, Predicate, Window};

use super::super::part_columns::PartColumns;
use super::super::sealed_group::{Rows, SealedGroup};

/// The bytes of the parts of a goal.
const PARTS: usize = size_of::<u64>();

/// The goals of a pass. An event carries the parts of each goal that depends on sessions, then a
/// bit for each goal that the event can fit.
pub(in super::super) struct GoalSet<'q> {
    goals: &'q [Predicate],
    /// For each goal the days of its events; empty: all events count.
    days: Vec<Window>,
    /// The numbers of the goals that depend on sessions.
    of_sessions: Vec<usize>,
}

impl<'q> GoalSet<'q> {
    pub(in super::super) fn new(goals: &'q [Predicate]) -> Self {
        Self::dated(goals, Vec::new())
    }

    /// Goals that only events on some days fit.
    pub(in super::super) fn dated(goals: &'q [Predicate], days: Vec<Window>) -> Self {
        Self { goals, days, of_sessions: (0..goals.len()).filter(|goal| goals[*goal].needs_session()).collect() }
    }

    /// The predicates of the goals that depend on sessions.
    fn of_sessions(&self) -> impl Iterator<Item = &'q Predicate> {
        self.of_sessions.iter().map(|goal| &self.goals[*goal])
    }

    /// The bytes of a bit for each goal.
    fn bit_bytes(&self) -> usize {
        self.goals.len().div_ceil(8)
    }

    /// Appends what an event carries: nothing if it fits no goal and decides nothing. `fits` has a
    /// bit for each goal that the event can fit; `parts` are those of the goals that depend on
    /// sessions.
    fn write(fits: &[u8], parts: impl Iterator<Item = PartSet>, to: &mut Vec<u8>) {
        let start = to.len();
        parts.for_each(|parts| to.extend_from_slice(&parts.0.to_le_bytes()));
        to.extend_from_slice(fits);
        if to[start..].iter().all(|byte| *byte == 0) {
            to.truncate(start);
        }
    }

    /// Appends what an event of the log carries, and returns whether it can fit a goal. `matches`:
    /// it is chosen if its session is.
    pub(super) fn write_event(&self, event: &Event, matches: bool, to: &mut Vec<u8>) -> bool {
        let mut bits = vec![0; self.bit_bytes()];
        let counts_on = |goal: usize| self.days.get(goal).is_none_or(|days| days.contains(event.day));
        let fits = |goal: &usize| matches && counts_on(*goal) && self.goals[*goal].matches_event(event);
        (0..self.goals.len()).filter(fits).for_each(|goal| set_bit(&mut bits, goal));
        Self::write(&bits, self.of_sessions().map(|goal| goal.parts_of(event)), to);
        bits.iter().any(|byte| *byte > 0)
    }

    /// Returns the parts of a session with this entry, for each goal that depends on sessions.
    pub(super) fn parts_in(&self, entry: Option<&Entry>) -> Vec<PartSet> {
        self.of_sessions().map(|goal| goal.parts_in(entry)).collect()
    }

    /// Takes the parts that an event decides.
    pub(super) fn decide(&self, decider: Decider, carried: &[u8], session: &mut [PartSet]) {
        for ((goal, session), parts) in self.of_sessions().zip(session).zip(self.parts(carried)) {
            *session = session.replaced(goal.mask(Some(decider)), parts);
        }
    }

    /// Finds the goals that a chosen event fits, in a session with these parts.
    pub(super) fn met(&self, carried: &[u8], session: &[PartSet], met: &mut Vec<usize>) {
        met.clear();
        let Some(bits) = carried.get(self.of_sessions.len() * PARTS..) else { return };
        let set = |byte: u8| (0..8).filter(move |bit| byte >> bit & 1 > 0);
        let fitting = bits.iter().enumerate().flat_map(|(at, byte)| set(*byte).map(move |bit| 8 * at + bit));
        met.extend(fitting.filter(|goal| self.holds_in(*goal, carried, session)));
    }

    /// Whether a goal holds for an event that can fit it.
    fn holds_in(&self, goal: usize, carried: &[u8], session: &[PartSet]) -> bool {
        let Ok(place) = self.of_sessions.binary_search(&goal) else { return true };
        let own = self.parts(carried).nth(place).unwrap_or_default();
        let in_session = session.get(place).copied().unwrap_or_default();
        self.goals[goal].holds(in_session.replaced(self.goals[goal].mask(None), own))
    }

    /// The parts of an event. An event that carries nothing has no parts.
    fn parts<'c>(&self, carried: &'c [u8]) -> impl Iterator<Item = PartSet> + use<'c> {
        let words = carried.chunks_exact(PARTS).take(self.of_sessions.len());
        let parts = words.map(|word| PartSet(word.try_into().map_or(0, u64::from_le_bytes)));
        parts.chain(std::iter::repeat(PartSet::default()))
    }
}

fn set_bit(bits: &mut [u8], number: usize) {
    bits[number / 8] |= 1 << (number % 8);
}

/// What the rows of a group are to goals.
pub(super) struct GoalColumns<'q> {
    /// For each row, a bit for each goal that it can fit.
    bits: Vec<u8>,
    /// The bytes of a row.
    width: usize,
    parts: Vec<PartColumns<'q>>,
}

impl<'q> GoalColumns<'q> {
    /// Reads the columns. `matching` has the rows that are chosen if their sessions are.
    pub(super) fn read(set: &GoalSet<'q>, group: &SealedGroup<'_>, matching: &[bool]) -> Result<Self, ArchiveError> {
        if set.goals.is_empty() {
            return Ok(Self { bits: Vec::new(), width: 0, parts: Vec::new() });
        }
        let width = set.bit_bytes();
        let mut bits = vec![0; width * group.rows()];
        let chosen: Vec<u32> = (0..).zip(matching).filter(|(_, matches)| **matches).map(|(row, _)| row).collect();
        for (number, goal) in set.goals.iter().enumerate() {
            let mut rows = Rows::Some(chosen.clone());
            set.days.get(number).map_or(Ok(()), |days| group.retain_days(&mut rows, *days))?;
            group.retain_matching(&mut rows, goal)?;
            rows.for_each(|row| set_bit(&mut bits[row * width..], number));
        }
        let parts = set.of_sessions().map(|goal| PartColumns::read(group, goal.parts()));
        Ok(Self { bits, width, parts: parts.collect::<Result<_, ArchiveError>>()? })
    }

    fn of_row(&self, row: usize) -> &[u8] {
        &self.bits[row * self.width..(row + 1) * self.width]
    }

    /// Whether a row can fit a goal.
    pub(super) fn can_fit_any(&self, row: usize) -> bool {
        self.of_row(row).iter().any(|byte| *byte > 0)
    }

    /// Appends what rows carry.
    pub(super) fn writer(&self) -> impl FnMut(usize, &mut Vec<u8>) {
        let mut parts: Vec<_> = self.parts.iter().map(PartColumns::of_rows).collect();
        move |row, to| GoalSet::write(self.of_row(row), parts.iter_mut().map(|parts| parts(row)), to)
    }
}
