//! What only the runs promise: what every store promises is tested in `tests/`.

use std::fs;
use std::os::unix::fs::FileExt;

use super::*;

const PARTITION: PartitionId = PartitionId(7);

fn key(number: u32) -> Vec<u8> {
    [PARTITION.prefix().as_slice(), &[3], &number.to_be_bytes()].concat()
}

fn commit(runs: &Tables, changes: impl IntoIterator<Item = (u32, Option<Vec<u8>>)>) -> Vec<u8> {
    let mut changed = runs.begin(PARTITION);
    for (number, value) in changes {
        changed.set(&key(number), value.as_deref()).unwrap();
    }
    runs.make_room(PARTITION, &changed).unwrap();
    let mut prepared = changed.prepare().unwrap().unwrap();
    let manifest = std::mem::take(&mut prepared.manifest);
    runs.publish(prepared);
    manifest
}

fn value(number: u32, round: u32) -> Vec<u8> {
    vec![round as u8; (number.wrapping_mul(2_654_435_761) >> 20) as usize % 500]
}

fn contents(runs: &Tables) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut found = BTreeMap::new();
    let visit = &mut |key: &[u8], value: &[u8]| {
        assert!(found.last_key_value().is_none_or(|(last, _): (&Vec<u8>, _)| last.as_slice() < key));
        found.insert(key.to_vec(), value.to_vec());
        ControlFlow::Continue(())
    };
    assert!(runs.scan(PARTITION, &PARTITION.prefix(), visit).unwrap().is_continue());
    found
}

fn wait_for_merge(runs: &Tables) {
    let slot = runs.slot(PARTITION);
    while *slot.merging() != MergeState::Idle {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

#[test]
fn many_checkpoints_equal_a_map_whatever_is_merged_when() {
    let dir = tempfile::tempdir().unwrap();
    let mut runs = Tables::open(dir.path(), Vec::new()).unwrap();
    let mut expected = BTreeMap::new();
    let mut manifest = Vec::new();
    let mut most = 0;
    for round in 0..60_u32 {
        let changes: Vec<_> = (0..400_u32)
            .map(|at| at.wrapping_mul(7919).wrapping_add(round * 131) % 5_000)
            .map(|number| (number, (number % 7 != round % 7).then(|| value(number, round))))
            .collect();
        for (number, value) in &changes {
            match value {
                Some(value) => expected.insert(key(*number), value.clone()),
                None => expected.remove(&key(*number)),
            };
        }
        manifest = commit(&runs, changes);
        most = most.max(runs.slot(PARTITION).runs().len());
        if round % 3 == 0 {
            wait_for_merge(&runs);
        }
        if round % 20 == 19 {
            drop(runs);
            runs = Tables::open(dir.path(), vec![(PARTITION, manifest.clone())]).unwrap();
        }
        assert_eq!(contents(&runs), expected);
        for number in (round..5_000).step_by(61) {
            assert_eq!(runs.get(PARTITION, &key(number)).unwrap().as_ref(), expected.get(&key(number)));
        }
    }
    assert!(most < 12, "{most} runs at once");
    runs.verify().unwrap();
    drop(runs);
    let runs = Tables::open(dir.path(), vec![(PARTITION, manifest)]).unwrap();
    let named = runs.slot(PARTITION).runs().len();
    assert_eq!(files(dir.path()).unwrap().len(), named, "what no manifest names is gone");
}

/// Bytes that can't be packed.
fn noise(seed: u32, len: usize) -> Vec<u8> {
    let mut state = u64::from(seed) << 1 | 1;
    let mut byte = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..len).map(|_| byte()).collect()
}

#[test]
fn what_newer_runs_took_away_stays_away_while_the_oldest_is_too_large_to_merge() {
    let dir = tempfile::tempdir().unwrap();
    let mut runs = Tables::open(dir.path(), Vec::new()).unwrap();
    let mut expected = BTreeMap::new();
    let (mut merged_above, mut merged_all) = (0, 0);
    for round in 0..40_u32 {
        let (first, count) = if round == 0 { (0, 1_000) } else { (round * 337 % 900, 100) };
        let changes: Vec<_> = (first..first + count)
            .map(|at| (at, (round == 0 || at % 3 != round % 3).then(|| noise(at ^ round, 6_000))))
            .collect();
        for (number, value) in &changes {
            match value {
                Some(value) => expected.insert(key(*number), value.clone()),
                None => expected.remove(&key(*number)),
            };
        }
        let before: Vec<u64> = runs.slot(PARTITION).runs().iter().map(|run| run.footer.name.id).collect();
        let manifest = commit(&runs, changes);
        let after: Vec<u64> = runs.slot(PARTITION).runs().iter().map(|run| run.footer.name.id).collect();
        let merged = after.len() <= before.len() && round > 1;
        merged_above += usize::from(merged && after[0] == before[0]);
        merged_all += usize::from(merged && after[0] != before[0]);
        if round % 2 == 0 {
            wait_for_merge(&runs);
        }
        if round % 9 == 8 {
            drop(runs);
            runs = Tables::open(dir.path(), vec![(PARTITION, manifest)]).unwrap();
        }
        assert!(contents(&runs) == expected, "round {round}");
        assert!((0..1_000).all(|number| runs.get(PARTITION, &key(number)).unwrap().as_ref() == expected.get(&key(number))));
    }
    runs.verify().unwrap();
    assert!(merged_above > 3 && merged_all > 1, "{merged_above} merges above the oldest run, {merged_all} of all");
}

#[test]
fn deleted_keys_leave_nothing_in_the_oldest_run() {
    let dir = tempfile::tempdir().unwrap();
    let runs = Tables::open(dir.path(), Vec::new()).unwrap();
    commit(&runs, (0..1000).map(|number| (number, Some(vec![1; 100]))));
    for part in 0..3 {
        commit(&runs, (0..1000).filter(|number| number % 3 == part).map(|number| (number, None)));
    }
    wait_for_merge(&runs);
    commit(&runs, [(5000, Some(vec![2]))]);
    let slot = runs.slot(PARTITION);
    assert_eq!(slot.runs().iter().map(|run| run.footer.count).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(contents(&runs), BTreeMap::from([(key(5000), vec![2])]));
}

#[test]
fn what_was_merged_from_runs_that_do_not_count_any_more_is_not_adopted() {
    let dir = tempfile::tempdir().unwrap();
    let runs = Tables::open(dir.path(), Vec::new()).unwrap();
    let slot = runs.slot(PARTITION);
    let take = || {
        wait_for_merge(&runs);
        slot.merged().take().unwrap()
    };
    commit(&runs, (0..10).map(|number| (number, Some(vec![1]))));
    (0..3).for_each(|_| drop(commit(&runs, [(10, Some(vec![1]))])));
    let first_four = take();
    commit(&runs, (0..10).map(|number| (number, None)));
    let all_five = take();
    *slot.merged() = Some(first_four);
    commit(&runs, [(11, Some(vec![1]))]);
    assert_eq!(slot.runs().len(), 3);
    *slot.merged() = Some(all_five);
    commit(&runs, [(12, Some(vec![1]))]);
    let expected: BTreeMap<_, _> = (10..13).map(|number| (key(number), vec![1])).collect();
    assert_eq!(contents(&runs), expected, "keys that were removed stay so");
    wait_for_merge(&runs);
    commit(&runs, [(12, Some(vec![1]))]);
    assert_eq!(contents(&runs), expected);
    assert!(slot.runs().len() < 4, "and runs are merged again");
}

#[test]
fn a_checkpoint_that_is_dropped_leaves_no_file() {
    let dir = tempfile::tempdir().unwrap();
    let runs = Tables::open(dir.path(), Vec::new()).unwrap();
    let mut changed = runs.begin(PARTITION);
    for number in (0..4_000).rev() {
        changed.set(&key(number), Some(&[7; 1000])).unwrap();
    }
    assert!(files(dir.path()).unwrap().len() > 2, "keys that come from behind become runs of their own");
    drop(changed);
    let mut changed = runs.begin(PARTITION);
    changed.set(&key(1), Some(&[1])).unwrap();
    drop(changed.prepare().unwrap());
    assert!(files(dir.path()).unwrap().is_empty());
}

#[test]
fn changes_in_order_become_one_run() {
    let dir = tempfile::tempdir().unwrap();
    let runs = Tables::open(dir.path(), Vec::new()).unwrap();
    commit(&runs, (0..4_000).map(|number| (number, Some(vec![7; 1000]))));
    assert_eq!(files(dir.path()).unwrap().len(), 1);
    assert!(runs.memory_bytes() < 64 * 1024, "{}", runs.memory_bytes());
}

#[test]
fn every_flipped_byte_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let runs = Tables::open(dir.path(), Vec::new()).unwrap();
    let manifest = commit(&runs, (0..200).map(|number| (number, Some(value(number, 1)))));
    drop(runs);
    let path = files(dir.path()).unwrap().into_keys().next().unwrap();
    let len = fs::metadata(&path).unwrap().len();
    let file = fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
    let mut byte = [0];
    for at in (0..len).step_by(11).chain(len - 62..len) {
        file.read_exact_at(&mut byte, at).unwrap();
        file.write_all_at(&[byte[0] ^ 0x10], at).unwrap();
        let opened = Tables::open(dir.path(), vec![(PARTITION, manifest.clone())]);
        let found = opened.and_then(|runs| runs.verify());
        assert!(found.is_err_and(|error| error.is_damage()), "byte {at} of {len}");
        file.write_all_at(&byte, at).unwrap();
    }
    for cut in [0, 61, len / 2, len - 1] {
        fs::copy(&path, dir.path().join("copy")).unwrap();
        file.set_len(cut).unwrap();
        assert!(Tables::open(dir.path(), vec![(PARTITION, manifest.clone())]).is_err_and(|error| error.is_damage()), "{cut}");
        fs::copy(dir.path().join("copy"), &path).unwrap();
    }
    fs::remove_file(&path).unwrap();
    assert!(Tables::open(dir.path(), vec![(PARTITION, manifest)]).is_err_and(|error| error.is_damage()));
}

#[test]
fn runs_and_open_files_stay_bounded_where_nobody_merges_in_the_background() {
    let dir = tempfile::tempdir().unwrap();
    let open_files = OpenFiles::new(4);
    let mut runs = Tables::open_with(dir.path(), Vec::new(), Arc::clone(&open_files)).unwrap();
    runs.stop_merging();
    for round in 0..200_u32 {
        commit(&runs, (0..20).map(|at| (round * 7 + at, Some(value(at, round)))));
        assert!(runs.slot(PARTITION).runs().len() <= MOST_RUNS, "{} runs in round {round}", runs.slot(PARTITION).runs().len());
        assert!(open_files.count() <= 4);
    }
    let expected: BTreeMap<_, _> =
        (0..200_u32).flat_map(|round| (0..20).map(move |at| (key(round * 7 + at), value(at, round)))).collect();
    assert_eq!(contents(&runs), expected);
    assert!(expected.iter().all(|(key, value)| runs.get(PARTITION, key).unwrap().as_ref() == Some(value)));
    assert_eq!(
        files(dir.path()).unwrap().len(),
        runs.slot(PARTITION).runs().len() + usize::from(runs.slot(PARTITION).merged().is_some())
    );
}

#[test]
fn a_scan_reads_runs_to_the_end_that_were_replaced_meanwhile() {
    let dir = tempfile::tempdir().unwrap();
    let mut runs = Tables::open_with(dir.path(), Vec::new(), OpenFiles::new(1)).unwrap();
    runs.stop_merging();
    let slot = runs.slot(PARTITION);
    let name_of = |number: u32| (number, Some(noise(number, 3_000)));
    for round in 0..8 {
        commit(&runs, (0..50).map(|at| name_of(round * 50 + at)));
    }
    let (mut seen, mut files_before) = (0, 0);
    let visit = &mut |_: &[u8], _: &[u8]| {
        seen += 1;
        if seen == 10 {
            slot.merge_now(&runs.dir).unwrap();
            commit(&runs, [name_of(1_000)]);
            files_before = files(dir.path()).unwrap().len();
        }
        ControlFlow::Continue(())
    };
    assert!(runs.scan(PARTITION, &PARTITION.prefix(), visit).unwrap().is_continue());
    assert_eq!((seen, slot.runs().len()), (400, 2));
    assert!(files_before > 2, "what is still read is still there");
    assert_eq!(files(dir.path()).unwrap().len(), 2, "and goes with its last reader");
}
