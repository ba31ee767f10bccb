//! Other projects of the same partition are served while a project is folded again without an
//! erased identity.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;

use headcount_common::partition_of;

use super::*;

/// The steps of a fold before and after its state is saved.
const COMPUTED: &str = "state without an erased identity computed";
const SAVED: &str = "state without an erased identity saved";

/// A data directory with a project of many events, a few of them of "zanzibar", and a neighbour in
/// the same partition.
async fn beside_a_large_one(dir: &Path, count: u64) -> Rig {
    let mut rig = Rig::new(dir);
    let large = rig.projects[0];
    let neighbour = loop {
        let new = NewProject { name: "neighbour".into(), ..NewProject::default() };
        let made = rig.engine.registry().create_project(rig.organization, new, Instant(BASE_MS)).unwrap().id;
        if partition_of(made) == partition_of(large) {
            break made;
        }
    };
    rig.projects = vec![large, neighbour];
    for first in (0..count).step_by(500) {
        let one = |number| {
            let user = if number % 97 == 0 { "zanzibar".to_owned() } else { format!("user-{}", number % 700) };
            let event = NewEvent::new("pageview").at_ms(BASE_MS + i64::try_from(number % 800).unwrap() * HOUR_MS);
            event.user(user).with(Field::Url, format!("https://shop.example/{}", number % 300)).external_id(format!("x{number}"))
        };
        let events: Vec<NewEvent> = (first..first + 500).map(one).collect();
        assert_eq!(rig.engine.track_batch(large, &events).await.unwrap().recorded, 500);
        if first == count / 2 {
            drop(rig.engine.seal_archive().await.unwrap());
        }
    }
    rig.engine.close().await;
    rig
}

async fn total(rig: &Rig, project: ProjectId) -> Option<u64> {
    rig.engine.ask(project, UniqueUsersQuery { window: window() }).await.ok().map(|users| users.total)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_neighbour_takes_events_and_answers_all_the_time() {
    let home = tempfile::tempdir().unwrap();
    let made = beside_a_large_one(home.path(), 6_000).await;
    let (large, neighbour) = (made.projects[0], made.projects[1]);
    // The events that the shard applies.
    let (of_large, of_neighbour) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let mut config = config(home.path());
    let counted = (Arc::clone(&of_large), Arc::clone(&of_neighbour));
    config.probe = Some(Arc::new(move |event| {
        let counter = if event.project == large { &counted.0 } else { &counted.1 };
        counter.fetch_add(1, Ordering::SeqCst);
    }));
    let rig = Rig { engine: Engine::open(config).unwrap(), ..made };
    let before = total(&rig, large).await.unwrap();
    let replayed = of_large.load(Ordering::SeqCst);
    let erasure = rig.erase(ErasureSubject::User("zanzibar".into())).await.unwrap();
    let (mut sent, mut answers, mut refused) = (0, 0, 0);
    let until = Stopwatch::now() + Duration::from_secs(60);
    let mut is_done = false;
    while !is_done {
        assert!(Stopwatch::now() < until, "the erasure does not end");
        // Also checked once after its end.
        is_done = rig.engine.erasure(rig.organization, erasure) == Some(ErasureState::Done);
        let event = of_user(&format!("n{sent}"), sent % 700).external_id(format!("n{sent}"));
        assert_eq!(rig.engine.track(neighbour, &event).await.unwrap().status, Status::Recorded);
        sent += 1;
        assert_eq!(total(&rig, neighbour).await, Some(sent), "the neighbour answers");
        match total(&rig, large).await {
            Some(users) => {
                assert!(users == before || users + 1 == before, "with her or without: {users} of {before}");
                answers += 1;
            }
            None => refused += 1,
        }
    }
    assert_eq!(total(&rig, large).await, Some(before - 1));
    // However many events are folded, the neighbour's events never wait for one of them.
    assert_eq!(of_large.load(Ordering::SeqCst), replayed, "events that were folded by the shard");
    assert_eq!(of_neighbour.load(Ordering::SeqCst), sent);
    assert!(answers > 0 && sent > 1, "{sent} sent, {answers} answers, {refused} refused");
    rig.engine.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_of_the_project_itself_are_recorded_while_it_is_folded() {
    let home = tempfile::tempdir().unwrap();
    let made = beside_a_large_one(home.path(), 3_000).await;
    let rig = made.open(home.path());
    let large = rig.projects[0];
    let before = total(&rig, large).await.unwrap();
    let erasure = rig.erase(ErasureSubject::User("zanzibar".into())).await.unwrap();
    let mut recorded = 0;
    let mut is_done = false;
    while !is_done {
        is_done = rig.engine.erasure(rig.organization, erasure) == Some(ErasureState::Done);
        let event = of_user(&format!("late{recorded}"), recorded % 700).external_id(format!("late{recorded}"));
        match rig.engine.track(large, &event).await {
            Ok(receipt) => {
                assert_eq!(receipt.status, Status::Recorded);
                recorded += 1;
            }
            Err(Refusal::Track(TrackError::Unavailable(_))) => tokio::time::sleep(Duration::from_millis(1)).await,
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!(total(&rig, large).await, Some(before - 1 + recorded));
    let report = rig.engine.verify(false, &Arc::default()).await.unwrap();
    assert!(report.differing == 0 && report.damaged.is_empty(), "{report:?}");
    rig.engine.close().await;
    let rig = rig.open(home.path());
    assert_eq!(total(&rig, large).await, Some(before - 1 + recorded), "after a restart");
    let again = of_user("late0", 0).external_id("late0");
    assert_eq!(rig.engine.track(large, &again).await.unwrap().status, Status::Duplicate);
    rig.engine.close().await;
    assert_gone(home.path(), "zanzibar", "events meanwhile");
}

/// A panic at a step of the fold makes the shard give the partition up. Whatever was replaced by
/// then, no event is lost, and no erased person comes back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_partition_that_is_given_up_meanwhile_loses_nothing() {
    for step in [COMPUTED, SAVED] {
        let home = tempfile::tempdir().unwrap();
        let made = beside_a_large_one(home.path(), 1_000).await;
        let (large, neighbour) = (made.projects[0], made.projects[1]);
        let mut config = config(home.path());
        config.probe = Some(Arc::new(|event| assert!(&*event.name != "poison", "a planted panic")));
        let (reached, at_step) = channel();
        let (go_on, wait) = channel::<()>();
        let wait = Mutex::new(Some(wait));
        config.archive_probe = Some(Arc::new(move |done: &'static str| {
            if done == step
                && let Some(wait) = wait.lock().unwrap().take()
            {
                reached.send(()).unwrap();
                let _ = wait.recv();
            }
        }));
        let rig = Rig { engine: Engine::open(config).unwrap(), ..made };
        let before = total(&rig, large).await.unwrap();
        let erasure = rig.erase(ErasureSubject::User("zanzibar".into())).await.unwrap();
        tokio::task::spawn_blocking(move || at_step.recv_timeout(Duration::from_secs(60)).unwrap()).await.unwrap();
        assert_eq!(total(&rig, large).await, None, "{step}: it is held");
        let poison = NewEvent::new("poison").user("nora").at_ms(BASE_MS);
        let _outcome = rig.engine.track(neighbour, &poison).await;
        go_on.send(()).unwrap();
        rig.finish(erasure, step).await;
        let event = of_user("nora", 5);
        assert_eq!(rig.engine.track(neighbour, &event).await.unwrap().status, Status::Recorded, "{step}");
        assert_eq!((total(&rig, large).await, total(&rig, neighbour).await), (Some(before - 1), Some(1)), "{step}");
        rig.engine.close().await;
        let rig = rig.open(home.path());
        assert_eq!((total(&rig, large).await, total(&rig, neighbour).await), (Some(before - 1), Some(1)), "{step}: restarted");
        rig.engine.close().await;
        assert_gone(home.path(), "zanzibar", step);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_erasure_ends_while_somebody_always_waits_for_sealing() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("d");
    let made = half_sealed(&dir).await;
    let rig = made.open(&dir);
    let has_ended = Arc::new(AtomicBool::new(false));
    let ask = |_| {
        let (engine, has_ended) = (rig.engine.clone(), Arc::clone(&has_ended));
        tokio::spawn(async move {
            while !has_ended.load(Ordering::Acquire) {
                drop(engine.seal_archive().await);
            }
        })
    };
    let asking: Vec<_> = (0..8).map(ask).collect();
    let erasure = rig.erase(ErasureSubject::User("zanzibar".into())).await.unwrap();
    rig.finish(erasure, "asked to seal").await;
    has_ended.store(true, Ordering::Release);
    for asked in asking {
        asked.await.unwrap();
    }
    rig.engine.close().await;
    assert_gone(&dir, "zanzibar", "asked to seal");
}
