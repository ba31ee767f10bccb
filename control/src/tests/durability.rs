//! Acknowledged changes survive any stop.

use std::os::unix::fs::PermissionsExt as _;

use super::*;

#[test]
fn reopening_after_every_change_gives_the_same() {
    let dir = tempfile::tempdir().unwrap();
    for change in changes() {
        let registry = open(dir.path()).unwrap();
        change(&registry);
        let expected = everything(&registry);
        drop(registry);
        assert_eq!(everything(&open(dir.path()).unwrap()), expected);
    }
}

#[test]
fn the_cache_follows_every_change() {
    let dir = tempfile::tempdir().unwrap();
    let registry = open(dir.path()).unwrap();
    for change in changes() {
        change(&registry);
        let (state, listing) = everything(&registry);
        assert_eq!(listing, Cache::of(&state).listing());
    }
}

#[test]
fn a_copy_of_the_files_between_any_two_changes_is_whole() {
    let (dir, copies) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let registry = open(dir.path()).unwrap();
    let mut expected = Vec::new();
    for (i, change) in changes().into_iter().enumerate() {
        change(&registry);
        // The copy is what a crash would leave: nothing was closed or flushed.
        copy_dir(dir.path(), &copies.path().join(i.to_string()));
        expected.push(everything(&registry));
    }
    for (i, expected) in expected.into_iter().enumerate() {
        assert_eq!(everything(&open(&copies.path().join(i.to_string())).unwrap()), expected, "after change {i}");
    }
}

#[test]
fn a_change_whose_record_was_not_finished_never_happened() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    // No snapshot in between, so that one segment holds all records.
    let options = || JournalOptions { snapshot_every: 1000, segment_bytes: 64 * 1024, ..small() };
    for change in changes() {
        let registry = Registry::open_with(&data, options()).unwrap();
        let segment = data.join(CONTROL_DIR).join("log").join(&segments(&data)[0]);
        let (state_before, bytes_before) = (everything(&registry), fs::read(&segment).unwrap());
        change(&registry);
        let (state_after, bytes_after) = (everything(&registry), fs::read(&segment).unwrap());
        drop(registry);
        let differs = |(_, (a, b)): &(usize, (&u8, &u8))| a != b;
        let written: Vec<usize> = bytes_before.iter().zip(&bytes_after).enumerate().filter(differs).map(|(at, _)| at).collect();
        // Cut before the record, in its middle, and before its last byte.
        for cut in [written[0], written[written.len() / 2], written[written.len() - 1]] {
            let torn = dir.path().join("torn");
            copy_dir(&data, &torn);
            let mut bytes = bytes_after.clone();
            bytes[cut..].copy_from_slice(&bytes_before[cut..]);
            fs::write(torn.join(CONTROL_DIR).join("log").join(&segments(&torn)[0]), bytes).unwrap();
            let reopened = everything(&Registry::open_with(&torn, options()).unwrap());
            assert!(reopened == state_before, "cut at {cut} of {written:?}");
            fs::remove_dir_all(torn).unwrap();
        }
        assert!(state_before != state_after);
    }
}

#[test]
fn what_was_not_finished_does_not_stand_in_the_way_of_the_next_change() {
    let dir = tempfile::tempdir().unwrap();
    let initial = open(dir.path()).unwrap().initialize(NOW).unwrap();
    let segment = dir.path().join(CONTROL_DIR).join("log").join(&segments(dir.path())[0]);
    let mut bytes = fs::read(&segment).unwrap();
    let end = bytes.iter().rposition(|byte| *byte != 0).unwrap();
    bytes[(end + 16) & !7] = 0x55;
    fs::write(&segment, bytes).unwrap();
    let registry = open(dir.path()).unwrap();
    let project = NewProject { name: "next".into(), ..Default::default() };
    registry.create_project(initial.organization_id, project, NOW).unwrap();
    let expected = everything(&registry);
    drop(registry);
    assert_eq!(everything(&open(dir.path()).unwrap()), expected);
}

#[test]
fn revoked_tokens_stay_revoked() {
    let dir = tempfile::tempdir().unwrap();
    let registry = open(dir.path()).unwrap();
    let id = registry.initialize(NOW).unwrap().organization_id;
    let mut revoked = Vec::new();
    for i in 0..8 {
        let (made, secret) = registry.create_token(id, token(&i.to_string(), &[Scope::Admin]), NOW).unwrap();
        registry.revoke_token(id, &made.token_id, NOW).unwrap();
        revoked.push(secret);
    }
    let (_, kept) = registry.create_token(id, token("kept", &[Scope::Admin]), NOW).unwrap();
    drop(registry);
    let registry = open(dir.path()).unwrap();
    for secret in &revoked {
        assert_eq!(registry.authenticate(secret.expose(), NOW), Err(AuthError::Unknown));
    }
    assert!(registry.authenticate(kept.expose(), NOW).is_ok());
}

#[test]
fn snapshots_roll_and_old_segments_go() {
    let dir = tempfile::tempdir().unwrap();
    let registry = open(dir.path()).unwrap();
    let id = registry.initialize(NOW).unwrap().organization_id;
    for i in 0..60 {
        let patch = OrganizationPatch { name: Some(format!("name {i}")), ..Default::default() };
        registry.update_organization(id, patch, NOW).unwrap();
        assert!(snapshots(dir.path()).len() <= 2);
        assert!(segments(dir.path()).len() <= 3, "{:?}", segments(dir.path()));
    }
    assert_eq!(snapshots(dir.path()), ["snapshot-00000000000000000057.json", "snapshot-00000000000000000060.json"]);
    assert_ne!(segments(dir.path())[0], "00000000000000000001.seg");
    let expected = everything(&registry);
    drop(registry);
    assert_eq!(everything(&open(dir.path()).unwrap()), expected);
}

#[test]
fn removals_under_way_are_known_after_their_records_are_gone() {
    let dir = tempfile::tempdir().unwrap();
    let registry = open(dir.path()).unwrap();
    let id = registry.initialize(NOW).unwrap().organization_id;
    let new = || NewProject { name: "p".to_owned(), ..NewProject::default() };
    let [ended, under_way] = [(); 2].map(|()| registry.create_project(id, new(), NOW).unwrap().id);
    for project in [ended, under_way] {
        registry.pin_calendar(&registry.policy(project).unwrap()).unwrap();
        registry.delete_project(id, project, NOW).unwrap();
    }
    registry.finish_deletion(ended).unwrap();
    for i in 0..200 {
        let patch = OrganizationPatch { name: Some(format!("{i:0>200}")), ..Default::default() };
        registry.update_organization(id, patch, NOW).unwrap();
    }
    assert_ne!(segments(dir.path())[0], "00000000000000000001.seg");
    let removed = registry.removed_after(0).unwrap();
    assert_eq!((removed.deleted, removed.until), (vec![under_way], registry.applied().unwrap()));
}

#[test]
fn large_snapshots_are_far_apart() {
    let dir = tempfile::tempdir().unwrap();
    let options = || JournalOptions { snapshot_bytes_per_record: 100, ..small() };
    let id = Registry::open_with(dir.path(), options()).unwrap().initialize(NOW).unwrap().organization_id;
    let mut changes_until: Vec<u64> = Vec::new();
    let mut last = (snapshots(dir.path()), 0);
    for i in 1..=60 {
        // After it is opened again, it knows the size of the last snapshot.
        let registry = Registry::open_with(dir.path(), options()).unwrap();
        let patch = OrganizationPatch { name: Some(format!("{i:0>200}")), ..Default::default() };
        registry.update_organization(id, patch, NOW).unwrap();
        if snapshots(dir.path()) != last.0 {
            changes_until.push(i - last.1);
            last = (snapshots(dir.path()), i);
        }
    }
    let bytes = fs::metadata(dir.path().join(CONTROL_DIR).join(last.0.last().unwrap())).unwrap().len();
    let expected = bytes / 100;
    assert!(expected > 6, "{bytes}");
    assert!(changes_until[2..].iter().all(|changes| changes.abs_diff(expected) <= 1), "{changes_until:?}, {expected} expected");
    assert!(changes_until.len() > 3, "{changes_until:?}");
}

#[test]
fn only_the_owner_reads_the_files() {
    let dir = tempfile::tempdir().unwrap();
    let registry = open(dir.path()).unwrap();
    changes().into_iter().for_each(|change| change(&registry));
    let control = dir.path().join(CONTROL_DIR);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    for sub in ["", "log"] {
        assert_eq!(mode(&control.join(sub)), 0o700, "{sub}");
        for name in names(dir.path(), sub) {
            let path = control.join(sub).join(&name);
            assert!(path.is_dir() || mode(&path) == 0o600, "{name}");
        }
    }
}
