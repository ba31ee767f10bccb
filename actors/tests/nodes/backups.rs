//! Backups of two nodes: a restored machine answers like one that always had everything.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant as Stopwatch};

use headcount_actors::backup::BackupFailure;
use headcount_actors::domain::time::Instant;
use headcount_actors::{Engine, EngineConfig, NodesBackupError};
use headcount_common::clock::FixedClock;
use headcount_control::NewProject;
use headcount_histories::{History, Rng, Size, Step};
use headcount_storage::backup::{Backup, BackupError, BackupFolder};
use serde_json::json;

use crate::rig::{NOW_MS, Rig, Trouble};
use crate::{Names, answers, windows};

/// The tag of questions for events.
const EVENTS: [u8; 2] = 1041_u16.to_le_bytes();

/// Backs everything up through a node.
async fn back_up(engine: &Engine, dir: &Path) -> Result<(), NodesBackupError> {
    back_up_until(engine, dir, |_| false, |_| ()).await
}

/// The same, until `is_over`, which gets the number of its earlier calls. `between` is called after
/// the beginning.
async fn back_up_until(
    engine: &Engine,
    dir: &Path,
    is_over: impl Fn(usize) -> bool + Send + 'static,
    between: impl FnOnce(&Engine) + Send + 'static,
) -> Result<(), NodesBackupError> {
    let (engine, dir) = (engine.clone(), dir.to_owned());
    let write = move || {
        let backup = engine.begin_nodes_backup()?;
        between(&engine);
        let asked = AtomicUsize::new(0);
        let is_over = || is_over(asked.fetch_add(1, Ordering::SeqCst));
        backup.write(&mut BackupFolder::create(&dir, None).map_err(BackupFailure::from)?, &is_over).map(drop)
    };
    tokio::task::spawn_blocking(write).await.unwrap()
}

fn restored(backup: &Path, to: &Path) -> Engine {
    let opened = Backup::open(backup).unwrap();
    opened.check().unwrap();
    headcount_actors::backup::restore(&opened, to, None).unwrap();
    let mut config = EngineConfig::new(to);
    (config.shards, config.min_free_bytes) = (2, 0);
    config.clock = Arc::new(FixedClock::at(Instant(NOW_MS)));
    Engine::open(config).unwrap()
}

/// Records a history. Returns its names.
async fn record(rig: &Rig, history: &History, rng: &mut Rng, seals: bool) -> Names {
    let mut names = Names::default();
    for (number, step) in history.steps.iter().enumerate() {
        let bodies = match step {
            Step::Track { body, .. } => vec![body],
            Step::Batch { bodies, .. } => bodies.iter().collect(),
            Step::Rates(table) => {
                rig.set_rates(table);
                continue;
            }
            Step::Settings { .. } | Step::Restart | Step::Floor { .. } | Step::Clock { .. } | Step::Ask(_) => continue,
        };
        for body in bodies {
            names.add(body);
            rig.send(*rng.pick(&rig.projects), body).await;
        }
        if seals && number == history.steps.len() / 2 {
            rig.seal().await;
        }
    }
    names
}

/// Compares the answers of one machine with those of the machine with everything. Returns their
/// number.
async fn compare(rig: &Rig, one: &Engine, names: &Names, of: &str) -> usize {
    let mut compared = 0;
    for window in windows(rig.timezone) {
        let [expected, found] = [
            answers(&rig.single, rig.organization, names, window, 9).await,
            answers(one, rig.organization, names, window, 9).await,
        ];
        assert_eq!(expected, found, "{of}, {window:?}");
        compared += expected.iter().filter(|answer| !answer.contains("Ok(None)")).count();
    }
    compared
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_machine_answers_from_a_backup_of_two() {
    let mut compared = 0;
    for seed in 29_000..29_006 {
        let history = History::from_seed(seed, NOW_MS, Size { events: 120, questions: 0 });
        let (rig, mut rng, place) = (Rig::new(&history).await, Rng::new(seed), tempfile::tempdir().unwrap());
        // Either sealed events or floors, since sealed events below a floor are removed.
        let seals = seed % 2 == 0;
        let names = record(&rig, &history, &mut rng, seals).await;
        if !seals {
            rig.retain(*rng.pick(&rig.projects), 60).await;
        }
        for (name, node) in [("a", &rig.a), ("b", &rig.b)] {
            let (backup, to) = (place.path().join(name), place.path().join(format!("{name}-data")));
            back_up(node, &backup).await.unwrap();
            assert!(!node.data_dir().join("backup.tmp").exists());
            let one = restored(&backup, &to);
            compared += compare(&rig, &one, &names, &format!("seed {seed}, through {name}")).await;
            one.close().await;
        }
        rig.close().await;
    }
    println!("{compared} answers from backups of two nodes compared with those of one");
    assert!(compared > 500, "{compared}");
}

/// More events than fit in one page, half of them sealed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_events_are_backed_up_in_several_pages() {
    let history = History::from_seed(1, NOW_MS, Size { events: 1, questions: 0 });
    let (rig, place) = (Rig::new(&history).await, tempfile::tempdir().unwrap());
    let mut names = Names::default();
    let text = |number: u64| {
        (0..1_000_u64).map(|at| format!("{:08x}", (at + number).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32)).collect::<String>()
    };
    for number in 0..1_600 {
        let mut event = json!({"name": "order", "value": 2, "user_id": format!("u{}", number % 50), "external_id": format!("x{number}"),
                               "timestamp": NOW_MS - 1_000_000 + number as i64});
        event["metadata"] = json!({"text": text(number)});
        names.add(&event.to_string());
        rig.send(rig.projects[5 * (number as usize % 2)], &event.to_string()).await;
        if number == 800 {
            rig.seal().await;
        }
    }
    rig.wire.requests.lock().unwrap().clear();
    back_up(&rig.a, &place.path().join("backup")).await.unwrap();
    let requests = rig.wire.requests.lock().unwrap().iter().filter(|request| request.starts_with(&EVENTS)).count();
    assert!(requests >= 8, "{requests}");
    let one = restored(&place.path().join("backup"), &place.path().join("data"));
    assert!(compare(&rig, &one, &names, "many").await > 50);
    one.close().await;
    rig.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_that_would_be_wrong_fails_and_says_why() {
    let history = History::from_seed(2, NOW_MS, Size { events: 60, questions: 0 });
    let (rig, place, mut rng) = (Rig::new(&history).await, tempfile::tempdir().unwrap(), Rng::new(2));
    record(&rig, &history, &mut rng, true).await;
    let dir = |name: &str| place.path().join(name);
    // The client leaves, at any moment.
    for asked in [0, 3, 5] {
        let stopped = back_up_until(&rig.b, &dir("stopped"), move |before| before >= asked, |_| ()).await.unwrap_err();
        assert!(matches!(stopped, NodesBackupError::Stopped), "{stopped}");
    }
    // The other node gives a senseless answer.
    *rig.wire.trouble.lock().unwrap() = Some(Trouble::OtherVersion);
    let failed = back_up(&rig.b, &dir("other")).await.unwrap_err();
    assert!(matches!(failed, NodesBackupError::Asking(_)), "{failed}");
    *rig.wire.trouble.lock().unwrap() = None;
    // Only one at a time.
    let running = dir("running");
    let second = move |engine: &Engine| {
        let second = engine.begin_nodes_backup().unwrap_err();
        assert!(matches!(second, NodesBackupError::Failed(BackupFailure::Running)), "{second}");
    };
    back_up_until(&rig.b, &running, |_| false, second).await.unwrap();
    for name in ["stopped", "other"] {
        let opened = Backup::open(&dir(name));
        assert!(matches!(opened, Err(BackupError::Incomplete { .. })), "{name}");
    }
    rig.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn projects_are_deleted_and_made_during_a_backup() {
    let history = History::from_seed(2, NOW_MS, Size { events: 60, questions: 0 });
    let (rig, place, mut rng) = (Rig::new(&history).await, tempfile::tempdir().unwrap(), Rng::new(2));
    let names = record(&rig, &history, &mut rng, true).await;
    let (organization, gone, backup) = (rig.organization, rig.projects[0], place.path().join("backup"));
    let change = move |engine: &Engine| {
        engine.delete_project(organization, gone, Instant(NOW_MS)).unwrap();
        let new = NewProject { name: "late".to_owned(), ..NewProject::default() };
        engine.registry().create_project(organization, new, Instant(NOW_MS)).unwrap();
    };
    back_up_until(&rig.a, &backup, |_| false, change).await.unwrap();
    let one = restored(&backup, &place.path().join("data"));
    assert!(one.registry().policy(gone).is_none());
    let made = one.registry().projects(organization).unwrap();
    assert!(made.iter().any(|project| project.name == "late"), "the control data are those of the end");
    let began = Stopwatch::now();
    while one.vitals().deletions_pending > 0 {
        assert!(began.elapsed() < Duration::from_secs(60), "the deletion does not end");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    rig.single.delete_project(organization, gone, Instant(NOW_MS)).unwrap();
    assert!(compare(&rig, &one, &names, "without a project").await > 50);
    one.close().await;
    rig.close().await;
}
