//! The goals of a pass: which of them an event fits, once its session is known.

use headcount_archive::ArchiveError;
use headcount_domain::intake::fields::{Decider, Entry};
use headcount_domain::{Day, Event, PartSet, Predicate, Window};

use super::super::part_columns::PartColumns;
use super::super::sealed_group::SealedGroup;

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

    fn counts_on(&self, goal: usize, day: Day) -> bool {
        self.days.get(goal).is_none_or(|days| days.contains(day))
    }

    /// The predicates of the goals that depend on sessions.
    fn of_sessions(&self) -> impl Iterator<Item = &'q Predicate> {
        self.of_sessions.iter().map(|goal| &self.goals[*goal])
    }

    /// Appends what an event carries: nothing if it fits no goal and decides nothing. `may_fit`
    /// tells which goals the event can fit; `parts` are those of the goals that depend on sessions.
    fn write(&self, may_fit: impl Fn(usize) -> bool, parts: impl Iterator<Item = PartSet>, to: &mut Vec<u8>) {
        let start = to.len();
        parts.for_each(|parts| to.extend_from_slice(&parts.0.to_le_bytes()));
        let bits = to.len();
        to.resize(bits + self.goals.len().div_ceil(8), 0);
        (0..self.goals.len()).filter(|goal| may_fit(*goal)).for_each(|goal| to[bits + goal / 8] |= 1 << (goal % 8));
        if to[start..].iter().all(|byte| *byte == 0) {
            to.truncate(start);
        }
    }

    /// Appends what an event of the log carries. `matches`: it is chosen if its session is.
    pub(super) fn write_event(&self, event: &Event, matches: bool, to: &mut Vec<u8>) {
        self.write(
            |goal| matches && self.counts_on(goal, event.day) && self.goals[goal].matches_event(event),
            self.of_sessions().map(|goal| goal.parts_of(event)),
            to,
        );
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
        let fits = |goal: usize| bits.get(goal / 8).is_some_and(|byte| byte >> (goal % 8) & 1 > 0);
        let mut of_sessions = self.of_sessions.iter().zip(session).zip(self.parts(carried)).peekable();
        for goal in 0..self.goals.len() {
            let in_session = of_sessions.next_if(|((of, _), _)| **of == goal);
            let holds = in_session.is_none_or(|((_, session), parts)| {
                let own = self.goals[goal].mask(None);
                self.goals[goal].holds(session.replaced(own, parts))
            });
            if holds && fits(goal) {
                met.push(goal);
            }
        }
    }

    /// The parts of an event. One that carries nothing has none.
    fn parts<'c>(&self, carried: &'c [u8]) -> impl Iterator<Item = PartSet> + use<'c> {
        let words = carried.chunks_exact(PARTS).take(self.of_sessions.len());
        let parts = words.map(|word| PartSet(word.try_into().map_or(0, u64::from_le_bytes)));
        parts.chain(std::iter::repeat(PartSet::default()))
    }
}

/// What the rows of a group are to goals.
pub(super) struct GoalColumns<'q> {
    /// For each goal, the rows that can fit.
    rows: Vec<Vec<bool>>,
    parts: Vec<PartColumns<'q>>,
}

impl<'q> GoalColumns<'q> {
    /// Reads the columns. `matching` has the rows that are chosen if their sessions are.
    pub(super) fn read(set: &GoalSet<'q>, group: &SealedGroup<'_>, matching: &[bool]) -> Result<Self, ArchiveError> {
        let fitting = |(number, goal): (usize, &Predicate)| {
            let (mut rows, mut fits) = (group.counted()?, vec![false; group.rows()]);
            rows.retain(|row| matching[row]);
            set.days.get(number).map_or(Ok(()), |days| group.retain_days(&mut rows, *days))?;
            group.retain_matching(&mut rows, goal)?;
            rows.for_each(|row| fits[row] = true);
            Ok(fits)
        };
        let parts = set.of_sessions().map(|goal| PartColumns::read(group, goal.parts()));
        Ok(Self {
            rows: set.goals.iter().enumerate().map(fitting).collect::<Result<_, ArchiveError>>()?,
            parts: parts.collect::<Result<_, ArchiveError>>()?,
        })
    }

    /// Appends what rows carry.
    pub(super) fn writer<'c>(&'c self, set: &'c GoalSet<'q>) -> impl FnMut(usize, &mut Vec<u8>) + use<'c, 'q> {
        let mut parts: Vec<_> = self.parts.iter().map(PartColumns::of_rows).collect();
        move |row, to| set.write(|goal| self.rows[goal][row], parts.iter_mut().map(|parts| parts(row)), to)
    }
}
