//! Partitions that move between engines: each event counts once, whichever engine owns its
//! partition.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a panic is a failed test")]

use std::sync::Arc;
use std::time::Duration;

use std::collections::BTreeSet;

use headcount_actors::domain::versions::Depends;
use headcount_actors::ingest::{NewEvent, Status};
use headcount_actors::{Adoption, AskError, CopiedState};
use headcount_common::partition_of;
use headcount_storage::boot_time::boot_time;

mod backup;
#[path = "../support/copies.rs"]
mod copies;
mod counts;
mod erasures;
mod exports;
mod letters;
mod marks;
mod member;
mod salts;
#[path = "../support/mod.rs"]
mod support;
mod verify;

use member::{BASE_MS, Node, SharedLog, origin};

#[tokio::test]
async fn each_event_counts_once_whoever_has_the_partition() {
    let ((origin, project), log) = (origin().await, Arc::<SharedLog>::default());
    let nodes = [Node::start(origin.path(), &log), Node::start(origin.path(), &log)];
    let partition = partition_of(project);
    let mut recorded = 0;
    for round in 0..6 {
        let (owner, other) = (&nodes[round % 2], &nodes[(round + 1) % 2]);
        owner.take(partition).await;
        assert!(matches!(other.users(project).await, Err(AskError::Lost(_))), "it is not here");
        assert_eq!(owner.users(project).await.unwrap(), recorded);
        for user in 0..recorded {
            assert_eq!(owner.order(project, user).await, Status::Duplicate, "round {round}, user {user}");
        }
        for user in recorded..recorded + 20 {
            assert_eq!(owner.order(project, user).await, Status::Recorded);
        }
        recorded += 20;
        let version = owner.engine.version(project, &Depends::Everything).await.unwrap();
        let revenue = owner.revenue(project).await;
        owner.give(partition).await;
        assert!(owner.engine.version(project, &Depends::Everything).await.is_err(), "it has given it up");
        // The other engine gives the same answer, with the same version.
        other.take(partition).await;
        assert_eq!(other.engine.version(project, &Depends::Everything).await.unwrap(), version);
        assert_eq!((other.users(project).await.unwrap(), other.revenue(project).await), (recorded, revenue));
        other.give(partition).await;
    }
}

#[tokio::test]
async fn a_partition_is_taken_over_from_where_its_last_checkpoint_here_left_it() {
    let ((origin, project), log) = (origin().await, Arc::<SharedLog>::default());
    let partition = partition_of(project);
    let node = Node::start(origin.path(), &log);
    node.take(partition).await;
    for user in 0..50 {
        node.order(project, user).await;
    }
    node.give(partition).await;
    // Saved events are not read again, neither by this process nor by the next one.
    let end = log.end(partition);
    let saved = std::mem::take(log.partitions.lock().get_mut(&partition).unwrap());
    let moved = saved.len() as u64;
    node.take_until(partition, end).await;
    assert_eq!(node.users(project).await.unwrap(), 50);
    node.give(partition).await;
    node.engine.close().await;
    let node = Node::start_in(node.dir, None, &log);
    node.take_until(partition, end).await;
    assert_eq!(node.users(project).await.unwrap(), 50);
    *log.partitions.lock().get_mut(&partition).unwrap() = saved;
    assert_eq!(node.order(project, 3).await, Status::Duplicate);
    assert_eq!(node.order(project, 50).await, Status::Recorded);
    assert_eq!(log.partitions.lock()[&partition].len() as u64, moved + 2);
}

#[tokio::test]
async fn a_partition_is_taken_over_from_a_copy_of_what_another_engine_saved() {
    let ((origin, project), log) = (origin().await, Arc::<SharedLog>::default());
    let (partition, copy) = (partition_of(project), tempfile::tempdir().unwrap());
    let nodes = [0, 1, 2].map(|_| Node::start(origin.path(), &log));
    // An engine with an earlier state of its own.
    nodes[2].take(partition).await;
    nodes[2].order(project, 0).await;
    nodes[2].give(partition).await;
    nodes[0].take(partition).await;
    for user in 1..60 {
        nodes[0].order(project, user).await;
    }
    let (position, copied) = nodes[0].copied(partition, copy.path()).await;
    assert_eq!(position, log.end(partition));
    for user in 60..70 {
        nodes[0].order(project, user).await;
    }
    let (version, revenue) =
        (nodes[0].engine.version(project, &Depends::Everything).await.unwrap(), nodes[0].revenue(project).await);
    nodes[0].give(partition).await;
    // An engine with the copy reads only the events after it.
    let records = log.partitions.lock()[&partition].clone();
    let later = records.iter().filter(|(first, ..)| *first > position).cloned().collect();
    for node in &nodes[1..] {
        log.partitions.lock().insert(partition, Vec::clone(&later));
        node.take_copy(partition, log.end(partition), Some(copied.clone())).await;
        log.partitions.lock().insert(partition, records.clone());
        assert_eq!((node.users(project).await.unwrap(), node.revenue(project).await), (70, revenue.clone()));
        assert_eq!(node.engine.version(project, &Depends::Everything).await.unwrap(), version);
        for user in [0, 30, 65] {
            assert_eq!(node.order(project, user).await, Status::Duplicate, "user {user}");
        }
        // A copy with less than this engine's state changes nothing, and neither does a damaged
        // one.
        node.give(partition).await;
        node.take_copy(partition, log.end(partition), Some(copied.clone())).await;
        assert_eq!(node.users(project).await.unwrap(), 70);
        node.give(partition).await;
        log.partitions.lock().insert(partition, records.clone());
    }
    let node = Node::start(origin.path(), &log);
    let damaged = CopiedState { small: copied.small[..copied.small.len() - 1].to_vec(), ..copied };
    node.take_copy(partition, log.end(partition), Some(damaged)).await;
    assert_eq!((node.users(project).await.unwrap(), node.revenue(project).await), (70, revenue));
}

#[tokio::test]
async fn an_owner_whose_time_is_over_answers_nothing() {
    let ((origin, project), log) = (origin().await, Arc::<SharedLog>::default());
    let node = Node::start(origin.path(), &log);
    node.take(partition_of(project)).await;
    node.order(project, 1).await;
    node.owners.hold(partition_of(project), boot_time());
    let order = NewEvent::new("order").user("u2").at_ms(BASE_MS);
    assert!(node.engine.track(project, &order).await.is_err());
    assert!(node.users(project).await.is_err());
    assert!(node.engine.version(project, &Depends::Everything).await.is_err());
    assert_eq!(log.partitions.lock()[&partition_of(project)].len(), 1);
    // Renewed in time, it continues.
    node.owners.hold(partition_of(project), boot_time() + Duration::from_secs(600));
    assert_eq!(node.users(project).await.unwrap(), 1);
}

#[tokio::test]
async fn a_directory_of_other_events_is_refused() {
    let ((origin, _), log) = (origin().await, Arc::<SharedLog>::default());
    let error = member::common(origin.path(), &log).unwrap_err();
    assert!(error.to_string().contains("another installation"), "{error}");
}

#[tokio::test]
async fn what_is_left_of_an_earlier_time_is_not_served() {
    let ((origin, project), log) = (origin().await, Arc::<SharedLog>::default());
    let partition = partition_of(project);
    let nodes = [Node::start(origin.path(), &log), Node::start(origin.path(), &log)];
    nodes[0].take(partition).await;
    nodes[0].order(project, 1).await;
    // It could not give the partition up, and another engine has had it since.
    nodes[0].owners.give_up(partition);
    nodes[1].take(partition).await;
    nodes[1].order(project, 2).await;
    nodes[1].give(partition).await;
    nodes[0].take(partition).await;
    assert_eq!(nodes[0].users(project).await.unwrap(), 2);
    // Given up while it is taken over, and taken over again.
    for _ in 0..20 {
        nodes[0].give(partition).await;
        nodes[0].engine.partitions.adopt(partition, (log.end(partition), BTreeSet::new()), None).await.unwrap();
    }
    nodes[0].take(partition).await;
    assert_eq!(nodes[0].users(project).await.unwrap(), 2);
    assert_eq!(nodes[0].order(project, 1).await, Status::Duplicate);
}

#[tokio::test]
async fn a_log_that_lost_its_end_is_not_served() {
    let ((origin, project), log) = (origin().await, Arc::<SharedLog>::default());
    let partition = partition_of(project);
    let node = Node::start(origin.path(), &log);
    node.take(partition).await;
    for user in 0..3 {
        node.order(project, user).await;
    }
    node.give(partition).await;
    log.partitions.lock().get_mut(&partition).unwrap().pop();
    node.engine.partitions.adopt(partition, (log.end(partition), BTreeSet::new()), None).await.unwrap();
    let failed = node.adopted(partition).await;
    assert!(matches!(&failed, Adoption::Failed(why) if why.contains("ends at position")), "{failed:?}");
}
