//! What is appended is read back.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use headcount_storage::log::{AppendEntry, Log, LogError, LogOptions, MAX_BLOCK_BYTES};
use proptest::prelude::*;

use crate::support::*;

#[test]
fn an_empty_log_begins_at_one_and_stays_empty() {
    let dir = temporary();
    for _ in 0..2 {
        let (log, recovery) = open(&dir.path().join("a/b"));
        assert_eq!((recovery.cut_bytes, recovery.last_position, recovery.segments), (0, 0, 1));
        assert_eq!((recovery.first_position, log.reader().first_position()), (1, 1));
        assert_eq!(read_all(&log.reader()).unwrap(), []);
        assert_eq!(log.reader().verify_all().unwrap().blocks, 0);
    }
}

#[test]
fn segments_roll_and_everything_is_read_back_also_after_opening_again() {
    for prepare_ahead in [false, true] {
        let dir = temporary();
        let options = LogOptions { prepare_ahead, ..small() };
        let (mut log, _) = Log::open(dir.path(), options.clone()).unwrap();
        let mut expected = fill(&mut log, 40);
        assert_eq!(read_all(&log.reader()).unwrap(), expected);
        let last = log.last_position();
        assert!(segments(dir.path()).len() > 3);
        drop(log);

        let (mut log, recovery) = Log::open(dir.path(), options).unwrap();
        assert_eq!((recovery.cut_bytes, recovery.last_position), (0, last));
        assert_eq!(recovery.segments, segments(dir.path()).len());
        assert_eq!(read_all(&log.reader()).unwrap(), expected);
        let first = log.append(&[AppendEntry { partition: 5, count: 2, payload: b"more" }]).unwrap();
        assert_eq!(first, last + 1);
        expected.push((5, first, 2, b"more".to_vec()));
        assert_eq!(read_all(&log.reader()).unwrap(), expected);

        let verified = log.reader().verify_all().unwrap();
        assert_eq!((verified.blocks, verified.events, verified.lost_positions), (41, last + 2, 0));
        drop(log);
        assert!(
            std::fs::read_dir(dir.path())
                .unwrap()
                .all(|entry| { !entry.unwrap().file_name().to_str().unwrap().ends_with(".tmp") })
        );
    }
}

#[test]
fn a_reader_gets_the_partitions_it_wants_from_where_it_wants_them() {
    let dir = temporary();
    let (mut log, _) = open(dir.path());
    let all = fill(&mut log, 30);
    let wanted = |partition: u16| match partition {
        2 => Some(0),
        13 => Some(40),
        _ => None,
    };
    let mut kept = Vec::new();
    log.reader()
        .read(wanted, |record| {
            kept.push((record.partition, record.first, record.count, record.payload.to_vec()));
            ControlFlow::Continue(())
        })
        .unwrap();
    let last = |record: &ReadRecord| record.1 + u64::from(record.2) - 1;
    let expected: Vec<ReadRecord> = all.iter().filter(|r| wanted(r.0).is_some_and(|after| last(r) > after)).cloned().collect();
    assert_eq!(kept, expected);

    let mut seen = 0;
    log.reader()
        .read(
            |_| Some(0),
            |_| {
                seen += 1;
                if seen == 5 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            },
        )
        .unwrap();
    assert_eq!(seen, 5);
    for after in [0, 1, 50, log.last_position() - 1, log.last_position(), u64::MAX] {
        let expected: Vec<ReadRecord> = all.iter().filter(|r| last(r) > after).cloned().collect();
        assert_eq!(read_after(&log.reader(), after).unwrap(), expected, "after {after}");
    }
}

#[test]
fn segments_without_wanted_partitions_are_not_read() {
    let dir = temporary();
    let (mut log, _) = open(dir.path());
    log.append(&[AppendEntry { partition: 1, count: 1, payload: &noise(1, 3000) }]).unwrap();
    for n in 2..10 {
        log.append(&[AppendEntry { partition: 2, count: 1, payload: &noise(n, 3000) }]).unwrap();
    }
    // The one that holds partition 1 can't be read any more: readers that don't need it are not
    // affected.
    flip(&writable(&segment(dir.path(), 1)), HEADER_BYTES * 8);
    let mut records = 0;
    let count = |_: headcount_storage::log::Record<'_>| {
        records += 1;
        ControlFlow::Continue(())
    };
    log.reader().read(|partition| (partition == 2).then_some(1), count).unwrap();
    assert_eq!(records, 8);
    assert_eq!(place(read_all(&log.reader())), (1, HEADER_BYTES));
}

#[test]
fn a_missing_or_damaged_index_is_made_again() {
    let dir = temporary();
    let (mut log, _) = open(dir.path());
    let expected = fill(&mut log, 30);
    drop(log);
    let sealed: Vec<u64> = segments(dir.path());
    let (sealed, _) = sealed.split_at(sealed.len() - 1);
    let before: Vec<Vec<u8>> = sealed.iter().map(|&first| std::fs::read(index(dir.path(), first)).unwrap()).collect();
    for (n, &first) in sealed.iter().enumerate() {
        match n % 3 {
            0 => std::fs::remove_file(index(dir.path(), first)).unwrap(),
            1 => flip(&writable(&index(dir.path(), first)), 300),
            _ => std::fs::write(index(dir.path(), first), b"").unwrap(),
        }
    }
    let (log, recovery) = open(dir.path());
    assert_eq!(recovery.cut_bytes, 0);
    assert_eq!(read_all(&log.reader()).unwrap(), expected);
    let after: Vec<Vec<u8>> = sealed.iter().map(|&first| std::fs::read(index(dir.path(), first)).unwrap()).collect();
    assert_eq!(after, before);
}

#[test]
fn old_segments_are_removed_and_stay_removed() {
    let dir = temporary();
    let (mut log, _) = open(dir.path());
    let all = fill(&mut log, 40);
    let firsts = segments(dir.path());
    let reader = log.reader();
    assert_eq!(log.remove_before(1).unwrap().segments, 0);
    assert_eq!(log.remove_before(firsts[1] - 1).unwrap().segments, 0);
    let removed = log.remove_before(firsts[3] + 1).unwrap();
    assert_eq!((removed.segments, removed.first_position), (3, firsts[3]));
    assert!(removed.bytes >= 3 * 8192);
    assert_eq!(segments(dir.path()), firsts[3..]);
    let expected: Vec<ReadRecord> = all.iter().filter(|r| r.1 >= firsts[3]).cloned().collect();
    assert_eq!(read_all(&reader).unwrap(), expected);
    assert_eq!(reader.first_position(), firsts[3]);
    drop(log);

    let (mut log, recovery) = open(dir.path());
    assert_eq!(recovery.first_position, firsts[3]);
    assert_eq!(read_all(&log.reader()).unwrap(), expected);
    // Never the segment that is appended to.
    log.remove_before(u64::MAX).unwrap();
    assert_eq!(segments(dir.path()).len(), 1);
    assert_eq!(log.append(&[AppendEntry { partition: 1, count: 1, payload: b"x" }]).unwrap(), recovery.last_position + 1);
}

#[test]
fn a_removal_that_was_interrupted_is_finished() {
    let dir = temporary();
    let (mut log, _) = open(dir.path());
    fill(&mut log, 40);
    let firsts = segments(dir.path());
    let before = copy(dir.path());
    log.remove_before(firsts[2]).unwrap();
    drop(log);
    // The floor was recorded, but the second file was still there.
    std::fs::copy(segment(before.path(), firsts[1]), segment(dir.path(), firsts[1])).unwrap();
    let (_, recovery) = open(dir.path());
    assert_eq!(recovery.first_position, firsts[2]);
    assert_eq!(segments(dir.path()), firsts[2..]);
}

#[test]
fn a_block_larger_than_a_segment_gets_one_of_its_own() {
    let dir = temporary();
    let (mut log, _) = open(dir.path());
    let large = noise(9, 100_000);
    // The first one meets an empty segment, which is made longer; the second a new one.
    for n in 0..3u64 {
        assert_eq!(log.append(&[AppendEntry { partition: 3, count: 1, payload: &large }]).unwrap(), 2 * n + 1);
        log.append(&[AppendEntry { partition: 3, count: 1, payload: b"small" }]).unwrap();
    }
    drop(log);
    let (log, recovery) = open(dir.path());
    assert_eq!((recovery.last_position, recovery.cut_bytes), (6, 0));
    assert_eq!(read_all(&log.reader()).unwrap()[4], (3, 5, 1, large));
    log.reader().verify_all().unwrap();
}

#[test]
fn what_cannot_be_appended_is_refused_and_leaves_no_trace() {
    let dir = temporary();
    let (mut log, _) = open(dir.path());
    assert!(matches!(log.append(&[]), Err(LogError::Empty)));
    let none = AppendEntry { partition: 1, count: 0, payload: b"x" };
    assert!(matches!(log.append(&[none]), Err(LogError::Empty)));
    let huge = vec![0u8; MAX_BLOCK_BYTES as usize];
    let huge = AppendEntry { partition: 1, count: 1, payload: &huge };
    assert!(matches!(log.append(&[huge]), Err(LogError::TooLarge { .. })));
    assert_eq!(log.append(&[AppendEntry { partition: 1, count: 1, payload: b"" }]).unwrap(), 1);
    assert_eq!(read_all(&log.reader()).unwrap(), [(1, 1, 1, Vec::new())]);
}

#[test]
fn a_log_that_begins_at_a_position_is_like_one_that_was_trimmed() {
    let dir = temporary();
    let mut log = Log::create_at(dir.path(), 8_000_001, small()).unwrap();
    assert_eq!((log.last_position(), read_all(&log.reader()).unwrap()), (8_000_000, Vec::new()));
    assert_eq!(log.append(&[AppendEntry { partition: 1, count: 2, payload: b"x" }]).unwrap(), 8_000_001);
    drop(log);
    let (log, recovery) = open(dir.path());
    assert_eq!((recovery.first_position, recovery.last_position), (8_000_001, 8_000_002));
    assert_eq!(read_all(&log.reader()).unwrap(), [(1, 8_000_001, 2, b"x".to_vec())]);
    drop(log);
    match Log::create_at(dir.path(), 9, small()) {
        Err(LogError::Io { source, .. }) => assert_eq!(source.kind(), std::io::ErrorKind::AlreadyExists),
        other => panic!("{other:?}"),
    }
    assert_eq!(open(dir.path()).1.last_position, 8_000_002, "nothing has changed");
}

struct SetOnDrop<'a>(&'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn readers_see_whole_prefixes_while_the_log_grows_and_shrinks() {
    let dir = temporary();
    let (mut log, _) = Log::open(dir.path(), LogOptions { prepare_ahead: true, ..small() }).unwrap();
    let done = AtomicBool::new(false);
    let reader = log.reader();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let (reader, done) = (reader.clone(), &done);
                scope.spawn(move || {
                    let mut rounds = 0;
                    while !done.load(Ordering::Relaxed) {
                        let durable = reader.last_position();
                        let kept = match read_all(&reader) {
                            Err(LogError::Removed { .. }) => continue,
                            kept => kept.unwrap(),
                        };
                        let mut next = kept.first().map_or(1, |record| record.1);
                        for (partition, first, count, payload) in &kept {
                            assert_eq!((*first, *count), (next, 2));
                            assert_eq!(payload, &noise(*first as u32, 500));
                            assert_eq!(*partition, (*first % 7) as u16);
                            next += 2;
                        }
                        // Short of what was durable only by what was removed meanwhile.
                        let removed = reader.first_position() >= next;
                        assert!(next > durable || removed, "{next} {durable} {}", reader.first_position());
                        rounds += 1;
                    }
                    rounds
                })
            })
            .collect();
        // Also when an assertion fails, or else the readers would go on for ever.
        let end = SetOnDrop(&done);
        for n in 0..300u32 {
            let first = log.last_position() + 1;
            let payload = noise(first as u32, 500);
            log.append(&[AppendEntry { partition: (first % 7) as u16, count: 2, payload: &payload }]).unwrap();
            if n % 50 == 49 {
                log.remove_before(first - 60).unwrap();
            }
        }
        drop(end);
        for thread in threads {
            assert!(thread.join().unwrap() > 0);
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn any_shares_come_back(
        blocks in prop::collection::vec(
            prop::collection::vec((any::<u16>(), 1u32..5000, prop::collection::vec(0u8..4, 0..3000)), 1..6),
            1..12,
        ),
        reopen_at in 0usize..12,
    ) {
        let dir = temporary();
        let (mut log, _) = open(dir.path());
        let mut expected = Vec::new();
        let mut next = 1;
        for (n, block) in blocks.iter().enumerate() {
            if n == reopen_at {
                drop(log);
                log = open(dir.path()).0;
            }
            let entries: Vec<AppendEntry<'_>> =
                block.iter().map(|(partition, count, payload)| AppendEntry { partition: *partition, count: *count, payload }).collect();
            prop_assert_eq!(log.append(&entries).unwrap(), next);
            for entry in entries {
                expected.push((entry.partition, next, entry.count, entry.payload.to_vec()));
                next += u64::from(entry.count);
            }
        }
        prop_assert_eq!(read_all(&log.reader()).unwrap(), expected.clone());
        let mut last: BTreeMap<u16, u64> = BTreeMap::new();
        for record in &expected {
            last.insert(record.0, record.1);
        }
        for (partition, first) in last {
            let mut seen = Vec::new();
            log.reader().read(
                |p| (p == partition).then_some(first - 1),
                |record| { seen.push(record.first); ControlFlow::Continue(()) },
            ).unwrap();
            prop_assert_eq!(seen, vec![first]);
        }
        log.reader().verify_all().unwrap();
    }
}
