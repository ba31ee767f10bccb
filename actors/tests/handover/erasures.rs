//! Erasures of people who may have an event in the log.

use std::sync::Arc;
use std::time::{Duration, Instant};

use headcount_actors::engine::{ErasureError, ErasureSubject};
use headcount_actors::ingest::{NewEvent, Status};
use headcount_common::partition_of;
use headcount_storage::files::switch::{Errno, Plan, Switch};

use crate::member::{BASE_MS, Node, SharedLog, origin};

async fn erased(node: &Node) -> Result<u64, ErasureError> {
    let (engine, organization) = (node.engine.clone(), node.engine.registry().organizations()[0].id);
    let erase = move || engine.erase(organization, &ErasureSubject::User("u1".to_owned()));
    tokio::task::spawn_blocking(erase).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_whose_append_had_no_answer_is_erased_with_the_others() {
    let ((origin, project), log) = (origin().await, Arc::<SharedLog>::default());
    let (node, partition) = (Node::start(origin.path(), &log), partition_of(project));
    node.take(partition).await;
    for user in [1, 2] {
        node.order(project, user).await;
    }
    *log.unanswered.lock() = Some(Vec::new());
    let order = NewEvent::new("order").user("u1").external_id("unanswered").at_ms(BASE_MS);
    assert!(node.engine.track(project, &order).await.is_err());
    let unanswered = log.unanswered.lock().take().unwrap();
    assert_eq!(unanswered.len(), 1);
    // A sender without an answer does not know the end of the person's events.
    let refused = erased(&node).await;
    assert!(matches!(refused, Err(ErasureError::Unavailable(_))), "{refused:?}");
    // The event is in the log after all, and the next owner of the partition finds it.
    node.give(partition).await;
    for (partition, record) in unanswered {
        log.partitions.lock().entry(partition).or_default().push(record);
    }
    node.take(partition).await;
    assert_eq!(node.order(project, 3).await, Status::Recorded);
    erased(&node).await.unwrap();
    while node.users(project).await.is_ok_and(|users| users > 2) {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    node.give(partition).await;
    node.engine.close().await;
    let later = Node::start_in(node.dir, None, &log);
    later.take(partition).await;
    assert_eq!(later.users(project).await.unwrap(), 2, "a replay leaves it out, too");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_erasure_does_not_wait_for_a_partition_that_has_moved() {
    let ((origin, project), log) = (origin().await, Arc::<SharedLog>::default());
    let (node, partition) = (Arc::new(Node::start(origin.path(), &log)), partition_of(project));
    node.take(partition).await;
    node.order(project, 1).await;
    // Its state can't be saved, and an erasure waits for that.
    let switch = Switch::arm(&node.dir.path().join("store"), Plan { at: 1, failures: u64::MAX, errno: Errno::Io, done: false });
    let waiting = Arc::clone(&node);
    let erasing = tokio::spawn(async move { erased(&waiting).await });
    while switch.failed().is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(!erasing.is_finished());
    let began = Instant::now();
    node.owners.give_up(partition);
    let refused = erasing.await.unwrap();
    assert!(matches!(refused, Err(ErasureError::Unavailable(_))), "{refused:?}");
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
}
