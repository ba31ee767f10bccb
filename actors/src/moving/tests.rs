use headcount_control::{Erasure, ErasureEnd, ErasureStage};
use headcount_domain::{Instant, OrganizationId};

use super::*;

const NOW: Instant = Instant(1_700_000_000_000);

/// Creates a data directory with an organization.
fn directory() -> (tempfile::TempDir, Registry, OrganizationId) {
    let dir = tempfile::tempdir().unwrap();
    Format::open(dir.path()).unwrap();
    let registry = Registry::open(dir.path()).unwrap();
    registry.initialize(NOW).unwrap();
    let organization = registry.organizations()[0].id;
    (dir, registry, organization)
}

fn open(dir: &Path) -> Result<MovingSource, MovingError> {
    MovingSource::open(dir, tempfile::tempdir().unwrap().path(), &[])
}

#[test]
fn what_is_under_way_is_refused() {
    let (dir, registry, organization) = directory();
    let project = registry.projects(organization).unwrap()[0].id;
    let (users, others) = (vec![KeyHasher::new([7; 16]).user("ada")], Vec::new());
    let (is_done, is_lifted) = (false, false);
    let erasure = Erasure {
        number: 0,
        organization,
        users,
        others,
        emails: Vec::new(),
        ends: vec![ErasureEnd::at(9, project)],
        is_done,
        is_lifted,
    };
    let erasure = registry.add_erasure(erasure, None).unwrap();
    assert!(matches!(open(dir.path()), Err(MovingError::Erasing(1))));
    registry.progress_erasures(organization, project, &[erasure.number], ErasureStage::Gone).unwrap();
    open(dir.path()).unwrap();
    registry.pin_calendar(&registry.policy(project).unwrap()).unwrap();
    registry.delete_project(organization, project, NOW).unwrap();
    assert!(matches!(open(dir.path()), Err(MovingError::Deleting(1))));
}

#[test]
fn a_directory_in_use_is_refused_and_names_what_it_is() {
    let (dir, _registry, _) = directory();
    let held = open(dir.path()).unwrap();
    assert!(matches!(open(dir.path()), Err(MovingError::InUse(_))));
    let digest = held.digest().to_owned();
    drop(held);
    assert_eq!(open(dir.path()).unwrap().digest(), digest);
    let (other, ..) = directory();
    assert_ne!(open(other.path()).unwrap().digest(), digest);
}

#[test]
fn keys_come_along_and_replace_no_others() {
    let (dir, _registry, _) = directory();
    let (to, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    secrets::create(dir.path()).unwrap();
    std::fs::write(dir.path().join("keys/salts"), "[]").unwrap();
    let source = open(dir.path()).unwrap();
    for _ in 0..2 {
        source.bring_keys(to.path()).unwrap();
    }
    let digest = |dir: &Path| secrets::hash_key_digest(dir).unwrap().unwrap();
    assert_eq!((digest(to.path()), to.path().join("keys/salts").exists()), (digest(dir.path()), true));
    secrets::create(other.path()).unwrap();
    let former = digest(other.path());
    assert!(matches!(source.bring_keys(other.path()), Err(MovingError::Secrets(_))));
    assert_eq!(digest(other.path()), former);
}
