//! Two nodes that share the projects of an organization, and one that has all of them.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use headcount_actors::domain::ids::{OrganizationId, ProjectId};
use headcount_actors::domain::intake::admission::Sender as SenderKind;
use headcount_actors::domain::intake::client_address::ClientAddress;
use headcount_actors::domain::intake::policy::Rates as EngineRates;
use headcount_actors::domain::money::{Currency, Rate};
use headcount_actors::domain::time::{Instant, Timezone};
use headcount_actors::ingest::Origin;
use headcount_actors::{Common, Engine, EngineConfig, SealError};
use headcount_common::clock::FixedClock;
use headcount_common::nodes::{AskNode, AskNodeError, NodeAnswer, NodeCall};
use headcount_common::{Owners, home_of, partition_of};
use headcount_control::{NewProject, OrganizationPatch, ProjectPatch};
use headcount_histories::History;
use headcount_model::served::ignored;
use headcount_model::{Json, Rates, Sender};
use tempfile::TempDir;

use crate::copies::copy;

/// A Friday in the past, after all events of a history.
pub(crate) const NOW_MS: i64 = 1_790_000_000_000;
const PROJECTS: usize = 6;
const FOREVER: Duration = Duration::from_secs(1 << 30);

/// A fault of a request's delivery.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trouble {
    Unreachable,
    /// The other node is of another version, which encodes requests differently.
    OtherVersion,
    /// The other node answers with other bytes.
    StrangeAnswer,
    /// The other node is suspended, until the next trouble or none. Then it can't be reached.
    Halted,
}

/// Delivers requests to nodes in this process.
#[derive(Default)]
pub(crate) struct Wire {
    nodes: Mutex<BTreeMap<String, Engine>>,
    pub(crate) trouble: Mutex<Option<Trouble>>,
    /// The number of next requests whose answer is too large.
    pub(crate) too_large: AtomicUsize,
    /// All requests so far.
    pub(crate) requests: Mutex<Vec<Vec<u8>>>,
    own: Weak<Self>,
}

impl AskNode for Wire {
    fn ask(&self, mut call: NodeCall) -> NodeAnswer {
        let node = self.nodes.lock().unwrap()[&*call.address].clone();
        assert_eq!(call.token, node.node_token().expose());
        self.requests.lock().unwrap().push(call.request.clone());
        let trouble = *self.trouble.lock().unwrap();
        let is_too_large = self.too_large.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok();
        let wire = self.own.upgrade();
        Box::pin(async move {
            match trouble {
                Some(Trouble::Halted) => {
                    while wire.as_ref().is_some_and(|wire| *wire.trouble.lock().unwrap() == Some(Trouble::Halted)) {
                        tokio::time::sleep(Duration::from_millis(5)).await;
                    }
                    return Err(AskNodeError::Unreachable("it was halted".to_owned()));
                }
                Some(Trouble::Unreachable) => return Err(AskNodeError::Unreachable("the wire is cut".to_owned())),
                Some(Trouble::OtherVersion) => call.request[2] += 1,
                Some(Trouble::StrangeAnswer) => return Ok(call.request),
                None if is_too_large => return Err(AskNodeError::TooLarge),
                None => {}
            }
            node.answer_remote(&call.request).await
        })
    }
}

pub(crate) struct Rig {
    pub(crate) a: Engine,
    pub(crate) b: Engine,
    /// The node with everything.
    pub(crate) single: Engine,
    pub(crate) wire: Arc<Wire>,
    pub(crate) organization: OrganizationId,
    /// The projects. Node A owns the first of them.
    pub(crate) projects: Vec<ProjectId>,
    pub(crate) timezone: Timezone,
    _dir: TempDir,
}

pub(crate) fn rates(rates: &Rates) -> EngineRates {
    let rate =
        |currency: &String, rate| (Currency::parse(currency).unwrap(), Rate::parse(&Json::from(rate).to_string()).unwrap());
    rates.iter().map(|(currency, value)| rate(currency, *value)).collect()
}

fn config(dir: &Path) -> EngineConfig {
    let mut config = EngineConfig::new(dir);
    (config.shards, config.min_free_bytes) = (2, 0);
    config.clock = Arc::new(FixedClock::at(Instant(NOW_MS)));
    // A small number, so that some lists need several answers.
    config.max_active_identities = 4;
    config.features = vec![headcount_privacy::install(headcount_privacy::PrivacySettings::default())];
    config
}

impl Rig {
    /// Seals all events. No node has the partitions without projects.
    pub(crate) async fn seal(&self) {
        for engine in [&self.a, &self.b, &self.single] {
            let sealed = engine.seal_archive().await;
            assert!(matches!(sealed, Ok(_) | Err(SealError::Partitions(_))), "{sealed:?}");
        }
    }

    pub(crate) async fn new(history: &History) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let first = dir.path().join("first");
        let (organization, projects, timezone) = found(&first, history).await;
        let wire = Arc::new_cyclic(|own| Wire { own: Weak::clone(own), ..Wire::default() });
        let node = |name: &str, here: &[ProjectId], other: &str| {
            let dir = dir.path().join(name);
            copy(&first, &dir);
            let owners = Owners::unknown();
            for project in &projects {
                owners.note_elsewhere(partition_of(*project), Some(other.into()));
            }
            here.iter().for_each(|project| owners.hold(partition_of(*project), FOREVER));
            // One of both is the organization's home.
            let home = home_of(organization);
            let owns_home = match projects.iter().find(|project| partition_of(**project) == home) {
                Some(project) => here.contains(project),
                None => (organization.0 / 64 % 2 == 0) == (name == "a"),
            };
            if owns_home {
                owners.hold(home, FOREVER);
            }
            let mut config = config(&dir);
            config.ask_node = Some(Arc::clone(&wire) as Arc<dyn AskNode>);
            let common = Common { owners: Arc::new(owners), ..Common::local(&config).unwrap() };
            let engine = Engine::open_on(config, common).unwrap();
            wire.nodes.lock().unwrap().insert(name.to_owned(), engine.clone());
            engine
        };
        let (of_a, of_b) = projects.split_at(PROJECTS / 2 - 1);
        let (a, b) = (node("a", of_a, "b"), node("b", of_b, "a"));
        let single = Engine::open(config(&first)).unwrap();
        Self { a, b, single, wire, organization, projects, timezone, _dir: dir }
    }

    /// The owner of a project, and the node with everything.
    pub(crate) fn owners(&self, project: ProjectId) -> [&Engine; 2] {
        let is_of_a = self.a.owners().is_here(partition_of(project));
        [if is_of_a { &self.a } else { &self.b }, &self.single]
    }

    /// Sends an event to the owner of a project, and to the node with everything.
    pub(crate) async fn send(&self, project: ProjectId, body: &str) {
        for engine in self.owners(project) {
            send(engine, project, body).await;
        }
    }

    pub(crate) fn set_rates(&self, table: &Rates) {
        for engine in [&self.a, &self.b, &self.single] {
            let patch = OrganizationPatch { fx_rates: Some(rates(table)), ..OrganizationPatch::default() };
            engine.registry().update_organization(self.organization, patch, Instant(NOW_MS)).unwrap();
        }
    }

    /// Gives a project a retention, and applies it.
    pub(crate) async fn retain(&self, project: ProjectId, days: u32) {
        for engine in [&self.a, &self.b, &self.single] {
            let patch = ProjectPatch { retention_days: Some(Some(days)), ..ProjectPatch::default() };
            engine.registry().update_project(self.organization, project, patch, Instant(NOW_MS)).unwrap();
        }
        for engine in self.owners(project) {
            engine.ingest.apply_retention(project).await.unwrap();
        }
    }

    pub(crate) async fn close(self) {
        self.wire.nodes.lock().unwrap().clear();
        for engine in [self.a, self.b, self.single] {
            engine.close().await;
        }
    }
}

/// Creates the organization and its projects. Each has one event, so that the nodes have the same
/// salt.
async fn found(dir: &Path, history: &History) -> (OrganizationId, Vec<ProjectId>, Timezone) {
    let engine = Engine::open(config(dir)).unwrap();
    let (registry, now) = (engine.registry(), engine.clock().now());
    let organization = registry.initialize(now).unwrap().organization_id;
    let timezone = Timezone::parse(history.timezone().name()).unwrap();
    let patch = OrganizationPatch {
        timezone: Some(timezone),
        currency: Some(Currency::parse(&history.organization.currency).unwrap()),
        fx_rates: Some(rates(&history.organization.fx_rates)),
        ..OrganizationPatch::default()
    };
    registry.update_organization(organization, patch, now).unwrap();
    let mut projects: Vec<ProjectId> = Vec::new();
    while projects.len() < PROJECTS {
        let body = &history.projects[projects.len() % history.projects.len()].body;
        let new = NewProject {
            name: "p".into(),
            currency: body.field("currency").text().map(|code| Currency::parse(code).unwrap()),
            cookieless: Some(*body.field("cookieless") != Json::Bool(false)),
            ignored_referrers: Some(ignored(body)),
            ..NewProject::default()
        };
        let project = registry.create_project(organization, new, now).unwrap().id;
        // Each project has its own partition.
        match projects.iter().any(|other| partition_of(*other) == partition_of(project)) {
            true => engine.delete_project(organization, project, now).unwrap(),
            false => projects.push(project),
        }
    }
    for project in registry.projects(organization).unwrap().iter().filter(|project| !projects.contains(&project.id)) {
        engine.delete_project(organization, project.id, now).unwrap();
    }
    for project in &projects {
        send(&engine, *project, r#"{"name": "pageview"}"#).await;
    }
    engine.close().await;
    (organization, projects, timezone)
}

/// Records an event from a typical browser.
async fn send(engine: &Engine, project: ProjectId, body: &str) {
    let browser = Sender::browser();
    let origin = Origin {
        sender: SenderKind::Public,
        address: Some(ClientAddress::parse(&browser.address)),
        user_agent: Some(&browser.agent),
        ..Origin::SERVER
    };
    let config = engine.registry().policy(project).unwrap();
    let prepare = |policy: &_| engine.ingest.prepare(policy, body.as_bytes(), &origin);
    // Some are refused.
    let Ok(prepared) = engine.ingest.with_pinned_config(config, prepare, |_| true).await.unwrap() else { return };
    let permit = engine.admission.admit(project, None, body.len()).unwrap();
    engine.ingest.record(&engine.ingest.tracker, project, prepared, permit).await.unwrap();
}
