//! Builds of company profiles, with websites whose facts each test sets.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a panic is a failed test")]

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant as Stopwatch};

use headcount_actors::domain::ids::OrganizationId;
use headcount_actors::domain::time::Instant;
use headcount_actors::{Engine, EngineConfig};
use headcount_common::clock::FixedClock;
use headcount_control::{ActionsQuery, BuildError, BuildRunId, CompanyProfileId, OrganizationPatch, RegistryError};
use headcount_profiles::{
    BuildRequest, BuildSettings, CompanyProfile, NewCompanyProfile, ProfileBuild, ProfileFields, ProfileKind, ProfilePatch,
    ProfileQuery, Profiles, SiteFindings, Website, install,
};

#[path = "../../../actors/tests/support/mod.rs"]
mod support;

const PATIENCE: Duration = Duration::from_secs(60);
const NOW: Instant = Instant(1_790_000_000_000);

/// The facts of websites, by host.
#[derive(Default)]
struct Sites {
    tell: Mutex<HashMap<String, SiteFindings>>,
    /// The hosts whose answers wait.
    held: Mutex<Vec<String>>,
    /// The hosts being read, and the maximum number read at once.
    reading: Mutex<(Vec<String>, usize)>,
    changed: Condvar,
    /// All hosts asked for.
    asked: Mutex<Vec<String>>,
}

impl Sites {
    fn tell(&self, host: &str, name: &str) {
        let fields = ProfileFields { name: Some(name.into()), industry: Some("Anvils".into()), ..ProfileFields::default() };
        self.tell.lock().unwrap().insert(host.into(), SiteFindings { fields, ..SiteFindings::default() });
    }

    fn hold(&self, host: &str) {
        self.held.lock().unwrap().push(host.into());
    }

    fn release(&self) {
        self.held.lock().unwrap().clear();
        self.changed.notify_all();
    }

    /// Waits until `count` hosts are being read, and returns them in order.
    #[track_caller]
    fn wait_for_reading(&self, count: usize) -> Vec<String> {
        let reading = self.reading.lock().unwrap();
        let (reading, timeout) = self.changed.wait_timeout_while(reading, PATIENCE, |reading| reading.0.len() < count).unwrap();
        assert!(!timeout.timed_out(), "{reading:?}");
        let mut hosts = reading.0.clone();
        hosts.sort();
        hosts
    }
}

impl Sites {
    fn read(&self, website: &Website) -> SiteFindings {
        let host = website.host().to_owned();
        self.asked.lock().unwrap().push(host.clone());
        {
            let mut reading = self.reading.lock().unwrap();
            reading.0.push(host.clone());
            reading.1 = reading.1.max(reading.0.len());
            self.changed.notify_all();
        }
        let held = self.held.lock().unwrap();
        drop(self.changed.wait_timeout_while(held, PATIENCE, |held| held.contains(&host)).unwrap());
        self.reading.lock().unwrap().0.retain(|other| *other != host);
        let failure = BuildError { code: "dns_failed".into(), message: "no such host".into(), url: Some(website.to_string()) };
        let none = SiteFindings { failure: Some(failure), ..SiteFindings::default() };
        self.tell.lock().unwrap().get(&host).cloned().unwrap_or(none)
    }
}

struct Fixture {
    engine: Engine,
    sites: Arc<Sites>,
    organization: OrganizationId,
}

fn config(dir: &Path, sites: &Arc<Sites>) -> EngineConfig {
    let mut config = EngineConfig::new(dir);
    config.shards = 1;
    config.min_free_bytes = 1 << 20;
    config.features = vec![install(settings(sites))];
    config
}

fn settings(sites: &Arc<Sites>) -> BuildSettings {
    let sites = Arc::clone(sites);
    BuildSettings::new(Arc::new(move |website| sites.read(website)))
}

impl Fixture {
    fn open(config: EngineConfig, sites: &Arc<Sites>) -> Self {
        let (engine, _) = support::open(config);
        let organization = engine.registry().organizations()[0].id;
        Self { engine, sites: Arc::clone(sites), organization }
    }

    fn new(dir: &Path) -> Self {
        let sites = Arc::default();
        Self::open(config(dir, &sites), &sites)
    }

    fn feature(&self) -> Arc<Profiles> {
        self.engine.feature().unwrap()
    }

    fn give(&self, actions: u64) {
        let patch = OrganizationPatch { actions_balance: Some(actions), ..OrganizationPatch::default() };
        self.engine.registry().update_organization(self.organization, patch, NOW).unwrap();
    }

    fn start(&self, website: &str, profile: Option<&CompanyProfileId>) -> Result<BuildRunId, RegistryError> {
        let request = BuildRequest { website: website.into(), profile: profile.cloned() };
        self.feature().begin_build(self.organization, &request, self.engine.clock().now()).map(|run| run.id)
    }

    fn look(&self, id: &BuildRunId) -> ProfileBuild {
        self.feature().build(self.organization, id).unwrap()
    }

    async fn wait(&self, id: &BuildRunId) -> ProfileBuild {
        let began = Stopwatch::now();
        loop {
            let build = self.look(id);
            if build.run.outcome.is_some() {
                return build;
            }
            assert!(began.elapsed() < PATIENCE, "{build:?}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    async fn build(&self, website: &str, profile: Option<&CompanyProfileId>) -> ProfileBuild {
        self.wait(&self.start(website, profile).unwrap()).await
    }

    fn account(&self, website: Option<&str>) -> CompanyProfile {
        let patch = ProfilePatch { label: Some("b".into()), website: website.map(str::to_owned), ..ProfilePatch::default() };
        self.feature().store().create(self.organization, NewCompanyProfile(patch), NOW).unwrap()
    }

    /// The ledger, oldest first: the change, the balance, the reason, and the run.
    fn ledger(&self) -> Vec<(i64, u64, &'static str, Option<BuildRunId>)> {
        let query = ActionsQuery { limit: 100, starting_after: None };
        let entries = self.engine.registry().actions(self.organization, &query).unwrap().entries;
        entries.into_iter().rev().map(|entry| (entry.change, entry.balance, entry.reason.as_str(), entry.run_id)).collect()
    }

    fn profiles(&self) -> Vec<CompanyProfile> {
        let query = ProfileQuery { limit: 100, starting_after: None };
        self.feature().store().page(self.organization, &query).unwrap().profiles
    }
}

fn failure(build: &ProfileBuild) -> &str {
    &build.run.outcome.as_ref().unwrap().result.as_ref().unwrap_err().code
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_profile_is_free_and_later_builds_fill_what_is_empty() {
    let dir = tempfile::tempdir().unwrap();
    let f = Fixture::new(dir.path());
    f.sites.tell("www.acme.example", "Acme");
    let first = f.build("www.acme.example/about", None).await;
    let profile = first.profile.unwrap();
    assert_eq!((profile.kind, &*profile.label, profile.fields.name.as_deref()), (ProfileKind::Own, "acme.example", Some("Acme")));
    assert_eq!((profile.website.unwrap().to_string(), first.run.spent()), ("https://www.acme.example".into(), 0));
    let exhausted = f.start("acme.example", None).unwrap_err();
    assert!(matches!(exhausted, RegistryError::Exhausted { code: "actions_exhausted", .. }), "{exhausted}");

    f.give(2);
    let patch = ProfilePatch { name: Some(String::new()), industry: Some("Tools".into()), ..ProfilePatch::default() };
    f.feature().store().change(f.organization, &profile.id, &patch, NOW).unwrap();
    f.sites.tell("acme.example", "Acme & Sons");
    let second = f.build("acme.example", None).await;
    let refreshed = second.profile.unwrap();
    assert_eq!((refreshed.id, second.run.spent()), (profile.id.clone(), 1));
    assert_eq!((refreshed.fields.name.as_deref(), refreshed.fields.industry.as_deref()), (Some("Acme & Sons"), Some("Tools")));

    f.sites.tell.lock().unwrap().clear();
    let third = f.build("acme.example", Some(&profile.id)).await;
    assert_eq!((failure(&third), third.run.spent(), &third.profile), ("dns_failed", 0, &None));
    let runs = [Some(second.run.id), Some(third.run.id.clone()), Some(third.run.id)];
    let [paid, taken, refunded] = runs;
    let expected = [(2, 2, "set", None), (-1, 1, "build", paid), (-1, 0, "build", taken), (1, 1, "refund", refunded)];
    assert_eq!(f.ledger(), expected);
    assert_eq!(f.profiles().len(), 1);
    f.engine.close().await;
}

/// Fields that all contain this text.
fn all_fields(text: &str) -> ProfileFields {
    ProfileFields {
        name: Some(text.into()),
        description: Some(text.into()),
        industry: Some(text.into()),
        logo_url: Some(format!("https://{text}.example/logo.png")),
        social: [("linkedin".to_owned(), format!("https://{text}.example/"))].into(),
        emails: vec![format!("{text}@a.example")],
        technologies: vec![text.into()],
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refresh_fills_each_empty_field_and_overwrites_none() {
    let dir = tempfile::tempdir().unwrap();
    let f = Fixture::new(dir.path());
    f.give(2);
    let tell = |text: &str| {
        let findings = SiteFindings { fields: all_fields(text), ..SiteFindings::default() };
        f.sites.tell.lock().unwrap().insert("a.example".into(), findings);
    };
    tell("first");
    assert_eq!(f.build("a.example", None).await.profile.unwrap().fields, all_fields("first"));
    tell("second");
    let refreshed = f.build("a.example", None).await.profile.unwrap();
    assert_eq!(refreshed.fields, all_fields("first"), "what was there stays");
    let empty = ProfilePatch {
        name: Some(String::new()),
        description: Some(String::new()),
        industry: Some(String::new()),
        logo_url: Some(String::new()),
        social: Some([].into()),
        emails: Some(Vec::new()),
        technologies: Some(Vec::new()),
        ..ProfilePatch::default()
    };
    f.feature().store().change(f.organization, &refreshed.id, &empty, NOW).unwrap();
    assert_eq!(f.build("a.example", None).await.profile.unwrap().fields, all_fields("second"), "what was removed is filled");
    f.engine.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_first_build_that_fails_makes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let f = Fixture::new(dir.path());
    let failed = f.build("typo.example", None).await;
    assert_eq!((failure(&failed), f.profiles().len(), f.ledger().len()), ("dns_failed", 0, 0));
    f.sites.tell("acme.example", "Acme");
    let build = f.build("acme.example", None).await;
    assert_eq!((build.run.spent(), f.profiles().len()), (0, 1));
    f.engine.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_profile_is_the_named_one_or_that_of_the_website_or_the_own() {
    let dir = tempfile::tempdir().unwrap();
    let f = Fixture::new(dir.path());
    f.give(10);
    for host in ["a.example", "b.example", "c.example"] {
        f.sites.tell(host, host);
    }
    let (of_b, bare) = (f.account(Some("b.example")), f.account(None));
    let by_website = f.build("https://b.example/", None).await;
    assert_eq!((by_website.profile.unwrap().id, by_website.run.spent()), (of_b.id.clone(), 1));
    // Profiles exist, so the organization's own is not free.
    let own = f.build("a.example", None).await;
    assert_eq!((own.profile.as_ref().unwrap().kind, own.run.spent()), (ProfileKind::Own, 1));
    let named = f.build("c.example", Some(&bare.id)).await.profile.unwrap();
    assert_eq!((named.id, named.website.unwrap().to_string()), (bare.id.clone(), "https://c.example".into()));

    let code = |refused: Result<BuildRunId, RegistryError>| match refused.unwrap_err() {
        RegistryError::Conflict { code, .. } => code,
        RegistryError::NotFound { what } => what,
        RegistryError::Invalid { .. } => "invalid",
        other => panic!("{other}"),
    };
    assert_eq!(code(f.start("d.example", Some(&of_b.id))), "website_mismatch");
    assert_eq!(code(f.start("http://b.example", Some(&of_b.id))), "website_mismatch");
    assert_eq!(code(f.start("d.example", None)), "website_mismatch");
    let other = f.account(None);
    assert_eq!(code(f.start("b.example", Some(&other.id))), "website_taken");
    assert_eq!(code(f.start("a.example", Some(&"cp_0000000000000000".parse().unwrap()))), "company profile");
    assert_eq!(code(f.start("ftp://a.example", None)), "invalid");
    assert_eq!(f.ledger().last().unwrap().1, 7, "what is refused costs nothing");
    f.engine.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_run_a_profile_is_under_way() {
    let dir = tempfile::tempdir().unwrap();
    let f = Fixture::new(dir.path());
    f.sites.tell("a.example", "A");
    f.sites.hold("a.example");
    let run = f.start("a.example", None).unwrap();
    f.sites.wait_for_reading(1);
    assert!(f.look(&run).is_running && f.look(&run).profile.is_none());
    assert_eq!(f.start("www.a.example", None).unwrap(), run);
    let other = f.start("b.example", None).unwrap_err();
    assert!(matches!(other, RegistryError::Conflict { code: "website_mismatch", .. }), "{other}");
    f.sites.release();
    assert_eq!(f.wait(&run).await.profile.unwrap().fields.name.as_deref(), Some("A"));
    f.give(1);
    let next = f.start("a.example", None).unwrap();
    assert_ne!(next, run);
    assert_eq!(f.wait(&next).await.run.spent(), 1);
    f.engine.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_profile_that_changes_meanwhile() {
    let dir = tempfile::tempdir().unwrap();
    let f = Fixture::new(dir.path());
    f.give(3);
    for host in ["a.example", "b.example", "c.example"] {
        f.sites.tell(host, host);
        f.sites.hold(host);
    }
    // At most two are read at a time.
    let (deleted, moved) = (f.account(Some("a.example")), f.account(Some("b.example")));
    let runs = [f.start("a.example", None).unwrap(), f.start("b.example", None).unwrap()];
    f.sites.wait_for_reading(2);
    f.feature().store().remove(f.organization, &deleted.id, NOW).unwrap();
    let patch = ProfilePatch { website: Some("d.example".into()), ..ProfilePatch::default() };
    f.feature().store().change(f.organization, &moved.id, &patch, NOW).unwrap();
    f.sites.release();
    for (run, code) in runs.iter().zip(["profile_deleted", "website_mismatch"]) {
        let build = f.wait(run).await;
        assert_eq!((failure(&build), build.run.spent()), (code, 0));
    }
    f.sites.hold("c.example");
    let bare = f.account(None);
    let run = f.start("c.example", Some(&bare.id)).unwrap();
    f.sites.wait_for_reading(1);
    f.account(Some("c.example"));
    f.sites.release();
    assert_eq!(failure(&f.wait(&run).await), "website_taken");
    assert_eq!(f.ledger().last().unwrap().1, 3);
    f.engine.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_repeats_a_run_and_nobody_pays_again() {
    let dir = tempfile::tempdir().unwrap();
    let f = Fixture::new(dir.path());
    f.give(5);
    f.sites.tell("a.example", "A");
    f.sites.hold("a.example");
    f.account(Some("a.example"));
    let run = f.start("a.example", None).unwrap();
    f.sites.wait_for_reading(1);
    f.engine.close().await;
    let Fixture { engine, sites, .. } = f;
    drop(engine);
    sites.release();
    let f = Fixture::open(config(dir.path(), &sites), &sites);
    let build = f.wait(&run).await;
    assert_eq!((build.profile.unwrap().fields.name.as_deref(), build.run.spent()), (Some("A"), 1));
    assert_eq!(f.ledger().iter().map(|entry| entry.0).collect::<Vec<_>>(), [5, -1]);
    assert_eq!(sites.asked.lock().unwrap().len(), 2);
    f.engine.close().await;
}

/// If a website stops the process, it is read again after the next start, and not after that.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_started_twice_at_most() {
    let dir = tempfile::tempdir().unwrap();
    let mut f = Fixture::new(dir.path());
    f.give(5);
    f.sites.tell("a.example", "A");
    f.sites.hold("a.example");
    f.account(Some("a.example"));
    let run = f.start("a.example", None).unwrap();
    for starts in 1..=2 {
        f.sites.wait_for_reading(1);
        assert_eq!(f.look(&run).run.starts, starts);
        f.engine.close().await;
        let Fixture { engine, sites, .. } = f;
        drop(engine);
        let former = Arc::new(Sites { held: Mutex::new(vec!["a.example".into()]), ..Sites::default() });
        former.tell("a.example", "A");
        f = Fixture::open(config(dir.path(), &former), &former);
        sites.release();
    }
    let build = f.wait(&run).await;
    assert_eq!((failure(&build), build.run.starts, build.run.spent()), ("given_up", 2, 0));
    assert!(f.sites.asked.lock().unwrap().is_empty(), "the website was read a third time");
    assert_eq!(f.ledger().iter().map(|entry| entry.0).collect::<Vec<_>>(), [5, -1, 1]);
    // Another request starts another run.
    f.sites.release();
    assert!(f.build("a.example", None).await.profile.is_some());
    f.engine.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_websites_of_one_organization_delay_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let f = Fixture::new(dir.path());
    f.give(20);
    let slow: Vec<String> = (0..10).map(|number| format!("slow{number}.example")).collect();
    for host in &slow {
        f.sites.tell(host, host);
        f.sites.hold(host);
        f.account(Some(host));
    }
    let runs: Vec<_> = slow.iter().map(|host| f.start(host, None).unwrap()).collect();
    // All were requested at the same moment, so any two may be first.
    let first = f.sites.wait_for_reading(2);
    let other = f.engine.registry().create_organization("Other", NOW).unwrap().organization_id;
    f.sites.tell("quick.example", "Quick");
    let request = BuildRequest { website: "quick.example".into(), profile: None };
    let quick = f.feature().begin_build(other, &request, NOW).unwrap();
    let of_other = Fixture { organization: other, engine: f.engine.clone(), sites: Arc::clone(&f.sites) };
    assert!(of_other.wait(&quick.id).await.profile.is_some());
    assert!(matches!(f.feature().build(f.organization, &quick.id), Err(RegistryError::NotFound { .. })));
    assert_eq!(f.sites.wait_for_reading(2), first);
    f.sites.release();
    for run in &runs {
        assert!(f.wait(run).await.profile.is_some());
    }
    assert!(f.sites.reading.lock().unwrap().1 <= 3);
    f.engine.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_website_that_takes_too_long_is_left_behind() {
    let dir = tempfile::tempdir().unwrap();
    let sites = Arc::<Sites>::default();
    let mut config = config(dir.path(), &sites);
    config.features = vec![install(BuildSettings { timeout: Duration::from_millis(50), ..settings(&sites) })];
    let f = Fixture::open(config, &sites);
    sites.tell("a.example", "A");
    sites.hold("a.example");
    let build = f.build("a.example", None).await;
    assert_eq!((failure(&build), f.profiles().len()), ("timeout", 0));
    sites.release();
    f.engine.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_are_kept_for_30_days() {
    let dir = tempfile::tempdir().unwrap();
    let (sites, clock) = (Arc::<Sites>::default(), FixedClock::at(NOW));
    let mut config = config(dir.path(), &sites);
    config.clock = Arc::new(clock.clone());
    let f = Fixture::open(config, &sites);
    let run = f.build("a.example", None).await.run.id;
    clock.set(NOW.plus_ms(30 * 86_400_000 - 1));
    assert_eq!(failure(&f.look(&run)), "dns_failed");
    clock.set(NOW.plus_ms(30 * 86_400_000));
    assert!(matches!(f.feature().build(f.organization, &run), Err(RegistryError::NotFound { .. })));
    f.engine.close().await;
}
