//! The counts of dropped events, which follow their partition.

use std::sync::Arc;

use headcount_actors::Engine;
use headcount_actors::domain::ids::ProjectId;
use headcount_actors::domain::queries::IntakeQuery;
use headcount_actors::domain::time::{Timezone, Window};
use headcount_actors::ingest::Status;
use headcount_common::partition_of;

use crate::member::{Node, SharedLog, origin};

/// Returns the duplicates of the last `days`, and whether some may be missing.
pub(crate) async fn duplicates(engine: &Engine, project: ProjectId, days: u32) -> (u64, bool) {
    let window = Window::last_days(days, Timezone::UTC, engine.clock().now());
    let intake = engine.ingest.intake(project, IntakeQuery { window, timezone: Timezone::UTC }).await.unwrap();
    (intake.dropped.duplicates, intake.is_approximate)
}

async fn repeat(node: &Node, project: ProjectId, count: usize) {
    for _ in 0..count {
        assert_eq!(node.order(project, 1).await, Status::Duplicate);
    }
}

#[tokio::test]
async fn counts_of_dropped_events_follow_a_partition() {
    let ((origin, project), log) = (origin().await, Arc::<SharedLog>::default());
    let [first, second, third] = [0, 1, 2].map(|_| Node::start(origin.path(), &log));
    let partition = partition_of(project);
    first.take(partition).await;
    first.order(project, 1).await;
    repeat(&first, project, 3).await;
    assert_eq!(duplicates(&first.engine, project, 1).await, (3, false));
    first.give(partition).await;
    second.take(partition).await;
    assert_eq!(duplicates(&second.engine, project, 30).await, (3, false), "it moved in order");
    repeat(&second, project, 4).await;
    second.give(partition).await;
    first.take(partition).await;
    assert_eq!(duplicates(&first.engine, project, 1).await, (7, false));
    repeat(&first, project, 2).await;
    // As if killed: the last counts may be written or not, but not twice.
    drop(first);
    third.take(partition).await;
    let (count, is_approximate) = duplicates(&third.engine, project, 1).await;
    assert!((count == 7 || count == 9) && is_approximate, "{count} {is_approximate}");
    repeat(&third, project, 1).await;
    third.give(partition).await;
    second.take(partition).await;
    assert_eq!(duplicates(&second.engine, project, 1).await, (count + 1, true), "it stays known");
}
