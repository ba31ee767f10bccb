//! An event name, and clauses that must all hold.
//!
//! A clause may have conditions on the event and on its session, and a session's properties are
//! decided by different events of it. So a predicate is divided into [`PredicatePart`]s, each of
//! which one event decides, and a scan carries a bit for each part from the event that decides it.

use std::ops::{BitAnd, BitOr};

use super::people::{MAX_PEOPLE, Within};
use super::{Filter, MAX_FILTERS};
use crate::intake::event::Event;
use crate::intake::fields::{Decider, Entry};
use crate::intake::submission::{Invalid, MAX_NAME_CHARS};
use crate::time::Window;
use crate::versions::Depends;

/// The maximum number of filters of a predicate: of a question, of its segment and of its goal.
pub const MAX_CONDITIONS: usize = 3 * MAX_FILTERS;
/// The maximum number of lists of alternatives.
pub const MAX_LISTS: usize = 10;

/// A condition of a predicate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Clause {
    /// A filter.
    One(Filter),
    /// Alternatives: all filters of at least one of these lists hold.
    Any(Vec<Vec<Filter>>),
}

impl Clause {
    /// Creates a clause of alternatives.
    ///
    /// # Errors
    /// [`Invalid`] if there is no list or more than 10, or if a list is empty.
    pub fn any(lists: Vec<Vec<Filter>>) -> Result<Self, Invalid> {
        if !(1..=MAX_LISTS).contains(&lists.len()) || lists.iter().any(Vec::is_empty) {
            return Err(Invalid::parameter("any", format!("`any` must be 1 to {MAX_LISTS} lists of at least one filter")));
        }
        Ok(Self::Any(lists))
    }

    /// The filters.
    pub fn filters(&self) -> impl Iterator<Item = &Filter> {
        let (one, lists) = match self {
            Self::One(filter) => (Some(filter), &[][..]),
            Self::Any(lists) => (None, &lists[..]),
        };
        one.into_iter().chain(lists.iter().flatten())
    }
}

impl From<Filter> for Clause {
    fn from(filter: Filter) -> Self {
        Self::One(filter)
    }
}

/// Filters that must all hold, of properties that the same event of a session decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PredicatePart {
    /// The event of the session that decides the properties; `None`: each event has its own.
    pub decider: Option<Decider>,
    /// The filters.
    pub filters: Vec<Filter>,
}

/// Some parts of a predicate: a bit for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PartSet(pub u64);

impl PartSet {
    /// All parts.
    pub const ALL: PartSet = PartSet(u64::MAX);

    fn bit(number: usize) -> PartSet {
        PartSet(1 << number)
    }

    /// Returns the set with the parts of `mask` as they are in `other`.
    #[must_use]
    pub fn replaced(self, mask: PartSet, other: PartSet) -> PartSet {
        PartSet(self.0 & !mask.0) | (other & mask)
    }

    fn has_all(self, wanted: PartSet) -> bool {
        self & wanted == wanted
    }
}

impl BitOr for PartSet {
    type Output = PartSet;

    fn bitor(self, other: PartSet) -> PartSet {
        PartSet(self.0 | other.0)
    }
}

impl BitAnd for PartSet {
    type Output = PartSet;

    fn bitand(self, other: PartSet) -> PartSet {
        PartSet(self.0 & other.0)
    }
}

/// A predicate on events: the event name and all clauses must hold. The default holds for every
/// event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Predicate {
    event_name: Option<Box<str>>,
    parts: Vec<PredicatePart>,
    /// The parts that must hold.
    required: PartSet,
    /// The parts of alternatives: all of at least one of each.
    alternatives: Vec<Vec<PartSet>>,
    /// The conditions on the identity of the event.
    people: Vec<PeopleCondition>,
}

impl Predicate {
    /// Creates a predicate for events of this name, if given, for which all clauses hold.
    ///
    /// # Errors
    /// [`Invalid`] if `event_name` can't be the name of an event, or if there are more than
    /// [`MAX_CONDITIONS`] filters.
    pub fn new(event_name: Option<&str>, clauses: Vec<Clause>) -> Result<Predicate, Invalid> {
        let chars = event_name.map(|name| name.chars().count());
        if chars.is_some_and(|chars| chars == 0 || chars > MAX_NAME_CHARS) {
            return Err(Invalid::parameter("event_name", format!("`event_name` must have 1 to {MAX_NAME_CHARS} characters")));
        }
        // A part has at least one filter, so this also bounds the bits.
        let filters: usize = clauses.iter().map(|clause| clause.filters().count()).sum();
        if filters > MAX_CONDITIONS {
            let message = format!("there are {filters} `filters`; at most {MAX_CONDITIONS} are allowed");
            return Err(Invalid::parameter("filters", message));
        }
        let mut predicate = Predicate { event_name: event_name.map(Into::into), ..Predicate::default() };
        let mut required = Vec::new();
        for clause in clauses {
            match clause {
                Clause::One(filter) => required.push(filter),
                Clause::Any(lists) => {
                    let alternatives = lists.into_iter().map(|filters| predicate.add(filters)).collect();
                    predicate.alternatives.push(alternatives);
                }
            }
        }
        predicate.required = predicate.add(required);
        Ok(predicate)
    }

    /// Adds conditions on the identity of the event, all of which must hold. Events of nobody match
    /// no such predicate.
    ///
    /// # Errors
    /// [`Invalid`] if there are more than [`MAX_PEOPLE`] for a question and as many for its
    /// segment.
    pub fn with_people(mut self, conditions: Vec<PeopleCondition>) -> Result<Predicate, Invalid> {
        self.people.extend(conditions);
        if self.people.len() > 2 * MAX_PEOPLE {
            return Err(Invalid::parameter("people", format!("at most {MAX_PEOPLE} conditions on people are allowed")));
        }
        Ok(self)
    }

    /// Adds the parts of filters that must hold together.
    fn add(&mut self, filters: Vec<Filter>) -> PartSet {
        let first = self.parts.len();
        for filter in filters {
            let decider = filter.field().decider();
            match self.parts[first..].iter_mut().find(|part| part.decider == decider) {
                Some(part) => part.filters.push(filter),
                None => self.parts.push(PredicatePart { decider, filters: vec![filter] }),
            }
        }
        (first..self.parts.len()).fold(PartSet::default(), |parts, number| parts | PartSet::bit(number))
    }

    /// Whether evaluating the predicate requires the sessions or the identities of the events.
    pub fn needs_session(&self) -> bool {
        !self.people.is_empty() || self.reads_sessions()
    }

    /// Whether properties of sessions are among the filters.
    pub fn reads_sessions(&self) -> bool {
        self.parts.iter().any(|part| part.decider.is_some())
    }

    /// Returns the dependencies of an answer about the matching events of a window.
    pub fn depends(&self, window: Window) -> Depends {
        self.depends_at_least(if self.needs_session() { Depends::on_sessions(window) } else { Depends::on_events(window) })
    }

    /// Returns the dependencies of an answer that has these by itself.
    pub fn depends_at_least(&self, depends: Depends) -> Depends {
        if self.people.is_empty() { depends } else { Depends::Everything }
    }

    /// The conditions on the identity of the event.
    pub fn people(&self) -> &[PeopleCondition] {
        &self.people
    }

    /// The name that events must have; `None` for any.
    pub fn event_name(&self) -> Option<&str> {
        self.event_name.as_deref()
    }

    /// The filters on the event itself that must hold.
    pub fn required_of_event(&self) -> impl Iterator<Item = &Filter> {
        let required = self.parts().filter(|(bit, part)| part.decider.is_none() && self.required.has_all(*bit));
        required.flat_map(|(_, part)| &part.filters)
    }

    /// Whether there are alternatives.
    pub fn has_alternatives(&self) -> bool {
        !self.alternatives.is_empty()
    }

    /// The parts, each with its bit.
    pub fn parts(&self) -> impl Iterator<Item = (PartSet, &PredicatePart)> {
        self.parts.iter().enumerate().map(|(number, part)| (PartSet::bit(number), part))
    }

    /// The parts that an event of this kind decides.
    pub fn mask(&self, decider: Option<Decider>) -> PartSet {
        self.parts_if(|part| part.decider == decider)
    }

    /// The approximate memory of its operands, in bytes.
    pub fn weight(&self) -> usize {
        let filters = self.parts.iter().flat_map(|part| &part.filters);
        let filters: usize = filters.map(|filter| size_of::<Filter>() + filter.test.weight()).sum();
        let people = self.people.iter().map(|condition| size_of::<PeopleCondition>() + condition.predicate.weight());
        filters + people.sum::<usize>()
    }

    /// Whether the predicate holds for `event`, whose session has this `entry`, and whose identity
    /// fulfils the conditions on people.
    pub fn matches(&self, event: &Event, entry: Option<&Entry>) -> bool {
        self.is_named(event) && self.holds(self.parts_by_itself(event) | self.parts_in(entry))
    }

    /// Whether the predicate can hold for an event, whatever its session is.
    pub fn matches_event(&self, event: &Event) -> bool {
        self.is_named(event) && (self.parts.is_empty() || self.may_hold(self.parts_by_itself(event)))
    }

    /// Whether the predicate holds for events of the wanted name with these parts.
    pub fn holds(&self, parts: PartSet) -> bool {
        let one_of = |lists: &Vec<PartSet>| lists.iter().any(|list| parts.has_all(*list));
        parts.has_all(self.required) && self.alternatives.iter().all(one_of)
    }

    /// Whether the predicate holds for an event without ids, with these parts of its own.
    pub fn holds_of_nobody(&self, by_itself: PartSet) -> bool {
        self.people.is_empty() && self.holds(self.parts_in(None).replaced(self.mask(None), by_itself))
    }

    /// Whether the predicate can hold for an event with these parts of its own, whatever its
    /// session is.
    pub fn may_hold(&self, by_itself: PartSet) -> bool {
        self.holds(by_itself | self.parts_if(|part| part.decider.is_some()))
    }

    /// Whether the predicate can hold for events of a session with these parts, whatever they are.
    pub fn may_hold_in(&self, session: PartSet) -> bool {
        self.holds(session | self.mask(None))
    }

    /// Returns the parts of the event that hold, and the parts of the session that hold if the
    /// event decides them.
    pub fn parts_of(&self, event: &Event) -> PartSet {
        self.parts_if(|part| match part.decider {
            None => part.filters.iter().all(|filter| filter.matches(event, None)),
            Some(_) => part.filters.iter().all(|filter| filter.holds(&filter.field().decided_by(event))),
        })
    }

    /// Returns the parts of the session that hold if it has this `entry`. Properties that an entry
    /// lacks are null.
    pub fn parts_in(&self, entry: Option<&Entry>) -> PartSet {
        let holds = |filter: &Filter| filter.holds(&filter.field().value_of_session(entry));
        self.parts_if(|part| part.decider.is_some() && part.filters.iter().all(holds))
    }

    fn parts_by_itself(&self, event: &Event) -> PartSet {
        self.parts_if(|part| part.decider.is_none() && part.filters.iter().all(|filter| filter.matches(event, None)))
    }

    fn is_named(&self, event: &Event) -> bool {
        self.event_name.as_ref().is_none_or(|name| **name == *event.name)
    }

    fn parts_if(&self, holds: impl Fn(&PredicatePart) -> bool) -> PartSet {
        self.parts().filter(|(_, part)| holds(part)).fold(PartSet::default(), |parts, (bit, _)| parts | bit)
    }
}

/// A condition on an identity: it has at least so many events that fit, or fewer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeopleCondition {
    /// The events that fit.
    pub predicate: Predicate,
    /// How many of them are enough.
    pub at_least: u32,
    /// Whether the identity must have fewer.
    pub is_negated: bool,
    /// The days of the events.
    pub within: Within,
}

impl PeopleCondition {
    /// Whether the condition holds for an identity with so many events that fit.
    pub fn holds(&self, count: u32) -> bool {
        (count >= self.at_least) != self.is_negated
    }
}
