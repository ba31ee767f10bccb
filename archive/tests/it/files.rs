//! How rows become files, and what is refused.

use std::fs;

use headcount_archive::{Archive, ArchiveError, Refusal, Row, SealOptions, Sealer};
use headcount_domain::{Amount, ProjectId};

use crate::support::{PROJECT, contents, plausible, rows, scratch, seal, series};

const DAY_MS: i64 = 86_400_000;

fn names(archive: &Archive) -> Vec<String> {
    archive.manifest().files().iter().map(|file| file.name.to_string()).collect()
}

#[test]
fn files_go_by_the_month_of_receipt_and_never_back() {
    let root = scratch();
    let mut archive = Archive::open(root.path(), PROJECT).unwrap();
    // March, April, March again (the clock was set back), May.
    let days = [0, 30, 31, 29, 30, 61];
    let all: Vec<_> = (1..).zip(days).map(|(position, day)| plausible(position, day * DAY_MS)).collect();
    seal(&mut archive, &all[..3], SealOptions::default());
    seal(&mut archive, &all[3..], SealOptions::default());
    let expected = [
        "month=2026-03/00000000000000000001-00000000000000000002.parquet",
        "month=2026-04/00000000000000000003-00000000000000000003.parquet",
        "month=2026-04/00000000000000000004-00000000000000000005.parquet",
        "month=2026-05/00000000000000000006-00000000000000000006.parquet",
    ];
    assert_eq!(names(&archive), expected);
    assert_eq!(contents(root.path()), all);
}

#[test]
fn a_file_ends_at_its_bound() {
    let root = scratch();
    let mut archive = Archive::open(root.path(), PROJECT).unwrap();
    let all = series((1..=25).map(|number| number * 3));
    seal(&mut archive, &all, SealOptions { file_rows: 10, ..SealOptions::default() });
    let files = archive.manifest().files();
    assert_eq!(files.iter().map(|file| file.rows).collect::<Vec<_>>(), [10, 10, 5]);
    assert_eq!(rows(&archive), all);
    assert_eq!(archive.manifest().sealed_until(), 75);
}

#[test]
fn what_does_not_fit_is_refused() {
    let root = scratch();
    let mut archive = Archive::open(root.path(), PROJECT).unwrap();
    seal(&mut archive, &series(1..=5), SealOptions::default());
    let mut sealer = Sealer::new(&mut archive, SealOptions::default());
    let mut refusal = |row| match sealer.push(&row) {
        Err(ArchiveError::Refused { position, reason }) if position == row.position => Some(reason),
        Ok(()) => None,
        other => panic!("{other:?}"),
    };
    assert_eq!(refusal(plausible(5, 0)), Some(Refusal::Order(5)));
    assert_eq!(refusal(plausible(8, 0)), None);
    assert_eq!(refusal(plausible(8, 0)), Some(Refusal::Order(8)));
    assert_eq!(refusal(Row { position: u64::MAX, ..plausible(20, 0) }), Some(Refusal::Position));
    let mut other = plausible(20, 0);
    other.event.project = ProjectId(3);
    assert_eq!(refusal(other.clone()), Some(Refusal::Project));
    other.event.project = PROJECT;
    if let Some(money) = &mut other.event.money {
        money.amount = Amount(10_i128.pow(38));
    }
    assert_eq!(refusal(other), Some(Refusal::Amount));
    assert_eq!(refusal(plausible(20, 0)), None);
    sealer.finish(30).unwrap();
    assert_eq!(contents(root.path()).iter().map(|row| row.position).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 8, 20]);
}

#[test]
fn left_overs_are_listed_and_removed_and_nothing_else() {
    let root = scratch();
    let mut archive = Archive::open(root.path(), PROJECT).unwrap();
    let all = series(1..=5);
    seal(&mut archive, &all, SealOptions::default());
    let mut dropped = Sealer::new(&mut archive, SealOptions::default());
    dropped.push(&plausible(9, 0)).unwrap();
    drop(dropped);
    assert!(archive.left_overs().unwrap().is_empty(), "a sealer that is dropped leaves nothing");
    let month = archive.dir().join("month=2026-03");
    let (merged, torn) =
        (month.join("00000000000000000001-00000000000000000003.parquet"), archive.dir().join("manifest.json.tmp"));
    fs::write(&merged, "merged").unwrap();
    fs::write(&torn, "torn").unwrap();
    fs::write(archive.dir().join("README"), "an operator's").unwrap();
    let mut left = archive.left_overs().unwrap();
    left.sort();
    assert_eq!(left, [torn, merged]);
    archive.remove_left_overs().unwrap();
    assert!(archive.left_overs().unwrap().is_empty() && archive.dir().join("README").exists());
    assert_eq!(contents(root.path()), all);
}

#[test]
fn only_the_owner_reads_them() {
    use std::os::unix::fs::PermissionsExt;
    let root = scratch();
    let mut archive = Archive::open(&root.path().join("archive"), PROJECT).unwrap();
    seal(&mut archive, &series(1..=5), SealOptions::default());
    let file = archive.dir().join(archive.manifest().files()[0].name.to_string());
    for (path, mode) in
        [(file.parent().unwrap(), 0o700), (archive.dir(), 0o700), (&file, 0o600), (&archive.dir().join("manifest.json"), 0o600)]
    {
        assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, mode, "{}", path.display());
    }
    assert_eq!(archive.manifest().files()[0].bytes, fs::metadata(&file).unwrap().len());
}
