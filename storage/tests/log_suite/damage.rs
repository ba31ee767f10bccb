//! What is not as it was written is noticed; what was never acknowledged is cut.

use std::os::unix::fs::FileExt;
use std::path::Path;

use headcount_storage::log::{AppendEntry, Damage, Log, LogError};

use crate::support::*;

/// A log with three sealed segments and a few blocks in the last; its records and the first
/// positions of its segments.
fn sample() -> (tempfile::TempDir, Vec<ReadRecord>, Vec<u64>) {
    let dir = temporary();
    let (mut log, _) = open(dir.path());
    let mut kept = Vec::new();
    for n in 0..40 {
        let payload = noise(n, 100 + (n as usize * 37) % 300);
        let first = log.append(&[AppendEntry { partition: (n % 3) as u16, count: 2, payload: &payload }]).unwrap();
        kept.push(((n % 3) as u16, first, 2, payload));
        let firsts = segments(dir.path());
        if firsts.len() == 4 && blocks(&segment(dir.path(), firsts[3])).0.len() == 3 {
            return (dir, kept, firsts);
        }
    }
    panic!("the sample got too long");
}

/// Opens the log, and expects exactly the first `records` records and so many cut bytes.
fn expect_prefix(dir: &Path, kept: &[ReadRecord], cut_bytes: u64) {
    let (mut log, recovery) = open(dir);
    assert_eq!(recovery.cut_bytes, cut_bytes);
    assert_eq!(recovery.last_position, kept.len() as u64 * 2);
    assert_eq!(read_all(&log.reader()).unwrap(), kept);
    let first = log.append(&[AppendEntry { partition: 1, count: 1, payload: b"goes on" }]).unwrap();
    assert_eq!(first, recovery.last_position + 1);
    drop(log);
    let (log, recovery) = open(dir);
    assert_eq!((recovery.cut_bytes, recovery.last_position), (0, first));
    assert_eq!(read_all(&log.reader()).unwrap().len(), kept.len() + 1);
}

#[test]
fn every_length_of_a_truncated_tail_recovers_the_blocks_that_are_whole() {
    let (dir, kept, firsts) = sample();
    let original = std::fs::read(segment(dir.path(), firsts[3])).unwrap();
    let (found, end) = blocks(&segment(dir.path(), firsts[3]));
    let before = kept.len() - found.len();
    for length in HEADER_BYTES..=end {
        let whole = found.iter().filter(|(offset, size)| offset + size <= length).count();
        let whole_end = found[..whole].last().map_or(HEADER_BYTES, |(offset, size)| offset + size);
        // Cut short, as after copying; and zeroed, as after a crash.
        for zeroed in [false, true] {
            let mut bytes = original[..length as usize].to_vec();
            let data_end = bytes.iter().rposition(|byte| *byte != 0).unwrap() as u64 + 1;
            if zeroed {
                bytes.resize(original.len(), 0);
            } else if length % 7 != 0 {
                continue;
            }
            // In a padding of zeroes the block is whole already.
            let whole_there = found
                .iter()
                .filter(|(o, size)| {
                    bytes.get(*o as usize..(o + size) as usize) == Some(&original[*o as usize..(o + size) as usize])
                })
                .count();
            let cut = if whole_there > whole { 0 } else { data_end.max(whole_end) - whole_end };
            let copied = copy(dir.path());
            std::fs::write(segment(copied.path(), firsts[3]), &bytes).unwrap();
            expect_prefix(copied.path(), &kept[..before + whole_there], cut);
        }
    }
}

#[test]
fn pages_of_the_last_block_that_arrived_in_any_order_are_cut() {
    let (dir, kept, firsts) = sample();
    let path = segment(dir.path(), firsts[3]);
    let (found, _) = blocks(&path);
    let (offset, size) = found[found.len() - 1];
    for hole in 0..size / 8 {
        let copied = copy(dir.path());
        let file = writable(&segment(copied.path(), firsts[3]));
        let mut word = [0u8; 8];
        file.read_exact_at(&mut word, offset + hole * 8).unwrap();
        if word == [0; 8] {
            continue;
        }
        file.write_all_at(&[0; 8], offset + hole * 8).unwrap();
        let (log, recovery) = open(copied.path());
        assert_eq!(recovery.last_position, kept.len() as u64 * 2 - 2, "hole at word {hole}");
        assert!(recovery.cut_bytes > 0);
        assert_eq!(read_all(&log.reader()).unwrap(), kept[..kept.len() - 1]);
        drop(log);
        let rest = std::fs::read(segment(copied.path(), firsts[3])).unwrap();
        assert!(rest[offset as usize..].iter().all(|byte| *byte == 0));
    }
}

#[test]
fn every_flipped_bit_of_sealed_segments_is_noticed_and_named() {
    let (dir, kept, firsts) = sample();
    let (log, _) = open(dir.path());
    let reader = log.reader();
    for &first in &firsts[..3] {
        let path = segment(dir.path(), first);
        let (found, end) = blocks(&path);
        let file = writable(&path);
        let size = file.metadata().unwrap().len();
        // Every bit of one segment's blocks; elsewhere, and in a build that isn't optimised, a part
        // of them.
        let (step, elsewhere) = if cfg!(debug_assertions) { (17, 29) } else { (1, 11) };
        for bit in 0..size * 8 {
            let in_blocks = (HEADER_BYTES * 8..end * 8).contains(&bit);
            if bit % elsewhere != 0 && !(in_blocks && first == firsts[1] && bit % step == 0) {
                continue;
            }
            flip(&file, bit);
            let byte = bit / 8;
            let expected = if byte < HEADER_BYTES {
                (first, 0)
            } else if byte < end {
                (first, found.iter().rfind(|(offset, _)| *offset <= byte).unwrap().0)
            } else {
                (first, end)
            };
            if byte < end {
                assert_eq!(place(read_all(&reader)), expected, "bit {bit} of segment {first}");
            }
            if bit % 23 == 0 || byte >= end {
                assert_eq!(place(reader.verify_all()), expected, "bit {bit} of segment {first}");
            }
            flip(&file, bit);
        }
    }
    assert_eq!(read_all(&reader).unwrap(), kept);
}

#[test]
fn every_flipped_bit_before_the_last_block_keeps_the_log_from_opening() {
    let (dir, kept, firsts) = sample();
    let path = segment(dir.path(), firsts[3]);
    let (found, end) = blocks(&path);
    let (last, _) = found[found.len() - 1];
    let file = writable(&path);
    for bit in 0..last * 8 {
        // Of the header's page each byte once.
        if bit < HEADER_BYTES * 8 && bit % 8 != (bit / 8) % 8 {
            continue;
        }
        flip(&file, bit);
        let byte = bit / 8;
        let offset = found.iter().rfind(|(offset, _)| *offset <= byte).map_or(0, |block| block.0);
        assert_eq!(place(Log::open(dir.path(), small())), (firsts[3], offset), "bit {bit}");
        flip(&file, bit);
    }
    // In the last block it can't be distinguished from a write that a crash interrupted.
    for bit in (last * 8..end * 8).step_by(17) {
        let copied = copy(dir.path());
        flip(&writable(&segment(copied.path(), firsts[3])), bit);
        expect_prefix(copied.path(), &kept[..kept.len() - 1], end_of_data(&path, bit) - last);
    }
}

/// Where the data of a segment ends once this bit was flipped.
fn end_of_data(path: &Path, bit: u64) -> u64 {
    let mut bytes = std::fs::read(path).unwrap();
    bytes[(bit / 8) as usize] ^= 1 << (bit % 8);
    bytes.iter().rposition(|byte| *byte != 0).unwrap() as u64 + 1
}

#[test]
fn two_bad_blocks_at_the_end_are_no_torn_write() {
    let (dir, _, firsts) = sample();
    let path = segment(dir.path(), firsts[3]);
    let (found, _) = blocks(&path);
    let file = writable(&path);
    for (offset, size) in &found[1..] {
        flip(&file, (offset + size - 9) * 8);
    }
    assert_eq!(place(Log::open(dir.path(), small())), (firsts[3], found[1].0));
}

#[test]
fn a_payload_that_holds_copies_of_blocks_changes_nothing() {
    let (dir, kept, firsts) = sample();
    let path = segment(dir.path(), firsts[3]);
    let (found, end) = blocks(&path);
    let bytes = std::fs::read(&path).unwrap();
    // All blocks of the very segment that it goes to, at every alignment; then the whole is torn.
    for (shift, hole) in (0..8usize).flat_map(|shift| [0, 8, 16, 48, 60].map(|hole| (shift, hole))) {
        let mut hostile = vec![1; shift];
        for (offset, size) in &found {
            hostile.extend_from_slice(&bytes[*offset as usize..(offset + size) as usize]);
        }
        let copied = copy(dir.path());
        let (mut log, _) = open(copied.path());
        log.append(&[AppendEntry { partition: 0, count: 1, payload: &hostile }]).unwrap();
        assert_eq!(segments(copied.path()), firsts, "the copy went to the same segment");
        assert_eq!(read_all(&log.reader()).unwrap().last().unwrap().3, hostile);
        drop(log);
        let file = writable(&segment(copied.path(), firsts[3]));
        flip(&file, (end + hole) * 8);
        drop(file);
        let (log, recovery) = open(copied.path());
        assert!(recovery.cut_bytes > hostile.len() as u64);
        assert_eq!(read_all(&log.reader()).unwrap(), kept);
    }
}

#[test]
fn a_missing_segment_is_noticed() {
    let (dir, _, firsts) = sample();
    for &gone in &firsts {
        let copied = copy(dir.path());
        std::fs::remove_file(segment(copied.path(), gone)).unwrap();
        match Log::open(copied.path(), small()) {
            Err(LogError::Damaged { segment, reason, .. }) => {
                assert_eq!((segment, reason), (gone, Damage::Missing));
            }
            other => panic!("{other:?}"),
        }
    }
    let copied = copy(dir.path());
    for &gone in &firsts {
        std::fs::remove_file(segment(copied.path(), gone)).unwrap();
    }
    assert_eq!(place(Log::open(copied.path(), small())), (1, 0));
}

#[test]
fn a_segment_of_another_log_is_noticed() {
    let (dir, _, firsts) = sample();
    let (other, _, other_firsts) = sample();
    assert_eq!(firsts, other_firsts);
    // Same name, same positions, same predecessor: only the chain tells.
    std::fs::copy(segment(other.path(), firsts[1]), segment(dir.path(), firsts[1])).unwrap();
    let (log, _) = open(dir.path());
    let (found, _) = blocks(&segment(dir.path(), firsts[0]));
    let end = found.last().map(|(offset, size)| offset + size).unwrap();
    assert_eq!(place(log.reader().verify_all()), (firsts[0], end));
    assert_eq!(place(read_all(&log.reader())), (firsts[0], end));
    // And one under another's name.
    std::fs::copy(segment(other.path(), firsts[2]), segment(dir.path(), firsts[1])).unwrap();
    assert_eq!(place(Log::open(dir.path(), small())), (firsts[1], 0));
}

#[test]
fn an_unknown_version_is_refused_by_name() {
    let (dir, _, firsts) = sample();
    let path = segment(dir.path(), firsts[1]);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[8] = 2;
    let checksum = crc32c::crc32c(&bytes[..4092]);
    bytes[4092..4096].copy_from_slice(&checksum.to_le_bytes());
    std::fs::write(&path, &bytes).unwrap();
    for options in [small(), repairing()] {
        let error = Log::open(dir.path(), options).unwrap_err();
        assert!(matches!(error, LogError::UnsupportedVersion { found: 2, supported: 1, .. }));
        assert!(error.to_string().contains("format version 2"));
    }
}
