//! Erasing identities: every answer is that of a history without them, and no file has their ids.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a panic is a failed test")]

mod addresses;
mod at_once;
mod attempts;
mod bases;
#[path = "../support/copies.rs"]
mod copies;
mod exports;
mod given_up;
mod history;
mod neighbours;
mod requests;
mod restored;
mod turns;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant as Stopwatch};

use copies::copy;
use headcount_actors::TrackError;
use headcount_actors::domain::ids::{OrganizationId, ProjectId};
use headcount_actors::domain::intake::admission::DropReason;
use headcount_actors::domain::queries::{
    AttributionQuery, CohortsQuery, Dimension, EntityLevel, IdentitySelector, RevenueMetricsQuery, TouchModel, UniqueUsersQuery,
    company_by_domain, profile, top_companies, top_groups,
};
use headcount_actors::domain::time::{Day, Instant, Window};
use headcount_actors::domain::versions::Depends;
use headcount_actors::engine::{ErasureError, ErasureState, ErasureSubject};
use headcount_actors::ingest::{Field, NewEvent, Refusal, Status};
use headcount_actors::{Engine, EngineConfig, search_erased};
use headcount_archive::{Archive, ArchiveError, Catalog};
use headcount_common::clock::FixedClock;
use headcount_control::NewProject;
use headcount_privacy::PrivacySettings;
use headcount_storage::files::switch::{Errno, Plan, Switch};

/// 2024-03-01T10:00:00Z
const BASE_MS: i64 = 1_709_287_200_000;
const DAY_MS: i64 = 86_400_000;
const HOUR_MS: i64 = 3_600_000;

fn config(dir: &Path) -> EngineConfig {
    let mut config = EngineConfig::new(dir);
    config.shards = 2;
    config.min_free_bytes = 0;
    config.log.segment_bytes = 64 << 10;
    config.features = vec![headcount_privacy::install(PrivacySettings::default())];
    config.clock = Arc::new(FixedClock::at(Instant(BASE_MS + 40 * DAY_MS)));
    config
}

/// Removes the events of earlier days.
fn keeping(dir: &Path, keep_from: Option<Day>) -> EngineConfig {
    let mut config = config(dir);
    config.archive.keep_from = keep_from;
    config
}

fn window() -> Window {
    Window { start: Day::parse("2024-03-01").unwrap(), end: Day::parse("2024-04-10").unwrap() }
}

struct Rig {
    engine: Engine,
    organization: OrganizationId,
    projects: Vec<ProjectId>,
    /// The first day whose events are kept.
    keep_from: Option<Day>,
}

impl Rig {
    fn new(dir: &Path) -> Self {
        Self::keeping(dir, None)
    }

    fn keeping(dir: &Path, keep_from: Option<Day>) -> Self {
        let engine = Engine::open(keeping(dir, keep_from)).unwrap();
        let now = engine.clock().now();
        let initial = engine.registry().initialize(now).unwrap();
        let new = NewProject { name: "second".into(), ..NewProject::default() };
        let second = engine.registry().create_project(initial.organization_id, new, now).unwrap().id;
        Self { engine, organization: initial.organization_id, projects: vec![initial.project_id, second], keep_from }
    }

    fn open(&self, dir: &Path) -> Self {
        let engine = Engine::open(keeping(dir, self.keep_from)).unwrap();
        Self { engine, organization: self.organization, projects: self.projects.clone(), keep_from: self.keep_from }
    }

    async fn send(&self, sent: &history::Sent) -> Status {
        loop {
            match self.engine.track(self.projects[sent.project], &sent.event()).await {
                Ok(receipt) => return receipt.status,
                // A project is being folded again.
                Err(Refusal::Track(TrackError::Unavailable(_))) => tokio::time::sleep(Duration::from_millis(5)).await,
                Err(error) => panic!("{error}"),
            }
        }
    }

    async fn erase(&self, subject: ErasureSubject) -> Result<u64, ErasureError> {
        let (engine, organization) = (self.engine.clone(), self.organization);
        tokio::task::spawn_blocking(move || engine.erase(organization, &subject)).await.unwrap()
    }

    async fn finish(&self, number: u64, what: &str) {
        let until = Stopwatch::now() + Duration::from_secs(60);
        while self.engine.erasure(self.organization, number) != Some(ErasureState::Done) {
            assert!(Stopwatch::now() < until, "{what}: the erasure does not end");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    async fn answers(&self) -> Vec<String> {
        let mut answers = Vec::new();
        for project in &self.projects {
            let ask = &self.engine;
            answers.push(format!("{:?}", ask.ask(*project, UniqueUsersQuery { window: window() }).await.unwrap()));
            answers.push(format!("{:?}", ask.ask(*project, RevenueMetricsQuery { window: window() }).await.unwrap()));
            for level in [EntityLevel::Account, EntityLevel::Identity] {
                for model in [TouchModel::FirstTouch, TouchModel::LastTouch] {
                    let (dimension, window) = (Dimension::Source, window());
                    let query = AttributionQuery { model, level, dimension, window, limit: 50 };
                    answers.push(format!("{:?}", ask.ask(*project, query).await.unwrap()));
                }
                answers.push(format!("{:?}", ask.ask(*project, CohortsQuery { level, limit: 12 }).await.unwrap()));
            }
        }
        let all = self.engine.organization(self.organization);
        answers.push(format!("{:?}", top_companies(&all, window(), 10).await.unwrap()));
        answers.push(format!("{:?}", top_groups(&all, "team", window(), 10).await.unwrap()));
        for user in 0..6 {
            let user = IdentitySelector::User(format!("zanzibar-u{user}"));
            answers.push(format!("{:?}", profile(&all, &user, window()).await.unwrap()));
        }
        answers
    }
}

fn all_files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(all_files(&path)) } else { found.push(path) }
    }
    found
}

/// All items in a long run, or else the few.
fn sampled<'i>(all: &'i [u64], few: &'i [u64]) -> impl Iterator<Item = u64> {
    if std::env::var("HEADCOUNT_ERASURES").is_ok() { all.iter().copied() } else { few.iter().copied() }
}

fn of_user(user: &str, number: u64) -> NewEvent {
    let event = NewEvent::new("pageview").at_ms(BASE_MS + i64::try_from(number).unwrap() * HOUR_MS);
    event.user(user).with(Field::Url, format!("https://shop.example/{user}"))
}

/// A closed data directory with events of two users, half of them sealed.
async fn half_sealed(dir: &Path) -> Rig {
    let rig = Rig::new(dir);
    for number in 0..40 {
        let user = if number % 4 == 0 { "zanzibar" } else { "others" };
        let event = of_user(user, number).external_id(format!("x{number}"));
        assert_eq!(rig.engine.track(rig.projects[0], &event).await.unwrap().status, Status::Recorded);
        if number == 20 {
            drop(rig.engine.seal_archive().await.unwrap());
        }
    }
    rig.engine.close().await;
    rig
}

/// Asserts that a text is neither in the bytes of a closed data directory, nor in the rows and
/// bases of its archive.
fn assert_gone(dir: &Path, text: &str, what: &str) {
    for path in all_files(dir) {
        let bytes = fs::read(&path).unwrap();
        let found = bytes.windows(text.len()).any(|window| window == text.as_bytes());
        assert!(!found, "{what}: {} has {text}", path.display());
    }
    let root = dir.join("archive");
    for (project, _) in Catalog::read(&root).unwrap().projects() {
        let archive = Archive::existing(&root, project).unwrap();
        let looked = archive.for_each_row(0, |row| -> Result<(), ArchiveError> {
            assert!(!format!("{row:?}").contains(text), "{what}: {row:?}");
            Ok(())
        });
        looked.unwrap();
        let is_in = bases::is_in(&bases::pairs(dir, project), text);
        assert!(!is_in, "{what}: the base of {project} has {text}");
    }
}

/// Erases a user from the directory that `made` makes, and copies it at the step `at`. Returns the
/// number of steps.
async fn erase_until(made: Rig, dir: &Path, at: Option<usize>) -> (Rig, usize) {
    drop(made.engine);
    let (steps, copied) = (Arc::new(Mutex::new(0)), dir.with_extension("killed"));
    let mut config = keeping(dir, made.keep_from);
    let (counted, from, to) = (Arc::clone(&steps), dir.to_owned(), copied.clone());
    config.archive_probe = Some(Arc::new(move |step: &'static str| {
        if step.contains("erased identity") || step.starts_with("erasure") || step.starts_with("base") {
            let mut steps = counted.lock().unwrap();
            if Some(*steps) == at {
                copy(&from, &to);
            }
            *steps += 1;
        }
    }));
    let rig = Rig { engine: Engine::open(config).unwrap(), ..made };
    let erasure = rig.erase(ErasureSubject::User("zanzibar".into())).await.unwrap();
    rig.finish(erasure, "killed").await;
    let count = *steps.lock().unwrap();
    (rig, count)
}

async fn users(rig: &Rig) -> String {
    format!("{:?}", rig.engine.ask(rig.projects[0], UniqueUsersQuery { window: window() }).await.unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_at_each_step_leaves_it_to_be_finished() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("d");
    let (rig, steps) = erase_until(half_sealed(&dir).await, &dir, None).await;
    let expected = users(&rig).await;
    rig.engine.close().await;
    assert!(steps >= 6, "{steps} steps");
    for at in 0..steps {
        let dir = home.path().join(format!("k{at}"));
        killed(half_sealed(&dir).await, &dir, at, &expected).await;
    }
}

/// Erases a user from the directory that `made` makes, continues after a kill at the step `at`, and
/// checks that no answer shows it.
async fn killed(made: Rig, dir: &Path, at: usize, expected: &str) {
    let (whole, steps) = erase_until(made, dir, Some(at)).await;
    whole.engine.close().await;
    let killed = dir.with_extension("killed");
    // A busy machine may repeat steps in one run and not in the next. This run ended before the
    // step.
    if at >= steps {
        return;
    }
    let rig = whole.open(&killed);
    assert_eq!(users(&rig).await, expected, "after a kill at step {at}");
    rig.finish(1, "after a kill").await;
    assert_eq!(users(&rig).await, expected);
    let late = of_user("zanzibar", 3).external_id("late");
    assert_eq!(rig.engine.track(rig.projects[0], &late).await.unwrap().status, Status::Dropped(DropReason::OptedOut));
    let again = of_user("others", 3).external_id("x4");
    assert_eq!(rig.engine.track(rig.projects[0], &again).await.unwrap().status, Status::Duplicate, "its external ids stay");
    rig.engine.close().await;
    fs::remove_dir_all(killed.join("store")).unwrap();
    fs::remove_dir_all(killed.join("fingerprints")).unwrap();
    let rig = rig.open(&killed);
    assert_eq!(users(&rig).await, expected, "rebuilt");
    assert_eq!(rig.engine.track(rig.projects[0], &again).await.unwrap().status, Status::Duplicate, "also once rebuilt");
    rig.engine.close().await;
    assert_gone(&killed, "zanzibar", &format!("after a kill at step {at}"));
    let found = search_erased(&config(&killed), &["zanzibar".to_owned()], &false.into()).unwrap();
    assert!(found.is_clean() && found.ids == 1, "after a kill at step {at}: {found:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_erased_comes_back_only_after_opting_in() {
    let home = tempfile::tempdir().unwrap();
    let rig = Rig::new(home.path());
    let (first, second) = (rig.projects[0], rig.projects[1]);
    let subject = || ErasureSubject::User("ada".into());
    assert!(matches!(rig.erase(subject()).await, Err(ErasureError::Unknown)), "nobody knows her");
    let both = of_user("ada", 1).anonymous("a1");
    for event in [of_user("ada", 0), both, of_user("bob", 2).anonymous("a1")] {
        assert_eq!(rig.engine.track(first, &event).await.unwrap().status, Status::Recorded);
    }
    let group = NewEvent::new("group")
        .user("ada")
        .with(Field::GroupId, "acme")
        .metadata(&serde_json::json!({"name": "Acme Inc", "domain": "acme.example"}));
    assert_eq!(rig.engine.track(first, &group.unwrap()).await.unwrap().status, Status::Recorded);
    let tag = rig.engine.version(first, &Depends::Everything).await.unwrap();
    let erasure = rig.erase(ErasureSubject::Anonymous(first, "a1".into())).await.unwrap();
    let status = async |event: &NewEvent, project| rig.engine.track(project, event).await.unwrap().status;
    let dropped = Status::Dropped(DropReason::OptedOut);
    rig.finish(erasure, "opt in").await;
    assert_eq!(status(&of_user("ada", 3), second).await, dropped, "in every project");
    assert_eq!(status(&NewEvent::new("pageview").anonymous("a1"), first).await, dropped, "her device");
    assert_eq!(status(&NewEvent::new("pageview").anonymous("a1"), second).await, Status::Recorded, "another one");
    assert_eq!(status(&of_user("bob", 4).anonymous("a1"), first).await, Status::Recorded, "who shares it counts");
    let again = rig.erase(subject()).await.unwrap();
    assert_eq!(rig.engine.erasure(rig.organization, again), Some(ErasureState::Done));
    assert_ne!(rig.engine.version(first, &Depends::Everything).await.unwrap().0, tag.0, "tags change");
    let all = rig.engine.organization(rig.organization);
    let acme = company_by_domain(&all, "acme.example", window()).await.unwrap();
    assert!(acme.is_none(), "nobody is left: {acme:?}");
    let join = of_user("bob", 5).with(Field::GroupId, "acme").with(Field::GroupType, "company");
    assert_eq!(status(&join, first).await, Status::Recorded);
    let acme = company_by_domain(&all, "acme.example", window()).await.unwrap().unwrap();
    assert_eq!(acme.name.as_deref(), Some("Acme Inc"), "names and domains stay");
    let engine = rig.engine.clone();
    let organization = rig.organization;
    tokio::task::spawn_blocking(move || engine.opt_in(organization, &ErasureSubject::User("ada".into()))).await.unwrap().unwrap();
    assert_eq!(status(&of_user("ada", 6), first).await, Status::Recorded);
    assert_eq!(status(&NewEvent::new("pageview").anonymous("a1"), first).await, Status::Recorded, "the whole identity");
    rig.engine.close().await;
    let rig = rig.open(home.path());
    assert_eq!(rig.engine.track(first, &of_user("ada", 7)).await.unwrap().status, Status::Recorded, "after a restart");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ids_that_are_kept_are_bounded() {
    let home = tempfile::tempdir().unwrap();
    let made = Rig::new(home.path());
    made.engine.close().await;
    let mut config = config(home.path());
    config.max_erased_ids = 3;
    let rig = Rig { engine: Engine::open(config).unwrap(), ..made };
    for (user, device) in [("ada", "a1"), ("ben", "b1"), ("cleo", "c1")] {
        let event = of_user(user, 1).anonymous(device);
        assert_eq!(rig.engine.track(rig.projects[0], &event).await.unwrap().status, Status::Recorded);
    }
    let erasure = rig.erase(ErasureSubject::User("ada".into())).await.unwrap();
    rig.finish(erasure, "two ids").await;
    let refused = rig.erase(ErasureSubject::User("ben".into())).await;
    assert!(matches!(refused, Err(ErasureError::Full(3))), "{refused:?}");
    let again = of_user("ben", 2).anonymous("b1");
    assert_eq!(rig.engine.track(rig.projects[0], &again).await.unwrap().status, Status::Recorded, "nothing has changed");
    rig.engine.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operations_on_files_fail_once_and_the_erasure_ends() {
    let home = tempfile::tempdir().unwrap();
    let rig = half_sealed(&home.path().join("base")).await;
    fails_once(&rig, home.path(), &[("archive", 3), ("store/tables", 1)]).await;
}

/// Erases a user from copies of the directory `base`. In each copy one operation on a file of an
/// area fails. Each area must see at least the given number of failures.
async fn fails_once(rig: &Rig, home: &Path, areas: &[(&str, usize)]) {
    for (area, least) in areas {
        let mut failures = 0;
        for at in sampled(&[1, 2, 3, 4, 5, 7, 9, 12, 16, 21, 30], &[1, 4, 9]) {
            let data = home.join(format!("{}-{at}", area.replace('/', "-")));
            copy(&home.join("base"), &data);
            let rig = rig.open(&data);
            let errno = if at.is_multiple_of(2) { Errno::NoSpace } else { Errno::Io };
            let switch = Switch::arm(&data.join(area), Plan { at, failures: 1, errno, done: false });
            let erasure = match rig.erase(ErasureSubject::User("zanzibar".into())).await {
                Ok(erasure) => erasure,
                Err(_) => rig.erase(ErasureSubject::User("zanzibar".into())).await.unwrap(),
            };
            let what = format!("{area} {errno:?} at {at}");
            rig.finish(erasure, &what).await;
            let failed = switch.failed().first().cloned();
            drop(switch);
            rig.engine.close().await;
            assert_gone(&data, "zanzibar", &format!("{what}: {failed:?}"));
            if failed.is_none() {
                break;
            }
            failures += 1;
        }
        assert!(failures >= *least, "{area}: {failures} failures");
    }
}
