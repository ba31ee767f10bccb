//! Backups of a made-up data directory.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::*;
use crate::files::File;
use crate::format::{Format, FormatError};

/// The files of a data directory that a backup holds.
const NAMES: [&str; 7] = [
    "FORMAT",
    "archive/project=proj_1/month=2026-11/00000000000000000001-00000000000000000009.parquet",
    "control/log/00000000000000000001.seg",
    "dead-letters.ndjson",
    "keys/hash.key",
    "log/00000000000000000001.seg",
    "log/floor",
];

/// A directory in memory, where there is one.
pub(super) fn quick_directory() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

/// A data directory.
pub(super) fn data_directory() -> tempfile::TempDir {
    let dir = quick_directory();
    Format::open(dir.path()).unwrap();
    for (number, name) in NAMES.iter().enumerate().skip(1) {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        // Longer and shorter than a buffer, and empty.
        fs::write(path, vec![number as u8; [0, 300_000, 17, 0, 16, 262_144, 20][number]]).unwrap();
    }
    dir
}

fn manifest() -> BackupManifest {
    let project = BackupProject { project_id: "proj_1".to_owned(), position: 9 };
    BackupManifest::new("1.2.3", "2026-11-22T00:00:00.000Z".to_owned(), vec![project])
}

/// Backs the directory up to `target`.
pub(super) fn back_up(data: &Path, target: &mut impl BackupTarget) -> Result<BackupManifest, BackupError> {
    let mut writer = BackupWriter::new(target, manifest());
    for name in NAMES {
        let path = data.join(name);
        let failed = |source| BackupError::Io { doing: "open", path: path.clone(), source };
        let file = File::open(&path).map_err(failed)?;
        let bytes = file.len().map_err(failed)?;
        writer.add(name, bytes, &file)?;
    }
    writer.finish()
}

pub(super) fn back_up_to(data: &Path, dir: &Path) -> Result<BackupManifest, BackupError> {
    back_up(data, &mut BackupFolder::create(dir, None)?)
}

pub(super) fn stream(data: &Path) -> Vec<u8> {
    let mut target = TarTarget::new(Vec::new());
    back_up(data, &mut target).unwrap();
    target.into_writer().unwrap()
}

/// All files below a directory.
pub(super) fn contents(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(contents(&path).into_iter().map(|(name, bytes)| (path.join(name), bytes)));
        } else {
            found.insert(path.clone(), fs::read(&path).unwrap());
        }
    }
    found.into_iter().map(|(path, bytes)| (path.strip_prefix(dir).unwrap_or(&path).to_owned(), bytes)).collect()
}

fn refused(dir: &Path, to: &Path) -> BackupError {
    let error = Backup::open(dir).and_then(|backup| restore(&backup, to)).unwrap_err();
    assert!(!to.exists(), "{error}");
    error
}

#[test]
fn what_was_backed_up_is_restored_with_a_new_incarnation() {
    let (data, place) = (data_directory(), quick_directory());
    let (dir, restored) = (place.path().join("a/backup"), place.path().join("data"));
    let written = back_up_to(data.path(), &dir).unwrap();
    let backup = Backup::open(&dir).unwrap();
    assert_eq!(backup.manifest(), &written);
    restore(&backup, &restored).unwrap();
    let (mut before, mut after) = (contents(data.path()), contents(&restored));
    let (old, new) = (before.remove(Path::new("FORMAT")).unwrap(), after.remove(Path::new("FORMAT")).unwrap());
    assert_ne!(old, new);
    assert_eq!(after.remove(Path::new("LOCK")), Some(Vec::new()));
    assert_eq!(before, after);
    assert_ne!(Format::open(&restored).unwrap(), Format::open(data.path()).unwrap());
    for path in contents(&dir).keys().map(|name| dir.join(name)).chain([dir.clone(), dir.join("log")]) {
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{}", path.display());
    }
    let sums = std::process::Command::new("sha256sum").args(["--check", "--strict", "SHA256SUMS"]).current_dir(&dir).output();
    let sums = sums.unwrap();
    assert!(sums.status.success(), "{sums:?}");
    assert!(String::from_utf8_lossy(&sums.stdout).contains("manifest.json: OK"));
}

#[test]
fn a_stream_becomes_the_same_backup_and_a_cut_one_none() {
    let (data, place) = (data_directory(), quick_directory());
    let stream = stream(data.path());
    let dir = place.path().join("backup");
    unpack(&stream[..], &mut BackupFolder::create(&dir, None).unwrap()).unwrap();
    let direct = place.path().join("direct");
    back_up_to(data.path(), &direct).unwrap();
    assert_eq!(contents(&dir), contents(&direct));
    // Behind the list there are only zeroes.
    let end = stream.iter().rposition(|byte| *byte != 0).unwrap();
    let cuts = (0..end).step_by(2_999).chain((0..8).map(|blocks| end - 512 * blocks));
    for cut in cuts {
        let dir = place.path().join("cut");
        let error = unpack(&stream[..cut], &mut BackupFolder::create(&dir, None).unwrap()).unwrap_err();
        assert!(contents(&dir).is_empty(), "{cut}: {error}");
        let error = Backup::open(&dir).unwrap_err();
        assert!(matches!(error, BackupError::Incomplete { .. }), "{cut}: {error}");
    }
}

#[test]
fn a_stream_that_is_given_up_says_why() {
    let (data, place) = (data_directory(), quick_directory());
    let mut target = TarTarget::new(Vec::new());
    let layout = fs::read(data.path().join("FORMAT")).unwrap();
    let mut writer = BackupWriter::new(&mut target, manifest());
    writer.add("FORMAT", layout.len() as u64, &layout[..]).unwrap();
    target.give_up("a project was deleted: make it again").unwrap();
    let stream = target.into_writer().unwrap();
    let dir = place.path().join("backup");
    let error = unpack(&stream[..], &mut BackupFolder::create(&dir, None).unwrap()).unwrap_err();
    assert!(matches!(&error, BackupError::EndedEarly { reason } if reason == "a project was deleted: make it again"), "{error}");
    assert!(contents(&dir).is_empty());
}

#[test]
fn a_byte_that_flips_in_any_file_is_found_before_anything_is_written() {
    let (data, place) = (data_directory(), quick_directory());
    let (dir, to) = (place.path().join("backup"), place.path().join("data"));
    back_up_to(data.path(), &dir).unwrap();
    for (name, bytes) in contents(&dir) {
        let path = dir.join(&name);
        for at in [0, bytes.len() / 2, bytes.len().saturating_sub(1)] {
            let mut flipped = bytes.clone();
            // An empty file grows instead.
            if flipped.is_empty() {
                flipped.push(0)
            } else {
                flipped[at] ^= 0x20
            }
            fs::write(&path, flipped).unwrap();
            let error = refused(&dir, &to);
            let is_list = matches!(name.to_str(), Some("manifest.json" | "SHA256SUMS"));
            assert!(is_list || error.to_string().contains(name.to_str().unwrap()), "{}: {error}", name.display());
        }
        fs::remove_file(&path).unwrap();
        refused(&dir, &to);
        fs::write(&path, bytes).unwrap();
    }
    restore(&Backup::open(&dir).unwrap(), &to).unwrap();
}

#[test]
fn unchanged_files_are_links_to_those_of_the_former_backup_if_these_are_sound() {
    let (data, place) = (data_directory(), quick_directory());
    let dirs = ["one", "two", "three"].map(|name| place.path().join(name));
    back_up_to(data.path(), &dirs[0]).unwrap();
    let (changed, damaged, kept) = (NAMES[5], NAMES[1], NAMES[2]);
    fs::write(data.path().join(changed), "other").unwrap();
    let inode = |dir: &Path, name: &str| fs::metadata(dir.join(name)).unwrap().ino();
    let mut folder = BackupFolder::create(&dirs[1], Some(Backup::open(&dirs[0]).unwrap())).unwrap();
    back_up(data.path(), &mut folder).unwrap();
    assert!(folder.linked_bytes > 300_000 && folder.linked_bytes < 400_000, "{}", folder.linked_bytes);
    drop(folder);
    assert_eq!(inode(&dirs[0], damaged), inode(&dirs[1], damaged));
    assert_ne!(inode(&dirs[0], changed), inode(&dirs[1], changed));
    Backup::open(&dirs[1]).unwrap().check().unwrap();
    fs::write(dirs[1].join(damaged), vec![7; 300_000]).unwrap();
    back_up(data.path(), &mut BackupFolder::create(&dirs[2], Some(Backup::open(&dirs[1]).unwrap())).unwrap()).unwrap();
    assert_eq!(inode(&dirs[1], kept), inode(&dirs[2], kept));
    assert_ne!(inode(&dirs[1], damaged), inode(&dirs[2], damaged));
    Backup::open(&dirs[2]).unwrap().check().unwrap();
}

#[test]
fn directories_that_hold_something_are_left_alone() {
    let (data, place) = (data_directory(), quick_directory());
    let (dir, other) = (place.path().join("backup"), place.path().join("other"));
    back_up_to(data.path(), &dir).unwrap();
    fs::create_dir(&other).unwrap();
    fs::write(other.join("thesis.txt"), "x").unwrap();
    let backup = Backup::open(&dir).unwrap();
    for error in [back_up_to(data.path(), &other).unwrap_err(), restore(&backup, &other).unwrap_err()] {
        assert!(matches!(error, BackupError::NotEmpty { .. }), "{error}");
    }
    assert_eq!(contents(&other).len(), 1);
    assert!(matches!(restore(&backup, data.path()), Err(BackupError::NotEmpty { .. })));
    fs::remove_file(other.join("thesis.txt")).unwrap();
    restore(&backup, &other).unwrap();
}

#[test]
fn a_restore_that_was_interrupted_is_named() {
    let (data, place) = (data_directory(), quick_directory());
    let (dir, to) = (place.path().join("backup"), place.path().join("data"));
    back_up_to(data.path(), &dir).unwrap();
    let backup = Backup::open(&dir).unwrap();
    restore(&backup, &to).unwrap();
    // As a kill leaves it: the marker, and not yet the description.
    fs::write(to.join("RESTORING"), "").unwrap();
    Format::open(&to).unwrap();
    fs::remove_file(to.join("FORMAT")).unwrap();
    for error in [Format::open(&to).unwrap_err().to_string(), restore(&backup, &to).unwrap_err().to_string()] {
        assert!(error.contains("a restore was interrupted: empty the directory and restore again"), "{error}");
    }
}

/// Delivers fewer bytes than a file has, or more.
struct Endless;

impl Read for Endless {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        buffer.fill(1);
        Ok(buffer.len())
    }
}

#[test]
fn what_no_backup_holds_is_refused() {
    let place = quick_directory();
    let mut folder = BackupFolder::create(&place.path().join("backup"), None).unwrap();
    for (name, bytes, contents) in [
        ("../FORMAT", 1, &mut &b"x"[..] as &mut dyn Read),
        ("keys/salts", 1, &mut &b"x"[..]),
        ("log/short", 2, &mut &b"x"[..]),
        ("log/long", 2, &mut Endless),
    ] {
        let error = folder.file(name, bytes, contents).unwrap_err();
        assert!(matches!(error, BackupError::Damaged { .. }), "{error}");
    }
    assert!(!place.path().join("FORMAT").exists());
    let mut stream = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(tar::EntryType::Symlink);
    header.set_size(0);
    stream.append_link(&mut header, "log/1.seg", "/etc/passwd").unwrap();
    let error = unpack(&stream.into_inner().unwrap()[..], &mut folder).unwrap_err();
    assert!(error.to_string().contains("is not a regular file"), "{error}");
}

#[test]
fn other_versions_are_named() {
    let (data, place) = (data_directory(), quick_directory());
    let (dir, to) = (place.path().join("backup"), place.path().join("data"));
    fs::write(data.path().join("FORMAT"), "headcount data directory\nlayout = 9\nshape = round\n").unwrap();
    back_up_to(data.path(), &dir).unwrap();
    assert!(matches!(refused(&dir, &to), BackupError::Layout(FormatError::Newer { found: 9, .. })));
    fs::write(dir.join("manifest.json"), "{\"format\":\"headcount.backup.v2\",\"shape\":\"round\"}").unwrap();
    let error = refused(&dir, &to);
    assert!(matches!(&error, BackupError::OtherFormat { found, .. } if found == "headcount.backup.v2"), "{error}");
    fs::remove_file(dir.join("manifest.json")).unwrap();
    assert!(matches!(refused(&dir, &to), BackupError::Incomplete { .. }));
}
