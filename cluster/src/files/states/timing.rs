//! When states are published and fetched.

use std::time::Duration;

/// When states are published and fetched.
#[derive(Debug, Clone, Copy)]
pub struct StateTiming {
    /// How often a partition is looked at.
    pub looked_every: Duration,
    /// The least time between two states of a partition.
    pub least: Duration,
    /// After this many messages, the next state is published as soon as `least` is over.
    pub messages: u64,
    /// The time after which a state is published that is newer at all.
    pub most: Duration,
    /// How many messages a published state must be ahead of what a node has for the node to fetch it.
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
