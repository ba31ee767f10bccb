//! Dead letters of one engine count at no engine.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use headcount_actors::domain::ids::ProjectId;
use headcount_actors::ingest::{NewEvent, Status};
use headcount_actors::{Adoption, Engine, EngineConfig};
use headcount_common::partition_of;
use headcount_control::NewProject;
use tempfile::TempDir;

use crate::member::{BASE_MS, CommonLetters, Node, SharedLog, origin};

/// Returns another project of the organization, in another partition.
async fn with_another(origin: &TempDir) -> ProjectId {
    let engine = Engine::open(EngineConfig { min_free_bytes: 1 << 20, ..EngineConfig::new(origin.path()) }).unwrap();
    let organization = engine.registry().organizations()[0].id;
    let first = partition_of(engine.registry().projects(organization).unwrap()[0].id);
    loop {
        let new = NewProject { name: "other".to_owned(), ..NewProject::default() };
        let other = engine.registry().create_project(organization, new, engine.clock().now()).unwrap().id;
        if partition_of(other) != first {
            engine.close().await;
            return other;
        }
    }
}

async fn poison(node: &Node, project: ProjectId) -> Status {
    let poison = NewEvent::new("poison").user("eve").external_id("poison").at_ms(BASE_MS);
    node.engine.track(project, &poison).await.unwrap().status
}

#[tokio::test]
async fn an_event_that_one_engine_sets_aside_counts_at_none() {
    let ((origin, project), log) = (origin().await, Arc::<SharedLog>::default());
    let other = with_another(&origin).await;
    let letters = Arc::<CommonLetters>::default();
    let start = |panics| Node::start_with(tempfile::tempdir().unwrap(), Some(origin.path()), (&log, &letters), panics);
    let (counts, panics) = (start(false), start(true));
    let partition = partition_of(project);
    // It counts at first, and is in a checkpoint. The first event of the other partition has the
    // same position.
    counts.take(partition).await;
    counts.take(partition_of(other)).await;
    poison(&counts, project).await;
    for of in [project, other] {
        assert_eq!((counts.order(of, 1).await, counts.order(of, 2).await), (Status::Recorded, Status::Recorded));
    }
    assert_eq!((counts.users(project).await.unwrap(), counts.users(other).await.unwrap()), (3, 2));
    counts.give(partition).await;
    counts.give(partition_of(other)).await;
    // Another engine can't count it.
    panics.take(partition).await;
    panics.take(partition_of(other)).await;
    assert_eq!(letters.positions.lock().clone(), BTreeMap::from([(partition, BTreeSet::from([1 << 13]))]));
    assert_eq!((panics.users(project).await.unwrap(), panics.users(other).await.unwrap()), (2, 2));
    assert_eq!(panics.engine.vitals().dead_letters, 1);
    let scanned = panics.revenue(project).await;
    panics.give(partition).await;
    assert_eq!(panics.engine.vitals().dead_letters, 0, "it is counted where its partition is");
    // From then on, it counts nowhere, not even after a start. States saved before are not used.
    let mut node = counts;
    for _ in 0..3 {
        node.take(partition).await;
        assert_eq!((node.users(project).await.unwrap(), node.revenue(project).await), (2, scanned.clone()));
        assert_eq!((node.order(project, 1).await, node.engine.vitals().dead_letters), (Status::Duplicate, 1));
        node.give(partition).await;
        node.engine.close().await;
        node = Node::start_with(node.dir, None, (&log, &letters), false);
    }
    // States saved since certainly lack the event, so reading continues from there.
    node.take(partition).await;
    node.give(partition).await;
    let (end, saved) = (log.end(partition), std::mem::take(log.partitions.lock().get_mut(&partition).unwrap()));
    assert_eq!(saved.len(), 3 + 3);
    node.take_until(partition, end).await;
    assert_eq!(node.users(project).await.unwrap(), 2);
}

#[tokio::test]
async fn an_event_counts_or_is_set_aside_where_all_know_it() {
    let ((origin, project), log) = (origin().await, Arc::<SharedLog>::default());
    let letters = Arc::<CommonLetters>::default();
    let node = Arc::new(Node::start_with(tempfile::tempdir().unwrap(), Some(origin.path()), (&log, &letters), true));
    node.take(partition_of(project)).await;
    node.order(project, 1).await;
    letters.is_silent.store(true, Ordering::SeqCst);
    let sender = Arc::clone(&node);
    let sent = tokio::spawn(async move { poison(&sender, project).await });
    // No answer lacks the event while another engine may count it.
    while !matches!(node.engine.partitions.adoption(partition_of(project)), Adoption::Failed(why) if why.contains("no answer")) {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    assert!(node.users(project).await.is_err());
    assert_eq!(node.engine.vitals().dead_letters, 0);
    letters.is_silent.store(false, Ordering::SeqCst);
    assert_eq!(sent.await.unwrap(), Status::Recorded);
    assert_eq!((node.users(project).await.unwrap(), node.engine.vitals().dead_letters), (1, 1));
    assert_eq!(node.order(project, 2).await, Status::Recorded);
}
