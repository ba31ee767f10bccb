//! A state folded again without an erased identity survives anything before the next checkpoint.

use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant as Stopwatch};

use headcount_actors::domain::queries::UniqueUsersQuery;
use headcount_actors::engine::ErasureSubject;
use headcount_actors::ingest::NewEvent;
use headcount_actors::{CheckpointPolicy, Engine};

use super::{Rig, config, copy, of_user, users, window};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_between_a_fold_and_the_next_checkpoint() {
    let home = tempfile::tempdir().unwrap();
    let (dir, killed, rebuilt) = (home.path().join("d"), home.path().join("killed"), home.path().join("rebuilt"));
    let made = Rig::new(&dir);
    for number in 0..40 {
        for user in ["ada", "ben", "cleo"] {
            let event = of_user(user, number).external_id(format!("{user}{number}"));
            drop(made.engine.track(made.projects[0], &event).await.unwrap());
        }
    }
    made.engine.close().await;
    let mut config = config(&dir);
    config.checkpoints = CheckpointPolicy { events: u64::MAX, interval: Duration::from_secs(3_600) };
    config.probe = Some(Arc::new(|event| assert!(&*event.name != "poison", "a planted panic")));
    let rig = Rig { engine: Engine::open(config).unwrap(), ..made };
    // After the first erasure, the log has no event of the second one, so that nothing triggers a
    // checkpoint.
    for user in ["ada", "ben"] {
        let erasure = rig.erase(ErasureSubject::User(user.into())).await.unwrap();
        rig.finish(erasure, user).await;
    }
    let expected = users(&rig).await;
    copy(&dir, &killed);
    let _ = rig.engine.track(rig.projects[0], &NewEvent::new("poison").user("cleo").at_ms(super::BASE_MS)).await;
    let until = Stopwatch::now() + Duration::from_secs(30);
    while rig.engine.ask(rig.projects[0], UniqueUsersQuery { window: window() }).await.is_err() {
        assert!(Stopwatch::now() < until, "the partition is not rebuilt");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(users(&rig).await, expected, "after a panic");
    rig.engine.close().await;

    copy(&killed, &rebuilt);
    for derived in ["store", "fingerprints"] {
        fs::remove_dir_all(rebuilt.join(derived)).unwrap();
    }
    for (dir, what) in [(&killed, "after a kill"), (&rebuilt, "rebuilt")] {
        let rig = rig.open(dir);
        assert_eq!(users(&rig).await, expected, "{what}");
        rig.engine.close().await;
    }
}
