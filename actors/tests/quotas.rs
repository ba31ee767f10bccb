//! Quotas: known items keep counting, new ones are refused, and other projects are not affected.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a panic is a failed test")]

mod support;

use std::path::Path;

use headcount_actors::domain::fault::Fault;
use headcount_actors::domain::ids::ProjectId;
use headcount_actors::domain::indexes::dictionary::TermCounts;
use headcount_actors::domain::queries::{Query, Reader};
use headcount_actors::domain::quota::{Quota, Quotas};
use headcount_actors::domain::records::Source;
use headcount_actors::ingest::{Field, NewEvent, Refusal, Status};
use headcount_actors::{Engine, EngineConfig, TrackError};
use headcount_control::NewProject;
use serde::{Deserialize, Serialize};

fn config(dir: &Path, quotas: Quotas) -> EngineConfig {
    EngineConfig { shards: 2, min_free_bytes: 1 << 20, quotas, ..EngineConfig::new(dir) }
}

const TINY: Quotas = Quotas { groups: 2, companies: 2, sources: 3, pages: 2 };

fn open(dir: &Path, quotas: Quotas) -> (Engine, ProjectId) {
    support::open(config(dir, quotas))
}

fn group(kind: &str, id: &str) -> NewEvent {
    NewEvent::new("order").user("u").with(Field::GroupType, kind).with(Field::GroupId, id)
}

fn email(user: &str, email: &str) -> NewEvent {
    NewEvent::new("identify").user(user).metadata(&serde_json::json!({ "email": email })).unwrap()
}

fn reported_domain(company: &str, domain: &str) -> NewEvent {
    let event = NewEvent::new("group").user("u").with(Field::GroupType, "company").with(Field::GroupId, company);
    event.metadata(&serde_json::json!({ "domain": domain })).unwrap()
}

fn page(url: &str) -> NewEvent {
    NewEvent::new("pageview").user("reader").with(Field::Url, url)
}

/// The first event of a new user, so that it begins a session.
fn visit(user: &str, query: &str) -> NewEvent {
    NewEvent::new("visit").user(user).with(Field::Url, format!("https://own.example/?{query}"))
}

fn referred(host: &str) -> NewEvent {
    NewEvent::new("order").user("u").with(Field::Referrer, format!("https://{host}/x"))
}

async fn recorded(engine: &Engine, project: ProjectId, event: NewEvent) {
    let receipt = engine.track(project, &event).await.unwrap_or_else(|refusal| panic!("{refusal}: {event:?}"));
    assert_eq!(receipt.status, Status::Recorded, "{event:?}");
}

async fn refused(engine: &Engine, project: ProjectId, event: NewEvent, quota: Quota) {
    let before = engine.vitals().log_position;
    match engine.track(project, &event).await {
        Err(Refusal::Track(TrackError::QuotaExceeded(exceeded))) => {
            assert_eq!((exceeded.quota, exceeded.limit), (quota, TINY.limit(quota)), "{event:?}");
            assert!(exceeded.to_string().contains(quota.name()), "{exceeded}");
        }
        other => panic!("{other:?}: {event:?}"),
    }
    assert_eq!(engine.vitals().log_position, before, "nothing of it is in the log");
}

/// Fills a project up to [`TINY`].
async fn fill(engine: &Engine, project: ProjectId) {
    for event in [
        group("team", "red"),
        group("squad", "red"),
        group("company", "cus_1"),
        email("ann", "ann@acme.com"),
        page("/a"),
        page("/b?x=1"),
        visit("v0", "utm_source=mail&utm_medium=link&utm_campaign=may"),
    ] {
        recorded(engine, project, event).await;
    }
}

/// Checks that a project filled up to [`TINY`] accepts known items, and no new ones.
async fn holds(engine: &Engine, project: ProjectId, round: &str) {
    let name = |name: &str| format!("{name}-{round}");
    for event in [
        group("team", "red"),
        group("squad", "red"),
        group("company", "cus_1"),
        email(&name("bob"), "bob@acme.com"),
        // The user has a company, so no company is created for another address.
        email("ann", "ann@new.example"),
        reported_domain("acme.com", "other.example"),
        page("/a?y=2"),
        page("/b#top"),
        visit(&name("v"), "utm_source=mail&utm_medium=link&utm_campaign=may"),
        // It has no source, and no session begins with it.
        visit(&name("v"), "utm_campaign=june"),
        NewEvent::new("order").user(name("somebody")),
    ] {
        recorded(engine, project, event).await;
    }
    for (event, quota) in [
        (group("team", &name("blue")), Quota::Groups),
        (group(&format!("crew_{round}"), "red"), Quota::Groups),
        (group("company", &name("cus")), Quota::Companies),
        (email(&name("cem"), "cem@new.example"), Quota::Companies),
        (reported_domain("cus_1", "new.example"), Quota::Companies),
        (page(&name("/c")), Quota::Pages),
        (visit(&name("w"), "utm_source=mail&utm_medium=link&utm_campaign=june"), Quota::Sources),
        (referred("news.example"), Quota::Sources),
    ] {
        refused(engine, project, event, quota).await;
    }
}

/// Counts the groups and the names of a project.
#[derive(Clone, Serialize, Deserialize)]
struct SizesQuery;

impl Query for SizesQuery {
    type Partial = (usize, TermCounts);

    fn answer<S: Source>(&self, reader: &mut Reader<'_, S>) -> Result<Self::Partial, Fault> {
        Ok((reader.project.rollups.group_numbers.len(), reader.project.dictionary.counts))
    }
}

#[tokio::test]
async fn what_is_known_is_recorded_and_what_is_new_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, project) = open(dir.path(), TINY);
    fill(&engine, project).await;
    holds(&engine, project, "first").await;

    let vitals = engine.vitals();
    let count = |quota| vitals.quota_refusals.iter().find(|(of, _)| *of == quota).unwrap().1;
    assert_eq!(Quota::ALL.map(count), [2, 3, 2, 1]);
    assert_eq!(vitals.projects_at_quota, 1);

    // Another project has its own quotas.
    let organization = engine.registry().policy(project).unwrap().policy.organization;
    let new = NewProject { name: "other".into(), ..NewProject::default() };
    let other = engine.registry().create_project(organization, new, engine.clock().now()).unwrap().id;
    fill(&engine, other).await;
    holds(&engine, other, "other").await;
    assert_eq!(engine.vitals().projects_at_quota, 2);
    engine.close().await;
}

#[tokio::test]
async fn quotas_hold_from_the_first_event_after_a_start_whether_from_checkpoint_or_log() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, project) = open(dir.path(), TINY);
    fill(&engine, project).await;
    // Closing writes a checkpoint.
    engine.close().await;
    drop(engine);
    let (engine, project) = open(dir.path(), TINY);
    refused(&engine, project, page("/new"), Quota::Pages).await;
    holds(&engine, project, "checkpoint").await;
    engine.close().await;
    drop(engine);

    // Without the derived data, everything is replayed, and nothing is refused.
    std::fs::remove_dir_all(dir.path().join("store")).unwrap();
    let (engine, project) = open(dir.path(), Quotas { pages: 1, ..TINY });
    let has = engine.ask(project, SizesQuery).await.unwrap();
    assert_eq!((has.0, has.1.pages, has.1.sources), (4, 2, 3), "groups and companies, pages, sources");
    assert!(engine.track(project, &page("/b")).await.is_ok(), "known, although there are more than allowed");
    assert!(engine.track(project, &page("/new")).await.is_err());
    engine.close().await;
    drop(engine);

    // A higher quota allows new items.
    let (engine, project) = open(dir.path(), Quotas { pages: 3, ..TINY });
    recorded(&engine, project, page("/new")).await;
    assert!(engine.track(project, &page("/newer")).await.is_err());
    engine.close().await;
}

#[tokio::test]
async fn a_batch_is_recorded_but_for_what_exceeds_a_quota() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, project) = open(dir.path(), TINY);
    fill(&engine, project).await;
    // More than one question can ask about.
    let batch: Vec<NewEvent> = (0..700)
        .map(|number| match number % 7 {
            0 => page(&format!("/new-{number}")),
            1 => NewEvent::new("").user("u"),
            2 => group("team", &format!("new-{number}")),
            3 => group("team", "red"),
            _ => page("/a"),
        })
        .collect();
    let receipt = engine.track_batch(project, &batch).await.unwrap();
    assert_eq!((receipt.recorded, receipt.errors.len()), (400, 300));
    for (place, (index, invalid)) in receipt.errors.iter().enumerate() {
        assert_eq!(*index, place / 3 * 7 + place % 3, "in the order of the batch");
        let quota = ["pages", "", "groups"][place % 3];
        match quota {
            "" => assert_ne!(invalid.code, "quota_exceeded"),
            quota => assert!(invalid.code == "quota_exceeded" && invalid.message.contains(quota), "{invalid:?}"),
        }
    }
    let nothing = engine.track_batch(project, &[page("/x"), page("/y")]).await.unwrap();
    assert_eq!((nothing.recorded, nothing.errors.len()), (0, 2));
    engine.close().await;
}

#[tokio::test]
async fn a_repeated_event_is_a_duplicate_whatever_the_quota() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, project) = open(dir.path(), TINY);
    let first = email("ann", "ann@acme.com").external_id("e1");
    let second = visit("w", "utm_medium=b&utm_campaign=c").external_id("e2");
    recorded(&engine, project, visit("w", "")).await;
    // It has no source, and continues a session without one: its campaign is not kept.
    recorded(&engine, project, second.clone()).await;
    recorded(&engine, project, first).await;
    recorded(&engine, project, group("company", "cus_1")).await;
    recorded(&engine, project, visit("x", "utm_source=d&utm_medium=e&utm_campaign=f")).await;
    let other = second.clone().at_ms(1_600_000_000_000).external_id("e3");
    refused(&engine, project, other, Quota::Sources).await;
    let again = engine.track(project, &second.at_ms(1_600_000_000_000)).await.unwrap();
    assert_eq!(again.status, Status::Duplicate);
    engine.close().await;
}
