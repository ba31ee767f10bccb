use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use super::*;
use crate::format::Incarnation;
use crate::sstable::table_files;

const HERE: ExternalIdsOptions = ExternalIdsOptions { incarnation: Incarnation::from_number(77) };
static GO: AtomicBool = AtomicBool::new(false);

fn fingerprint(number: u64) -> u128 {
    xxhash_rust::xxh3::xxh3_128(&number.to_le_bytes())
}

fn open(dir: &Path) -> ExternalIds {
    ExternalIds::open(dir, HERE).unwrap()
}

fn frozen(index: &mut ExternalIds) -> Frozen {
    match index.freeze() {
        Freeze::Write(frozen) => frozen,
        other => panic!("{other:?}"),
    }
}

/// Freezes, writes and adopts, as at a checkpoint.
fn write(index: &mut ExternalIds) {
    let written = frozen(index).write().unwrap();
    index.adopt(written);
}

fn record(index: &mut ExternalIds, numbers: std::ops::Range<u64>) {
    for number in numbers {
        assert_eq!(index.first(fingerprint(number), 1_000 + number).unwrap(), 1_000 + number);
    }
}

fn knows(index: &ExternalIds, numbers: std::ops::Range<u64>) {
    for number in numbers {
        assert_eq!(index.get(fingerprint(number)).unwrap(), Some(1_000 + number), "{number}");
    }
}

#[test]
fn the_first_position_is_kept_wherever_it_lies() {
    let dir = tempfile::tempdir().unwrap();
    let mut index = open(dir.path());
    record(&mut index, 0..1_000);
    write(&mut index);
    record(&mut index, 1_000..2_000);
    let job = frozen(&mut index);
    record(&mut index, 2_000..3_000);
    for number in 0..3_000 {
        // A duplicate finds the first, the event itself finds itself.
        assert_eq!(index.first(fingerprint(number), 1 << 40).unwrap(), 1_000 + number);
        assert_eq!(index.first(fingerprint(number), 1_000 + number).unwrap(), 1_000 + number);
    }
    let written = job.write().unwrap();
    index.adopt(written);
    knows(&index, 0..3_000);
    assert_eq!(index.get(fingerprint(3_000)).unwrap(), None);
    assert_eq!((index.tables(), index.unwritten()), (2, 1_000));
    index.verify().unwrap();
}

#[test]
fn a_view_visits_each_fingerprint_under_a_prefix_once() {
    let dir = tempfile::tempdir().unwrap();
    let mut index = open(dir.path());
    // Two tables have earlier positions of ids in others.
    for (from, at) in [(0, 5_000), (500, 4_000), (200, 3_000)] {
        for number in from..from + 1_000 {
            let _first = index.first(fingerprint(number), at + number).unwrap();
        }
        write(&mut index);
    }
    for number in 1_900..2_100 {
        let _first = index.first(fingerprint(number), number).unwrap();
    }
    let _being_written = frozen(&mut index);
    let (view, prefix) = (index.view(), [fingerprint(7).to_be_bytes()[0] & 0xfe]);
    let mut visited = std::collections::BTreeMap::new();
    let visit = |fingerprint, position| {
        assert_eq!(visited.insert(fingerprint, position), None, "twice");
        Ok::<_, ExternalIdsError>(())
    };
    view.for_each(&prefix, visit).unwrap();
    let of_prefix = (0..2_100).map(fingerprint).filter(|fingerprint| fingerprint.to_be_bytes().starts_with(&prefix));
    let expected: std::collections::BTreeMap<u128, u64> =
        of_prefix.filter_map(|fingerprint| Some((fingerprint, view.get(fingerprint).unwrap()?))).collect();
    assert!(!visited.is_empty() && visited == expected);
}

#[test]
fn a_view_knows_what_is_not_active_whatever_becomes_of_the_index() {
    let dir = tempfile::tempdir().unwrap();
    let mut index = open(dir.path());
    for round in 0..4 {
        record(&mut index, round * 100..(round + 1) * 100);
        write(&mut index);
    }
    record(&mut index, 400..500);
    let job = frozen(&mut index);
    record(&mut index, 500..600);
    let view = index.view();
    // What it was made of goes.
    let written = job.write().unwrap();
    index.adopt(written);
    let merged = index.merge().unwrap().write(&GO).unwrap();
    index.adopt(merged);
    drop(index);
    for number in 0..600 {
        assert_eq!(view.get(fingerprint(number)).unwrap(), (number < 500).then_some(1_000 + number), "{number}");
    }
}

#[test]
fn a_smaller_position_takes_over_for_good() {
    let dir = tempfile::tempdir().unwrap();
    let mut index = open(dir.path());
    for position in [900, 500, 700, 300, 400] {
        index.first(fingerprint(1), position).unwrap();
        index.first(fingerprint(2), 10_000 - position).unwrap();
        write(index_with_something(&mut index, position));
    }
    assert_eq!(index.get(fingerprint(1)).unwrap(), Some(300));
    drop(index);
    let mut index = open(dir.path());
    assert_eq!(index.first(fingerprint(1), 600).unwrap(), 300);
    let merged = index.merge().unwrap().write(&GO).unwrap();
    index.adopt(merged);
    assert_eq!(index.tables(), 1);
    assert_eq!(index.get(fingerprint(1)).unwrap(), Some(300));
    assert_eq!(index.get(fingerprint(2)).unwrap(), Some(9_100));
    assert_eq!(index.entries(), 2 + 5);
}

/// Adds a fingerprint of its own, so that there is something to freeze.
fn index_with_something(index: &mut ExternalIds, position: u64) -> &mut ExternalIds {
    index.first(fingerprint(1 << 50 | position), position).unwrap();
    index
}

#[test]
fn what_is_written_survives_a_crash_and_the_rest_is_recorded_again() {
    let dir = tempfile::tempdir().unwrap();
    let mut index = open(dir.path());
    record(&mut index, 0..500);
    write(&mut index);
    record(&mut index, 500..700);
    let ahead = frozen(&mut index).write().unwrap();
    record(&mut index, 700..800);
    drop((index, ahead));
    let mut index = open(dir.path());
    knows(&index, 0..700);
    assert_eq!(index.get(fingerprint(700)).unwrap(), None);
    // The checkpoint covered 0..500 only; the rest is replayed, and each event is the first again.
    record(&mut index, 500..800);
    assert_eq!(index.unwritten(), 100);
}

#[test]
fn merging_keeps_everything_and_the_number_of_tables_small() {
    let dir = tempfile::tempdir().unwrap();
    let mut index = open(dir.path());
    for round in 0..60 {
        record(&mut index, round * 3_000..(round + 1) * 3_000);
        write(&mut index);
        while let Some(merge) = index.merge() {
            let merged = merge.write(&GO).unwrap();
            index.adopt(merged);
        }
        assert!(index.tables() <= 8, "{} tables", index.tables());
    }
    knows(&index, 0..180_000);
    assert_eq!(index.entries(), 180_000);
    drop(index);
    let index = open(dir.path());
    knows(&index, 0..180_000);
    let on_disk: u64 = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len()).sum();
    assert!(on_disk <= 24 * 180_000, "{on_disk} bytes");
    assert!(index.memory_bytes() <= 2 * 180_000, "{} bytes", index.memory_bytes());
}

#[test]
fn jobs_wait_their_turn_and_may_be_lost() {
    let dir = tempfile::tempdir().unwrap();
    let mut index = open(dir.path());
    assert!(matches!(index.freeze(), Freeze::Nothing));
    record(&mut index, 0..10);
    let job = frozen(&mut index);
    record(&mut index, 10..20);
    assert!(matches!(index.freeze(), Freeze::Busy));
    drop(job);
    // Nobody will write that table any more: the next job has all of it.
    let job = frozen(&mut index);
    assert_eq!(job.len(), 20);
    let written = job.write().unwrap();
    drop(job);
    assert!(matches!(index.freeze(), Freeze::Nothing), "what is written is used");
    index.adopt(written);
    assert_eq!((index.tables(), index.entries()), (1, 20));
    for round in 1..4 {
        record(&mut index, round * 20..(round + 1) * 20);
        write(&mut index);
    }
    let merge = index.merge().unwrap();
    assert!(index.merge().is_none(), "the tables are being merged");
    drop(merge);
    assert!(index.merge().is_some());
    knows(&index, 0..80);
}

#[test]
fn a_stopped_merge_leaves_everything_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let mut index = open(dir.path());
    for round in 0..4 {
        record(&mut index, round * 5_000..(round + 1) * 5_000);
        write(&mut index);
    }
    let stopped = index.merge().unwrap().write(&AtomicBool::new(true));
    assert!(matches!(stopped, Err(ExternalIdsError::Stopped)));
    drop(index);
    let index = open(dir.path());
    assert_eq!(index.tables(), 4);
    knows(&index, 0..20_000);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 5, "left-overs are removed");
}

#[test]
fn an_index_of_another_incarnation_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    drop(open(dir.path()));
    let other = ExternalIdsOptions { incarnation: Incarnation::from_number(78) };
    let refused = ExternalIds::open(dir.path(), other).unwrap_err();
    assert!(matches!(refused, ExternalIdsError::OtherIncarnation { .. }) && refused.is_damage());
    ExternalIds::reset(dir.path(), other).unwrap();
    ExternalIds::open(dir.path(), other).unwrap();
}

#[test]
fn tables_of_an_index_that_was_reset_do_not_take_the_names_of_those_still_read() {
    let dir = tempfile::tempdir().unwrap();
    let mut index = open(dir.path());
    for number in 0..4 {
        record(&mut index, number * 100..number * 100 + 100);
        write(&mut index);
    }
    let still_read = index.view();
    merge_all(&mut index);
    drop(index);
    ExternalIds::reset(dir.path(), HERE).unwrap();
    let mut index = open(dir.path());
    knows(&index, 0..0);
    record(&mut index, 0..10);
    write(&mut index);
    // The merged tables are removed with their last reader.
    drop(still_read);
    drop(index);
    knows(&open(dir.path()), 0..10);
}

#[test]
fn any_flipped_byte_and_any_cut_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let mut index = open(dir.path());
    record(&mut index, 0..500);
    write(&mut index);
    drop(index);
    for entry in fs::read_dir(dir.path()).unwrap() {
        let path = entry.unwrap().path();
        let sound = fs::read(&path).unwrap();
        let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
        let noticed = |what: &str| {
            let outcome = ExternalIds::open(dir.path(), HERE).and_then(|index| index.verify());
            let damage = outcome.is_err_and(|error| error.is_damage());
            assert!(damage, "{what} in {}", path.display());
        };
        for at in (0..sound.len()).step_by(7) {
            file.write_all_at(&[sound[at] ^ 4], at as u64).unwrap();
            noticed(&format!("byte {at}"));
            file.write_all_at(&sound[at..=at], at as u64).unwrap();
        }
        for len in [0, 1, sound.len() / 2, sound.len() - 1] {
            file.set_len(len as u64).unwrap();
            noticed(&format!("cut at {len}"));
            file.write_all_at(&sound, 0).unwrap();
        }
        fs::rename(&path, path.with_extension("gone")).unwrap();
        noticed("absence");
        fs::rename(path.with_extension("gone"), &path).unwrap();
    }
    knows(&open(dir.path()), 0..500);
}

#[test]
fn positions_of_any_size_fit() {
    let dir = tempfile::tempdir().unwrap();
    let mut index = open(dir.path());
    for round in [0, 1, 255, 256, 1 << 40, u64::MAX] {
        index.first(fingerprint(round), round).unwrap();
        write(&mut index);
    }
    let merged = index.merge().unwrap().write(&GO).unwrap();
    index.adopt(merged);
    for round in [0, 1, 255, 256, 1 << 40, u64::MAX] {
        assert_eq!(index.get(fingerprint(round)).unwrap(), Some(round));
    }
}

#[test]
#[ignore = "a measurement; run it in release"]
fn speed() {
    const COUNT: u64 = 5_000_000;
    const TABLE: u64 = 250_000;
    let dir = tempfile::tempdir().unwrap();
    let mut index = open(dir.path());
    let (mut recorded, mut written, mut merged) = (0.0, 0.0, 0.0);
    for round in 0..COUNT / TABLE {
        let begin = Instant::now();
        for number in round * TABLE..(round + 1) * TABLE {
            index.first(fingerprint(number), number).unwrap();
        }
        recorded += begin.elapsed().as_secs_f64();
        let begin = Instant::now();
        write(&mut index);
        written += begin.elapsed().as_secs_f64();
        let begin = Instant::now();
        while let Some(merge) = index.merge() {
            let merged = merge.write(&GO).unwrap();
            index.adopt(merged);
        }
        merged += begin.elapsed().as_secs_f64();
    }
    let begin = Instant::now();
    for number in 0..COUNT / 10 {
        assert_eq!(index.first(fingerprint(number * 7 % COUNT), COUNT).unwrap(), number * 7 % COUNT);
    }
    let duplicates = begin.elapsed().as_secs_f64();
    let on_disk: u64 = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len()).sum();
    let rate = |count: u64, seconds: f64| count as f64 / seconds;
    println!("{COUNT} new: {:.0}/s; written off-thread {written:.1} s, merged {merged:.1} s", rate(COUNT, recorded));
    println!("duplicates: {:.0}/s; {} tables", rate(COUNT / 10, duplicates), index.tables());
    let each = |bytes: u64| bytes as f64 / COUNT as f64;
    println!("{:.2} bytes each on disk, {:.2} in memory", each(on_disk), each(index.memory_bytes()));
    drop(index);
    let begin = Instant::now();
    let index = open(dir.path());
    println!("opened in {:?}", begin.elapsed());
    let begin = Instant::now();
    index.verify().unwrap();
    println!("verified in {:?}", begin.elapsed());
}

#[test]
fn what_is_written_for_a_checkpoint_that_failed_is_not_written_again() {
    let dir = tempfile::tempdir().unwrap();
    let mut index = open(dir.path());
    for round in 0..20 {
        record(&mut index, round * 100..(round + 1) * 100);
        let job = frozen(&mut index);
        assert_eq!(job.len(), 100, "round {round}");
        // The checkpoint fails, and nobody adopts the table.
        drop(job.write().unwrap());
    }
    assert!(matches!(index.freeze(), Freeze::Nothing));
    knows(&index, 0..2_000);
    assert_eq!((index.tables(), index.entries()), (20, 2_000));
    drop(index);
    assert_eq!(open(dir.path()).entries(), 2_000);
}

/// Copies what a process that ended now would leave.
fn copy_of(dir: &Path) -> tempfile::TempDir {
    let copy = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    for entry in fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), copy.path().join(entry.file_name())).unwrap();
    }
    copy
}

fn merge_all(index: &mut ExternalIds) {
    while let Some(merge) = index.merge() {
        index.adopt(merge.write(&GO).unwrap());
    }
}

/// Every operation of writing and merging tables fails once, one at a time.
#[test]
fn a_write_and_a_merge_survive_each_failure() {
    use crate::files::switch::{Errno, Plan, Switch};
    let once = Plan { errno: Errno::Io, ..Plan::default() };
    let lasting = Plan { failures: u64::MAX, ..once };
    let full = Plan { errno: Errno::NoSpace, ..lasting };
    let place = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let dir = place.path().join("index");
    let (mut index, mut known, mut operations) = (open(&dir), 0, 0);
    let switch = Switch::arm(&dir, Plan::default());
    for way in [once, Plan { errno: Errno::NoSpace, ..once }, lasting, full, Plan { done: true, ..once }] {
        for at in 1.. {
            // Enough tables that a merge is due with the next one.
            for _ in 0..3 {
                record(&mut index, known..known + 1);
                known += 1;
                write(&mut index);
            }
            record(&mut index, known..known + 3);
            known += 3;
            let failed_before = switch.failed().len();
            switch.rearm(Plan { at, ..way });
            let job = frozen(&mut index);
            let outcome = job.write();
            let merge = index.merge();
            let merged = merge.as_ref().map(|merge| merge.write(&GO));
            let failed = switch.failed()[failed_before..].first().cloned();
            switch.clear();
            let what = format!("{way:?} at {at}: {failed:?}, {outcome:?}, {merged:?}");
            assert!([Some(&outcome), merged.as_ref()].into_iter().flatten().all(|outcome| match outcome {
                Ok(_) => true,
                Err(error) => failed.is_some() && matches!(error, ExternalIdsError::Io { .. }),
            }));
            let copy = copy_of(&dir);
            let left = open(copy.path());
            left.verify().unwrap_or_else(|error| panic!("after a crash: {error}, {what}"));
            knows(&left, 0..if outcome.is_ok() { known } else { known - 3 });
            knows(&index, 0..known);
            // The same job is tried again, or another one takes over.
            if at % 2 == 0 {
                index.adopt(job.write().unwrap());
            }
            drop(job);
            if let Freeze::Write(job) = index.freeze() {
                index.adopt(job.write().unwrap());
            }
            assert!(matches!(index.freeze(), Freeze::Nothing), "{what}");
            drop(merge);
            merge_all(&mut index);
            knows(&index, 0..known);
            assert_eq!(index.entries(), known, "nothing is in two tables, {what}");
            if at % 8 == 0 {
                drop(index);
                index = open(&dir);
                assert_eq!(fs::read_dir(&dir).unwrap().count(), index.tables() + 1, "{what}");
            }
            operations = operations.max(at);
            if failed.is_none() {
                break;
            }
        }
    }
    assert!(operations > 20, "{operations}");
    merge_all(&mut index);
    index.verify().unwrap();
    assert_eq!(fs::read_dir(&dir).unwrap().count(), index.tables() + 1, "no file is left over");
}

#[test]
fn a_purge_removes_the_fingerprints_under_a_prefix_and_no_others() {
    let dir = tempfile::tempdir().unwrap();
    let mut index = open(dir.path());
    let of = |project: u64, number: u64| (u128::from(project) << 80) | (fingerprint(number) >> 48);
    let prefix = |project: u64| project.to_be_bytes()[2..].to_vec();
    for round in 0..3 {
        for number in round * 500..(round + 1) * 500 {
            for project in 1..4 {
                index.first(of(project, number), 10 * number + project).unwrap();
            }
        }
        write(&mut index);
    }
    index.first(of(1, 9_000), 7).unwrap();
    let purge = index.purge(&prefix(2));
    index.adopt(purge.write(&GO).unwrap());
    let check = |index: &ExternalIds| {
        for (project, number) in (1..4).flat_map(|project| (0..1_500).map(move |number| (project, number))) {
            let expected = (project != 2).then_some(10 * number + project);
            assert_eq!(index.get(of(project, number)).unwrap(), expected, "{project} {number}");
        }
    };
    check(&index);
    assert_eq!((index.entries(), index.tables()), (3_000, 1));
    // Again, there is nothing to do.
    let before = table_files(dir.path()).unwrap();
    index.adopt(index.purge(&prefix(2)).write(&GO).unwrap());
    assert_eq!(table_files(dir.path()).unwrap(), before);
    drop(index);
    let mut index = open(dir.path());
    check(&index);
    for project in [1, 3] {
        index.adopt(index.purge(&prefix(project)).write(&GO).unwrap());
    }
    assert_eq!((index.entries(), index.tables(), index.get(of(1, 1)).unwrap()), (0, 0, None));
    drop(index);
    assert_eq!(open(dir.path()).entries(), 0);
}
