//! The index of external ids.

use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use headcount_actors::domain::ids::external_ids_of;
use headcount_actors::verify::{VerifyReport, VerifyStatus};
use headcount_common::partition_of;
use headcount_storage::external_ids::{ExternalIds, ExternalIdsOptions, Freeze};
use headcount_storage::format::Incarnation;

use super::{PROJECTS, clean, filled, verified};

/// The index of a partition of a closed data directory.
fn options(dir: &Path) -> ExternalIdsOptions {
    let manifest = fs::read(dir.join("MANIFEST")).unwrap();
    ExternalIdsOptions { incarnation: Incarnation::from_number(u128::from_be_bytes(*manifest.first_chunk().unwrap())) }
}

fn entries(dir: &Path) -> Vec<(u128, u64)> {
    let view = ExternalIds::open(dir, options(dir)).unwrap().view();
    let (mut entries, mut all) = (view.entries().unwrap(), Vec::new());
    while let Some(entry) = entries.next().unwrap() {
        all.push(entry);
    }
    all
}

/// Writes an index with these entries, in two tables.
fn rewrite(dir: &Path, entries: &[(u128, u64)]) {
    let options = options(dir);
    ExternalIds::reset(dir, options).unwrap();
    let mut index = ExternalIds::open(dir, options).unwrap();
    for half in entries.chunks(entries.len().div_ceil(2)) {
        for (fingerprint, position) in half {
            index.first(*fingerprint, *position).unwrap();
        }
        let Freeze::Write(frozen) = index.freeze() else { panic!("nothing to write") };
        index.adopt(frozen.write().unwrap());
    }
    if let Some(merge) = index.merge() {
        index.adopt(merge.write(&AtomicBool::new(false)).unwrap());
    }
}

fn differing(report: &VerifyReport) -> Vec<(Option<String>, Option<String>)> {
    assert_eq!(report.status(), VerifyStatus::Differs, "{:?}", report.damaged);
    assert!(report.cells.iter().all(|cell| cell.rollup == "external_ids"), "{:?}", report.cells);
    assert_eq!(report.differing, report.cells.len() as u64);
    report.cells.iter().map(|cell| (cell.stored.clone(), cell.recomputed.clone())).collect()
}

#[tokio::test]
async fn an_external_id_that_is_missing_moved_or_made_up_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let (projects, events) = filled(dir.path()).await;
    let index = dir.path().join("fingerprints").join(partition_of(projects[0]).to_string());
    let sound = entries(&index);
    let of_first = |(fingerprint, _): &(u128, u64)| fingerprint.to_be_bytes().starts_with(&external_ids_of(projects[0]));
    let [one, other, ..] = sound.iter().copied().filter(of_first).collect::<Vec<_>>()[..] else { panic!("no external ids") };
    let without = |gone: u128| sound.iter().copied().filter(move |(fingerprint, _)| *fingerprint != gone);

    rewrite(&index, &without(one.0).collect::<Vec<_>>());
    let report = verified(dir.path());
    assert_eq!(differing(&report), [(None, Some(one.1.to_string()))]);
    assert_eq!((report.cells[0].project, &report.cells[0].key), (projects[0], &format!("{:032x}", one.0)));

    let moved: Vec<_> = without(other.0).chain([(other.0, other.1 + 1)]).collect();
    rewrite(&index, &moved);
    assert_eq!(differing(&verified(dir.path())), [(Some((other.1 + 1).to_string()), Some(other.1.to_string()))]);

    let made_up: Vec<_> = sound.iter().copied().chain([(one.0 ^ 1, one.1)]).collect();
    rewrite(&index, &made_up);
    assert_eq!(differing(&verified(dir.path())), [(Some(one.1.to_string()), None)]);

    // An index may be ahead of the state, and the ids of deleted projects stay for a while.
    let ahead = (one.0 ^ 1, 1 << 40);
    let of_nobody = (u128::MAX, 1);
    rewrite(&index, &sound.iter().copied().chain([ahead, of_nobody]).collect::<Vec<_>>());
    clean(&verified(dir.path()), PROJECTS, events);
    rewrite(&index, &sound);
    clean(&verified(dir.path()), PROJECTS, events);
}
