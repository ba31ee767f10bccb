//! Turns of requests: a limited number at once, of which an organization may have a quarter.

use std::time::Duration;

use headcount_actors::admission_gate::{Gate, Holder, Permit};
use headcount_domain::OrganizationId;

/// The turns.
#[derive(Debug, Clone)]
pub struct Turns(Gate);

impl Turns {
    /// Returns turns of which so many may be taken at once.
    pub fn new(limit: usize) -> Self {
        Self(Gate::new(limit))
    }

    /// How many are taken.
    pub fn used(&self) -> usize {
        self.0.used()
    }

    /// Waits for a turn of an organization. `None`: there was none in time.
    pub async fn wait(&self, organization: OrganizationId, within: Duration) -> Option<Permit> {
        self.0.take_within([Some(Holder::Organization(organization)), None], 1, within).await.ok()
    }
}

/// How many questions wait for a position at once, at most.
const MAX_WAITING: usize = 1_024;

/// The turns of questions that wait for a position.
#[derive(Debug)]
pub struct WaitingQuestions(pub Turns);

impl Default for WaitingQuestions {
    fn default() -> Self {
        Self(Turns::new(MAX_WAITING))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[actix_web::test]
    async fn an_organization_leaves_turns_to_others() {
        let turns = Turns::new(32);
        let mut held = Vec::new();
        while let Some(turn) = turns.wait(OrganizationId(1), Duration::from_millis(20)).await {
            held.push(turn);
        }
        assert_eq!((held.len(), turns.used()), (8, 8));
        assert!(turns.wait(OrganizationId(2), Duration::ZERO).await.is_some());
        drop(held);
        assert!(turns.wait(OrganizationId(1), Duration::ZERO).await.is_some());
    }
}
