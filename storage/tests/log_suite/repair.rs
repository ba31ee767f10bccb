//! A repair keeps what can be kept, and says what it could not.

use headcount_storage::log::{AppendEntry, Log, Lost};

use crate::support::*;

/// A log of several segments; its records and the first positions of the segments.
fn sample() -> (tempfile::TempDir, Vec<ReadRecord>, Vec<u64>) {
    let dir = temporary();
    let (mut log, _) = open(dir.path());
    let mut kept = Vec::new();
    for n in 0..40u32 {
        let payload = noise(n, 500);
        let first = log.append(&[AppendEntry { partition: 1, count: 3, payload: &payload }]).unwrap();
        kept.push((1, first, 3, payload));
    }
    let firsts = segments(dir.path());
    assert!(firsts.len() >= 5);
    (dir, kept, firsts)
}

/// Repairs, and expects all records but those that touch a lost range. The log must then open and
/// go on as usual.
fn expect_all_but(dir: &std::path::Path, kept: &[ReadRecord], lost: &[Lost]) {
    let (log, recovery) = Log::open(dir, repairing()).unwrap();
    assert_eq!(recovery.lost, lost);
    let is_lost =
        |record: &ReadRecord| lost.iter().any(|range| record.1 >= range.first && range.last.is_none_or(|last| record.1 <= last));
    let mut expected: Vec<ReadRecord> = kept.iter().filter(|record| !is_lost(record)).cloned().collect();
    assert_eq!(read_all(&log.reader()).unwrap(), expected);
    drop(log);
    let (mut log, recovery) = open(dir);
    assert_eq!((recovery.lost.len(), recovery.cut_bytes), (0, 0));
    let first = log.append(&[AppendEntry { partition: 1, count: 1, payload: b"goes on" }]).unwrap();
    expected.push((1, first, 1, b"goes on".to_vec()));
    assert_eq!(read_all(&log.reader()).unwrap(), expected);
    let verified = log.reader().verify_all().unwrap();
    assert_eq!(verified.events, expected.iter().map(|record| u64::from(record.2)).sum::<u64>());
    drop(log);
    // Once more finds nothing to do.
    let (log, recovery) = Log::open(dir, repairing()).unwrap();
    assert_eq!(recovery.lost, []);
    assert_eq!(read_all(&log.reader()).unwrap(), expected);
}

#[test]
fn an_intact_log_is_left_as_it_is() {
    let (dir, kept, firsts) = sample();
    let before = std::fs::read(segment(dir.path(), firsts[2])).unwrap();
    expect_all_but(dir.path(), &kept, &[]);
    assert_eq!(std::fs::read(segment(dir.path(), firsts[2])).unwrap(), before);
}

#[test]
fn a_bad_block_costs_that_block() {
    let (dir, kept, firsts) = sample();
    for &first in &firsts {
        let (found, _) = blocks(&segment(dir.path(), first));
        // The last block of the last segment is a torn tail.
        let count = if first == *firsts.last().unwrap() { found.len() - 1 } else { found.len() };
        for (n, (offset, _)) in found[..count].iter().enumerate() {
            // In the marker, the length, the position, the payload.
            let byte = [0, 9, 20, 100][n % 4];
            let copied = copy(dir.path());
            flip(&writable(&segment(copied.path(), first)), (offset + byte) * 8 + 6);
            let position = first + 3 * n as u64;
            let lost = Lost { segment: first, offset: *offset, first: position, last: Some(position + 2) };
            expect_all_but(copied.path(), &kept, &[lost]);
        }
    }
}

#[test]
fn several_bad_blocks_in_several_segments_are_reported_one_by_one() {
    let (dir, kept, firsts) = sample();
    let mut lost = Vec::new();
    for &first in &firsts[..3] {
        let (found, _) = blocks(&segment(dir.path(), first));
        let file = writable(&segment(dir.path(), first));
        // Two in a row, which are one range.
        flip(&file, (found[1].0 + 70) * 8);
        flip(&file, (found[2].0 + 70) * 8);
        lost.push(Lost { segment: first, offset: found[1].0, first: first + 3, last: Some(first + 8) });
    }
    expect_all_but(dir.path(), &kept, &lost);
}

#[test]
fn garbage_behind_the_last_block_costs_nothing() {
    let (dir, kept, firsts) = sample();
    let (_, end) = blocks(&segment(dir.path(), firsts[1]));
    flip(&writable(&segment(dir.path(), firsts[1])), (end + 10) * 8);
    expect_all_but(dir.path(), &kept, &[]);
}

#[test]
fn a_segment_without_a_header_or_a_file_costs_that_segment() {
    let (dir, kept, firsts) = sample();
    for n in 0..firsts.len() {
        for missing in [false, true] {
            let copied = copy(dir.path());
            let path = segment(copied.path(), firsts[n]);
            if missing {
                std::fs::remove_file(&path).unwrap();
            } else {
                flip(&writable(&path), 200);
            }
            let last = firsts.get(n + 1).map(|next| next - 1);
            // The gap is made at the end of the segment before.
            let (at, offset) = match n {
                0 => (1, 0),
                _ if last.is_none() => (firsts[n], 0),
                _ => (firsts[n - 1], blocks(&segment(dir.path(), firsts[n - 1])).1),
            };
            let lost = Lost { segment: at, offset, first: firsts[n], last };
            expect_all_but(copied.path(), &kept, &[lost]);
        }
    }
}

#[test]
fn the_end_of_the_log_is_given_up_from_the_first_bad_block_if_nothing_behind_it_is_intact() {
    let (dir, kept, firsts) = sample();
    let first = *firsts.last().unwrap();
    let (found, _) = blocks(&segment(dir.path(), first));
    let file = writable(&segment(dir.path(), first));
    for (offset, _) in &found[1..] {
        flip(&file, (offset + 60) * 8);
    }
    let lost = Lost { segment: first, offset: found[1].0, first: first + 3, last: None };
    assert_eq!(place(Log::open(dir.path(), small())), (first, found[1].0));
    let (log, recovery) = Log::open(dir.path(), repairing()).unwrap();
    assert_eq!(recovery.lost, [lost]);
    assert_eq!(recovery.last_position, first + 2);
    let expected: Vec<ReadRecord> = kept.iter().filter(|record| record.1 <= first).cloned().collect();
    assert_eq!(read_all(&log.reader()).unwrap(), expected);
}
