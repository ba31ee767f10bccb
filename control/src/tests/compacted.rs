//! Machines on a control log whose old records were removed.

use std::fs;
use std::sync::atomic::Ordering;

use super::shared_log::{SharedLog, Writer};
use super::*;

const ALL: usize = 1000;

/// Shares a snapshot of the control data, and removes the records that it covers.
fn compact(writer: &Writer) {
    let mut pieces = Vec::new();
    let position = writer.registry.write_shared_snapshot(&mut |piece| {
        assert!(!piece.contains(&b'\n'));
        pieces.push(piece.to_vec());
        Ok(())
    });
    *writer.log.pieces.lock() = pieces;
    writer.log.removed.store(position.unwrap(), Ordering::Relaxed);
}

/// The audit logs of all organizations.
fn audited(writer: &Writer) -> Vec<Vec<AuditEntry>> {
    let query = AuditQuery { limit: ALL, ..AuditQuery::default() };
    let of = |organization: &Arc<Organization>| writer.registry.audit_log(organization.id, &query, NOW).unwrap().entries;
    writer.registry.organizations().iter().map(of).collect()
}

/// Two organizations: one with many changes of one record each, and one with few.
fn changed() -> Writer {
    let writer = Writer::open(SharedLog::default());
    changes().iter().for_each(|change| change(&writer.registry));
    let organization = first_organization(&writer.registry);
    (0..150).for_each(|number| rename(&writer, organization, number));
    writer
}

fn rename(writer: &Writer, organization: OrganizationId, number: usize) {
    let patch = OrganizationPatch { name: Some(format!("name {number}")), ..OrganizationPatch::default() };
    writer.registry.update_organization(organization, patch, NOW.plus_ms(number as i64)).unwrap();
}

#[test]
fn machines_that_lack_removed_records_start_from_a_shared_snapshot() {
    let one = changed();
    let Writer { dir, log, registry } = Writer::open(one.log.of_another());
    drop(registry);
    let running = one.another();
    let organization = first_organization(&one.registry);
    (150..200).for_each(|number| rename(&one, organization, number));
    compact(&one);
    let at = one.registry.applied().unwrap();
    rename(&one, organization, 200);
    for machine in [Writer::open(one.log.of_another()), Writer::open_in(dir, log.of_another()).unwrap()] {
        assert_eq!(machine.everything(), one.everything());
        assert_eq!(audited(&machine), audited(&one));
        // It is a machine like any other: the next change, and the next start.
        rename(&machine, organization, 201);
        let Writer { dir, log, registry } = machine;
        drop(registry);
        let again = Writer::open_in(dir, log.of_another()).unwrap();
        assert_eq!((again.everything(), audited(&again)), (one.everything(), audited(&one)));
        assert_eq!(again.registry.log_begins().unwrap(), at + 1);
    }
    let stops = running.registry.catch_up().unwrap_err();
    let applied = running.registry.applied().unwrap();
    let is_expected = |error: &RegistryError, wanted| matches!(error, RegistryError::Storage(ControlError::Compacted { log_begins, applied }) if (*log_begins, *applied) == (at + 1, wanted));
    assert!(is_expected(&stops, applied), "{stops}");
    assert!(is_expected(&one.registry.removed_after(at - 1).unwrap_err(), at - 1));
    assert!(one.registry.removed_after(at).is_ok());
}

#[test]
fn a_start_from_a_shared_snapshot_can_be_cut_off_anywhere() {
    let one = changed();
    compact(&one);
    let pieces = one.log.pieces.lock().clone();
    assert!(pieces.len() > 4, "{}", pieces.len());
    let dir = tempfile::tempdir().unwrap();
    for (unread, piece) in pieces.iter().enumerate() {
        one.log.pieces.lock()[unread].clear();
        assert!(Journal::open_on(dir.path(), Box::new(one.log.of_another()), small()).is_err());
        one.log.pieces.lock()[unread].clone_from(piece);
    }
    let machine = Writer::open_in(dir, one.log.of_another()).unwrap();
    assert_eq!((machine.everything(), audited(&machine)), (one.everything(), audited(&one)));
    // Without a snapshot, or with one of a later version, it does not start.
    let first = String::from_utf8(pieces[0].clone()).unwrap();
    let state = first.split_once(r#""state":"#).unwrap().1.strip_suffix('}').unwrap();
    let later = crate::snapshot::tests::envelope(one.registry.applied().unwrap(), 99, state);
    for (piece, wanted) in
        [(Some(later), "format version 99"), (Some(b"{}".to_vec()), "is damaged"), (None, "no intact snapshot")]
    {
        *one.log.pieces.lock() = piece.into_iter().collect();
        let refused = Writer::open_in(tempfile::tempdir().unwrap(), one.log.of_another()).err().unwrap();
        assert!(refused.to_string().contains(wanted), "{refused}");
    }
}

/// The records that its audit log lacks may be removed while it can't be written.
#[test]
fn an_audit_log_that_was_not_written_comes_from_a_shared_snapshot() {
    let one = changed();
    let other = one.another();
    other.registry.catch_up().unwrap();
    let organization = first_organization(&one.registry);
    let audit = other.dir.path().join("audit").join(organization.to_string());
    let aside = other.dir.path().join("aside");
    fs::rename(&audit, &aside).unwrap();
    fs::write(&audit, b"").unwrap();
    (150..170).for_each(|number| rename(&one, organization, number));
    other.registry.catch_up().unwrap();
    compact(&one);
    let Writer { dir, log, registry } = Arc::into_inner(other).unwrap();
    drop(registry);
    fs::remove_file(&audit).unwrap();
    fs::rename(&aside, &audit).unwrap();
    let other = Writer::open_in(dir, log.of_another()).unwrap();
    assert_eq!((other.everything(), audited(&other)), (one.everything(), audited(&one)));
}

#[test]
fn audit_logs_that_are_gone_come_from_a_shared_snapshot() {
    let one = changed();
    compact(&one);
    let wanted = (one.everything(), audited(&one));
    let pieces = one.log.pieces.lock().clone();
    let Writer { dir, log, registry } = one;
    drop(registry);
    fs::remove_dir_all(dir.path().join("audit")).unwrap();
    for (unread, piece) in pieces.iter().enumerate() {
        log.pieces.lock()[unread].clear();
        assert!(Journal::open_on(dir.path(), Box::new(log.of_another()), small()).is_err());
        log.pieces.lock()[unread].clone_from(piece);
    }
    let one = Writer::open_in(dir, log.of_another()).unwrap();
    assert_eq!((one.everything(), audited(&one)), wanted);
}
