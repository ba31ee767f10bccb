//! Erasing identities: every answer is that of a history in which they never were, and no file has their ids.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a panic is a failed test")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant as Stopwatch};

use headcount_actors::TrackError;
use headcount_actors::clock::FixedClock;
use headcount_actors::domain::identity::IdentityId;
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
use headcount_actors::registry::NewProject;
use headcount_actors::{Engine, EngineConfig};

/// 2024-03-01T10:00:00Z
const BASE_MS: i64 = 1_709_287_200_000;
const DAY_MS: i64 = 86_400_000;
const HOUR_MS: i64 = 3_600_000;

fn config(dir: &Path) -> EngineConfig {
    let mut config = EngineConfig::new(dir);
    config.shards = 2;
    config.min_free_bytes = 0;
    config.log.segment_bytes = 64 << 10;
    config.clock = Arc::new(FixedClock::at(Instant(BASE_MS + 40 * DAY_MS)));
    config
}

fn window() -> Window {
    Window { start: Day::parse("2024-03-01").unwrap(), end: Day::parse("2024-04-10").unwrap() }
}

/// Splitmix64.
struct Random(u64);

impl Random {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % most
    }

    fn is(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// An event of a history.
#[derive(Debug, Clone)]
struct Sent {
    project: usize,
    user: Option<String>,
    anonymous: Option<String>,
    number: u64,
    at: i64,
    kind: u64,
    place: u64,
}

impl Sent {
    fn random(random: &mut Random, number: u64) -> Self {
        Self {
            project: usize::try_from(random.below(2)).unwrap(),
            user: random.is(50).then(|| format!("zanzibar-u{}", random.below(6))),
            anonymous: random.is(70).then(|| format!("zanzibar-a{}", random.below(9))),
            number,
            at: BASE_MS + i64::try_from(random.below(30)).unwrap() * DAY_MS + i64::try_from(random.below(8)).unwrap() * HOUR_MS,
            kind: random.below(6),
            place: random.below(5),
        }
    }

    fn event(&self) -> NewEvent {
        let name = match self.kind {
            0 => "order",
            1 => "identify",
            _ => "pageview",
        };
        let event = NewEvent::new(name).at_ms(self.at).external_id(format!("zanzibar-x{}", self.number));
        let who = self.user.as_deref().or(self.anonymous.as_deref()).unwrap_or("nobody");
        let event = event.with(Field::Url, format!("https://shop.example/{who}/{}?utm_source={who}-s&utm_medium=m", self.place));
        let event = if self.kind == 0 { event.value("12.25").unwrap() } else { event };
        let event = match self.place {
            0 => event.with(Field::GroupType, "company").with(Field::GroupId, format!("acme{}.example", self.number % 3)),
            1 => event.with(Field::GroupType, "team").with(Field::GroupId, format!("team{}", self.number % 2)),
            _ => event,
        };
        let event = match &self.user {
            Some(user) if self.kind == 1 => {
                event.metadata(&serde_json::json!({ "email": format!("{user}@mail{}.example", self.number % 2) })).unwrap()
            }
            _ => event,
        };
        let event = match &self.user {
            Some(user) => event.user(user.clone()),
            None => event,
        };
        match &self.anonymous {
            Some(anonymous) => event.anonymous(anonymous.clone()),
            None => event,
        }
    }
}

/// What the history is without the erased identities, by rules of its own.
#[derive(Debug, Default)]
struct Expected {
    sent: Vec<Sent>,
    links: BTreeMap<(usize, String), String>,
    gone_users: BTreeSet<String>,
    gone_others: BTreeSet<(usize, String)>,
}

impl Expected {
    /// Takes an event. Returns whether it is recorded.
    fn take(&mut self, mut sent: Sent) -> bool {
        let other = sent.anonymous.clone().map(|id| (sent.project, id));
        let is_other_gone = other.as_ref().is_some_and(|other| self.gone_others.contains(other));
        match &sent.user {
            Some(user) if self.gone_users.contains(user) => return false,
            Some(user) => {
                if is_other_gone {
                    sent.anonymous = None;
                } else if let Some(other) = other {
                    self.links.entry(other).or_insert_with(|| user.clone());
                }
            }
            None if is_other_gone => return false,
            None => {}
        }
        self.sent.push(sent);
        true
    }

    fn erase(&mut self, subject: (usize, IdentityId)) {
        let mut user = None;
        match subject {
            (_, IdentityId::User(id)) => user = Some(id.to_string()),
            (project, IdentityId::Anonymous(id)) => {
                user = self.links.get(&(project, id.to_string())).cloned();
                let _new = self.gone_others.insert((project, id.to_string()));
            }
            _ => {}
        }
        if let Some(user) = user {
            let linked = self.links.iter().filter(|(_, owner)| **owner == user).map(|(other, _)| other.clone());
            self.gone_others.extend(linked);
            let _new = self.gone_users.insert(user);
        }
        let (users, others) = (&self.gone_users, &self.gone_others);
        self.sent.retain_mut(|sent| {
            let is_other_gone = sent.anonymous.as_ref().is_some_and(|id| others.contains(&(sent.project, id.clone())));
            match &sent.user {
                Some(user) => {
                    if is_other_gone {
                        sent.anonymous = None;
                    }
                    !users.contains(user)
                }
                None => !is_other_gone,
            }
        });
    }
}

struct Rig {
    engine: Engine,
    organization: OrganizationId,
    projects: Vec<ProjectId>,
}

impl Rig {
    fn new(dir: &Path) -> Self {
        let engine = Engine::open(config(dir)).unwrap();
        let now = engine.clock().now();
        let initial = engine.registry().initialize(now).unwrap();
        let new = NewProject { name: "second".into(), ..NewProject::default() };
        let second = engine.registry().create_project(initial.organization_id, new, now).unwrap().id;
        Self { engine, organization: initial.organization_id, projects: vec![initial.project_id, second] }
    }

    fn open(&self, dir: &Path) -> Self {
        Self { engine: Engine::open(config(dir)).unwrap(), organization: self.organization, projects: self.projects.clone() }
    }

    async fn send(&self, sent: &Sent) -> Status {
        loop {
            match self.engine.track(self.projects[sent.project], &sent.event()).await {
                Ok(receipt) => return receipt.status,
                // A project is folded anew.
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

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let (path, target) = (entry.as_ref().unwrap().path(), to.join(entry.unwrap().file_name()));
        if path.is_dir() { copy(&path, &target) } else { assert!(fs::copy(path, target).is_ok()) }
    }
}

/// Erases somebody at random, if there is such a one.
async fn erase_somebody(rig: &Rig, expected: &mut Expected, random: &mut Random) -> Option<u64> {
    let project = usize::try_from(random.below(2)).unwrap();
    let (id, subject) = match random.is(60) {
        true => {
            let id = format!("zanzibar-u{}", random.below(6));
            (IdentityId::User(id.clone().into()), ErasureSubject::User(id))
        }
        false => {
            let id = format!("zanzibar-a{}", random.below(9));
            (IdentityId::Anonymous(id.clone().into()), ErasureSubject::Anonymous(rig.projects[project], id))
        }
    };
    match rig.erase(subject).await {
        Ok(erasure) => {
            expected.erase((project, id));
            Some(erasure)
        }
        Err(ErasureError::Unknown | ErasureError::Unavailable(_)) => None,
        Err(error) => panic!("{error}"),
    }
}

/// One history: events, erasures, restarts, sealing and rebuilds, compared with a data directory that never had the erased identities.
async fn history(seed: u64) {
    let what = format!("history {seed}");
    let mut random = Random(seed);
    let (home, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut rig = Rig::new(home.path());
    rig.engine.close().await;
    copy(home.path(), other.path());
    rig = rig.open(home.path());
    let (mut expected, mut begun) = (Expected::default(), Vec::new());
    for number in 0..60 + random.below(60) {
        let sent = Sent::random(&mut random, number);
        let is_recorded = expected.take(sent.clone());
        let status = rig.send(&sent).await;
        assert_eq!(status == Status::Recorded, is_recorded, "{what}: {sent:?} {status:?}");
        match random.below(25) {
            0 => {
                if let Some(erasure) = erase_somebody(&rig, &mut expected, &mut random).await {
                    begun.push(erasure);
                    if random.is(50) {
                        rig.finish(erasure, &what).await;
                    }
                }
            }
            1 => {
                rig.engine.close().await;
                if random.is(30) {
                    fs::remove_dir_all(home.path().join("store")).unwrap();
                    fs::remove_dir_all(home.path().join("fingerprints")).unwrap();
                }
                rig = rig.open(home.path());
            }
            2 => drop(rig.engine.seal_archive().await.unwrap()),
            _ => {}
        }
    }
    for erasure in begun {
        rig.finish(erasure, &what).await;
    }
    compare(rig, &expected, home.path(), other.path(), &what).await;
}

/// Compares a data directory with one that only ever had what is expected, and looks for erased ids in it.
async fn compare(rig: Rig, expected: &Expected, home: &Path, other: &Path, what: &str) {
    let never = rig.open(other);
    for sent in &expected.sent {
        assert_eq!(never.send(sent).await, Status::Recorded);
    }
    let answers = never.answers().await;
    assert_eq!(rig.answers().await, answers, "{what}");
    let engine = rig.engine.clone();
    let report = tokio::task::spawn_blocking(move || engine.verify(false, &Arc::default())).await.unwrap().unwrap();
    assert!(report.differing == 0 && report.damaged.is_empty(), "{what}: {report:?}");
    rig.engine.close().await;
    never.engine.close().await;
    let rig = rig.open(home);
    assert_eq!(rig.answers().await, answers, "{what}: after a restart");
    rig.engine.close().await;
    let mut gone: Vec<String> = expected.gone_users.iter().cloned().collect();
    let kept: BTreeSet<String> = expected.sent.iter().flat_map(|sent| sent.anonymous.clone()).collect();
    gone.extend(expected.gone_others.iter().map(|(_, id)| id.clone()).filter(|id| !kept.contains(id)));
    for path in all_files(home) {
        let bytes = fs::read(&path).unwrap();
        for id in &gone {
            let found = bytes.windows(id.len()).any(|window| window == id.as_bytes());
            assert!(!found, "{what}: {} has {id}", path.display());
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_are_those_of_a_history_without_the_erased() {
    let count = std::env::var("HEADCOUNT_ERASURES").map_or(2, |count| count.parse().unwrap());
    for seed in 0..count {
        history(seed).await;
    }
}

fn of_user(user: &str, number: u64) -> NewEvent {
    let event = NewEvent::new("pageview").at_ms(BASE_MS + i64::try_from(number).unwrap() * HOUR_MS);
    event.user(user).with(Field::Url, format!("https://shop.example/{user}"))
}

/// Erases a user from a sealed and a logged history, and stops the engine for good at the step `at`.
async fn erase_until(dir: &Path, at: Option<usize>) -> (Rig, usize) {
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
    drop(rig.engine);
    let (steps, copied) = (Arc::new(Mutex::new(0)), dir.with_extension("killed"));
    let mut config = config(dir);
    let (counted, from, to) = (Arc::clone(&steps), dir.to_owned(), copied.clone());
    config.archive_probe = Some(Arc::new(move |step: &'static str| {
        if step.contains("erased identity") || step.starts_with("erasure") {
            let mut steps = counted.lock().unwrap();
            if Some(*steps) == at {
                copy(&from, &to);
            }
            *steps += 1;
        }
    }));
    let rig = Rig { engine: Engine::open(config).unwrap(), organization: rig.organization, projects: rig.projects };
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
    let (rig, steps) = erase_until(&home.path().join("d"), None).await;
    let expected = users(&rig).await;
    rig.engine.close().await;
    assert!(steps >= 6, "{steps} steps");
    for at in 0..steps {
        let dir = home.path().join(format!("k{at}"));
        let (whole, _) = erase_until(&dir, Some(at)).await;
        whole.engine.close().await;
        let killed = dir.with_extension("killed");
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
        for path in all_files(&killed) {
            let bytes = fs::read(&path).unwrap();
            assert!(!bytes.windows(8).any(|window| window == b"zanzibar"), "{} after a kill at step {at}", path.display());
        }
    }
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
