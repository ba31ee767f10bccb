//! A backup of engines that share a log. It has no dead letters, and fails if a partition has no
//! owner.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use headcount_actors::domain::queries::UniqueUsersQuery;
use headcount_actors::ingest::{NewEvent, Status};
use headcount_actors::{EngineConfig, NodesBackupError};
use headcount_common::partition_of;
use headcount_storage::backup::{Backup, BackupFolder};

use crate::counts::duplicates;
use crate::member::{BASE_MS, CommonLetters, Node, SharedLog, origin, window};
use crate::support;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_engine_goes_on_from_what_several_have_recorded() {
    let ((origin, project), log) = (origin().await, Arc::<SharedLog>::default());
    let (partition, place) = (partition_of(project), tempfile::tempdir().unwrap());
    let letters = Arc::<CommonLetters>::default();
    let start = || Node::start_with(tempfile::tempdir().unwrap(), Some(origin.path()), (&log, &letters), true);
    let [first, second] = [start(), start()];
    first.take(partition).await;
    for user in 0..30 {
        assert_eq!(first.order(project, user).await, Status::Recorded);
    }
    // It panics twice, and is set aside.
    let poison = NewEvent::new("poison").user("eve").external_id("poison").at_ms(BASE_MS);
    first.engine.track(project, &poison).await.unwrap();
    assert_eq!(first.order(project, 3).await, Status::Duplicate);
    first.give(partition).await;
    second.take(partition).await;
    for user in 30..50 {
        assert_eq!(second.order(project, user).await, Status::Recorded);
    }
    // Written every ten seconds.
    second.give(partition).await;
    second.take(partition).await;
    let expected = (second.users(project).await.unwrap(), second.revenue(project).await);
    let (engine, dir) = (second.engine.clone(), place.path().join("backup"));
    let write = move || {
        let backup = engine.begin_nodes_backup().unwrap();
        backup.write(&mut BackupFolder::create(&dir, None).unwrap(), &|| false).unwrap()
    };
    let manifest = tokio::task::spawn_blocking(write).await.unwrap();
    // The duplicate is in the log, too.
    assert_eq!((manifest.projects.len(), manifest.last_position()), (1, 51));
    headcount_actors::backup::restore(&Backup::open(&place.path().join("backup")).unwrap(), &place.path().join("data"), None)
        .unwrap();
    let config = EngineConfig { min_free_bytes: 1 << 20, ..EngineConfig::new(place.path().join("data")) };
    let (one, of_one) = support::open(config);
    let users = one.ask(of_one, UniqueUsersQuery { window: window() }).await.unwrap().total;
    assert_eq!((of_one, users, one.vitals().dead_letters), (project, expected.0, 0));
    assert_eq!(duplicates(&one, project, 1).await, (1, false));
    let again = |user: u64| {
        let order = NewEvent::new("order").user(format!("u{user}")).external_id(format!("o{user}")).at_ms(BASE_MS);
        order.value("2").unwrap()
    };
    for user in [0, 29, 49] {
        assert_eq!(one.track(project, &again(user)).await.unwrap().status, Status::Duplicate);
    }
    assert_eq!(one.track(project, &again(50)).await.unwrap().status, Status::Recorded);
    one.close().await;
    // The partition has no owner any more.
    second.give(partition).await;
    let (engine, is_closed) = (second.engine.clone(), Arc::<AtomicBool>::default());
    let begun = {
        let is_closed = Arc::clone(&is_closed);
        tokio::task::spawn_blocking(move || {
            let begun = engine.begin_nodes_backup();
            is_closed.store(true, Ordering::SeqCst);
            begun.map(drop)
        })
    };
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(!is_closed.load(Ordering::SeqCst), "another node may take it over");
    second.engine.close().await;
    let refused = begun.await.unwrap().unwrap_err();
    assert!(matches!(refused, NodesBackupError::Asking(_) | NodesBackupError::Stopped), "{refused}");
    assert!(!second.dir.path().join("backup.tmp").exists());
}
