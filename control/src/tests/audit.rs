//! The audit log: its entries for each change, and its files.

use std::hash::{BuildHasher as _, RandomState};

use super::*;

const DAY_MS: i64 = 86_400_000;

fn page(registry: &Registry, query: &AuditQuery) -> AuditPage {
    registry.audit_log(first_organization(registry), query, NOW).unwrap()
}

fn all(registry: &Registry) -> Vec<AuditEntry> {
    page(registry, &AuditQuery { limit: 10_000, ..Default::default() }).entries
}

fn actions(entries: &[AuditEntry]) -> Vec<&str> {
    entries.iter().rev().map(|entry| entry.action.as_str()).collect()
}

fn change_name(registry: &Registry, name: impl ToString, by: impl Into<Author>) {
    let patch = OrganizationPatch { name: Some(name.to_string()), ..Default::default() };
    registry.update_organization(first_organization(registry), patch, by).unwrap();
}

/// The entries of [`changes`], for the first organization.
const OF_CHANGES: [&str; 37] = [
    "organization.created",
    "project.created",
    "api_token.created",
    "api_token.created",
    "organization.updated",
    "project.created",
    "public_key.created",
    "organization.updated",
    "public_key.deleted",
    "api_token.created",
    "api_token.revoked",
    "project.updated",
    "public_key.updated",
    "public_key.updated",
    "api_token.updated",
    "project.updated",
    "api_token.created",
    "project.created",
    "api_token.created",
    "definition.created",
    "definition.updated",
    "definition.deleted",
    "project.deleted",
    "api_token.revoked",
    "member.created",
    "member.created",
    "api_token.created",
    "member.updated",
    "api_token.created",
    "member.removed",
    "api_token.revoked",
    "organization.updated",
    "organization.updated",
    "organization.updated",
    "share.created",
    "share.created",
    "share.revoked",
];

#[test]
fn every_change_has_its_entries_once_also_after_restarts() {
    let dir = tempfile::tempdir().unwrap();
    for change in changes() {
        // A new process for each change. Snapshots and segments roll meanwhile.
        let registry = open(dir.path()).unwrap();
        change(&registry);
    }
    let registry = open(dir.path()).unwrap();
    let entries = all(&registry);
    assert_eq!(actions(&entries), OF_CHANGES);
    let text = serde_json::to_string(&entries).unwrap();
    let state = registry.state();
    for (_, hash) in state.tenants.values().flat_map(|tenant| tenant.tokens.values()) {
        assert!(!text.contains(serde_json::to_value(hash).unwrap().as_str().unwrap()), "a hash of a secret");
    }
    let second =
        registry.organizations().iter().map(|organization| organization.id).find(|id| *id != first_organization(&registry));
    let others = registry.audit_log(second.unwrap(), &AuditQuery { limit: 9, ..Default::default() }, NOW).unwrap();
    assert_eq!(actions(&others.entries), ["organization.created", "project.created", "api_token.created"]);
}

#[test]
fn an_entry_has_its_author_and_the_fields_that_changed() {
    let dir = tempfile::tempdir().unwrap();
    let registry = open(dir.path()).unwrap();
    registry.initialize(NOW).unwrap();
    let (ada, secret) = registry.create_token(first_organization(&registry), token("ada", &[Scope::Admin]), NOW).unwrap();
    let actor = Actor { kind: ActorKind::Token, token_id: Some(ada.token_id.clone()), member_id: None };
    let author = Author { at: NOW.plus_ms(5), actor, request_id: Some("req-1".into()), authority: None };
    change_name(&registry, "Acme", author.clone());
    change_name(&registry, "Acme", author.clone());
    let entries = all(&registry);
    let [newest, created, ..] = &entries[..] else { panic!("{entries:?}") };
    assert_eq!((newest.at, &newest.actor, &newest.request_id), (author.at, &author.actor, &author.request_id));
    let change = |from: &str, to: &str| FieldChange { from: from.into(), to: to.into() };
    assert_eq!(newest.changes, [("name".to_owned(), change("default", "Acme"))].into());
    assert_eq!(newest.target.id, first_organization(&registry).to_string());
    assert_eq!((created.action, &*created.target.id), (AuditAction::ApiTokenCreated, ada.token_id.as_str()));
    assert_eq!(created.changes["scopes"].to, serde_json::json!(["admin"]));
    assert!(!serde_json::to_string(&entries).unwrap().contains(secret.expose()));
    assert_eq!(entries.len(), 5, "what changes nothing leaves no entry");
}

#[test]
fn pages_and_filters_select() {
    let dir = tempfile::tempdir().unwrap();
    let registry = open(dir.path()).unwrap();
    registry.initialize(NOW).unwrap();
    let project = registry.projects(first_organization(&registry)).unwrap()[0].id;
    let mut keys = Vec::new();
    for i in 0..300 {
        change_name(&registry, i, NOW.plus_ms(i));
        if i % 30 == 0 {
            keys.push(registry.add_public_key(first_organization(&registry), project, NOW).unwrap());
        }
    }
    let every = all(&registry);
    assert_eq!(every.len(), 313);
    let mut read = Vec::new();
    loop {
        let starting_after = read.last().map(|entry: &AuditEntry| entry.id.clone());
        let AuditPage { entries, truncated } = page(&registry, &AuditQuery { limit: 50, starting_after, ..Default::default() });
        read.extend(entries);
        if !truncated {
            break;
        }
    }
    assert_eq!(read, every);
    let action = Some(AuditAction::PublicKeyCreated);
    let first = page(&registry, &AuditQuery { limit: 10, action, ..Default::default() });
    assert_eq!((first.entries.len(), first.truncated), (10, false), "exactly as many as there are");
    let nine = page(&registry, &AuditQuery { limit: 9, action, ..Default::default() });
    assert!(nine.truncated);
    let of_key = page(&registry, &AuditQuery { limit: 10, target_id: Some(keys[3].clone()), ..Default::default() });
    assert_eq!(of_key.entries, [first.entries[6].clone()]);
    let unknown = AuditQuery { limit: 1, starting_after: Some("aud_0000000000000000".parse().unwrap()), ..Default::default() };
    let error = registry.audit_log(first_organization(&registry), &unknown, NOW).unwrap_err();
    assert!(matches!(error, RegistryError::Invalid { .. }), "{error}");
}

/// A crash can come between the control record and the entries.
#[test]
fn what_an_audit_log_lacks_comes_from_the_control_log() {
    let dir = tempfile::tempdir().unwrap();
    let registry = Registry::open(dir.path()).unwrap();
    registry.initialize(NOW).unwrap();
    change_name(&registry, "one", NOW);
    drop(registry);
    let audit = dir.path().join(CONTROL_DIR).join("audit");
    let earlier = tempfile::tempdir().unwrap();
    copy_dir(&audit, earlier.path());
    let registry = Registry::open(dir.path()).unwrap();
    change_name(&registry, "two", NOW);
    registry.create_organization("second", NOW).unwrap();
    let entries = all(&registry);
    drop(registry);
    for from in [Some(earlier.path()), None] {
        fs::remove_dir_all(&audit).unwrap();
        from.into_iter().for_each(|from| copy_dir(from, &audit));
        for _ in 0..2 {
            let registry = Registry::open(dir.path()).unwrap();
            assert_eq!(all(&registry), entries);
        }
    }
}

/// Damage stops no change, hides nothing, and loses nothing that the control log has.
#[test]
fn a_damaged_audit_log_is_an_error_for_its_readers_alone() {
    let dir = tempfile::tempdir().unwrap();
    let registry = open(dir.path()).unwrap();
    registry.initialize(NOW).unwrap();
    let organization = first_organization(&registry);
    let other = registry.create_organization("second", NOW.plus_ms(1)).unwrap().organization_id;
    let files = dir.path().join(CONTROL_DIR).join("audit").join(organization.to_string());
    let aside = dir.path().join("aside");
    fs::rename(&files, &aside).unwrap();
    fs::write(&files, "not a directory").unwrap();
    for i in 0..40 {
        change_name(&registry, i, NOW);
    }
    let everything_of_it = AuditQuery { limit: 100, ..Default::default() };
    let error = registry.audit_log(organization, &everything_of_it, NOW).unwrap_err();
    assert!(matches!(error, RegistryError::Storage(_)), "{error}");
    assert_eq!(registry.audit_log(other, &everything_of_it, NOW).unwrap().entries.len(), 3);
    drop(registry);
    let registry = open(dir.path()).unwrap();
    assert!(registry.audit_log(organization, &everything_of_it, NOW).is_err());
    fs::remove_file(&files).unwrap();
    fs::rename(&aside, &files).unwrap();
    assert_eq!(registry.audit_log(organization, &everything_of_it, NOW).unwrap().entries.len(), 43);
    drop(registry);
    assert_eq!(all(&open(dir.path()).unwrap()).len(), 43);
}

#[test]
fn entries_are_kept_for_400_days() {
    let dir = tempfile::tempdir().unwrap();
    let registry = Registry::open(dir.path()).unwrap();
    registry.initialize(NOW.plus_ms(-401 * DAY_MS)).unwrap();
    let project = registry.projects(first_organization(&registry)).unwrap()[0].id;
    let bytes = || -> u64 {
        let dir = dir.path().join(CONTROL_DIR).join("audit").join(first_organization(&registry).to_string());
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len()).sum()
    };
    for i in 0..40 {
        // Text that doesn't compress.
        let random = |_| format!("{:016x}", RandomState::new().hash_one(i));
        let origin = |_| format!("https://{}.example", (0..12).map(random).collect::<String>());
        let patch = ProjectPatch { allowed_origins: Some((0..100).map(origin).collect()), ..Default::default() };
        registry.update_project(first_organization(&registry), project, patch, NOW.plus_ms(-401 * DAY_MS)).unwrap();
    }
    let full = bytes();
    assert_eq!(all(&registry).len(), 0);
    for i in 0..70 {
        change_name(&registry, i, NOW.plus_ms(-399 * DAY_MS));
    }
    assert_eq!(all(&registry).len(), 70);
    for i in 0..70 {
        change_name(&registry, format!("b{i}"), NOW);
    }
    assert_eq!(all(&registry).len(), 140);
    assert!(bytes() >= full, "a change by a wrong clock removes nothing");
    registry.note_time(NOW).unwrap();
    for i in 0..70 {
        change_name(&registry, format!("c{i}"), NOW);
    }
    assert_eq!(all(&registry).len(), 210);
    assert!(bytes() < full, "{} of {full} bytes", bytes());
}
