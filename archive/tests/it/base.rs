//! Bases: what was written comes back, and what is damaged is noticed.

use headcount_archive::{ArchiveError, BaseEntry, BaseHeader, BaseItem, BaseName, BaseReader, BaseWriter, Damage};
use headcount_domain::ProjectId;

const PROJECT: ProjectId = ProjectId(5);
const NAME: BaseName = BaseName { position: 70, rewrites: 0 };

fn header() -> BaseHeader {
    let (project_id, stored_types) = (PROJECT.to_string(), vec!["record 0".to_owned()]);
    BaseHeader { project_id, position: 70, last: 69, key_check: "ab".to_owned(), stored_types }
}

fn items() -> Vec<BaseItem> {
    let pair = |number: u32| BaseItem::Pair(number.to_be_bytes().to_vec(), vec![number as u8; number as usize % 5_000]);
    let large = BaseItem::Pair(b"large".to_vec(), (0..3_000_000_u32).map(|byte| (byte.wrapping_mul(byte) / 7) as u8).collect());
    let ids = (0..50_000_u64).map(|number| BaseItem::Id(u128::from(number) << 70, number * 3));
    (0..1_000).map(pair).chain([large]).chain((1_000..1_010).map(pair)).chain(ids).collect()
}

fn write(dir: &std::path::Path) -> BaseEntry {
    let mut writer = BaseWriter::create(dir, &header(), NAME).unwrap();
    for item in items() {
        match item {
            BaseItem::Pair(key, value) => writer.push_pair(&key, &value).unwrap(),
            BaseItem::Id(fingerprint, position) => writer.push_id(fingerprint, position).unwrap(),
        }
    }
    writer.finish().unwrap()
}

fn read(dir: &std::path::Path, entry: &BaseEntry) -> Result<Vec<BaseItem>, ArchiveError> {
    let mut reader = BaseReader::open(dir, PROJECT, entry)?;
    assert_eq!(*reader.header(), header());
    let mut items = Vec::new();
    while let Some(item) = reader.next()? {
        items.push(item);
    }
    assert_eq!(reader.next()?, None, "it stays at its end");
    Ok(items)
}

#[test]
fn what_was_written_comes_back() {
    let dir = tempfile::tempdir().unwrap();
    let entry = write(dir.path());
    assert_eq!(entry.name(), "state-00000000000000000070");
    assert!(read(dir.path(), &entry).unwrap() == items());
    let names: Vec<_> = std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, [entry.name().as_str()], "nothing else is left");
    assert!(matches!(
        BaseReader::open(dir.path(), ProjectId(6), &entry),
        Err(ArchiveError::Damaged { reason: Damage::OtherFile("project"), .. })
    ));
}

#[test]
fn flipped_bits_and_cuts_are_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let entry = write(dir.path());
    let path = dir.path().join(entry.name());
    let intact = std::fs::read(&path).unwrap();
    let is_named = |outcome: Result<Vec<BaseItem>, ArchiveError>, at: usize| match outcome {
        Err(ArchiveError::Damaged { file, .. }) => assert_eq!(file, entry.name()),
        other => panic!("byte {at}: {:?}", other.map(|items| items.len())),
    };
    for at in (0..64).chain((64..intact.len()).step_by(intact.len() / 60)).chain(intact.len() - 40..intact.len()) {
        let mut damaged = intact.clone();
        damaged[at] ^= 1 << (at % 8);
        std::fs::write(&path, &damaged).unwrap();
        is_named(read(dir.path(), &entry), at);
        // Also if the list has the length of what is left.
        std::fs::write(&path, &intact[..at]).unwrap();
        is_named(read(dir.path(), &BaseEntry { bytes: at as u64, ..entry.clone() }), at);
        is_named(read(dir.path(), &entry), at);
    }
    std::fs::remove_file(&path).unwrap();
    assert!(matches!(read(dir.path(), &entry), Err(ArchiveError::Damaged { reason: Damage::Missing, .. })));
}

#[test]
fn an_unfinished_base_is_removed() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = BaseWriter::create(dir.path(), &header(), NAME).unwrap();
    writer.push_pair(b"key", b"value").unwrap();
    drop(writer);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}
