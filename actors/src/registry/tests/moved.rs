//! The control data as the records of another control log.

use headcount_domain::ids::RecordKey;

use super::*;
use crate::registry::control_log::{ControlLog as _, LocalControlLog};

/// Opens what the records of a registry lead to.
fn moved(registry: &Registry, dir: &Path) -> Registry {
    let records = registry.as_records().unwrap();
    assert_eq!(records, registry.as_records().unwrap(), "an attempt that is made again needs the same ones");
    let mut log = LocalControlLog::open(&dir.join("log"), 1 << 20).unwrap();
    for (position, record) in (1..).zip(&records) {
        log.append_at(position, record).unwrap();
    }
    Registry::open_on(dir, Box::new(log)).unwrap()
}

fn assert_moves(registry: &Registry) {
    let dir = tempfile::tempdir().unwrap();
    let moved = moved(registry, dir.path());
    assert_eq!(everything(&moved), everything(registry));
    let query = AuditQuery { limit: 1000, ..AuditQuery::default() };
    for organization in registry.organizations() {
        let of = |registry: &Registry| registry.audit_log(organization.id, &query, NOW).unwrap();
        assert_eq!(of(&moved), of(registry));
    }
}

#[test]
fn records_of_any_state_lead_to_it_and_to_its_audit_logs() {
    let dir = tempfile::tempdir().unwrap();
    let registry = open(dir.path()).unwrap();
    assert_moves(&registry);
    let mut moves = 0;
    for change in changes() {
        change(&registry);
        // A deletion that is not finished does not move.
        if registry.deletions().is_empty() {
            assert_moves(&registry);
            moves += 1;
        } else {
            registry.as_records().unwrap_err();
        }
    }
    assert!(moves > 20, "{moves}");
}

#[test]
fn an_organization_without_a_project_and_without_a_token_moves() {
    let dir = tempfile::tempdir().unwrap();
    let registry = open(dir.path()).unwrap();
    registry.initialize(NOW).unwrap();
    let id = first_organization(&registry);
    let project = registry.projects(id).unwrap()[0].id;
    let organization = Organization::clone(&registry.state().tenants[&id].organization);
    let token = registry.tokens(id).unwrap()[0].token_id.clone();
    registry.apply(ControlRecord::ProjectDeleted { organization: id, project });
    assert_moves(&registry);
    registry.apply(ControlRecord::TokenRevoked { organization: organization.id, token_id: token });
    assert_moves(&registry);
}

/// A backup of several machines is that of one, in which nothing is under way.
#[test]
fn records_for_one_machine_have_erasures_that_are_done_and_no_deletions() {
    let dir = tempfile::tempdir().unwrap();
    let registry = open(dir.path()).unwrap();
    changes().iter().for_each(|change| change(&registry));
    let id = first_organization(&registry);
    let projects: Vec<ProjectId> = registry.projects(id).unwrap().into_iter().map(|project| project.id).collect();
    let end = ErasureEnd { project: projects[0], until: 9 << 13, stage: ErasureStage::Logged };
    let (users, others, until) = (vec![RecordKey(7)], Vec::new(), ErasedUntil::ByProject(vec![end]));
    let erasure = Erasure {
        number: 0,
        organization: id,
        users,
        others,
        projects: projects.clone(),
        until,
        is_done: false,
        is_lifted: false,
    };
    let under_way = registry.add_erasure(erasure.clone(), None).unwrap();
    let lifted = registry.add_erasure(Erasure { users: vec![RecordKey(8)], ..erasure.clone() }, None).unwrap();
    registry.lift_erasure(&lifted, None).unwrap();
    registry.apply(ControlRecord::ProjectDeleted { organization: id, project: projects[1] });
    let moment = registry.moment().unwrap();
    assert_eq!((moment.projects().contains(&projects[0]), moment.projects().contains(&projects[1])), (true, false));
    let made = tempfile::tempdir().unwrap();
    let records = registry.records_of(&moment).unwrap();
    drop(Registry::create_from(made.path(), &records).unwrap());
    let made = Registry::open(made.path()).unwrap();
    assert!(made.deletions().is_empty() && made.erasures().iter().all(|erasure| erasure.is_done));
    for (erasure, is_lifted) in [(under_way, false), (lifted, true)] {
        let found = made.erasures().into_iter().find(|found| found.number == erasure.number).unwrap();
        assert_eq!((found.until_in(projects[0]), found.is_lifted, &found.users), (0, is_lifted, &erasure.users));
    }
    // All else is the same.
    let mut state = registry.state().clone();
    for tenant in state.tenants.values_mut() {
        tenant.deletions.clear();
        tenant.erasures.clone_from(&made.state().tenants[&tenant.organization.id].erasures);
    }
    assert_eq!(*made.state(), state);
}

/// What was read of events before such a change is wrong after it.
#[test]
fn a_moment_is_contradicted_by_deletions_and_erasures_alone() {
    let dir = tempfile::tempdir().unwrap();
    let registry = open(dir.path()).unwrap();
    registry.initialize(NOW).unwrap();
    let id = first_organization(&registry);
    let project = registry.projects(id).unwrap()[0].id;
    let attempt = Erasure {
        number: 0,
        organization: id,
        users: vec![RecordKey(7)],
        others: Vec::new(),
        projects: Vec::new(),
        until: ErasedUntil::ByProject(Vec::new()),
        is_done: false,
        is_lifted: false,
    };
    let mut before = registry.moment().unwrap();
    let mut changed = |registry: &Registry| {
        let now = registry.moment().unwrap();
        let what = before.contradicted_by(&now);
        before = now;
        what
    };
    drop(registry.create_token(id, token("reader", &[Scope::AnalyticsRead]), NOW).unwrap());
    drop(registry.create_project(id, NewProject { name: "late".into(), ..NewProject::default() }, NOW).unwrap());
    assert_eq!(changed(&registry), None);
    let attempt = registry.add_erasure(attempt, None).unwrap();
    assert!(changed(&registry).unwrap().contains("erased"));
    let end = ErasureEnd { project, until: 9, stage: ErasureStage::Begun };
    let begun = Erasure { projects: vec![project], until: ErasedUntil::ByProject(vec![end]), ..attempt };
    let begun = registry.begin_erasure(&begun, None).unwrap().unwrap();
    assert!(changed(&registry).unwrap().contains("erased"));
    registry.progress_erasures(id, project, &[begun.number], ErasureStage::Gone).unwrap();
    assert_eq!(changed(&registry), None, "it is as far as one is that has just begun");
    registry.lift_erasure(&begun, None).unwrap();
    assert!(changed(&registry).unwrap().contains("opted in"));
    registry.delete_project(id, project, NOW).unwrap();
    assert!(changed(&registry).unwrap().contains(&project.to_string()));
}
