//! What can only be tested from inside: a full disk.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::commit::{Commit, Outcome};
use super::group::{GroupCommit, GroupOptions};
use super::space::{Fill, FillOnDisk, FillSignals};
use super::{AppendEntry, Log, LogError, LogOptions};
use crate::files::File;

/// A disk that is full, or whose driver panics, whenever the test says so.
#[derive(Default)]
struct Disk {
    full: AtomicBool,
    panics: AtomicBool,
}

impl Fill for Disk {
    fn fill(&self, file: &File, from: u64, to: u64, signals: &FillSignals) -> io::Result<()> {
        assert!(!self.panics.load(Ordering::Relaxed), "planted");
        if self.full.load(Ordering::Relaxed) {
            // Some of it fits, as on a real one.
            FillOnDisk.fill(file, from, from + (to - from) / 2, signals)?;
            return Err(io::ErrorKind::StorageFull.into());
        }
        FillOnDisk.fill(file, from, to, signals)
    }
}

fn options(prepare_ahead: bool) -> LogOptions {
    LogOptions { segment_bytes: 0, prepare_ahead, repair: false }
}

fn append(log: &mut Log, bytes: usize) -> Result<u64, LogError> {
    log.append(&[AppendEntry { partition: 1, count: 1, payload: &incompressible(bytes) }])
}

fn incompressible(bytes: usize) -> Vec<u8> {
    (0..bytes as u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

#[test]
fn a_full_disk_refuses_and_the_log_goes_on_once_there_is_room() {
    for prepare_ahead in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let disk = Arc::new(Disk::default());
        let (mut log, _) = Log::open_with(dir.path(), options(prepare_ahead), disk.clone()).unwrap();
        append(&mut log, 3000).unwrap();
        // What was prepared before still counts as room.
        disk.full.store(true, Ordering::Relaxed);
        let mut appended = 1;
        let refused = loop {
            match append(&mut log, 3000) {
                Ok(position) => appended = position,
                Err(error) => break error,
            }
        };
        assert!(matches!(refused, LogError::Full { .. }), "{refused}");
        assert_eq!(log.last_position(), appended);
        for _ in 0..3 {
            assert!(matches!(append(&mut log, 3000), Err(LogError::Full { .. })));
        }
        // A small one still fits where the large one did not.
        append(&mut log, 10).unwrap();
        assert_eq!(log.reader().verify_all().unwrap().events, appended + 1);

        disk.full.store(false, Ordering::Relaxed);
        assert_eq!(append(&mut log, 3000).unwrap(), appended + 2);
        drop(log);
        let (log, recovery) = Log::open_with(dir.path(), options(prepare_ahead), disk).unwrap();
        assert_eq!((recovery.cut_bytes, recovery.last_position), (0, appended + 2));
        assert_eq!(log.reader().verify_all().unwrap().events, appended + 2);
    }
}

#[test]
fn an_empty_segment_that_cannot_grow_stays_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Arc::new(Disk::default());
    let (mut log, _) = Log::open_with(dir.path(), options(false), disk.clone()).unwrap();
    disk.full.store(true, Ordering::Relaxed);
    assert!(matches!(append(&mut log, 50_000), Err(LogError::Full { .. })));
    assert_eq!(append(&mut log, 100).unwrap(), 1);
    drop(log);
    // A full disk does not keep a log from opening.
    let (mut log, recovery) = Log::open_with(dir.path(), options(true), disk.clone()).unwrap();
    assert_eq!((recovery.cut_bytes, recovery.last_position), (0, 1));
    disk.full.store(false, Ordering::Relaxed);
    assert_eq!(append(&mut log, 50_000).unwrap(), 2);
    assert_eq!(log.reader().verify_all().unwrap().events, 2);
}

#[test]
fn a_full_disk_refuses_all_that_was_gathered() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Arc::new(Disk::default());
    let (log, _) = Log::open_with(dir.path(), options(false), disk.clone()).unwrap();
    let (sender, receiver) = std::sync::mpsc::channel();
    let sink = move |outcomes| sender.send(outcomes).unwrap();
    let group = GroupCommit::spawn(log, GroupOptions::default(), sink).unwrap();
    disk.full.store(true, Ordering::Relaxed);
    group.submit(1, 1, incompressible(20_000), 1).unwrap();
    let outcomes: Vec<Outcome<i32>> = receiver.recv().unwrap();
    match &outcomes[..] {
        [Outcome::Refused(refused)] => {
            assert_eq!(refused.ticket, 1);
            assert!(matches!(*refused.reason, LogError::Full { .. }));
        }
        other => panic!("{other:?}"),
    }
    disk.full.store(false, Ordering::Relaxed);
    group.submit(1, 1, incompressible(20_000), 2).unwrap();
    assert!(matches!(&receiver.recv().unwrap()[..], [Outcome::Committed(committed)] if committed.first == 1));
}

#[test]
fn a_batch_whose_append_panicked_is_undecided_and_nothing_more_is_taken() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Arc::new(Disk::default());
    let (log, _) = Log::open_with(dir.path(), options(false), disk.clone()).unwrap();
    let (sender, receiver) = std::sync::mpsc::channel();
    let group = GroupCommit::spawn(log, GroupOptions::default(), move |outcomes| sender.send(outcomes).unwrap()).unwrap();
    disk.panics.store(true, Ordering::Relaxed);
    group.submit(1, 1, incompressible(20_000), 1).unwrap();
    let outcomes: Vec<Outcome<i32>> = receiver.recv().unwrap();
    assert!(matches!(&outcomes[..], [Outcome::Undecided(1)]), "{outcomes:?}");
    // The sink is dropped when the thread has ended.
    assert!(receiver.recv().is_err());
    assert_eq!(group.submit(1, 1, Vec::new(), 2), Err(2));
}

#[test]
fn other_users_read_nothing_even_where_the_directory_was_there_before() {
    use std::os::unix::fs::PermissionsExt;
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().join("log");
    std::fs::create_dir(&dir).unwrap();
    let open_up = |path: &std::path::Path, mode| std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    let modes = || {
        let entries = std::fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().path());
        let paths: Vec<_> = entries.chain([dir.clone()]).collect();
        paths.iter().map(|path| path.metadata().unwrap().permissions().mode() & 0o077).collect::<Vec<_>>()
    };
    for _ in 0..2 {
        open_up(&dir, 0o755);
        let (mut log, _) = Log::open(&dir, options(false)).unwrap();
        for _ in 0..5 {
            append(&mut log, 3000).unwrap();
        }
        drop(log);
        let found = modes();
        assert!(found.len() >= 5 && found.iter().all(|mode| *mode == 0), "{found:?}");
        // As an earlier version left them.
        for entry in std::fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            let is_segment = path.extension().is_some_and(|extension| extension == "seg");
            open_up(&path, if is_segment { 0o644 } else { 0o600 });
        }
    }
}
