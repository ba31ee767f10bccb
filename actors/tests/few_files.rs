//! Starts with too few files. This test has its own process, since the limit applies to the
//! process.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a panic is a failed test")]

use std::path::Path;

use headcount_actors::ingest::{NewEvent, Status};
use headcount_actors::{Engine, EngineConfig};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

fn config(dir: &Path) -> EngineConfig {
    let mut config = EngineConfig::new(dir);
    config.shards = 2;
    config.min_free_bytes = 1 << 20;
    config.log.segment_bytes = 1 << 20;
    config
}

fn order(number: u64) -> NewEvent {
    NewEvent::new("order").user(format!("u{number}")).external_id(format!("o{number}"))
}

#[test]
fn a_start_that_runs_out_of_files_changes_nothing() {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let engine = Engine::open(config(dir)).unwrap();
    let project = engine.registry().initialize(engine.clock().now()).unwrap().project_id;
    runtime.block_on(async {
        let orders: Vec<_> = (0..100).map(order).collect();
        engine.track_batch(project, &orders).await.unwrap();
        engine.close().await;
    });
    drop(engine);

    let usual = getrlimit(Resource::Nofile);
    let open = u64::try_from(std::fs::read_dir("/proc/self/fd").unwrap().count()).unwrap();
    let mut refused = 0;
    for more in 1..200 {
        setrlimit(Resource::Nofile, Rlimit { current: Some(open + more), ..usual }).unwrap();
        let opened = Engine::open(config(dir));
        setrlimit(Resource::Nofile, usual).unwrap();
        let names: Vec<_> = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        let aside = names.iter().filter(|name| name.to_str().unwrap().contains(".damaged-")).count();
        match opened {
            Ok(engine) => {
                runtime.block_on(async {
                    for number in [0, 50, 99] {
                        assert_eq!(engine.track(project, &order(number)).await.unwrap().status, Status::Duplicate);
                    }
                    engine.close().await;
                });
                assert_eq!(aside, 0, "{names:?}");
                assert!(refused > 3, "only {refused} starts were refused");
                return;
            }
            Err(error) => {
                refused += 1;
                assert_eq!(aside, 0, "with {more} more files: {error}: {names:?}");
            }
        }
    }
    panic!("it never starts");
}
