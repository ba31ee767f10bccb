//! Sealing while most partitions are idle.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant as Stopwatch};

use headcount_actors::{Engine, EngineConfig};
use headcount_common::partition_of;

use crate::{answers, files, forget, new, same, send, small};

/// Seals by itself when there are a hundred events.
fn sealing(dir: &Path) -> EngineConfig {
    let mut config = small(dir);
    (config.shards, config.archive.seal_events) = (2, 100);
    config.checkpoints.interval = Duration::from_millis(20);
    config
}

/// The position up to which everything is sealed.
fn sealed_until(dir: &Path) -> u64 {
    let text = std::fs::read_to_string(dir.join("archive/sealed.json")).unwrap_or_default();
    let digits = text.split("\"sealed_until\":").nth(1).unwrap_or("0").trim_start();
    digits.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap()
}

/// The position of the first event in the log.
fn log_begins(dir: &Path) -> u64 {
    let segments = files(&dir.join("log"), "seg");
    segments.iter().filter_map(|path| path.file_stem()?.to_str()?.parse().ok()).min().unwrap()
}

/// A minimum over the partitions' own positions would stay where the idle ones are.
#[tokio::test]
async fn idle_partitions_neither_stop_sealing_nor_lose_events() {
    let dir = tempfile::tempdir().unwrap();
    let (mut engine, projects) = new(sealing(dir.path())).await;
    let mut found = BTreeSet::new();
    let active: Vec<_> = projects.into_iter().filter(|project| found.insert(partition_of(*project))).take(3).collect();
    for part in 0..4 {
        // Two of the three are idle, too, in the end.
        let senders = if part < 2 { &active[..] } else { &active[..1] };
        send(&engine, senders, part * 150..(part + 1) * 150).await;
        let (recorded, began) = (engine.vitals().log_position, Stopwatch::now());
        while recorded - sealed_until(dir.path()) >= 100 {
            assert!(began.elapsed() < Duration::from_secs(30), "{part}: {} of {recorded} sealed", sealed_until(dir.path()));
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        // Some more, which are not sealed.
        send(&engine, &active, 600 + part * 20..620 + part * 20).await;
        let expected = answers(&engine, &active).await;
        engine.close().await;
        assert!(log_begins(dir.path()) <= sealed_until(dir.path()) + 1, "{part}");
        forget(dir.path());
        engine = Engine::open(sealing(dir.path())).unwrap();
        same(&answers(&engine, &active).await, &expected, &format!("part {part}"));
    }
    engine.seal_archive().await.unwrap();
    assert_eq!(sealed_until(dir.path()), engine.vitals().log_position);
    assert!(log_begins(dir.path()) > 1, "nothing was trimmed");
    engine.close().await;
}
