//! A file that is not what was written is an error that names it: never a panic, never another row.

use std::fs;
use std::path::Path;

use headcount_archive::{Archive, ArchiveError, Columns, Damage, FileEntry, Row, SealOptions, Selection, WriterOptions};

use crate::support::{PROJECT, contents, sample, scratch, seal, series};

/// Two rows in as many row groups.
fn small(root: &Path) -> (Archive, FileEntry, Vec<Row>) {
    let rows = sample();
    let mut archive = Archive::open(root, PROJECT).unwrap();
    let writer = WriterOptions { row_group_bytes: 1, ..WriterOptions::default() };
    seal(&mut archive, &rows, SealOptions { writer, ..SealOptions::default() });
    let entry = archive.manifest().files()[0].clone();
    (archive, entry, rows)
}

/// Reads every row and every column.
fn read(archive: &Archive, entry: &FileEntry) -> Result<Vec<Row>, ArchiveError> {
    let file = archive.file(entry)?;
    file.batches(&Selection::all(Columns::All)).try_for_each(|batch| batch.map(drop))?;
    file.rows(0).collect()
}

fn damage(error: &ArchiveError, entry: &FileEntry) -> Damage {
    match error {
        ArchiveError::Damaged { file, reason } if *file == entry.name.base() => reason.clone(),
        other => panic!("{other}"),
    }
}

#[test]
fn every_flipped_byte_is_found() {
    let root = scratch();
    let (archive, entry, rows) = small(root.path());
    let path = archive.dir().join(entry.name.to_string());
    let sound = fs::read(&path).unwrap();
    let footer = sound.len() - 700;
    let (mut unread, mut kinds) = (0, std::collections::BTreeSet::new());
    for at in (0..sound.len()).filter(|at| *at < 200 || *at >= footer || at.is_multiple_of(37)) {
        let mut bytes = sound.clone();
        bytes[at] ^= 1 << (at % 8);
        fs::write(&path, &bytes).unwrap();
        match read(&archive, &entry) {
            Ok(found) => {
                assert!(at < 4, "byte {at} is not checked");
                assert_eq!(found, rows);
                unread += 1;
            }
            Err(error) => drop(kinds.insert(damage(&error, &entry).to_string().split_whitespace().next().map(str::to_owned))),
        }
        if at.is_multiple_of(97) || at < 4 {
            let found = archive.damaged_files(true).unwrap();
            assert_eq!(found.len(), 1, "byte {at}");
        }
    }
    // Nobody reads the first four bytes, which say that it is Parquet.
    assert_eq!((unread, kinds.len()), (4, 2), "{kinds:?}");
    fs::write(&path, &sound).unwrap();
    assert_eq!(read(&archive, &entry).unwrap(), rows, "put back, it heals");
    assert!(archive.damaged_files(true).unwrap().is_empty());
}

#[test]
fn cut_longer_missing_or_another() {
    let root = scratch();
    let (archive, entry, _) = small(root.path());
    let path = archive.dir().join(entry.name.to_string());
    let sound = fs::read(&path).unwrap();
    for len in (0..sound.len()).step_by(61).chain([sound.len() - 1, sound.len() + 1]) {
        let mut bytes = sound.clone();
        bytes.resize(len, 0);
        fs::write(&path, &bytes).unwrap();
        let error = read(&archive, &entry).unwrap_err();
        assert_eq!(damage(&error, &entry), Damage::Length { expected: entry.bytes, found: len as u64 });
        // Also where the list has that length.
        let error = read(&archive, &FileEntry { bytes: len as u64, ..entry.clone() }).unwrap_err();
        assert_eq!(damage(&error, &entry), Damage::Footer);
    }
    fs::remove_file(&path).unwrap();
    assert_eq!(damage(&read(&archive, &entry).unwrap_err(), &entry), Damage::Missing);
    let message = archive.damaged_files(false).unwrap()[0].to_string();
    assert_eq!(message, format!("archive file {} is damaged: it is missing", entry.name.base()));
    fs::write(&path, b"PAR1 not a file PAR1").unwrap();
    let error = read(&archive, &FileEntry { bytes: 20, ..entry.clone() }).unwrap_err();
    assert_eq!(damage(&error, &entry), Damage::Footer);
}

#[test]
fn another_file_under_the_name() {
    let (root, other_root) = (scratch(), scratch());
    let (archive, entry, mut rows) = small(root.path());
    let path = archive.dir().join(entry.name.to_string());
    let put = |other: &Archive, other_entry: &FileEntry| {
        fs::copy(other.dir().join(other_entry.name.to_string()), &path).unwrap();
        let error = read(&archive, &FileEntry { bytes: other_entry.bytes, ..entry.clone() }).unwrap_err();
        assert!(archive.damaged_files(true).unwrap().len() == 1);
        damage(&error, &entry)
    };
    let write = |rows: &[Row], name: &str| {
        let project = rows[0].event.project;
        let mut other = Archive::open(&other_root.path().join(name), project).unwrap();
        seal(&mut other, rows, SealOptions::default());
        let entry = other.manifest().files()[0].clone();
        put(&other, &entry)
    };
    rows[1].position += 1;
    assert_eq!(write(&rows, "positions"), Damage::OtherFile("positions"));
    rows[1].position -= 1;
    assert_eq!(
        write(&[&rows[..1], &[Row { position: 8, ..rows[0].clone() }], &rows[1..]].concat(), "rows"),
        Damage::OtherFile("rows")
    );
    rows[1].event.day = rows[1].event.day.next();
    assert_eq!(write(&rows, "days"), Damage::OtherFile("days"));
    rows.iter_mut().for_each(|row| row.event.project.0 += 1);
    assert_eq!(write(&rows, "project"), Damage::OtherFile("project"));
}

#[test]
fn a_list_that_is_damaged_or_gone() {
    let root = scratch();
    let (archive, entry, rows) = small(root.path());
    let list = archive.dir().join("manifest.json");
    let sound = fs::read(&list).unwrap();
    for at in (0..sound.len()).step_by(17) {
        let mut bytes = sound.clone();
        bytes[at] ^= 1 << (at % 8);
        fs::write(&list, &bytes).unwrap();
        let error = Archive::open(root.path(), PROJECT).unwrap_err();
        assert!(error.is_damage() && error.to_string().contains("manifest.json"), "{error}");
    }
    fs::remove_file(&list).unwrap();
    let error = Archive::open(root.path(), PROJECT).unwrap_err();
    assert_eq!(error.to_string(), "archive file manifest.json is damaged: it is missing");
    fs::write(&list, &sound).unwrap();
    assert_eq!(contents(root.path()), rows);
    assert_eq!(archive.manifest().files(), [entry]);
}

/// The rest goes on: only what needs the file fails.
#[test]
fn files_beside_a_damaged_one_can_be_read() {
    let root = scratch();
    let mut archive = Archive::open(root.path(), PROJECT).unwrap();
    let rows = series(1..=30);
    rows.chunks(10).for_each(|rows| seal(&mut archive, rows, SealOptions::default()));
    let files = archive.manifest().files().to_vec();
    let path = archive.dir().join(files[0].name.to_string());
    let mut bytes = fs::read(&path).unwrap();
    bytes[100] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let mut found = Vec::new();
    let push = |row| -> Result<(), ArchiveError> {
        found.push(row);
        Ok(())
    };
    archive.for_each_row(11, push).unwrap();
    assert_eq!(found, rows[10..]);
    let all = archive.for_each_row(0, |_| Ok::<_, ArchiveError>(()));
    assert!(matches!(damage(&all.unwrap_err(), &files[0]), Damage::Chunk { row_group: 0, .. }));
}
