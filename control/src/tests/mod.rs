//! Tests of the registry's interface, and of its files.

mod audit;
mod authors;
mod behaviour;
mod browsers;
#[cfg(feature = "cluster")]
mod compacted;
mod damage;
mod definitions;
mod durability;
mod formats;
#[cfg(feature = "cluster")]
mod moved;
mod races;
mod secrecy;
mod shared;
mod shared_log;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use headcount_domain::{Currency, Instant, OrganizationId, ProjectId, Rate, Timezone};
use headcount_storage::log::{AppendEntry, Log, LogOptions};

use crate::website::Website;

use super::cache::Listing;
use super::journal::JournalOptions;
use super::state::State;
use super::*;

pub(super) const NOW: Instant = Instant(1_700_000_000_000);

/// Options under which a few changes are enough to roll files.
pub(super) fn small() -> JournalOptions {
    JournalOptions { snapshot_every: 3, snapshot_bytes_per_record: u64::MAX, segment_bytes: 8 * 1024 }
}

pub(super) fn open(dir: &Path) -> Result<Registry, RegistryError> {
    Registry::open_with(dir, small())
}

pub(super) fn token(name: &str, scopes: &[Scope]) -> NewToken {
    NewToken { name: name.into(), role: Role::Admin, scopes: scopes.to_vec(), project: None, expires_at: None, member: None }
}

pub(super) fn berlin() -> Timezone {
    Timezone::parse("Europe/Berlin").unwrap()
}

pub(super) fn euro() -> Currency {
    Currency::parse("EUR").unwrap()
}

/// The complete state in memory, which a reopened registry must restore.
pub(super) fn everything(registry: &Registry) -> (State, Listing) {
    (registry.state().clone(), registry.cache.listing())
}

pub(super) fn first_organization(registry: &Registry) -> OrganizationId {
    registry.organizations().iter().min_by_key(|organization| organization.created_at).unwrap().id
}

/// Changes of every kind, some of them twice.
pub(super) fn changes() -> Vec<fn(&Registry)> {
    let others: Vec<fn(&Registry)> = vec![
        |r| drop(r.initialize(NOW).unwrap()),
        |r| drop(r.create_token(first_organization(r), token("reader", &[Scope::AnalyticsRead]), NOW).unwrap()),
        |r| {
            let patch = OrganizationPatch { timezone: Some(berlin()), currency: Some(euro()), ..Default::default() };
            r.update_organization(first_organization(r), patch, NOW).unwrap();
        },
        |r| {
            let new = NewProject { name: "shop".into(), currency: Some(euro()), ..Default::default() };
            r.create_project(first_organization(r), new, NOW.plus_ms(1)).unwrap();
        },
        |r| drop(r.add_public_key(first_organization(r), newest_project(r).id, NOW).unwrap()),
        |r| {
            let fx_rates = [(euro(), Rate::parse("1.08").unwrap())].into();
            let patch = OrganizationPatch { fx_rates: Some(fx_rates), actions_balance: Some(5), ..Default::default() };
            r.update_organization(first_organization(r), patch, NOW).unwrap();
        },
        |r| drop(r.pin_calendar(&r.policy(newest_project(r).id).unwrap()).unwrap()),
        |r| {
            let project = newest_project(r);
            r.remove_public_key(project.organization, project.id, &project.public_keys[0], NOW).unwrap();
        },
        |r| drop(r.create_organization("second", NOW.plus_ms(1)).unwrap()),
        |r| drop(r.create_token(first_organization(r), token("brief", &[Scope::Admin]), NOW.plus_ms(2)).unwrap()),
        |r| {
            let organization = first_organization(r);
            let revoked = r.tokens(organization).unwrap().pop().unwrap();
            r.revoke_token(organization, &revoked.token_id, NOW).unwrap();
        },
        |r| {
            let allowed_origins = Some(vec!["https://shop.example".into()]);
            let patch = ProjectPatch { allowed_origins, cookieless: Some(false), ..Default::default() };
            r.update_project(first_organization(r), newest_project(r).id, patch, NOW).unwrap();
        },
        |r| limit(r, RateLimitPatch { per_second: Some(5), burst: Some(50) }),
        |r| limit(r, RateLimitPatch { per_second: Some(7), burst: None }),
        |r| {
            let organization = first_organization(r);
            let id = r.tokens(organization).unwrap()[1].token_id.clone();
            let rate_limit = RateLimitPatch { per_second: Some(9), burst: None };
            r.update_token(organization, &id, TokenPatch { name: Some("slow".into()), rate_limit }, NOW).unwrap();
        },
        |r| {
            let rate_limit = RateLimitPatch { per_second: Some(90), burst: Some(900) };
            let quotas = OwnQuotas { pages: Some(5), ..Default::default() };
            let patch = ProjectPatch { rate_limit, quotas, ..Default::default() };
            r.update_project(first_organization(r), newest_project(r).id, patch, NOW).unwrap();
        },
        |r| drop(r.create_token(first_organization(r), token("writer", &[Scope::EventsWrite]), NOW).unwrap()),
        |r| {
            let new = NewProject { name: "brief".into(), ..Default::default() };
            r.create_project(first_organization(r), new, NOW.plus_ms(2)).unwrap();
        },
        |r| {
            let of_project = NewToken { project: Some(newest_project(r).id), ..token("of project", &[Scope::AnalyticsRead]) };
            r.create_token(first_organization(r), of_project, NOW).unwrap();
        },
        |r| drop(r.pin_calendar(&r.policy(newest_project(r).id).unwrap()).unwrap()),
    ];
    others
        .into_iter()
        .chain(changes_of_definitions())
        .chain(changes_of_members())
        .chain(changes_of_builds())
        .chain(changes_of_browsers())
        .collect()
}

/// Changes of the definitions of a project, which is deleted in the end.
fn changes_of_definitions() -> Vec<fn(&Registry)> {
    vec![
        |r| {
            let place = (first_organization(r), Some(newest_project(r).id));
            let fields = [("event_name".to_owned(), r#""order""#.to_owned())].into();
            r.create_definition(place, DefinitionKind::Goal, ("Sold".into(), fields), NOW).unwrap();
        },
        |r| {
            let place = (first_organization(r), Some(newest_project(r).id));
            let goal = r.definitions(place, DefinitionKind::Goal).unwrap().pop().unwrap();
            let patch = DefinitionPatch { name: Some("Bought".into()), ..Default::default() };
            r.change_definition(place, &goal.id, &patch, NOW).unwrap();
        },
        |r| {
            let place = (first_organization(r), Some(newest_project(r).id));
            let goal = r.definitions(place, DefinitionKind::Goal).unwrap().pop().unwrap();
            r.remove_definition(place, &goal.id, NOW).unwrap();
        },
        |r| r.delete_project(first_organization(r), newest_project(r).id, NOW).unwrap(),
        |r| r.finish_deletion(r.deletions()[0]).unwrap(),
    ]
}

/// Starts a run for a new profile.
pub(super) fn start(registry: &Registry, organization: OrganizationId, price: u64) -> Result<BuildRun, RegistryError> {
    let profile = Some(CompanyProfileId::random().unwrap());
    let website = Website::parse("acme.com").unwrap();
    registry.start_build(NewBuild { organization, website, profile, price }, &NOW.into())
}

fn started(registry: &Registry, price: u64) -> BuildRun {
    start(registry, first_organization(registry), price).unwrap()
}

fn changes_of_builds() -> Vec<fn(&Registry)> {
    vec![|r| drop(started(r, 2)), |r| drop(started(r, 1)), |r| {
        let run = r.next_build(|run| (run.price == 1).then_some(())).unwrap();
        let failed = BuildError { code: "dns_failed".into(), message: "no such host".into(), url: None };
        r.end_build(run.organization, &run.id, Err(failed), NOW.plus_ms(1)).unwrap();
    }]
}

/// Shares and sessions, some of which end.
fn changes_of_browsers() -> Vec<fn(&Registry)> {
    fn share(r: &Registry, name: &str) {
        let new = NewShare { name: name.into(), embed_origins: vec!["https://acme.com".into()], ..NewShare::default() };
        r.create_share(first_organization(r), newest_project(r).id, new, NOW).unwrap();
    }
    fn session(r: &Registry, at: Instant) {
        let organization = first_organization(r);
        let token = r.tokens(organization).unwrap()[0].token_id.clone();
        let (code, _) = r.create_sign_in_code(organization, &token, at).unwrap();
        r.begin_session_by_code(code.expose(), at).unwrap();
    }
    fn end_session(r: &Registry) {
        let sessions = r.state().tenants[&first_organization(r)].sessions.clone();
        let newest = sessions.values().map(|(session, _)| session).max_by_key(|session| session.created_at);
        r.end_session(newest.unwrap()).unwrap();
    }
    vec![|r| share(r, "stays"), |r| share(r, "goes"), |r| session(r, NOW), |r| session(r, NOW.plus_ms(1)), end_session, |r| {
        let project = newest_project(r);
        let shares = r.shares(project.organization, project.id).unwrap();
        let revoked = shares.iter().find(|share| share.name == "goes").unwrap();
        r.revoke_share(project.organization, project.id, &revoked.id, NOW).unwrap();
    }]
}

fn changes_of_members() -> Vec<fn(&Registry)> {
    vec![
        |r| drop(r.create_member(first_organization(r), member("ada@acme.com", Role::Admin), NOW).unwrap()),
        |r| drop(r.create_member(first_organization(r), member("bob@acme.com", Role::Owner), NOW.plus_ms(1)).unwrap()),
        |r| {
            let held = NewToken { member: Some(members(r)[0].id.clone()), ..token("held", &[Scope::AnalyticsRead]) };
            r.create_token(first_organization(r), held, NOW).unwrap();
        },
        |r| {
            let patch = MemberPatch { name: Some("Ada".into()), role: Some(Role::Member), email: None };
            r.update_member(first_organization(r), &members(r)[0].id, patch, NOW).unwrap();
        },
        |r| {
            let held = NewToken { member: Some(members(r)[1].id.clone()), ..token("removed", &[Scope::AnalyticsRead]) };
            r.create_token(first_organization(r), held, NOW).unwrap();
        },
        |r| r.remove_member(first_organization(r), &members(r)[1].id, NOW).unwrap(),
    ]
}

pub(super) fn member(email: &str, role: Role) -> NewMember {
    NewMember { email: email.into(), name: None, role }
}

fn members(registry: &Registry) -> Vec<Arc<Member>> {
    registry.members(first_organization(registry)).unwrap()
}

fn newest_project(registry: &Registry) -> Arc<Project> {
    registry.projects(first_organization(registry)).unwrap().pop().unwrap()
}

fn limit(registry: &Registry, patch: RateLimitPatch) {
    let project = newest_project(registry);
    registry.limit_public_key(project.organization, project.id, &project.public_keys[0], patch, NOW).unwrap();
}

pub(super) fn copy_dir(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_dir(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// The file names in a directory below the control directory, sorted.
pub(super) fn names(data_dir: &Path, below: &str) -> Vec<String> {
    let dir = data_dir.join(CONTROL_DIR).join(below);
    let mut names: Vec<_> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

pub(super) fn snapshots(data_dir: &Path) -> Vec<String> {
    names(data_dir, "").into_iter().filter(|name| name.ends_with(".json")).collect()
}

pub(super) fn segments(data_dir: &Path) -> Vec<String> {
    names(data_dir, "log").into_iter().filter(|name| name.ends_with(".seg")).collect()
}

/// Appends bytes to the control log, as another program might.
pub(super) fn append(dir: &Path, payload: &[u8]) {
    let options = LogOptions { prepare_ahead: false, ..LogOptions::default() };
    let (mut log, _) = Log::open(dir.join(CONTROL_DIR).join("log"), options).unwrap();
    log.append(&[AppendEntry { partition: 0, count: 1, payload }]).unwrap();
}
