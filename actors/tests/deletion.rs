//! Deleting projects: they are gone from every answer at once, and from every file soon, even if
//! operations fail or the process is killed.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a panic is a failed test")]

#[path = "support/copies.rs"]
mod copies;

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant as Stopwatch};

use copies::copy;
use headcount_actors::domain::ids::{OrganizationId, ProjectId};
use headcount_actors::domain::queries::{RevenueMetricsQuery, UniqueUsersQuery};
use headcount_actors::domain::time::{Day, Instant, Window};
use headcount_actors::domain::versions::Depends;
use headcount_actors::ingest::{Field, NewEvent, Status};
use headcount_actors::{Engine, EngineConfig};
use headcount_common::clock::FixedClock;
use headcount_common::partition_of;
use headcount_control::{NewProject, RegistryError};
use headcount_storage::backup::{Backup, BackupFolder, restore};
use headcount_storage::files::switch::{Errno, Plan, Switch};
use headcount_storage::keyspace::{Key, PartitionId};
use headcount_storage::store::{DiskStore, Store, StoreOptions};

/// 2024-03-01T10:00:00Z
const BASE_MS: i64 = 1_709_287_200_000;
const DAY_MS: i64 = 86_400_000;
const PROJECTS: usize = 5;
/// A text that only events of deleted projects have.
const MARK: &str = "zanzibar";

fn config(dir: &Path) -> EngineConfig {
    let mut config = EngineConfig::new(dir);
    config.shards = 2;
    config.min_free_bytes = 0;
    config.log.segment_bytes = 64 << 10;
    config.clock = Arc::new(FixedClock::at(Instant(BASE_MS + 40 * DAY_MS)));
    config.archive.month_files = Some(2);
    config.probe = Some(Arc::new(|event| assert!(&*event.name != "poison", "a planted panic")));
    config
}

struct Rig {
    engine: Engine,
    organization: OrganizationId,
    /// The first two share a partition. Tests delete them, and the third.
    projects: Vec<ProjectId>,
}

impl Rig {
    /// Creates projects until two of them share a partition.
    fn new(config: EngineConfig) -> Self {
        let engine = Engine::open(config).unwrap();
        let now = engine.clock().now();
        let initial = engine.registry().initialize(now).unwrap();
        let organization = initial.organization_id;
        let (mut projects, mut shared) = (vec![initial.project_id], Vec::new());
        while projects.len() < PROJECTS || shared.is_empty() {
            let id =
                engine.registry().create_project(organization, NewProject { name: "p".into(), ..NewProject::default() }, now);
            let id = id.unwrap().id;
            match projects.iter().position(|other| partition_of(*other) == partition_of(id)) {
                Some(place) if shared.is_empty() => shared = vec![projects.remove(place), id],
                Some(_) => engine.delete_project(organization, id, engine.clock().now()).unwrap(),
                None if projects.len() < PROJECTS => projects.push(id),
                None => engine.delete_project(organization, id, engine.clock().now()).unwrap(),
            }
        }
        shared.extend(projects);
        Self { engine, organization, projects: shared }
    }

    fn open(config: EngineConfig, former: &Self) -> Self {
        let engine = Engine::open(config).unwrap();
        Self { engine, organization: former.organization, projects: former.projects.clone() }
    }

    async fn send(&self, numbers: std::ops::Range<usize>) {
        for (place, project) in self.projects.iter().enumerate() {
            if self.engine.registry().policy(*project).is_none() {
                continue;
            }
            let events: Vec<NewEvent> = numbers.clone().map(|number| event(place, number)).collect();
            for events in events.chunks(50) {
                let receipt = self.engine.track_batch(*project, events).await.unwrap();
                assert!(receipt.errors.is_empty(), "{:?}", receipt.errors);
            }
        }
    }

    /// The answers of the projects from the fourth on, and of the organization.
    async fn answers(&self) -> Vec<String> {
        let mut answers = Vec::new();
        for project in &self.projects[3..] {
            let users = self.engine.ask(*project, UniqueUsersQuery { window: window() }).await.unwrap();
            let revenue = self.engine.ask(*project, RevenueMetricsQuery { window: window() }).await.unwrap();
            answers.push(format!(
                "{users:?} {revenue:?} {:?}",
                self.engine.version(*project, &Depends::Everything).await.unwrap().1
            ));
        }
        answers
    }

    fn delete(&self, project: usize) {
        self.engine.delete_project(self.organization, self.projects[project], self.engine.clock().now()).unwrap();
    }

    /// Waits until no data of the deleted projects are left.
    async fn finish(&self, what: &str) {
        let until = Stopwatch::now() + Duration::from_secs(240);
        while self.engine.vitals().deletions_pending > 0 {
            assert!(Stopwatch::now() < until, "{what}: the deletion does not end");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

fn event(place: usize, number: usize) -> NewEvent {
    let day = i64::try_from(number * 7 % 40).unwrap();
    let mark = if place < 3 { MARK } else { "other" };
    let event = NewEvent::new(if number.is_multiple_of(3) { "order" } else { "pageview" });
    let event = event.at_ms(BASE_MS + day * DAY_MS + 1_000 * i64::try_from(number).unwrap());
    let event = event.anonymous(format!("{mark}-a{}", number % 50)).external_id(format!("{mark}-o{number}"));
    let event = event.with(Field::Url, format!("https://shop.example/{mark}/{}", number % 7));
    let event = if number.is_multiple_of(5) { event.user(format!("{mark}-u{}", number % 20)) } else { event };
    if number.is_multiple_of(3) { event.value("12.25").unwrap() } else { event }
}

fn window() -> Window {
    Window { start: Day::parse("2024-03-01").unwrap(), end: Day::parse("2024-04-10").unwrap() }
}

fn all_files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(all_files(&path)) } else { found.push(path) }
    }
    found
}

/// The pairs of a project in the store of a closed data directory.
fn stored(dir: &Path, project: ProjectId) -> usize {
    let (store, _) = DiskStore::open_or_create(&dir.join("store"), StoreOptions::default()).unwrap();
    let mut pairs = 0;
    for prefix in Key::all_of(PartitionId(partition_of(project)), project.0) {
        store
            .scan(&prefix, &mut |_, _| {
                pairs += 1;
                ControlFlow::Continue(())
            })
            .unwrap();
    }
    pairs
}

/// Asserts that no file of a closed data directory has data of the first three projects. sled's old
/// pages may have sums, which name no person.
fn assert_gone(dir: &Path, projects: &[ProjectId], what: &str) {
    for project in &projects[..3] {
        assert_eq!(stored(dir, *project), 0, "{what}: the store has something of {project}");
        assert!(!dir.join(format!("archive/project={project}")).exists(), "{what}: {project}");
        let catalog = fs::read_to_string(dir.join("archive/sealed.json")).unwrap();
        assert!(!catalog.contains(&project.to_string()), "{what}: {catalog}");
    }
    for path in all_files(dir) {
        let bytes = fs::read(&path).unwrap();
        let has = |text: &str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
        assert!(!has(MARK), "{what}: {} has the mark", path.display());
    }
}

/// Does the work of each item, five at a time, since deletions mostly wait for their next step.
fn some_at_once<T: Send, W: Future<Output = ()>>(items: Vec<T>, work: impl Fn(T) -> W + Sync) {
    let items = Mutex::new(items);
    std::thread::scope(|scope| {
        for _ in 0..5 {
            scope.spawn(|| {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                loop {
                    let item = items.lock().unwrap().pop();
                    let Some(item) = item else { return };
                    runtime.block_on(work(item));
                }
            });
        }
    });
}

/// Removes the derived data, so that the next start rebuilds them.
fn forget(dir: &Path) {
    fs::remove_dir_all(dir.join("store")).unwrap();
    fs::remove_dir_all(dir.join("fingerprints")).unwrap();
}

#[tokio::test]
async fn a_deleted_project_is_gone_from_answers_at_once_and_from_files_soon() {
    let dir = tempfile::tempdir().unwrap();
    let rig = Rig::new(config(dir.path()));
    rig.send(0..150).await;
    rig.engine.seal_archive().await.unwrap();
    rig.send(150..300).await;
    // A dead letter, a journal, and a store that was moved aside.
    let _ = rig.engine.track(rig.projects[0], &NewEvent::new("poison").user(MARK).at_ms(BASE_MS)).await;
    let until = Stopwatch::now() + Duration::from_secs(30);
    while rig.engine.vitals().dead_letters == 0 || rig.engine.version(rig.projects[0], &Depends::Everything).await.is_err() {
        assert!(Stopwatch::now() < until, "nothing is set aside");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let journal = |project: ProjectId| format!("{{\"import\":{{\"how\":\"{project} events\",\"file\":\"x\"}}}}\n");
    fs::create_dir_all(dir.path().join("imports")).unwrap();
    fs::write(dir.path().join("imports/1.ndjson"), journal(rig.projects[0])).unwrap();
    fs::write(dir.path().join("imports/2.ndjson"), journal(rig.projects[3])).unwrap();
    fs::create_dir_all(dir.path().join("store.damaged-1")).unwrap();
    fs::write(dir.path().join("store.damaged-1/REASON"), MARK).unwrap();
    let before = rig.answers().await;
    let version = rig.engine.organization_version(rig.organization).await.unwrap();

    (0..3).for_each(|project| rig.delete(project));
    let again = rig.engine.delete_project(rig.organization, rig.projects[0], rig.engine.clock().now());
    assert!(matches!(again, Err(RegistryError::NotFound { .. })), "{again:?}");
    // A question in flight finds nothing.
    let users = rig.engine.ask(rig.projects[0], UniqueUsersQuery { window: window() }).await.unwrap();
    assert_eq!(users.total, 0);
    assert_ne!(rig.engine.organization_version(rig.organization).await.unwrap(), version);
    assert!(rig.engine.admission.admit(rig.projects[0], None, 100).is_err());
    assert_eq!(rig.answers().await, before);
    rig.finish("at once").await;
    assert_eq!(rig.answers().await, before);
    rig.send(250..400).await;
    let after = rig.answers().await;
    assert_eq!(rig.engine.track(rig.projects[3], &event(3, 7)).await.unwrap().status, Status::Duplicate);
    rig.engine.close().await;
    assert_gone(dir.path(), &rig.projects, "in the end");
    assert!(!dir.path().join("imports/1.ndjson").exists() && dir.path().join("imports/2.ndjson").exists());
    assert!(!dir.path().join("store.damaged-1").exists());

    for what in ["restarted", "rebuilt"] {
        let rig = Rig::open(config(dir.path()), &rig);
        assert_eq!(rig.answers().await, after, "{what}");
        for number in [0, 170, 399] {
            assert_eq!(rig.engine.track(rig.projects[4], &event(4, number)).await.unwrap().status, Status::Duplicate, "{what}");
        }
        rig.engine.close().await;
        forget(dir.path());
    }
}

/// Events admitted before the deletion may come after it.
#[tokio::test]
async fn a_deletion_waits_for_events_under_way() {
    let dir = tempfile::tempdir().unwrap();
    let rig = Rig::new(config(dir.path()));
    rig.send(0..20).await;
    let held = rig.engine.registry().policy(rig.projects[0]).unwrap();
    let permit = rig.engine.admission.admit(rig.projects[0], None, 1_000).unwrap();
    let body = format!("{{\"name\":\"order\",\"value\":3,\"user_id\":\"{MARK}\"}}");
    let prepared = rig.engine.ingest.prepare(&held.policy, body.as_bytes(), &headcount_actors::ingest::Origin::SERVER).unwrap();
    (0..3).for_each(|project| rig.delete(project));
    let until = Stopwatch::now() + Duration::from_secs(240);
    while rig.engine.vitals().deletions_pending > 1 {
        assert!(Stopwatch::now() < until, "the others wait, too");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    tokio::time::sleep(Duration::from_millis(600)).await;
    assert_eq!(rig.engine.vitals().deletions_pending, 1, "that of the project with an event under way");
    // A backup that is not read to its end also delays the end of the deletion.
    let backup = rig.engine.begin_backup().unwrap();
    let receipt = rig.engine.ingest.record(&rig.engine.ingest.tracker, held.policy.project, prepared, permit).await.unwrap();
    assert_eq!(receipt.status, Status::Recorded);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(rig.engine.vitals().deletions_pending, 1, "beside a backup");
    drop(backup);
    rig.finish("then").await;
    rig.engine.close().await;
    assert_gone(dir.path(), &rig.projects, "with an event under way");
}

/// A kill leaves the same as a copy at that moment, since the page cache outlives the process.
#[tokio::test]
async fn a_kill_at_each_step_is_made_up_for() {
    let dir = tempfile::tempdir().unwrap();
    let whole = dir.path().join("whole");
    let rig = Rig::new(config(&whole));
    rig.send(0..100).await;
    rig.engine.seal_archive().await.unwrap();
    rig.send(100..150).await;
    rig.engine.close().await;
    let copies: Arc<Mutex<Vec<(&'static str, PathBuf)>>> = Arc::default();
    let (from, to, taken) = (whole.clone(), dir.path().to_owned(), Arc::clone(&copies));
    // The first deletion may begin before the others are recorded.
    let are_recorded = Arc::<AtomicBool>::default();
    let is_ready = Arc::clone(&are_recorded);
    let mut probed = config(&whole);
    probed.archive_probe = Some(Arc::new(move |step| {
        let mut taken = taken.lock().unwrap();
        // There are enough copies of each step.
        if !is_ready.load(Ordering::SeqCst) || taken.iter().filter(|(other, _)| *other == step).count() >= 3 {
            return;
        }
        let copied = to.join(format!("copy-{}", taken.len()));
        copy(&from, &copied);
        taken.push((step, copied));
    }));
    let rig = Rig::open(probed, &rig);
    let before = rig.answers().await;
    (0..3).for_each(|project| rig.delete(project));
    are_recorded.store(true, Ordering::SeqCst);
    rig.finish("with copies").await;
    rig.engine.close().await;
    let copies = std::mem::take(&mut *copies.lock().unwrap());
    for expected in [
        "archive of a deleted project removed",
        "part of a deleted project removed",
        "tables without a deleted project written",
        "log trimmed",
        "deletion finished",
    ] {
        assert!(copies.iter().any(|(step, _)| *step == expected), "{expected}");
    }
    let (rig, before) = (&rig, &before);
    some_at_once(copies, |(step, copied)| async move {
        for what in ["resumed", "rebuilt"] {
            let rig = Rig::open(config(&copied), rig);
            assert_eq!(&rig.answers().await, before, "{step}, {what}");
            rig.finish(step).await;
            assert_eq!(&rig.answers().await, before, "{step}, {what} and finished");
            assert!(rig.projects[..3].iter().all(|project| rig.engine.registry().policy(*project).is_none()));
            rig.engine.close().await;
            assert_gone(&copied, &rig.projects, step);
            forget(&copied);
        }
        fs::remove_dir_all(copied).unwrap();
    });
}

#[tokio::test]
async fn every_operation_on_files_fails_once_and_the_deletion_ends() {
    let dir = tempfile::tempdir().unwrap();
    let base = dir.path().join("base");
    let rig = Rig::new(config(&base));
    rig.send(0..60).await;
    rig.engine.seal_archive().await.unwrap();
    rig.send(60..90).await;
    rig.engine.close().await;
    let (rig, dir, base) = (&rig, dir.path(), &base);
    let areas = [("archive", 6), ("store/tables", 3), ("fingerprints", 3), ("dead-letters.ndjson", 0), ("imports", 0)];
    some_at_once(areas.to_vec(), |(area, least)| async move {
        let mut failures = 0;
        // Deletions repeat the same operations for each of the projects.
        for at in [1_u64, 2, 3, 4, 5, 6, 7, 9, 12, 17, 25] {
            let data = dir.join(format!("data-{}", area.replace('/', "-")));
            let _ = fs::remove_dir_all(&data);
            copy(base, &data);
            let rig = Rig::open(config(&data), rig);
            let before = rig.answers().await;
            let errno = if at.is_multiple_of(2) { Errno::NoSpace } else { Errno::Io };
            let switch = Switch::arm(&data.join(area), Plan { at, failures: 1, errno, done: false });
            (0..3).for_each(|project| rig.delete(project));
            let until = Stopwatch::now() + Duration::from_secs(5);
            while rig.engine.vitals().deletions_pending > 0 && switch.failed().is_empty() && Stopwatch::now() < until {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            let failed = switch.failed().first().cloned();
            let what = format!("{area} {errno:?} at {at}: {failed:?}");
            assert_eq!(rig.answers().await, before, "{what}");
            rig.finish(&what).await;
            drop(switch);
            rig.engine.close().await;
            assert_gone(&data, &rig.projects, &what);
            if failed.is_none() {
                break;
            }
            failures += 1;
        }
        assert!(failures >= least, "{area}: {failures} failures");
    });
}

/// A backup taken during the removal of a project has the deletion, which is resumed after a
/// restore.
#[tokio::test]
async fn a_backup_of_a_half_deleted_project_restores_to_none() {
    let dir = tempfile::tempdir().unwrap();
    let whole = dir.path().join("whole");
    let rig = Rig::new(config(&whole));
    rig.send(0..100).await;
    rig.engine.seal_archive().await.unwrap();
    rig.send(100..150).await;
    rig.engine.close().await;
    // The thread of the removal takes the backup, at some steps.
    let engine: Arc<Mutex<Option<Engine>>> = Arc::default();
    let (taken, place, of) = (Arc::new(Mutex::new(Vec::new())), dir.path().to_owned(), Arc::clone(&engine));
    let backups = Arc::clone(&taken);
    let mut probed = config(&whole);
    probed.archive_probe = Some(Arc::new(move |step| {
        let mut backups = backups.lock().unwrap();
        let Some(engine) = of.lock().unwrap().clone() else { return };
        if backups.iter().filter(|(other, _)| *other == step).count() < 2 {
            let to = place.join(format!("backup-{}", backups.len()));
            let Ok(snapshot) = engine.begin_backup() else { return };
            snapshot.write(&mut BackupFolder::create(&to, None).unwrap()).unwrap();
            backups.push((step, to));
        }
    }));
    let rig = Rig::open(probed, &rig);
    let before = rig.answers().await;
    (0..3).for_each(|project| rig.delete(project));
    // The first deletion may begin before the others are recorded.
    *engine.lock().unwrap() = Some(rig.engine.clone());
    rig.finish("beside backups").await;
    *engine.lock().unwrap() = None;
    rig.engine.close().await;
    let backups = std::mem::take(&mut *taken.lock().unwrap());
    assert!(backups.len() >= 6, "{}", backups.len());
    for (step, backup) in backups {
        let to = dir.path().join("restored");
        let _ = fs::remove_dir_all(&to);
        restore(&Backup::open(&backup).unwrap(), &to).unwrap();
        let restored = Rig::open(config(&to), &rig);
        assert_eq!(restored.answers().await, before, "{step}");
        assert!(rig.projects[..3].iter().all(|project| restored.engine.registry().policy(*project).is_none()), "{step}");
        restored.finish(step).await;
        restored.engine.seal_archive().await.unwrap();
        assert_eq!(restored.answers().await, before, "{step}");
        restored.engine.close().await;
        assert_gone(&to, &rig.projects, step);
    }
}

/// Below the minimum of free space, the archive is removed, and data that must be rewritten wait.
#[tokio::test]
async fn a_full_disk_is_no_reason_to_keep_a_project() {
    let dir = tempfile::tempdir().unwrap();
    let rig = Rig::new(config(dir.path()));
    rig.send(0..100).await;
    rig.engine.seal_archive().await.unwrap();
    rig.send(100..150).await;
    let before = rig.answers().await;
    rig.engine.close().await;
    let mut full = config(dir.path());
    full.min_free_bytes = u64::MAX;
    let rig = Rig::open(full, &rig);
    (0..3).for_each(|project| rig.delete(project));
    let folder = dir.path().join(format!("archive/project={}", rig.projects[0]));
    let until = Stopwatch::now() + Duration::from_secs(30);
    while folder.exists() {
        assert!(Stopwatch::now() < until, "the folder stays");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(rig.answers().await, before);
    assert_eq!(rig.engine.vitals().deletions_pending, 3, "the log can't be sealed");
    rig.engine.close().await;
    let rig = Rig::open(config(dir.path()), &rig);
    rig.finish("with room").await;
    assert_eq!(rig.answers().await, before);
    rig.engine.close().await;
    assert_gone(dir.path(), &rig.projects, "with room");
}
