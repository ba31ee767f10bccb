//! The times at which states are published and fetched.

use std::time::Duration;

/// The times at which states are published and fetched.
#[derive(Debug, Clone, Copy)]
pub struct StateTiming {
    /// How often each partition is checked.
    pub looked_every: Duration,
    /// The minimum time between two states of a partition.
    pub least: Duration,
    /// After this many messages, the next state is published as soon as `least` has passed.
    pub messages: u64,
    /// The time after which a state is published if there is any newer one.
    pub most: Duration,
    /// A node fetches a published state if it is at least this many messages ahead of its own.
    pub worth_fetching: u64,
}

impl Default for StateTiming {
    fn default() -> Self {
        Self {
            looked_every: Duration::from_secs(5),
            least: Duration::from_secs(20),
            messages: 1_000,
            most: Duration::from_secs(10 * 60),
            worth_fetching: 100,
        }
    }
}
