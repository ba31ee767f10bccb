//! Exports of a node without their files.

use std::sync::Arc;
use std::time::{Duration, Instant};

use headcount_actors::Engine;
use headcount_actors::domain::ids::{OrganizationId, ProjectId};
use headcount_common::{Documents, home_of, partition_of};
use headcount_control::PrivacyRequestId;
use headcount_privacy::{
    DownloadError, Privacy, PrivacyRequest, PrivacyRequestKind, PrivacySettings, PrivacyStatus, PrivacySubject, install,
};

use crate::member::{CommonDocuments, Node, SharedLog, origin};

fn privacy(engine: &Engine) -> Arc<Privacy> {
    engine.feature().unwrap()
}

fn organization(node: &Node) -> OrganizationId {
    node.engine.registry().organizations()[0].id
}

/// Starts an engine that has the project, and is the home of the organization's privacy requests.
async fn home(documents: &Arc<CommonDocuments>) -> (Node, ProjectId, tempfile::TempDir) {
    let ((origin, project), log) = (origin().await, Arc::<SharedLog>::default());
    let (letters, requests) = (Arc::default(), Arc::<CommonDocuments>::clone(documents) as Arc<dyn Documents>);
    let shared = (&log, &letters, requests);
    let node = Node::start_sharing(tempfile::tempdir().unwrap(), Some(origin.path()), shared, |config| {
        let settings = PrivacySettings { export_pauses: [Duration::from_millis(10); 4], ..PrivacySettings::default() };
        config.features = vec![install(settings)];
    });
    let mut partitions = vec![partition_of(project), home_of(organization(&node))];
    partitions.dedup();
    for partition in partitions {
        node.take(partition).await;
        node.engine.partitions.resume(partition);
    }
    wait_until("it looks after the requests", || privacy(&node.engine).is_home(organization(&node))).await;
    (node, project, origin)
}

async fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(30), "{what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn exported(node: &Node, user: &str) -> PrivacyRequestId {
    let (engine, organization, subject) = (node.engine.clone(), organization(node), PrivacySubject::UserId(user.to_owned()));
    let now = engine.clock().now();
    let make = move || privacy(&engine).make(organization, PrivacyRequestKind::Export, subject, now);
    tokio::task::spawn_blocking(make).await.unwrap().unwrap().id.clone()
}

fn shown(node: &Node, id: &PrivacyRequestId) -> Arc<PrivacyRequest> {
    privacy(&node.engine).get(organization(node), id).unwrap()
}

fn files(node: &Node) -> usize {
    std::fs::read_dir(node.dir.path().join("exports")).unwrap().count()
}

async fn wait_until_completed(node: &Node, id: &PrivacyRequestId) {
    wait_until("it is completed", || shown(node, id).status == PrivacyStatus::Completed).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_export_whose_file_is_missing_is_made_again() {
    let documents = Arc::default();
    let (node, project, _origin) = home(&documents).await;
    node.order(project, 1).await;
    let id = exported(&node, "u1").await;
    wait_until_completed(&node, &id).await;
    let (expires_at, open) = (shown(&node, &id).expires_at(), || privacy(&node.engine).open_export(organization(&node), &id));
    std::fs::remove_file(node.dir.path().join(format!("exports/{id}.json"))).unwrap();
    let opened = open();
    assert!(matches!(opened, Err(DownloadError::MadeAgain)), "{opened:?}");
    wait_until("it is there again", || !matches!(open(), Err(DownloadError::MadeAgain))).await;
    assert!(open().unwrap().bytes > 0);
    assert_eq!(shown(&node, &id).expires_at(), expires_at, "it is kept for no longer");
}

/// The request is completed without an answer, so the engine does not know: the file is removed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_export_that_was_completed_without_an_answer_is_made_again_before_anybody_asks() {
    let documents = Arc::<CommonDocuments>::default();
    let (node, project, _origin) = home(&documents).await;
    node.order(project, 1).await;
    *documents.unanswered.lock() = Some(r#""status":"completed""#);
    let id = exported(&node, "u1").await;
    wait_until_completed(&node, &id).await;
    assert_eq!(*documents.unanswered.lock(), None);
    wait_until("its file is there", || files(&node) == 1 && shown(&node, &id).status == PrivacyStatus::Completed).await;
    assert!(privacy(&node.engine).open_export(organization(&node), &id).unwrap().bytes > 0);
}
