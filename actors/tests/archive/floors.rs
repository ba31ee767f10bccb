//! How floors rise, even without events, files or space.

use std::time::{Duration, Instant as Stopwatch};

use rustix::fs::statvfs;

use super::retention::{DROPPED, RETENTION_DAYS, floor, kept_answers, removed, rows, set_retention, try_rows, verified};
use super::*;

/// Waits until the floor of a project is `expected`.
async fn raised(engine: &Engine, project: ProjectId, expected: Day) {
    let until = Stopwatch::now() + Duration::from_secs(60);
    loop {
        let floor = engine.floor(project).await.unwrap();
        if floor == Some(expected) {
            return;
        }
        assert!(floor.is_none_or(|floor| floor < expected) && Stopwatch::now() < until, "{floor:?}, not {expected}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// No request triggers this: days pass, and the floors follow.
#[tokio::test]
async fn floors_rise_as_days_pass() {
    let dir = tempfile::tempdir().unwrap();
    let clock = FixedClock::at(Instant(BASE_MS + 40 * DAY_MS));
    let ticking = || {
        let mut config = config(dir.path());
        config.clock = Arc::new(clock.clone());
        config.retention_interval = Duration::from_millis(10);
        config
    };
    let (engine, projects) = new(ticking()).await;
    let (project, other) = (projects[0], projects[1]);
    assert!(engine.track(project, &event(0)).await.unwrap().status == Status::Recorded);
    set_retention(&engine, project, Some(RETENTION_DAYS));
    raised(&engine, project, floor()).await;
    // The clock shows ten o'clock. The day is the same for almost 14 hours more.
    clock.set(Instant(BASE_MS + 40 * DAY_MS + 14 * 3_600_000 - 1));
    tokio::time::sleep(Duration::from_millis(60)).await;
    assert_eq!(engine.floor(project).await.unwrap(), Some(floor()));
    clock.set(Instant(BASE_MS + 40 * DAY_MS + 14 * 3_600_000));
    raised(&engine, project, Day(floor().0 + 1)).await;
    // If the clock is set back, no floor falls. If it jumps, the floors follow.
    clock.set(Instant(BASE_MS + 10 * DAY_MS));
    tokio::time::sleep(Duration::from_millis(60)).await;
    assert_eq!(engine.floor(project).await.unwrap(), Some(Day(floor().0 + 1)));
    clock.set(Instant(BASE_MS + 50 * DAY_MS));
    raised(&engine, project, Day(floor().0 + 10)).await;
    assert_eq!(engine.floor(other).await.unwrap(), None);
    engine.close().await;

    // Days also pass while the program is stopped.
    clock.set(Instant(BASE_MS + 60 * DAY_MS));
    let engine = Engine::open(ticking()).unwrap();
    raised(&engine, project, Day(floor().0 + 20)).await;
    engine.close().await;
}

/// A start with a wrong clock, and events sent meanwhile.
#[tokio::test]
async fn a_clock_that_is_years_ahead_removes_and_drops_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let clock = FixedClock::at(Instant(BASE_MS + 40 * DAY_MS));
    let ticking = || {
        let mut config = config(dir.path());
        config.clock = Arc::new(clock.clone());
        config.retention_interval = Duration::from_millis(10);
        config
    };
    let (engine, mut projects) = new(ticking()).await;
    projects.truncate(2);
    let project = projects[0];
    set_retention(&engine, project, Some(RETENTION_DAYS));
    raised(&engine, project, floor()).await;
    send(&engine, &projects, 0..EVENTS / 4).await;
    engine.seal_archive().await.unwrap();
    removed(&engine, dir.path(), project).await;
    let before = kept_answers(&engine, &projects).await;
    let (_, kept) = rows(dir.path(), project);
    engine.close().await;

    // Ten years, and exactly the retention: either would remove all events.
    for days in [3_650, i64::from(RETENTION_DAYS)] {
        clock.set(Instant(BASE_MS + (40 + days) * DAY_MS));
        let engine = Engine::open(ticking()).unwrap();
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(engine.ingest.apply_retention(project).await.unwrap(), Some(floor()), "{days}");
        assert_eq!((engine.vitals().floors_held, engine.clock_state().is_doubted), (1, days > 30));
        assert_eq!(engine.ready().await.is_ok(), days < 30);
        let now = event(2 * EVENTS).at_ms(BASE_MS + 40 * DAY_MS).external_id(format!("during {days}"));
        assert_eq!(engine.track(project, &now).await.unwrap().status, Status::Recorded);
        engine.seal_archive().await.unwrap();
        assert!(rows(dir.path(), project).1 > kept);
        engine.close().await;
        clock.set(Instant(BASE_MS + 40 * DAY_MS));
    }
    let engine = Engine::open(ticking()).unwrap();
    engine.ready().await.unwrap();
    assert_eq!(engine.floor(project).await.unwrap(), Some(floor()));
    assert_ne!(kept_answers(&engine, &projects).await, before, "what came meanwhile counts");
    verified(&engine, "with the clock set").await;
    engine.close().await;

    // The pause was as long as the clock says.
    clock.set(Instant(BASE_MS + 3_690 * DAY_MS));
    let engine = Engine::open(ticking()).unwrap();
    assert!(engine.confirm_clock(Day::parse("2026-01-01").unwrap()).is_err());
    engine.confirm_clock(Day::parse("2034-04-08").unwrap()).unwrap();
    raised(&engine, project, Day(floor().0 + 3_650)).await;
    assert_eq!((engine.vitals().floors_held, engine.clock_state().is_doubted), (0, false));
    assert_eq!(engine.track(project, &event(1).at_ms(BASE_MS + 41 * DAY_MS)).await.unwrap().status, DROPPED);
    engine.close().await;
}

/// No visitor comes after the first day, and the clock shows a wrong year for a while.
#[tokio::test]
async fn visitor_salts_go_after_two_days_although_no_event_comes() {
    let dir = tempfile::tempdir().unwrap();
    let clock = FixedClock::at(Instant(BASE_MS));
    let mut config = config(dir.path());
    config.clock = Arc::new(clock.clone());
    config.retention_interval = Duration::from_millis(10);
    let (engine, projects) = new(config).await;
    assert_eq!(engine.track(projects[0], &NewEvent::new("pageview")).await.unwrap().status, Status::Recorded);
    let salts = || std::fs::read_to_string(dir.path().join("keys/salts")).unwrap();
    let first = salts();
    for days in [1, 3_650, 1] {
        clock.set(Instant(BASE_MS + days * DAY_MS));
        tokio::time::sleep(Duration::from_millis(60)).await;
        assert_eq!(salts(), first, "{days} days later");
    }
    clock.set(Instant(BASE_MS + 2 * DAY_MS));
    let until = Stopwatch::now() + Duration::from_secs(60);
    while salts() != "[]" {
        assert!(Stopwatch::now() < until, "{}", salts());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    engine.close().await;
}

/// The floor of a project without counted events is in its list of files, so that the log may be
/// trimmed.
#[tokio::test]
async fn a_floor_without_files_outlives_the_log() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, projects) = new(config(dir.path())).await;
    let [empty, dropped, other] = projects[..3] else { panic!("three projects") };
    for project in [empty, dropped] {
        set_retention(&engine, project, Some(RETENTION_DAYS));
        // Twice at once, as when days pass while a setting changes: two records have the same
        // floor.
        let (one, two) = tokio::join!(engine.ingest.apply_retention(project), engine.ingest.apply_retention(project));
        assert_eq!((one.unwrap(), two.unwrap()), (Some(floor()), Some(floor())));
    }
    let late = NewEvent::new("order").user("late").value("5").unwrap().at_ms(BASE_MS).external_id("late");
    assert_eq!(engine.track(dropped, &late).await.unwrap().status, DROPPED);
    assert_eq!(engine.track(other, &late).await.unwrap().status, Status::Recorded);
    engine.seal_archive().await.unwrap();
    for project in [empty, dropped] {
        let folder = dir.path().join("archive").join(format!("project={project}"));
        assert!(folder.join("manifest.json").exists() && files(&folder, "parquet").is_empty());
    }
    verified(&engine, "while serving").await;
    engine.close().await;

    for what in ["opened again", "rebuilt"] {
        let engine = open(dir.path());
        for project in [empty, dropped] {
            assert_eq!(engine.floor(project).await.unwrap(), Some(floor()), "{what}");
            assert_eq!(engine.track(project, &late).await.unwrap().status, DROPPED, "{what}");
        }
        assert_eq!(engine.floor(other).await.unwrap(), None);
        verified(&engine, what).await;
        engine.close().await;
        forget(dir.path());
    }
    // The first event that counts comes after the floor.
    let engine = open(dir.path());
    let later = event(1).at_ms(BASE_MS + 30 * DAY_MS);
    assert_eq!(engine.track(empty, &later).await.unwrap().status, Status::Recorded);
    engine.seal_archive().await.unwrap();
    engine.close().await;
    forget(dir.path());
    let engine = open(dir.path());
    assert_eq!(engine.ask(empty, UniqueUsersQuery { window: window() }).await.unwrap().total, 1);
    assert_eq!(engine.floor(empty).await.unwrap(), Some(floor()));
    verified(&engine, "with an event").await;
    engine.close().await;
}

/// Below the minimum of free space, work that needs space may use half of it. Otherwise, only whole
/// files are removed, and all others wait.
#[tokio::test]
async fn a_nearly_full_disk_is_no_reason_to_keep_events() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, mut projects) = new(config(dir.path())).await;
    projects.truncate(2);
    let project = projects[0];
    send(&engine, &projects, 0..EVENTS / 2).await;
    engine.seal_archive().await.unwrap();
    let before = kept_answers(&engine, &projects).await;
    assert!(rows(dir.path(), project).0 > 100);
    engine.close().await;

    let disk = statvfs(dir.path()).unwrap();
    let free = disk.f_bavail * disk.f_frsize;
    let nearly_full = |min_free_bytes| {
        let mut config = config(dir.path());
        config.min_free_bytes = min_free_bytes;
        Engine::open(config).unwrap()
    };
    let engine = nearly_full(u64::MAX);
    assert!(engine.admission.admit(project, None, 100).is_err(), "no event is taken");
    set_retention(&engine, project, Some(RETENTION_DAYS));
    assert_eq!(engine.ingest.apply_retention(project).await.unwrap(), Some(floor()), "the record of a floor is");
    // The floor is saved and all projects are checked before it finds no space.
    let sealed = engine.seal_archive().await;
    assert!(sealed.is_err(), "sealing waits for space, too: {sealed:?}");
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(rows(dir.path(), project).0 > 100 && engine.vitals().retention_pending > 0, "a base needs space");
    same(&kept_answers(&engine, &projects).await, &before, "without space");
    engine.close().await;

    let engine = nearly_full(free + free / 2);
    assert!(engine.admission.admit(project, None, 100).is_err(), "no event is taken");
    let until = Stopwatch::now() + Duration::from_secs(60);
    // Reading fails while files are replaced.
    while !matches!(try_rows(dir.path(), project), Ok((0, _))) {
        assert!(Stopwatch::now() < until, "{:?}", try_rows(dir.path(), project));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(rows(dir.path(), project).1 > 100 && rows(dir.path(), projects[1]).0 > 100);
    same(&kept_answers(&engine, &projects).await, &before, "with half of the space");
    engine.close().await;

    // The base has all files. Files without later days are removed even without any space.
    let mut config = config(dir.path());
    config.min_free_bytes = u64::MAX;
    config.clock = Arc::new(FixedClock::at(Instant(BASE_MS + 100 * DAY_MS)));
    let engine = Engine::open(config).unwrap();
    engine.confirm_clock(Day::parse("2024-06-09").unwrap()).unwrap();
    let folder = dir.path().join("archive").join(format!("project={project}"));
    raised(&engine, project, Day::parse("2024-05-21").unwrap()).await;
    let _ = engine.seal_archive().await;
    let until = Stopwatch::now() + Duration::from_secs(60);
    while !files(&folder, "parquet").is_empty() {
        assert!(Stopwatch::now() < until, "{:?}", files(&folder, "parquet"));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    engine.close().await;

    forget(dir.path());
    let engine = open(dir.path());
    removed(&engine, dir.path(), project).await;
    let users = engine.ask(project, UniqueUsersQuery { window: window() }).await.unwrap();
    assert!(before[0].starts_with(&format!("{users:?}")), "the figures stay");
    verified(&engine, "rebuilt").await;
    engine.close().await;
}
