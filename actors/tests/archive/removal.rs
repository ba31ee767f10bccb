//! Removing events of early days: the state does not change, and neither does a rebuild.

use std::sync::Mutex;
use std::time::{Duration, Instant as Stopwatch};

use headcount_actors::verify::VerifyStatus;
use headcount_archive::{Archive, OldFiles};
use headcount_storage::backup::{Backup, BackupFolder, restore};
use headcount_storage::keyspace::Key;

use super::*;

const PARTS: usize = 4;

fn day(text: &str) -> Day {
    Day::parse(text).unwrap()
}

/// Keeps the events from a day on. Files have 200 rows.
fn keeping(dir: &Path, from: Option<&str>) -> EngineConfig {
    let mut config = config(dir);
    config.log.segment_bytes = 8 << 10;
    config.archive.keep_from = from.map(day);
    config
}

fn archive(dir: &Path, project: ProjectId) -> Archive {
    Archive::existing(&dir.join("archive"), project).unwrap()
}

/// Waits until no file has a row of an earlier day, and no other data are left.
async fn removed(engine: &Engine, what: &str) {
    // The test's switch counts no operation of this.
    let until = Stopwatch::now() + Duration::from_secs(120);
    while engine.vitals().retention_pending > 0 {
        assert!(Stopwatch::now() < until, "{what}: {} projects wait", engine.vitals().retention_pending);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Checks that no file has a row of an earlier day, and no other data are left.
fn check_removed(dir: &Path, projects: &[ProjectId], from: &str, what: &str) {
    for project in projects {
        let archive = archive(dir, *project);
        assert_eq!(OldFiles::of(archive.manifest(), day(from)).count(), 0, "{what}: {:?}", archive.manifest());
        assert_eq!(archive.left_overs().unwrap(), Vec::<PathBuf>::new(), "{what}");
    }
    assert_eq!(rows(dir, projects, from).0, 0, "{what}");
}

/// The number of rows before a day, and from that day on.
fn rows(dir: &Path, projects: &[ProjectId], from: &str) -> (u64, u64) {
    let mut counts = (0, 0);
    for project in projects {
        let counted = archive(dir, *project).for_each_row(0, |row| {
            *(if row.event.day < day(from) { &mut counts.0 } else { &mut counts.1 }) += 1;
            Ok::<_, headcount_archive::error::ArchiveError>(())
        });
        counted.unwrap();
    }
    counts
}

/// The answers of each project from its rollups.
async fn rollups(engine: &Engine, projects: &[ProjectId]) -> Vec<String> {
    let mut answers = Vec::new();
    for project in projects {
        let users = engine.ask(*project, UniqueUsersQuery { window: window() }).await.unwrap();
        let revenue = engine.ask(*project, RevenueMetricsQuery { window: window() }).await.unwrap();
        let version = engine.version(*project, &Depends::Everything).await.unwrap().1;
        answers.push(format!("{users:?} {revenue:?} {version}"));
    }
    answers
}

/// The answers that need no events before a day: rollups, and scans from that day on.
async fn kept_answers(engine: &Engine, projects: &[ProjectId], from: &str) -> Vec<String> {
    let mut answers = rollups(engine, projects).await;
    for (project, answer) in projects.iter().zip(&mut answers) {
        let predicate = Predicate::new(Some("pageview"), Vec::new()).unwrap();
        let kept = Window { start: day(from), ..window() };
        answer.push_str(&format!(" {:?}", engine.scans.unique_users(*project, kept, predicate).await.unwrap()));
    }
    answers
}

async fn verify(engine: &Engine, what: &str) {
    let report = engine.verify(false, &Arc::default()).await.unwrap();
    assert_eq!(report.status(), VerifyStatus::Clean, "{what}: {:?} {:?}", report.cells, report.damaged);
}

/// Two directories with the same events. The first keeps all, the second will lose some.
async fn two(dir: &Path) -> (PathBuf, PathBuf, Vec<ProjectId>) {
    let (kept, trimmed) = (dir.join("kept"), dir.join("trimmed"));
    let (engine, projects) = new(keeping(&kept, None)).await;
    engine.close().await;
    copy(&kept, &trimmed);
    (kept, trimmed, projects)
}

async fn fill(engine: &Engine, projects: &[ProjectId], part: usize) {
    send(engine, projects, part * EVENTS / PARTS..(part + 1) * EVENTS / PARTS).await;
    if part == 1 {
        poison(engine, projects[0]).await;
    }
    if part != PARTS - 1 {
        engine.seal_archive().await.unwrap();
    }
}

/// Removes events before `from` between the parts of the events, and rebuilds at the end.
async fn same_state_after(from: &str, is_all: bool) {
    let dir = tempfile::tempdir().unwrap();
    let (kept, trimmed, projects) = two(dir.path()).await;
    let engine = Engine::open(keeping(&kept, None)).unwrap();
    for part in 0..PARTS {
        fill(&engine, &projects, part).await;
    }
    let expected = kept_answers(&engine, &projects, from).await;
    engine.close().await;
    assert!(rows(&kept, &projects, from).0 > 500);

    let engine = Engine::open(keeping(&trimmed, Some(from))).unwrap();
    let mut bases = std::collections::BTreeSet::new();
    for part in 0..PARTS {
        fill(&engine, &projects, part).await;
        removed(&engine, "removed").await;
        check_removed(&trimmed, &projects, from, "removed");
        bases.extend(archive(&trimmed, projects[0]).manifest().base().map(headcount_archive::base::BaseEntry::position));
    }
    assert!(bases.len() > 1, "a base is replaced when it no longer reaches far enough: {bases:?}");
    assert_eq!(rows(&trimmed, &projects, from).1, rows(&kept, &projects, from).1);
    assert_eq!(files(&trimmed.join("archive"), "parquet").is_empty(), is_all);
    same(&kept_answers(&engine, &projects, from).await, &expected, "while serving");
    verify(&engine, "while serving").await;
    engine.close().await;
    for rebuilt in [false, true] {
        if rebuilt {
            forget(&trimmed);
        }
        let engine = Engine::open(keeping(&trimmed, Some(from))).unwrap();
        same(&kept_answers(&engine, &projects, from).await, &expected, "opened again");
        verify(&engine, "opened again").await;
        engine.close().await;
        same_state(&trimmed, &kept, "opened again");
    }
    forget(&trimmed);
    let engine = Engine::open(keeping(&trimmed, Some(from))).unwrap();
    for number in [0, EVENTS / 3, EVENTS - 1] {
        assert_eq!(engine.track(projects[1], &event(number)).await.unwrap().status, Status::Duplicate);
    }
    engine.close().await;
}

/// Compares all rollups, records and indexes of two closed data directories.
pub(super) fn same_state(found: &Path, expected: &Path, what: &str) {
    let (found, expected) = (stored(found), stored(expected));
    // The saved position of a partition depends on the sealed position.
    let of_project = |key: &&Vec<u8>| !matches!(Key::decode(key), Ok(Key::Record { project: 0, .. }));
    let keys: std::collections::BTreeSet<&Vec<u8>> = found.keys().chain(expected.keys()).filter(of_project).collect();
    let differing: Vec<_> = keys.into_iter().filter(|key| found.get(*key) != expected.get(*key)).collect();
    let shown: Vec<_> = differing.iter().take(5).map(|key| (Key::decode(key), found.get(*key), expected.get(*key))).collect();
    assert!(differing.is_empty(), "{what}: {} differ: {shown:?}", differing.len());
}

#[tokio::test]
async fn a_rebuild_without_events_of_early_days_gives_the_same_state() {
    same_state_after("2024-03-21", false).await;
}

#[tokio::test]
async fn a_rebuild_without_any_event_gives_the_same_state() {
    same_state_after("2024-05-01", true).await;
}

/// A directory with some projects whose events are sealed, and their answers: from rollups, and the
/// kept ones.
async fn sealed(dir: &Path, from: &str, count: usize) -> (PathBuf, Vec<ProjectId>, (Vec<String>, Vec<String>)) {
    let whole = dir.join("whole");
    let (engine, mut projects) = new(keeping(&whole, None)).await;
    projects.truncate(count);
    send(&engine, &projects, 0..400).await;
    engine.seal_archive().await.unwrap();
    send(&engine, &projects, 400..420).await;
    let expected = (rollups(&engine, &projects).await, kept_answers(&engine, &projects, from).await);
    engine.close().await;
    (whole, projects, expected)
}

#[tokio::test]
async fn a_kill_at_each_step_of_a_removal_loses_and_doubles_nothing() {
    let dir = tempfile::tempdir().unwrap();
    // The first day mixes rows in all files of the first two projects. The later day removes whole
    // files.
    let (mixed, whole) = ("2024-03-21", "2024-05-01");
    let (data, projects, (expected, _)) = sealed(dir.path(), mixed, 3).await;
    let copies: Arc<Mutex<Vec<(&'static str, PathBuf)>>> = Arc::default();
    for from in [mixed, whole] {
        let mut config = keeping(&data, Some(from));
        let (source, to, taken) = (data.clone(), dir.path().to_owned(), Arc::clone(&copies));
        config.archive_probe = Some(Arc::new(move |step| {
            let mut taken = taken.lock().unwrap();
            if taken.iter().filter(|(other, _)| *other == step).count() < 2 {
                let copied = to.join(format!("copy-{}", taken.len()));
                copy(&source, &copied);
                taken.push((step, copied));
            }
        }));
        let engine = Engine::open(config).unwrap();
        removed(&engine, "removed").await;
        check_removed(&data, &projects, from, "removed");
        engine.close().await;
    }
    let copies = std::mem::take(&mut *copies.lock().unwrap());
    let steps: std::collections::BTreeSet<&str> = copies.iter().map(|(step, _)| *step).collect();
    let named =
        ["base listed", "base written", "file rewritten", "old files off the list", "old files removed", "rewritten file listed"];
    assert!(named.iter().all(|step| steps.contains(step)), "{steps:?}");
    for (step, copied) in copies {
        let rebuilt = copied.with_extension("rebuilt");
        copy(&copied, &rebuilt);
        forget(&rebuilt);
        for dir in [&rebuilt, &copied] {
            let engine = Engine::open(keeping(dir, Some(mixed))).unwrap();
            same(&rollups(&engine, &projects).await, &expected, step);
            removed(&engine, step).await;
            check_removed(dir, &projects, mixed, step);
            verify(&engine, step).await;
            engine.close().await;
        }
        same_state(&rebuilt, &copied, step);
    }
}

#[tokio::test]
async fn every_operation_of_a_removal_fails_once_and_nothing_is_lost() {
    let dir = tempfile::tempdir().unwrap();
    let from = "2024-03-21";
    let (whole, projects, (_, expected)) = sealed(dir.path(), from, 1).await;
    let data = dir.path().join("data");
    let mut failures = 0;
    // The later operations repeat for each file.
    for at in (1_u64..16).chain((16..200).step_by(9)) {
        let _ = fs::remove_dir_all(&data);
        copy(&whole, &data);
        let (errno, done) = (if at.is_multiple_of(2) { Errno::NoSpace } else { Errno::Io }, at.is_multiple_of(3));
        let mut config = keeping(&data, Some(from));
        config.shards = 1;
        let switch = Switch::arm(&data.join("archive"), Plan { at, failures: 1, errno, done });
        let Ok(engine) = Engine::open(config) else {
            assert!(at < 10, "the opening fails at operation {at}");
            continue;
        };
        let what = format!("{errno:?} at {at}");
        removed(&engine, &what).await;
        let failed = switch.failed().first().cloned();
        drop(switch);
        // A failed attempt to seal may have left files.
        engine.seal_archive().await.unwrap();
        removed(&engine, &what).await;
        check_removed(&data, &projects, from, &what);
        let what = format!("{what}: {failed:?}");
        same(&kept_answers(&engine, &projects, from).await, &expected, &what);
        engine.close().await;
        if failed.is_none() {
            break;
        }
        failures += 1;
        forget(&data);
        let engine = Engine::open(keeping(&data, Some(from))).unwrap();
        same(&kept_answers(&engine, &projects, from).await, &expected, &what);
        engine.close().await;
    }
    assert!(failures > 18, "{failures} failures");
}

#[tokio::test]
async fn a_damaged_base_is_named_where_it_is_needed_and_heals_when_it_is_restored() {
    let dir = tempfile::tempdir().unwrap();
    let from = "2024-03-21";
    let (data, projects, (_, expected)) = sealed(dir.path(), from, 3).await;
    let engine = Engine::open(keeping(&data, Some(from))).unwrap();
    removed(&engine, "removed").await;
    check_removed(&data, &projects, from, "removed");
    let name = archive(&data, projects[0]).manifest().base().unwrap().name();
    let path = archive(&data, projects[0]).dir().join(&name);
    let intact = fs::read(&path).unwrap();
    let mut damaged = intact.clone();
    damaged[intact.len() / 2] ^= 1;
    fs::write(&path, &damaged).unwrap();
    // The state does not need the file. A verification does, and names it.
    same(&kept_answers(&engine, &projects, from).await, &expected, "damaged");
    for quick in [true, false] {
        let report = engine.verify(quick, &Arc::default()).await.unwrap();
        let files: Vec<&str> = report.damaged.iter().map(|damaged| damaged.file.as_str()).collect();
        assert_eq!(files, [format!("archive/project={}/{name}", projects[0])]);
    }
    assert_eq!(engine.vitals().archive_damaged_files, 1);
    engine.close().await;

    forget(&data);
    let engine = Engine::open(keeping(&data, Some(from))).unwrap();
    let asked = engine.ask(projects[0], UniqueUsersQuery { window: window() }).await;
    let Err(AskError::Lost(fault)) = asked else { panic!("answered without a base") };
    assert!(fault.kind == FaultKind::DamagedArchive && fault.message.contains(&name), "{fault}");
    let other = projects.iter().position(|project| partition_of(*project) != partition_of(projects[0]));
    if let Some(other) = other {
        let users = engine.ask(projects[other], UniqueUsersQuery { window: window() }).await.unwrap();
        assert!(expected[other].starts_with(&format!("{users:?}")));
    }
    fs::write(&path, &intact).unwrap();
    let until = Stopwatch::now() + Duration::from_secs(60);
    while engine.version(projects[0], &Depends::Everything).await.is_err() {
        assert!(Stopwatch::now() < until, "it does not heal");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    same(&kept_answers(&engine, &projects, from).await, &expected, "healed");
    engine.close().await;
}

#[tokio::test]
async fn a_backup_has_the_base() {
    let dir = tempfile::tempdir().unwrap();
    let from = "2024-03-21";
    let (data, projects, (_, expected)) = sealed(dir.path(), from, 3).await;
    let engine = Engine::open(keeping(&data, Some(from))).unwrap();
    removed(&engine, "removed").await;
    check_removed(&data, &projects, from, "removed");
    let (backup, restored) = (dir.path().join("backup"), dir.path().join("restored"));
    engine.begin_backup().unwrap().write(&mut BackupFolder::create(&backup, None).unwrap()).unwrap();
    engine.close().await;
    let base = archive(&data, projects[0]).manifest().base().unwrap().name();
    let copied = backup.join(format!("archive/project={}/{base}", projects[0]));
    assert!(copied.exists());
    restore(&Backup::open(&backup).unwrap(), &restored).unwrap();
    let engine = Engine::open(keeping(&restored, Some(from))).unwrap();
    same(&kept_answers(&engine, &projects, from).await, &expected, "restored");
    for number in [0, 100, 399] {
        assert_eq!(engine.track(projects[0], &event(number)).await.unwrap().status, Status::Duplicate);
    }
    verify(&engine, "restored").await;
    engine.close().await;
}
