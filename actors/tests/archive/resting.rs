//! The tables of a store at rest are merged.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use crate::{answers, config, copy, files, new, same, send, stored};
use headcount_actors::Engine;
use headcount_storage::files::switch::{Errno, Plan, Switch};

/// The number of tables of each partition.
fn tables(dir: &Path) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for path in files(&dir.join("store/tables"), "sst") {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        *counts.entry(name.split('-').next().unwrap().to_owned()).or_default() += 1;
    }
    counts
}

async fn merged(dir: &Path) {
    let until = std::time::Instant::now() + Duration::from_secs(60);
    while tables(dir).values().any(|count| *count > 1) {
        assert!(std::time::Instant::now() < until, "{:?}", tables(dir));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_store_at_rest_is_merged_and_says_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let first = dir.path().join("first");
    let (engine, projects) = new(config(&first)).await;
    let projects = &projects[..4];
    let mut engine = Some(engine);
    for part in 0..3 {
        let open = engine.take().unwrap_or_else(|| Engine::open(config(&first)).unwrap());
        send(&open, projects, part * 60..(part + 1) * 60).await;
        open.close().await;
    }
    let expected = stored(&first);
    assert!(tables(&first).values().any(|count| *count == 3), "{:?}", tables(&first));
    let mut failed = 0;
    // Without a failure, and with one at each of the first operations, which is retried.
    for at in [0, 1, 3, 6] {
        let data = dir.path().join(format!("copy{at}"));
        copy(&first, &data);
        let mut resting = config(&data);
        resting.archive.rest = Duration::from_millis(500);
        let engine = Engine::open(resting).unwrap();
        let before = answers(&engine, projects).await;
        let switch = Switch::arm(&data.join("store/tables"), Plan { at, errno: Errno::NoSpace, ..Plan::default() });
        merged(&data).await;
        failed += switch.failed().len();
        switch.clear();
        same(&answers(&engine, projects).await, &before, "after the merge");
        engine.close().await;
        assert!(stored(&data) == expected, "{at}");
    }
    assert!(failed >= 2, "{failed} operations failed");
}

#[tokio::test]
async fn tables_are_merged_when_that_is_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let (mut engine, projects) = new(config(&data)).await;
    let projects = &projects[..4];
    for part in 0..3 {
        send(&engine, projects, part * 60..(part + 1) * 60).await;
        engine.close().await;
        engine = Engine::open(config(&data)).unwrap();
    }
    assert!(tables(&data).values().any(|count| *count == 3), "{:?}", tables(&data));
    let before = answers(&engine, projects).await;
    // A failure leaves the tables unchanged, and the next request merges them. All operations fail,
    // because a single failure could hit a read of another thread.
    let plan = Plan { at: 1, failures: u64::MAX, errno: Errno::NoSpace, ..Plan::default() };
    let switch = Switch::arm(&data.join("store/tables"), plan);
    assert!(!engine.merge_tables().await, "{:?}", switch.failed());
    assert!(!switch.failed().is_empty());
    switch.clear();
    assert!(engine.merge_tables().await);
    assert!(tables(&data).values().all(|count| *count == 1), "{:?}", tables(&data));
    same(&answers(&engine, projects).await, &before, "after the merge");
    engine.close().await;
    let open = Engine::open(config(&data)).unwrap();
    same(&answers(&open, projects).await, &before, "after a restart");
    assert!(open.merge_tables().await, "there is nothing to merge");
    open.close().await;
}
