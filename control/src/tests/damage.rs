//! Damaged, missing and foreign files: opening either restores the complete state or names the
//! damage.

use headcount_storage::log::{Damage, LogError};

use super::*;

/// Creates a registry with two snapshots whose log no longer begins at the first record.
fn rolled() -> (tempfile::TempDir, (State, Listing)) {
    let dir = tempfile::tempdir().unwrap();
    let registry = open(dir.path()).unwrap();
    changes().into_iter().for_each(|change| change(&registry));
    let id = first_organization(&registry);
    for i in 0..30 {
        let patch = OrganizationPatch { name: Some(format!("name {i}")), ..Default::default() };
        registry.update_organization(id, patch, NOW).unwrap();
    }
    assert_eq!(snapshots(dir.path()).len(), 2);
    assert_ne!(segments(dir.path())[0], "00000000000000000001.seg");
    let expected = everything(&registry);
    (dir, expected)
}

fn flip(path: &Path, at: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[at] ^= 1;
    fs::write(path, bytes).unwrap();
}

fn snapshot_path(dir: &Path, i: usize) -> std::path::PathBuf {
    dir.join(CONTROL_DIR).join(&snapshots(dir)[i])
}

fn storage_error(dir: &Path) -> ControlError {
    match open(dir) {
        Err(RegistryError::Storage(error)) => error,
        other => panic!("no storage error: {other:?}"),
    }
}

#[test]
fn a_damaged_snapshot_is_made_up_for_by_the_one_before_and_the_log() {
    let (dir, expected) = rolled();
    let newest = snapshot_path(dir.path(), 1);
    let len = fs::metadata(&newest).unwrap().len() as usize;
    let intact = fs::read(&newest).unwrap();
    for at in (0..len).step_by(len / 40) {
        flip(&newest, at);
        assert_eq!(everything(&open(dir.path()).unwrap()), expected, "byte {at}");
        fs::remove_file(newest.with_extension("json.damaged")).unwrap();
        fs::write(&newest, &intact).unwrap();
    }
    for short in [0, 1, len / 2, len - 1] {
        fs::write(&newest, &intact[..short]).unwrap();
        assert_eq!(everything(&open(dir.path()).unwrap()), expected, "{short} bytes");
    }
    // The registry keeps working, including its snapshots.
    let registry = open(dir.path()).unwrap();
    for i in 0..4 {
        let patch = OrganizationPatch { name: Some(format!("after {i}")), ..Default::default() };
        registry.update_organization(first_organization(&registry), patch, NOW).unwrap();
    }
    let expected = everything(&registry);
    drop(registry);
    assert_eq!(everything(&open(dir.path()).unwrap()), expected);
}

#[test]
fn without_an_intact_snapshot_nothing_is_made_up() {
    let (dir, expected) = rolled();
    let paths = [snapshot_path(dir.path(), 0), snapshot_path(dir.path(), 1)];
    paths.iter().for_each(|path| flip(path, 200));
    let error = storage_error(dir.path());
    assert!(matches!(&error, ControlError::SnapshotLost { damaged, .. } if damaged.len() == 2), "{error}");
    // The error leaves the files unchanged, so undoing the damage repairs the directory.
    paths.iter().for_each(|path| flip(path, 200));
    assert_eq!(everything(&open(dir.path()).unwrap()), expected);
    paths.iter().for_each(|path| fs::remove_file(path).unwrap());
    let error = storage_error(dir.path());
    assert!(matches!(&error, ControlError::SnapshotLost { damaged, .. } if damaged.is_empty()), "{error}");
}

#[test]
fn a_damaged_snapshot_is_no_loss_while_the_log_has_everything() {
    let dir = tempfile::tempdir().unwrap();
    let registry = open(dir.path()).unwrap();
    changes().into_iter().take(4).for_each(|change| change(&registry));
    let expected = everything(&registry);
    drop(registry);
    assert_eq!(snapshots(dir.path()).len(), 1);
    flip(&snapshot_path(dir.path(), 0), 300);
    assert_eq!(everything(&open(dir.path()).unwrap()), expected);
}

#[test]
fn a_lost_log_is_distinguished_from_an_empty_one() {
    let (dir, _) = rolled();
    fs::remove_dir_all(dir.path().join(CONTROL_DIR).join("log")).unwrap();
    let error = storage_error(dir.path());
    assert!(matches!(error, ControlError::LogLost { log_ends: 1, .. }), "{error}");
}

#[test]
fn damage_in_the_middle_of_the_log_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let registry = open(dir.path()).unwrap();
    changes().into_iter().take(2).for_each(|change| change(&registry));
    drop(registry);
    let segment = dir.path().join(CONTROL_DIR).join("log").join(&segments(dir.path())[0]);
    // The first page is the segment's header; the first record follows.
    flip(&segment, 4096 + 100);
    let error = storage_error(dir.path());
    let is_checksum = matches!(&error, ControlError::Log(LogError::Damaged { reason: Damage::Checksum, offset: 4096, .. }));
    assert!(is_checksum, "{error}");
}

#[test]
fn records_that_this_program_does_not_know_are_errors() {
    let organization = r#"{"organization_changed":{"id":1}}"#;
    let table = [
        // record, error
        (r#"{"version":11,"record":{"not_a_record":{}}}"#.to_owned(), "format version 11"),
        (r#"{"version":0,"record":{"not_a_record":{}}}"#.to_owned(), "format version 0"),
        (r#"{"version":1,"record":{"not_a_record":{}}}"#.to_owned(), "unknown variant"),
        (format!(r#"{{"version":1,"record":{organization}}}"#), "missing field"),
        (
            r#"{"version":1,"record":{"token_revoked":{"organization":1,"token_id":"tok_0123456789abcdef"}}}"#.to_owned(),
            "no such organization",
        ),
        (
            r#"{"version":1,"record":{"token_revoked":{"organization":1,"token_id":"tok_0123456789abcdef","x":1}}}"#.to_owned(),
            "unknown field",
        ),
        ("not json".to_owned(), "expected"),
    ];
    for (record, message) in table {
        let dir = tempfile::tempdir().unwrap();
        open(dir.path()).unwrap().initialize(NOW).unwrap();
        append(dir.path(), record.as_bytes());
        let error = storage_error(dir.path()).to_string();
        assert!(error.contains("record 2") && error.contains(message), "{record}: {error}");
    }
}

#[test]
fn a_snapshot_of_a_later_version_is_an_error_and_no_damage() {
    let (dir, _) = rolled();
    let path = snapshot_path(dir.path(), 1);
    let text = fs::read_to_string(&path).unwrap();
    let position: u64 = path.file_stem().unwrap().to_str().unwrap()["snapshot-".len()..].parse().unwrap();
    let state_at = text.find("\"state\":").unwrap() + "\"state\":".len();
    let state = &text[state_at..text.len() - 1];
    let later = super::super::snapshot::tests::envelope(position, 2, state);
    fs::write(&path, later).unwrap();
    let error = storage_error(dir.path());
    assert!(matches!(error, ControlError::UnsupportedSnapshot { found: 2, supported: 1, .. }), "{error}");
}
