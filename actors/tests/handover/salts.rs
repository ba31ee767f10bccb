//! A node that does not know the visitor salt of the day yet.

use std::sync::Arc;

use headcount_actors::TrackError;
use headcount_actors::domain::time::Instant;
use headcount_actors::ingest::{NewEvent, Refusal, Status};
use headcount_common::clock::FixedClock;
use headcount_common::{Documents, partition_of};

use crate::member::{BASE_MS, NoDocuments, Node, SharedLog, origin};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_salt_only_events_of_visitors_without_ids_are_refused() {
    let ((origin, project), log) = (origin().await, Arc::<SharedLog>::default());
    let (letters, clock) = (Arc::default(), Arc::new(FixedClock::at(Instant(BASE_MS))));
    let shared = (&log, &letters, Arc::new(NoDocuments) as Arc<dyn Documents>);
    let of_node = Arc::clone(&clock);
    let node = Node::start_sharing(tempfile::tempdir().unwrap(), Some(origin.path()), shared, |config| config.clock = of_node);
    node.take(partition_of(project)).await;
    let visit = NewEvent::new("pageview");
    assert_eq!(node.engine.track(project, &visit).await.unwrap().status, Status::Recorded);
    // A day whose salt the nodes have not agreed on.
    clock.set(Instant(BASE_MS + 3 * 24 * 60 * 60 * 1_000));
    let refused = node.engine.track(project, &visit).await;
    assert!(matches!(refused, Err(Refusal::Track(TrackError::Unavailable(_)))), "{refused:?}");
    assert_eq!(node.order(project, 1).await, Status::Recorded);
    assert_eq!(node.engine.track(project, &visit.anonymous("a1")).await.unwrap().status, Status::Recorded);
}
