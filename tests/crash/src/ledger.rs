//! The ledger of all events sent, with the state of each.

use crate::events::{self, Plan};
use headcount_histories::Rng;

/// State of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventState {
    /// In flight, or its connection broke: it may or may not be recorded.
    Unanswered,
    /// Answered with a status other than 202: it has to be sent again.
    Refused,
    /// Acknowledged, with its position if the response contained it.
    Acknowledged(Option<u64>),
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    plan: Plan,
    state: EventState,
}

/// All events sent, by number.
#[derive(Debug, Clone)]
pub struct Ledger {
    seed: u64,
    entries: Vec<Entry>,
}

impl Ledger {
    /// Creates an empty ledger.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { seed, entries: Vec::new() }
    }

    /// Returns the number of events.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether the ledger has no events.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Adds an event that is about to be sent, and returns its number.
    pub fn add(&mut self, plan: Plan) -> usize {
        self.entries.push(Entry { plan, state: EventState::Unanswered });
        self.entries.len() - 1
    }

    /// Returns the plan of an event.
    #[must_use]
    pub fn plan(&self, number: usize) -> Plan {
        self.entries[number].plan
    }

    /// Returns the body of an event.
    #[must_use]
    pub fn body(&self, number: usize) -> String {
        events::body(self.seed, number, self.plan(number))
    }

    /// Returns the body of a batch.
    #[must_use]
    pub fn batch(&self, numbers: &[usize]) -> String {
        let bodies: Vec<String> = numbers.iter().map(|number| self.body(*number)).collect();
        format!(r#"{{"events":[{}]}}"#, bodies.join(","))
    }

    /// Returns the state of an event.
    #[must_use]
    pub fn state(&self, number: usize) -> EventState {
        self.entries[number].state
    }

    /// Sets the state of an event.
    pub fn set(&mut self, number: usize, state: EventState) {
        self.entries[number].state = state;
    }

    /// Returns the events that are not acknowledged.
    #[must_use]
    pub fn pending(&self) -> Vec<usize> {
        let is_pending = |number: &usize| !matches!(self.state(*number), EventState::Acknowledged(_));
        (0..self.entries.len()).filter(is_pending).collect()
    }

    /// Returns the number of unanswered events.
    #[must_use]
    pub fn unanswered(&self) -> usize {
        self.entries.iter().filter(|entry| entry.state == EventState::Unanswered).count()
    }

    /// Returns the number of acknowledged events.
    #[must_use]
    pub fn acknowledged(&self) -> usize {
        self.entries.iter().filter(|entry| matches!(entry.state, EventState::Acknowledged(_))).count()
    }

    /// Returns a random acknowledged event of a project; `None` if 20 attempts find none.
    pub fn random_acknowledged(&self, rng: &mut Rng, project: usize) -> Option<usize> {
        if self.entries.is_empty() {
            return None;
        }
        let mut tries = (0..20).map(|_| rng.below(self.entries.len()));
        let fits =
            |number: &usize| self.plan(*number).project == project && matches!(self.state(*number), EventState::Acknowledged(_));
        tries.find(fits)
    }

    /// Returns the number of events of a project on a private day.
    #[must_use]
    pub fn on_private_day(&self, project: usize, day: usize) -> usize {
        let plan = Plan { private_day: Some(day), ..Plan::ordinary(project) };
        self.entries.iter().filter(|entry| entry.plan == plan).count()
    }

    /// Returns the number of acknowledged events of a project on a private day.
    #[must_use]
    pub fn acknowledged_on_private_day(&self, project: usize, day: usize) -> usize {
        let plan = Plan { private_day: Some(day), ..Plan::ordinary(project) };
        let is_acknowledged = |entry: &&Entry| entry.plan == plan && matches!(entry.state, EventState::Acknowledged(_));
        self.entries.iter().filter(is_acknowledged).count()
    }
}
