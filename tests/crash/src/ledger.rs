//! Every event that was ever sent, and what is known of it.

use crate::events::{self, Plan};
use headcount_histories::Rng;

/// What is known of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// On its way, or its connection broke: it may be recorded or not.
    Unanswered,
    /// Answered, but not with 202: it has to be sent again.
    Refused,
    /// Acknowledged, with its position if that was told.
    Acknowledged(Option<u64>),
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    plan: Plan,
    state: State,
}

/// See the module.
#[derive(Debug, Clone)]
pub struct Ledger {
    seed: u64,
    entries: Vec<Entry>,
}

impl Ledger {
    /// An empty one.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { seed, entries: Vec::new() }
    }

    /// How many events there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Adds an event that is about to be sent; returns its number.
    pub fn add(&mut self, plan: Plan) -> usize {
        self.entries.push(Entry { plan, state: State::Unanswered });
        self.entries.len() - 1
    }

    /// What an event says besides its number.
    #[must_use]
    pub fn plan(&self, number: usize) -> Plan {
        self.entries[number].plan
    }

    /// An event's body.
    #[must_use]
    pub fn body(&self, number: usize) -> String {
        events::body(self.seed, number, self.plan(number))
    }

    /// The body of a batch.
    #[must_use]
    pub fn batch(&self, numbers: &[usize]) -> String {
        let bodies: Vec<String> = numbers.iter().map(|number| self.body(*number)).collect();
        format!(r#"{{"events":[{}]}}"#, bodies.join(","))
    }

    /// What is known of an event.
    #[must_use]
    pub fn state(&self, number: usize) -> State {
        self.entries[number].state
    }

    /// Notes what became of an event.
    pub fn set(&mut self, number: usize, state: State) {
        self.entries[number].state = state;
    }

    /// The events that were not acknowledged.
    #[must_use]
    pub fn pending(&self) -> Vec<usize> {
        let is_pending = |number: &usize| !matches!(self.state(*number), State::Acknowledged(_));
        (0..self.entries.len()).filter(is_pending).collect()
    }

    /// How many have no answer.
    #[must_use]
    pub fn unanswered(&self) -> usize {
        self.entries.iter().filter(|entry| entry.state == State::Unanswered).count()
    }

    /// How many are acknowledged.
    #[must_use]
    pub fn acknowledged(&self) -> usize {
        self.entries.iter().filter(|entry| matches!(entry.state, State::Acknowledged(_))).count()
    }

    /// Some acknowledged event of a project; `None` if none was met.
    pub fn some_acknowledged(&self, rng: &mut Rng, project: usize) -> Option<usize> {
        if self.entries.is_empty() {
            return None;
        }
        let mut tries = (0..20).map(|_| rng.below(self.entries.len()));
        let fits =
            |number: &usize| self.plan(*number).project == project && matches!(self.state(*number), State::Acknowledged(_));
        tries.find(fits)
    }

    /// How many events of a project are on a private day.
    #[must_use]
    pub fn on_private_day(&self, project: usize, day: usize) -> usize {
        let plan = Plan { private_day: Some(day), ..Plan::ordinary(project) };
        self.entries.iter().filter(|entry| entry.plan == plan).count()
    }
}
