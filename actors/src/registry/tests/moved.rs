//! The control data as the records of another control log.

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
