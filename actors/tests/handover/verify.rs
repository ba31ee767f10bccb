//! The verification of partitions that move.

use std::sync::Arc;
use std::sync::mpsc::channel;

use headcount_actors::domain::ids::ProjectId;
use headcount_actors::verify::{VerifyReport, VerifyStatus};
use headcount_common::partition_of;
use headcount_storage::log::RemoteFailure;

use crate::member::{Node, SharedLog, origin};

async fn verified(node: &Node) -> VerifyReport {
    found_here(node.engine.verify(false, &Arc::default()).await.unwrap())
}

/// Partitions without a node don't concern this test.
fn found_here(mut report: VerifyReport) -> VerifyReport {
    report.not_verified.retain(|_, why| !why.reason.starts_with("no node had it"));
    report
}

fn assert_clean(report: &VerifyReport, project: ProjectId, events: u64) {
    assert_eq!(report.status(), VerifyStatus::Clean, "{report:?}");
    assert_eq!((report.projects[&project].events, report.projects[&project].cells > 0), (events, true), "{report:?}");
}

/// The result of a verification whose first read of the log waits until the partition was given up,
/// and perhaps taken back.
async fn moved_meanwhile(node: &Node, partition: u16, is_taken_back: bool) -> VerifyReport {
    let ((begins, began), (go_on, goes_on)) = (channel(), channel());
    *node.log.halt.lock() = Some((begins, goes_on));
    let engine = node.engine.clone();
    let verifying = tokio::spawn(async move { engine.verify(false, &Arc::default()).await.unwrap() });
    tokio::task::spawn_blocking(move || began.recv().unwrap()).await.unwrap();
    node.give(partition).await;
    if is_taken_back {
        node.take(partition).await;
    }
    // A log that is no longer read here, or only from a later position on, can look like anything.
    let records = std::mem::take(node.log.partitions.lock().get_mut(&partition).unwrap());
    go_on.send(()).unwrap();
    let report = found_here(verifying.await.unwrap());
    *node.log.partitions.lock().get_mut(&partition).unwrap() = records;
    report
}

#[tokio::test]
async fn what_is_found_in_a_partition_that_moves_meanwhile_does_not_count() {
    let ((origin, project), log) = (origin().await, Arc::<SharedLog>::default());
    let (node, partition) = (Node::start(origin.path(), &log), partition_of(project));
    // This engine owns nothing, so nothing is verified.
    assert!(verified(&node).await.projects.is_empty());
    node.take(partition).await;
    for user in 0..20 {
        node.order(project, user).await;
    }
    assert_clean(&verified(&node).await, project, 20);
    for is_taken_back in [true, false] {
        let report = moved_meanwhile(&node, partition, is_taken_back).await;
        assert_eq!((report.status(), report.differing, report.damaged.len()), (VerifyStatus::Incomplete, 0, 0), "{report:?}");
        assert!(report.projects.is_empty(), "{report:?}");
        let unverified: Vec<(&u16, bool)> =
            report.not_verified.iter().map(|(number, why)| (number, why.reason.contains("another node"))).collect();
        assert_eq!(unverified, [(&partition, true)]);
    }
    node.take(partition).await;
    assert_clean(&verified(&node).await, project, 20);
    assert!(!node.dir.path().join("verify-tmp").exists());
}

#[tokio::test]
async fn a_log_that_brokers_lost_is_damaged_and_one_that_they_do_not_give_is_not_verified() {
    let ((origin, project), log) = (origin().await, Arc::<SharedLog>::default());
    let (node, partition) = (Node::start(origin.path(), &log), partition_of(project));
    node.take(partition).await;
    node.order(project, 0).await;
    *log.failure.lock() = Some(RemoteFailure::Unavailable);
    let report = verified(&node).await;
    assert_eq!((report.status(), report.damaged.len()), (VerifyStatus::Incomplete, 0), "{report:?}");
    assert_eq!(report.not_verified[&partition].reason, "planted");
    *log.failure.lock() = Some(RemoteFailure::Damaged);
    let report = verified(&node).await;
    assert_eq!((report.status(), report.damaged.len()), (VerifyStatus::Damaged, 1), "{report:?}");
    assert_eq!(report.damaged[0].file, format!("log/partition={partition:02}"));
    // It also names the partition that could not be compared.
    assert!(report.not_verified.contains_key(&partition), "{report:?}");
    *log.failure.lock() = None;
    assert_clean(&verified(&node).await, project, 1);
    node.engine.close().await;
}
