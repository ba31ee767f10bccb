//! Exports of people whose projects are on two nodes: each node exports the same as a node that has
//! all projects.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant as Stopwatch};

use headcount_actors::Engine;
use headcount_actors::domain::ids::{OrganizationId, ProjectId};
use headcount_actors::domain::time::Instant;
use headcount_actors::engine::ErasureError;
use headcount_common::partition_of;
use headcount_histories::{History, Rng, Size, Step};
use headcount_model::Json;
use headcount_privacy::{Privacy, PrivacyRequest, PrivacyRequestKind, PrivacyStatus, PrivacySubject};
use serde_json::{Value, json};

use crate::rig::{NOW_MS, Rig};

/// The tag of questions for events.
const EVENTS: [u8; 2] = 1023_u16.to_le_bytes();

fn privacy(engine: &Engine) -> Arc<Privacy> {
    engine.feature().unwrap()
}

async fn made(
    engine: &Engine,
    organization: OrganizationId,
    subject: PrivacySubject,
) -> Result<Arc<PrivacyRequest>, ErasureError> {
    let engine = engine.clone();
    let make = move || privacy(&engine).make(organization, PrivacyRequestKind::Export, subject, Instant(NOW_MS));
    tokio::task::spawn_blocking(make).await.unwrap()
}

/// A node's export, without the fields that differ between logs; `None` if it does not know the
/// person.
async fn exported(engine: &Engine, organization: OrganizationId, subject: PrivacySubject) -> Option<Value> {
    let request = match made(engine, organization, subject).await {
        Err(ErasureError::Unknown) => return None,
        made => made.unwrap(),
    };
    let began = Stopwatch::now();
    loop {
        let shown = privacy(engine).get(organization, &request.id).unwrap();
        if shown.status == PrivacyStatus::Completed {
            break;
        }
        assert!(shown.status != PrivacyStatus::Failed && began.elapsed() < Duration::from_secs(60), "{shown:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let found = privacy(engine).open_export(organization, &request.id).unwrap();
    let mut bytes = vec![0; usize::try_from(found.bytes).unwrap()];
    found.file.read_exact_at(&mut bytes, 0).unwrap();
    let mut artifact: Value = serde_json::from_slice(&bytes).unwrap();
    for list in ["events", "orders"] {
        for row in artifact[list].as_array_mut().unwrap() {
            let row = row.as_object_mut().unwrap();
            ["event_id", "position"].iter().for_each(|of_log| drop(row.remove(*of_log)));
        }
    }
    Some(artifact)
}

fn home(rig: &Rig) -> &Engine {
    if privacy(&rig.a).is_home(rig.organization) { &rig.a } else { &rig.b }
}

/// Compares the home's export of a person with the third node's. Returns the number of events.
async fn compare(rig: &Rig, subject: &PrivacySubject, of: &str) -> usize {
    let expected = exported(&rig.single, rig.organization, subject.clone()).await;
    let home = home(rig);
    assert!(privacy(home).is_home(rig.organization), "one of both is the home");
    let found = exported(home, rig.organization, subject.clone()).await;
    assert!(found == expected, "{of}: the home exports {subject:?} as {found:?} instead of {expected:?}");
    expected.map_or(0, |artifact| artifact["events"].as_array().unwrap().len())
}

/// The people whom events name.
#[derive(Default)]
struct People {
    users: BTreeSet<String>,
    emails: BTreeSet<String>,
    anonymous: BTreeSet<(ProjectId, String)>,
}

impl People {
    fn add(&mut self, project: ProjectId, body: &str) {
        let Ok(body) = Json::parse(body) else { return };
        let text = |name: &str| body.field(name).text().map(str::to_owned);
        self.users.extend(text("user_id"));
        self.emails.extend(text("email"));
        self.anonymous.extend(text("anonymous_id").map(|id| (project, id)));
    }

    /// Some of the people.
    fn subjects(&self, rng: &mut Rng) -> Vec<PrivacySubject> {
        let all = self.users.iter().cloned().map(PrivacySubject::UserId);
        let all = all.chain(self.emails.iter().cloned().map(PrivacySubject::Email));
        let anonymous = self.anonymous.iter().enumerate().map(|(number, (project, id))| PrivacySubject::AnonymousId {
            anonymous_id: id.clone(),
            project: (number % 2 == 0).then_some(*project),
        });
        let all: Vec<_> = all.chain(anonymous).collect();
        (0..8).map(|_| rng.pick(&all).clone()).collect()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_nodes_export_as_one() {
    let mut compared = 0;
    for seed in 27_000..27_003 {
        let history = History::from_seed(seed, NOW_MS, Size { events: 120, questions: 0 });
        let (rig, mut rng, mut people) = (Rig::new(&history).await, Rng::new(seed), People::default());
        for (number, step) in history.steps.iter().enumerate() {
            let bodies = match step {
                Step::Track { body, .. } => vec![body],
                Step::Batch { bodies, .. } => bodies.iter().collect(),
                Step::Rates(_)
                | Step::Settings { .. }
                | Step::Restart
                | Step::Floor { .. }
                | Step::Clock { .. }
                | Step::Ask(_) => continue,
            };
            // Reports about a company by two projects at the same moment have no common order on
            // two nodes.
            for body in bodies.into_iter().filter(|body| body.contains("\"timestamp\"")) {
                let project = *rng.pick(&rig.projects);
                people.add(project, body);
                rig.send(project, body).await;
            }
            if number == history.steps.len() / 2 {
                rig.seal().await;
            }
        }
        for subject in people.subjects(&mut rng) {
            compared += compare(&rig, &subject, &format!("seed {seed}")).await;
        }
        rig.close().await;
    }
    println!("exports of two nodes with {compared} events are those of one");
    assert!(compared > 50, "{compared}");
}

/// A person with more events than fit in one page, half of them sealed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_events_come_in_several_pages() {
    let history = History::from_seed(1, NOW_MS, Size { events: 1, questions: 0 });
    let rig = Rig::new(&history).await;
    let text = "x".repeat(8_000);
    let is_elsewhere = |project: &&ProjectId| !home(&rig).owners().is_here(partition_of(**project));
    let elsewhere: Vec<ProjectId> = rig.projects.iter().filter(is_elsewhere).copied().collect();
    for number in 0..320 {
        let mut event = json!({"name": "e", "user_id": if number % 2 == 0 { "ada" } else { "bob" }, "external_id": format!("x{number}"),
                               "timestamp": NOW_MS - 1_000_000 + number});
        event["metadata"] = (0..7).map(|key| (format!("k{key}"), json!(text))).collect::<serde_json::Map<_, _>>().into();
        for _ in 0..2 {
            // The second one is a duplicate.
            rig.send(elsewhere[0], &event.to_string()).await;
        }
        if number == 160 {
            rig.seal().await;
        }
    }
    let events = compare(&rig, &PrivacySubject::UserId("ada".to_owned()), "many").await;
    assert_eq!(events, 160);
    let requests = rig.wire.requests.lock().unwrap().iter().filter(|request| request.starts_with(&EVENTS)).count();
    // One page for each project, except the large one.
    assert!(requests >= elsewhere.len() + 2, "{requests} for {} projects", elsewhere.len());
    rig.close().await;
}
