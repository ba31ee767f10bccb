//! Marks of the log, by which a saved state is compared with it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use headcount_common::{Documents, partition_of};

use crate::member::{NoDocuments, Node, SharedLog, origin};

/// A checkpoint that is written while many later events are read.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_checkpoint_without_a_mark_is_followed_by_one_that_has_it() {
    let ((origin, project), log) = (origin().await, Arc::<SharedLog>::default());
    let partition = partition_of(project);
    let letters = Arc::default();
    let shared = || (&log, &letters, Arc::new(NoDocuments) as Arc<dyn Documents>);
    let node = Node::start_sharing(tempfile::tempdir().unwrap(), Some(origin.path()), shared(), |config| {
        config.checkpoints.interval = Duration::from_millis(20);
    });
    node.take(partition).await;
    node.order(project, 1).await;
    node.engine.partitions.save(partition).await.unwrap();
    let position = node.engine.partitions.saved_positions(partition).unwrap().position;
    assert_eq!((position, node.engine.partitions.saved_positions(partition).unwrap().mark), (log.end(partition), None));
    *log.marked_from.lock() = Some(position);
    let began = Instant::now();
    while node.engine.partitions.saved_positions(partition).unwrap().mark.is_none() {
        assert!(began.elapsed() < Duration::from_secs(30), "no mark is saved");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(node.engine.partitions.saved_positions(partition).unwrap().mark.map(|mark| mark.position), Some(position));
    // This is so before the partition is given up.
    *log.marked_from.lock() = None;
    let node = Node::start_sharing(tempfile::tempdir().unwrap(), Some(origin.path()), shared(), |_| {});
    node.take(partition).await;
    node.order(project, 2).await;
    node.engine.partitions.save(partition).await.unwrap();
    assert_eq!(node.engine.partitions.saved_positions(partition).unwrap().mark, None);
    *log.marked_from.lock() = Some(0);
    node.give(partition).await;
    assert_eq!(
        node.engine.partitions.saved_positions(partition).unwrap().mark.map(|mark| mark.position),
        Some(log.end(partition))
    );
}
