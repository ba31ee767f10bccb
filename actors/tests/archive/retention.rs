//! Retention as a project's setting: the floor rises, the events below it are removed, and their
//! figures stay.

use std::time::{Duration, Instant as Stopwatch};

use headcount_actors::domain::intake::admission::DropReason;
use headcount_actors::verify::{VerifyReport, VerifyStatus};
use headcount_archive::{Archive, ArchiveError};
use headcount_control::ProjectPatch;

use super::removal::same_state;
use super::*;

/// With the clock of these tests, the floor is 2024-03-22.
pub(super) const RETENTION_DAYS: u32 = 20;
pub(super) const DROPPED: Status = Status::Dropped(DropReason::Retention);
const FLOOR: &str = "2024-03-22";

pub(super) fn floor() -> Day {
    Day::parse(FLOOR).unwrap()
}

/// Frozen figures of the days below the floor, all others of all days, and scans from the floor on.
pub(super) async fn kept_answers(engine: &Engine, projects: &[ProjectId]) -> Vec<String> {
    let mut answers = Vec::new();
    for project in projects {
        let users = engine.ask(*project, UniqueUsersQuery { window: window() }).await.unwrap();
        let revenue = engine.ask(*project, RevenueMetricsQuery { window: window() }).await.unwrap();
        let predicate = Predicate::new(Some("pageview"), Vec::new()).unwrap();
        let kept = Window { start: floor(), ..window() };
        let scanned = engine.scans.unique_users(*project, kept, predicate).await.unwrap();
        answers.push(format!("{users:?} {revenue:?} {scanned:?}"));
    }
    answers
}

/// The number of archived rows of a project before the floor, and from it on. Returns an error if
/// files are removed meanwhile.
pub(super) fn try_rows(dir: &Path, project: ProjectId) -> Result<(u64, u64), ArchiveError> {
    let mut counts = (0, 0);
    Archive::existing(&dir.join("archive"), project)?.for_each_row(0, |row| {
        *(if row.event.day < floor() { &mut counts.0 } else { &mut counts.1 }) += 1;
        Ok::<_, ArchiveError>(())
    })?;
    Ok(counts)
}

pub(super) fn rows(dir: &Path, project: ProjectId) -> (u64, u64) {
    try_rows(dir, project).unwrap()
}

pub(super) async fn verified(engine: &Engine, what: &str) -> VerifyReport {
    let report = engine.verify(false, &Arc::default()).await.unwrap();
    assert_eq!(report.status(), VerifyStatus::Clean, "{what}: {:?} {:?}", report.cells, report.damaged);
    report
}

pub(super) fn set_retention(engine: &Engine, project: ProjectId, days: Option<u32>) {
    let organization = engine.registry().policy(project).unwrap().policy.organization;
    let patch = ProjectPatch { retention_days: Some(days), ..ProjectPatch::default() };
    engine.registry().update_project(organization, project, patch, engine.clock().now()).unwrap();
}

/// Waits until the archive has no row of the project from before the floor.
pub(super) async fn removed(engine: &Engine, dir: &Path, project: ProjectId) {
    let until = Stopwatch::now() + Duration::from_secs(120);
    loop {
        engine.seal_archive().await.unwrap();
        // Sealing marks all projects to be checked.
        let checked = Stopwatch::now() + Duration::from_secs(1);
        while engine.vitals().retention_pending > 0 && Stopwatch::now() < checked {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let rows = try_rows(dir, project);
        if matches!(rows, Ok((0, _))) && engine.vitals().retention_pending == 0 {
            return;
        }
        assert!(Stopwatch::now() < until, "{rows:?}, {} projects wait", engine.vitals().retention_pending);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn a_raised_floor_is_met_soon_although_nothing_is_sealed() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = config(dir.path());
    config.checkpoints.interval = Duration::from_millis(200);
    let (engine, mut projects) = new(config).await;
    projects.truncate(1);
    send(&engine, &projects, 0..EVENTS / 4).await;
    engine.seal_archive().await.unwrap();
    let until = Stopwatch::now() + Duration::from_secs(60);
    while engine.vitals().retention_pending > 0 {
        assert!(Stopwatch::now() < until, "projects wait although none has a floor");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(rows(dir.path(), projects[0]).0 > 100);

    set_retention(&engine, projects[0], Some(RETENTION_DAYS));
    assert_eq!(engine.ingest.apply_retention(projects[0]).await.unwrap(), Some(floor()));
    while !matches!(try_rows(dir.path(), projects[0]), Ok((0, _))) {
        assert!(Stopwatch::now() < until, "events below the floor are still there");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    engine.close().await;
}

#[tokio::test]
async fn events_below_the_floor_go_and_their_figures_stay() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, mut projects) = new(config(dir.path())).await;
    projects.truncate(3);
    let with_retention = projects[0];
    send(&engine, &projects, 0..EVENTS / 2).await;
    engine.seal_archive().await.unwrap();
    send(&engine, &projects, EVENTS / 2..EVENTS * 3 / 4).await;
    let before = kept_answers(&engine, &projects).await;
    let (early, _) = rows(dir.path(), with_retention);
    assert!(early > 100, "{early}");

    set_retention(&engine, with_retention, Some(RETENTION_DAYS));
    assert_eq!(engine.ingest.apply_retention(with_retention).await.unwrap(), Some(floor()));
    removed(&engine, dir.path(), with_retention).await;
    assert!(rows(dir.path(), with_retention).1 > 100, "the later ones stay");
    assert!(rows(dir.path(), projects[1]).0 > 100, "and those of another project");
    same(&kept_answers(&engine, &projects).await, &before, "after the removal");
    // A late event changes nothing. The external ids of removed events stay taken.
    let late = NewEvent::new("order").user("late").value("5").unwrap().at_ms(BASE_MS);
    assert_eq!(engine.track(with_retention, &late).await.unwrap().status, DROPPED);
    let again = event(7).at_ms(BASE_MS + 35 * DAY_MS);
    assert_eq!(engine.track(with_retention, &again).await.unwrap().status, Status::Duplicate);
    same(&kept_answers(&engine, &projects).await, &before, "after late events");
    // Later events continue, and also link users of removed days.
    send(&engine, &projects, EVENTS * 3 / 4..EVENTS).await;
    let expected = kept_answers(&engine, &projects).await;
    assert_ne!(expected, before);
    let report = verified(&engine, "while serving").await;
    assert!(report.projects[&with_retention].frozen > 0, "{:?}", report.projects[&with_retention]);
    assert_eq!(report.projects[&projects[1]].frozen, 0);
    // A floor never falls.
    set_retention(&engine, with_retention, None);
    assert_eq!(engine.ingest.apply_retention(with_retention).await.unwrap(), Some(floor()));
    engine.close().await;
    let served = tempfile::tempdir().unwrap();
    copy(dir.path(), &served.path().join("data"));

    for what in ["opened again", "rebuilt"] {
        let engine = open(dir.path());
        same(&kept_answers(&engine, &projects).await, &expected, what);
        assert_eq!(engine.floor(with_retention).await.unwrap(), Some(floor()), "{what}");
        verified(&engine, what).await;
        engine.close().await;
        same_state(dir.path(), &served.path().join("data"), what);
        forget(dir.path());
    }
    let engine = open(dir.path());
    assert_eq!(engine.track(with_retention, &late).await.unwrap().status, DROPPED);
    assert_eq!(engine.track(with_retention, &again).await.unwrap().status, Status::Duplicate);
    engine.close().await;
}
