//! The control data as the records of another control log.

use std::collections::{BTreeMap, BTreeSet};

use headcount_common::{ControlLog as _, LocalControlLog};
use headcount_domain::{Position, RecordKey};

use super::*;
use crate::{BackedUpLog, ControlMoment};

/// Opens a registry from the records of another one.
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
        assert_moves(&registry);
        moves += 1;
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

/// Returns an erasure of a user in a project up to a position. Without a project, it only
/// suppresses ids.
fn erasure(id: OrganizationId, user: u128, project: Option<ProjectId>) -> Erasure {
    Erasure {
        number: 0,
        organization: id,
        users: vec![RecordKey(user)],
        others: Vec::new(),
        emails: vec![RecordKey(user + 100)],
        ends: project.map(|project| ErasureEnd::at(9 << 13, project)).into_iter().collect(),
        is_done: false,
        is_lifted: false,
    }
}

/// Opens control data for a log of the moment `then`, which has `projects` and ends at 5.
fn made_for(registry: &Registry, then: &ControlMoment, projects: &BTreeSet<ProjectId>) -> (tempfile::TempDir, Registry) {
    made_with(registry, then, projects, &BTreeMap::new())
}

/// The same, with copied files of some projects, each up to a position.
fn made_with(
    registry: &Registry,
    then: &ControlMoment,
    projects: &BTreeSet<ProjectId>,
    copied: &BTreeMap<ProjectId, Position>,
) -> (tempfile::TempDir, Registry) {
    let dir = tempfile::tempdir().unwrap();
    let records = registry.records_for(&registry.moment().unwrap(), &BackedUpLog { moment: then, projects, last: 5, copied });
    drop(Registry::create_from(dir.path(), &records.unwrap()).unwrap());
    let made = Registry::open(dir.path()).unwrap();
    (dir, made)
}

/// Data erased before the log was read are not in it.
#[test]
fn records_for_one_machine_have_no_erasure_or_deletion_that_was_under_way_before() {
    let dir = tempfile::tempdir().unwrap();
    let registry = open(dir.path()).unwrap();
    changes().iter().for_each(|change| change(&registry));
    let id = first_organization(&registry);
    let projects: Vec<ProjectId> = registry.projects(id).unwrap().into_iter().map(|project| project.id).collect();
    let under_way = registry.add_erasure(erasure(id, 7, Some(projects[0])), None).unwrap();
    let lifted = registry.add_erasure(erasure(id, 8, Some(projects[0])), None).unwrap();
    registry.lift_erasure(&lifted, None).unwrap();
    registry.apply(ControlRecord::ProjectDeleted { organization: id, project: projects[1] });
    let moment = registry.moment().unwrap();
    assert_eq!((moment.projects().contains(&projects[0]), moment.projects().contains(&projects[1])), (true, false));
    let (_dir, made) = made_for(&registry, &moment, &moment.projects());
    assert!(made.deletions().is_empty() && made.erasures().iter().all(|erasure| erasure.is_done));
    for (erasure, is_lifted) in [(under_way, false), (lifted, true)] {
        let found = made.erasures().into_iter().find(|found| found.number == erasure.number).unwrap();
        assert_eq!((found.until_in(projects[0]), found.is_lifted, &found.users), (0, is_lifted, &erasure.users));
    }
    // Everything else is the same.
    let mut state = registry.state().clone();
    for tenant in state.tenants.values_mut() {
        tenant.deletions.clear();
        tenant.erasures.clone_from(&made.state().tenants[&tenant.organization.id].erasures);
    }
    assert_eq!(*made.state(), state);
}

/// Data erased while a log is read may be in it.
#[test]
fn records_for_one_machine_have_erasures_and_deletions_of_later_as_unfinished_ones() {
    let dir = tempfile::tempdir().unwrap();
    let registry = open(dir.path()).unwrap();
    registry.initialize(NOW).unwrap();
    let id = first_organization(&registry);
    let [kept, deleted, empty] = [("kept", true), ("deleted", true), ("empty", false)].map(|(name, has_events)| {
        let project = registry.create_project(id, NewProject { name: name.into(), ..NewProject::default() }, NOW).unwrap().id;
        if has_events {
            registry.apply(ControlRecord::EventsRecorded { organization: id, project });
        }
        project
    });
    let before = registry.add_erasure(erasure(id, 1, Some(kept)), None).unwrap();
    // It only suppresses ids when the log is read, and begins then.
    let begins = registry.add_erasure(erasure(id, 2, None), None).unwrap();
    let then = registry.moment().unwrap();
    let mut projects = then.projects();
    projects.remove(&empty);
    let begins = Erasure { number: begins.number, ..erasure(id, 2, Some(kept)) };
    let begun = registry.begin_erasure(&begins, None).unwrap().unwrap();
    registry.progress_erasures(id, kept, &[before.number, begun.number], ErasureStage::Gone).unwrap();
    let lifted = registry.add_erasure(erasure(id, 3, Some(kept)), None).unwrap();
    registry.lift_erasure(&lifted, None).unwrap();
    let suppresses = registry.add_erasure(erasure(id, 4, None), None).unwrap();
    // No data to erase: other erasures removed them, or it was lifted before it began.
    let nobody = Erasure { is_done: true, ..erasure(id, 5, None) };
    let nobody = registry.add_erasure(nobody, None).unwrap();
    let never_began = registry.add_erasure(erasure(id, 6, None), None).unwrap();
    registry.lift_erasure(&never_began, None).unwrap();
    registry.delete_project(id, empty, NOW).unwrap();
    registry.delete_project(id, deleted, NOW).unwrap();
    registry.finish_deletion(deleted).unwrap();
    let late = registry.create_project(id, NewProject { name: "late".into(), ..NewProject::default() }, NOW).unwrap().id;
    let (_dir, made) = made_for(&registry, &then, &projects);
    let found = |number: u64| {
        let erasure = made.erasures().into_iter().find(|found| found.number == number)?;
        Some((erasure.is_done, erasure.until_in(kept), erasure.is_lifted))
    };
    assert_eq!(found(before.number), Some((true, 0, false)), "the log has nothing of it, though it was done later");
    assert_eq!(found(begun.number), Some((false, 5, false)), "the log may have something, though it is done by now");
    assert_eq!(found(lifted.number), Some((false, 5, true)));
    assert_eq!(found(suppresses.number), None);
    assert_eq!([nobody.number, never_began.number].map(found), [Some((true, 0, false)), Some((true, 0, true))]);
    assert_eq!(made.deletions(), [deleted], "all is gone by now, but not of the log");
    assert!(made.policy(kept).is_some() && made.policy(late).is_some() && made.policy(empty).is_none());
}

/// Files that were copied unchanged may have data in erasure, and keep the positions of their
/// partition.
#[test]
fn records_for_one_machine_erase_what_copied_files_may_have() {
    let dir = tempfile::tempdir().unwrap();
    let registry = open(dir.path()).unwrap();
    registry.initialize(NOW).unwrap();
    let id = first_organization(&registry);
    let [copied, short, read] = ["copied", "short", "read"]
        .map(|name| registry.create_project(id, NewProject { name: name.into(), ..NewProject::default() }, NOW).unwrap().id);
    let projects = vec![copied, short, read];
    let of = |user, projects: &[ProjectId]| Erasure {
        ends: projects.iter().map(|project| ErasureEnd::at(9 << 13, *project)).collect(),
        ..erasure(id, user, None)
    };
    let add = |user, projects: &[ProjectId]| registry.add_erasure(of(user, projects), None).unwrap().number;
    let reach = |number, stage| {
        for project in &projects {
            registry.progress_erasures(id, *project, &[number], stage).unwrap();
        }
    };
    let (begun, published, not_copied) = (add(1, &projects), add(2, &projects), add(3, &[read]));
    reach(published, ErasureStage::Logged);
    let then = registry.moment().unwrap();
    let (later, later_not_copied) = (add(4, &projects), add(5, &[read]));
    [begun, published, later].into_iter().for_each(|number| reach(number, ErasureStage::Gone));
    let until = BTreeMap::from([(copied, 10 << 13), (short, 7)]);
    let (_dir, made) = made_with(&registry, &then, &then.projects(), &until);
    let found = |number: u64| {
        let erasure = made.erasures().into_iter().find(|found| found.number == number).unwrap();
        (erasure.is_done, [copied, short, read].map(|project| erasure.until_in(project)))
    };
    assert_eq!(found(begun), (false, [9 << 13, 7, 0]), "it is done by now, but not in what was copied");
    assert_eq!(found(published), (true, [0, 0, 0]), "what was published when the copy began is without it");
    assert_eq!(found(not_copied), (true, [0, 0, 0]));
    assert_eq!(found(later), (false, [9 << 13, 7, 5]));
    assert_eq!(found(later_not_copied), (false, [0, 0, 5]));
}
