//! Every operation on files fails once, one at a time, in every way: nothing is lost or doubled, a
//! crash at that moment leaves one of two states, and the same call repeated gives what it should
//! have given.

use std::fs;
use std::path::Path;

use headcount_archive::{Archive, ArchiveError, CompactOptions, Row, SealOptions, Sealer, merge_next, month_of};
use headcount_storage::files::switch::{Errno, Plan, Switch};

use crate::support::{MARCH, PROJECT, contents, rows, scratch, seal, series};

const ONCE: Plan = Plan { at: 0, failures: 1, errno: Errno::Io, done: false };

/// The ways in which an operation fails.
const WAYS: [Plan; 5] = [
    Plan { errno: Errno::NoSpace, ..ONCE },
    ONCE,
    Plan { errno: Errno::NoSpace, failures: u64::MAX, ..ONCE },
    Plan { failures: u64::MAX, ..ONCE },
    Plan { done: true, ..ONCE },
];

fn options() -> SealOptions {
    SealOptions { file_rows: 40, ..SealOptions::default() }
}

fn copy_dir(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_dir(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), &target).unwrap();
        }
    }
}

fn files_in(dir: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files_in(&path)) } else { found.push(path.to_str().unwrap().to_owned()) }
    }
    found.sort();
    found
}

/// Fails each operation of `work` on a copy of `prepared`. Returns how many failures there were.
fn fail_each(prepared: &Path, before: &[Row], after: &[Row], work: impl Fn(&Path) -> Result<(), ArchiveError>) -> u64 {
    let mut failures = 0;
    for way in WAYS {
        for at in 1.. {
            let place = scratch();
            let root = place.path().join("archive");
            copy_dir(prepared, &root);
            let switch = Switch::arm(&root, Plan { at, ..way });
            let outcome = work(&root);
            let failed = switch.failed().first().cloned();
            drop(switch);
            let what = format!("{way:?} at {at}: {failed:?}, {outcome:?}");
            if let Err(error) = &outcome {
                assert!(failed.is_some() && matches!(error, ArchiveError::Io { .. }), "{what}");
            }
            // What a process that ended now would find.
            let found = contents(&root);
            assert!(found == after || outcome.is_err() && found == before, "{what}: {} rows", found.len());
            let repeated = work(&root);
            assert!(repeated.is_ok() && contents(&root) == after, "again, {what}: {repeated:?}");
            let archive = Archive::open(&root, PROJECT).unwrap();
            archive.remove_left_overs().unwrap();
            assert!(archive.left_overs().unwrap().is_empty());
            assert_eq!(files_in(&root).len(), archive.manifest().files().len() + 1, "{what}: {:?}", files_in(&root));
            assert!(archive.damaged_files(true).unwrap().is_empty(), "{what}");
            assert!(rows(&archive) == after, "left-overs removed, {what}");
            failures += u64::from(failed.is_some());
            if failed.is_none() {
                break;
            }
        }
    }
    failures
}

#[test]
fn sealing_survives_each_failure() {
    let place = scratch();
    // The last rows are of April.
    let mut all = series(1..=100);
    all[90..].iter_mut().for_each(|row| row.event.received = MARCH.plus_ms(32 * 86_400_000));
    let mut archive = Archive::open(place.path(), PROJECT).unwrap();
    seal(&mut archive, &all[..20], options());
    let failures = fail_each(place.path(), &all[..20], &all, |root| {
        let mut archive = Archive::open(root, PROJECT)?;
        let from = archive.manifest().sealed_until();
        let mut sealer = Sealer::new(&mut archive, options());
        all.iter().filter(|row| row.position > from).try_for_each(|row| sealer.push(row))?;
        sealer.finish(100)
    });
    assert!(failures > 100, "{failures}");
}

#[test]
fn the_first_seal_survives_each_failure() {
    let place = scratch();
    let all = series(1..=10);
    let failures = fail_each(place.path(), &[], &all, |root| {
        let mut archive = Archive::open(root, PROJECT)?;
        let from = archive.manifest().sealed_until();
        let mut sealer = Sealer::new(&mut archive, options());
        all.iter().filter(|row| row.position > from).try_for_each(|row| sealer.push(row))?;
        sealer.finish(10)
    });
    assert!(failures > 60, "{failures}");
}

#[test]
fn merging_and_clearing_up_survive_each_failure() {
    let place = scratch();
    let all = series(1..=24);
    let mut archive = Archive::open(place.path(), PROJECT).unwrap();
    all.chunks(4).for_each(|rows| seal(&mut archive, rows, options()));
    let files = archive.manifest().files().len();
    let compact = CompactOptions { seal: options(), ..CompactOptions::default() };
    let failures = fail_each(place.path(), &all, &all, |root| {
        let mut archive = Archive::open(root, PROJECT)?;
        while merge_next(&mut archive, month_of(MARCH).next(), &compact, &|| true)? {}
        assert!(archive.manifest().files().len() < files);
        archive.remove_left_overs()
    });
    assert!(failures > 100, "{failures}");
}

/// The list in the folder may be newer than the one that an archive knows: neither's files are
/// removed.
#[test]
fn clearing_up_after_a_failed_merge_loses_nothing() {
    let place = scratch();
    let all = series(1..=40);
    let mut archive = Archive::open(place.path(), PROJECT).unwrap();
    all.chunks(10).for_each(|rows| seal(&mut archive, rows, SealOptions::default()));
    for done in [false, true] {
        for at in 1.. {
            let copy = scratch();
            copy_dir(place.path(), copy.path());
            let mut archive = Archive::open(copy.path(), PROJECT).unwrap();
            let switch = Switch::arm(copy.path(), Plan { at, done, ..ONCE });
            let outcome = merge_next(&mut archive, month_of(MARCH).next(), &CompactOptions::default(), &|| true);
            let has_failed = !switch.failed().is_empty();
            drop(switch);
            archive.remove_left_overs().unwrap();
            assert_eq!(contents(copy.path()), all, "{done} at {at}: {outcome:?}");
            assert_eq!(rows(&archive), all, "{done} at {at}: {outcome:?}");
            if !has_failed {
                break;
            }
            while merge_next(&mut archive, month_of(MARCH).next(), &CompactOptions::default(), &|| true).unwrap() {}
            archive.remove_left_overs().unwrap();
            assert_eq!(contents(copy.path()), all, "again, {done} at {at}");
            assert_eq!(archive.manifest().files().len(), 1);
        }
    }
}

#[test]
fn a_read_that_failed_can_be_repeated() {
    let place = scratch();
    let all = series(1..=50);
    let mut archive = Archive::open(place.path(), PROJECT).unwrap();
    seal(&mut archive, &all, options());
    let switch = Switch::arm(place.path(), Plan::default());
    for errno in [Errno::Io, Errno::TooManyFiles] {
        for at in 1.. {
            let failed_before = switch.failed().len();
            switch.rearm(Plan { at, errno, ..ONCE });
            let mut found = Vec::new();
            let read = archive.for_each_row(0, |row| {
                found.push(row);
                Ok::<_, ArchiveError>(())
            });
            switch.clear();
            let has_failed = switch.failed().len() > failed_before;
            assert!(if has_failed { matches!(read, Err(ArchiveError::Io { .. })) } else { found == all }, "{read:?}");
            if !has_failed {
                break;
            }
        }
    }
    assert!(switch.failed().len() > 10, "{}", switch.failed().len());
}
