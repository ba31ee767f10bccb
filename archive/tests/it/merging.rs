//! The files of a month become few.

use std::fs;

use headcount_archive::{Archive, CompactOptions, Row, SealOptions, merge_next, month_of, next_merge};
use headcount_domain::time::Month;

use crate::support::{MARCH, PROJECT, plausible, rows, scratch, seal, series};

const DAY_MS: i64 = 86_400_000;

fn march() -> Month {
    month_of(MARCH)
}

fn options() -> CompactOptions {
    CompactOptions { month_files: 4, seal: SealOptions { file_rows: 400, ..SealOptions::default() } }
}

fn sizes(archive: &Archive) -> Vec<u64> {
    archive.manifest().files().iter().map(|file| file.rows).collect()
}

fn merge_all(archive: &mut Archive, now: Month) -> u32 {
    let mut merges = 0;
    while merge_next(archive, now, &options(), &|| true).unwrap() {
        merges += 1;
        assert!(merges < 100, "merging does not end");
    }
    merges
}

/// An archive whose files have so many rows.
fn archive_of(root: &std::path::Path, sizes: &[usize]) -> (Archive, Vec<Row>) {
    let mut archive = Archive::open(root, PROJECT).unwrap();
    let all = series(1..=sizes.iter().sum::<usize>() as u64);
    let mut rest = &all[..];
    for size in sizes {
        let (rows, after) = rest.split_at(*size);
        seal(&mut archive, rows, options().seal);
        rest = after;
    }
    (archive, all)
}

#[test]
fn a_month_that_is_over_becomes_one_file() {
    let root = scratch();
    let (mut archive, all) = archive_of(root.path(), &[10, 20, 30]);
    assert_eq!(next_merge(archive.manifest(), march(), &options()), None, "the month goes on, and has few files");
    assert_eq!(merge_all(&mut archive, march().next()), 1);
    assert_eq!(sizes(&archive), [60]);
    assert_eq!(rows(&archive), all);
    assert_eq!(archive.left_overs().unwrap().len(), 3);
    assert_eq!(rows(&Archive::open(root.path(), PROJECT).unwrap()), all);
}

#[test]
fn too_many_files_of_a_month_are_merged_before_it_is_over() {
    let root = scratch();
    let (mut archive, all) = archive_of(root.path(), &[10, 10, 80, 40, 40, 40]);
    assert!(merge_all(&mut archive, march()) > 0);
    assert_eq!(sizes(&archive), [20, 80, 120]);
    assert_eq!(rows(&archive), all);
    assert_eq!(merge_all(&mut archive, march().next()), 0, "what is an eighth full or alone stays");
}

/// So a merge takes a bounded time, and events can be sealed before the next one.
#[test]
fn a_merge_makes_one_file() {
    let root = scratch();
    let (mut archive, all) = archive_of(root.path(), &[45; 20]);
    assert_eq!(next_merge(archive.manifest(), march(), &options()).unwrap().len(), 8);
    assert_eq!(merge_all(&mut archive, march().next()), 3);
    assert_eq!(sizes(&archive), [360, 360, 180]);
    assert_eq!(rows(&archive), all);
}

#[test]
fn files_that_are_not_small_are_never_merged() {
    let root = scratch();
    let (archive, _) = archive_of(root.path(), &[50; 12]);
    assert_eq!(next_merge(archive.manifest(), march().next(), &options()), None);
}

#[test]
fn months_are_merged_by_themselves() {
    let root = scratch();
    let mut archive = Archive::open(root.path(), PROJECT).unwrap();
    let all: Vec<_> = (1..=60).map(|position| plausible(position, position.cast_signed() * DAY_MS)).collect();
    all.chunks(5).for_each(|rows| seal(&mut archive, rows, options().seal));
    merge_all(&mut archive, march().next().next());
    let names: Vec<_> = archive.manifest().files().iter().map(|file| file.name.folder()).collect();
    assert_eq!(names, ["month=2026-03", "month=2026-04"]);
    assert_eq!(rows(&archive), all);
}

/// A merge that was cut off is made again, byte for byte.
#[test]
fn the_same_files_make_the_same_file() {
    let (one, two) = (scratch(), scratch());
    let bytes = |root: &std::path::Path| {
        let (mut archive, _) = archive_of(root, &[10, 20, 30]);
        merge_all(&mut archive, march().next());
        fs::read(archive.dir().join(archive.manifest().files()[0].name.to_string())).unwrap()
    };
    assert_eq!(bytes(one.path()), bytes(two.path()));
}

#[test]
fn columns_of_paths_are_kept() {
    let root = scratch();
    let (mut archive, _) = archive_of(root.path(), &[10, 20]);
    merge_all(&mut archive, march().next());
    let file = archive.file(&archive.manifest().files()[0]).unwrap();
    assert!(file.has_column("metadata.plan") && file.has_column("metadata.cart.id"));
}

/// A reader that has a file open reads on when the file is merged and removed.
#[test]
fn a_file_that_is_open_can_be_read_after_its_merge() {
    let root = scratch();
    let (mut archive, all) = archive_of(root.path(), &[10, 20]);
    let first = archive.manifest().files()[0].clone();
    let open = archive.file(&first).unwrap();
    merge_all(&mut archive, march().next());
    archive.remove_left_overs().unwrap();
    assert!(archive.file(&first).unwrap_err().is_damage());
    assert_eq!(open.rows(0).map(Result::unwrap).collect::<Vec<_>>(), all[..10]);
}
