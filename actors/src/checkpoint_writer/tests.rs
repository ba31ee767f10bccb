use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant as Stopwatch};

use headcount_storage::external_ids::{ExternalIds, ExternalIdsOptions, Freeze, Frozen};
use headcount_storage::format::Incarnation;
use headcount_storage::keyspace::PartitionId;

use std::sync::mpsc::channel;
use std::thread::JoinHandle;

use super::stored::{partition_meta_entry, saved_serial};
use super::*;
use crate::faulty_store::FaultyStore;

/// A timeout that exceeds the duration of any test on any machine.
const LONG: Duration = Duration::from_secs(60);

struct Rig {
    store: FaultyStore,
    writer: CheckpointWriter,
    thread: Option<JoinHandle<()>>,
    mailbox: Mailbox,
    reports: Receiver<Report>,
}

impl Rig {
    fn new() -> Self {
        let store = FaultyStore::default();
        let (writer, thread) = CheckpointWriter::spawn(Arc::new(store.clone())).unwrap();
        let (mailbox, reports) = Mailbox::new();
        Self { store, writer, thread: Some(thread), mailbox, reports }
    }

    /// Submits a checkpoint of `position`.
    fn write(&self, partition: u16, position: u64, new_ids: Option<Frozen>) -> Arc<Claim> {
        let mut entries = Entries::default();
        partition_meta_entry(&mut entries, partition, position).unwrap();
        let claim = Arc::new(Claim::default());
        let reply = Reply::new(partition, position, self.mailbox.clone());
        self.writer.write(Job::new(reply, Arc::clone(&claim), PartitionId(partition), position, entries, new_ids));
        claim
    }

    fn next(&self) -> Report {
        self.reports.recv_timeout(LONG).unwrap()
    }

    /// Returns the next report of an attempt that did not fail; a slow machine may report more
    /// failures.
    fn end(&self) -> Report {
        std::iter::repeat_with(|| self.next()).find(|report| !is_postponed(report)).unwrap()
    }

    fn saved(&self, partition: u16) -> u64 {
        saved_serial(&self.store, partition).unwrap()
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.writer.stop_retrying();
        let (orders, merges) = (channel().0, channel().0);
        (self.writer.commands, self.writer.merges) = (orders, merges);
        self.thread.take().unwrap().join().unwrap();
    }
}

fn is_saved(report: &Report) -> bool {
    matches!(report.outcome, JobOutcome::Saved { .. })
}

fn is_postponed(report: &Report) -> bool {
    matches!(report.outcome, JobOutcome::Postponed { .. })
}

#[test]
fn a_partition_that_fails_holds_up_no_other() {
    let rig = Rig::new();
    rig.store.change(1, |faults| faults.no_begin = true);
    rig.write(1, 10, None);
    let first = rig.next();
    assert!(first.partition == 1 && is_postponed(&first), "{first:?}");
    for position in 1..=20 {
        rig.write(2, position, None);
        // The failing checkpoint may be retried meanwhile.
        let report = std::iter::repeat_with(|| rig.next()).find(|report| report.partition == 2).unwrap();
        assert!(is_saved(&report), "{report:?}");
    }
    assert_eq!((rig.saved(1), rig.saved(2)), (0, 20));
    rig.store.change(1, |faults| faults.no_begin = false);
    rig.writer.retry_now(1);
    let last = rig.end();
    assert!(is_saved(&last) && last.job == 10, "{last:?}");
    assert_eq!(rig.saved(1), 10);
}

/// A full disk, for example.
#[test]
fn once_one_partition_can_be_written_again_the_others_are_tried_at_once() {
    const PARTITIONS: u16 = 12;
    let rig = Rig::new();
    for partition in 0..PARTITIONS {
        rig.store.change(partition, |faults| faults.no_begin = true);
        rig.write(partition, 5, None);
        // By now, the pause has its maximum.
        let failed = || std::iter::repeat_with(|| rig.next()).find(|report| report.partition == partition);
        for _ in 0..3 {
            assert!(failed().is_some_and(|report| is_postponed(&report)));
            rig.writer.retry_now(partition);
        }
        assert!(failed().is_some_and(|report| is_postponed(&report)));
    }
    (0..PARTITIONS).for_each(|partition| rig.store.change(partition, |faults| faults.no_begin = false));
    rig.writer.retry_now(0);
    let began = Stopwatch::now();
    (0..PARTITIONS).for_each(|_| assert!(is_saved(&rig.end())));
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    assert!((0..PARTITIONS).all(|partition| rig.saved(partition) == 5));
}

#[test]
fn a_commit_that_failed_and_counts_is_not_written_again() {
    let rig = Rig::new();
    rig.store.change(3, |faults| (faults.failing_commits, faults.failed_counts) = (1, true));
    rig.write(3, 7, None);
    let report = rig.next();
    assert!(is_saved(&report), "{report:?}");
    assert_eq!((rig.saved(3), rig.store.change(3, |faults| faults.commits)), (7, 1));
    // The partition accepts further checkpoints.
    rig.write(3, 8, None);
    assert!(is_saved(&rig.next()));
    assert_eq!(rig.saved(3), 8);
}

#[test]
fn a_commit_in_doubt_is_decided_before_it_is_tried_again() {
    let rig = Rig::new();
    rig.store.change(3, |faults| {
        (faults.failing_commits, faults.failed_counts, faults.no_recovery) = (1, true, true);
    });
    rig.write(3, 7, None);
    assert!(is_postponed(&rig.next()));
    rig.writer.retry_now(3);
    assert!(is_postponed(&rig.next()), "without recovery nobody knows");
    assert_eq!(rig.store.change(3, |faults| (faults.begun, faults.commits)), (1, 1), "nothing is written on top");
    rig.store.change(3, |faults| faults.no_recovery = false);
    rig.writer.retry_now(3);
    assert!(is_saved(&rig.end()));
    assert_eq!((rig.saved(3), rig.store.change(3, |faults| faults.commits)), (7, 1));
}

#[test]
fn a_commit_that_failed_and_does_not_count_is_written_again() {
    let rig = Rig::new();
    rig.store.change(3, |faults| faults.failing_commits = 3);
    rig.write(3, 7, None);
    for _ in 0..3 {
        assert!(is_postponed(&rig.next()));
        assert_eq!(rig.saved(3), 0);
        rig.writer.retry_now(3);
    }
    assert!(is_saved(&rig.next()));
    assert_eq!((rig.saved(3), rig.store.change(3, |faults| faults.commits)), (7, 4));
}

#[test]
fn a_panic_in_the_store_is_an_error_like_others() {
    let rig = Rig::new();
    rig.store.change(3, |faults| faults.panics = true);
    rig.write(3, 7, None);
    assert!(is_postponed(&rig.next()));
    rig.writer.retry_now(3);
    assert!(is_saved(&rig.next()));
}

fn frozen(index: &mut ExternalIds) -> Frozen {
    match index.freeze() {
        Freeze::Write(frozen) => frozen,
        other => panic!("{other:?}"),
    }
}

fn index(dir: &std::path::Path) -> ExternalIds {
    ExternalIds::open(dir, ExternalIdsOptions { incarnation: Incarnation::from_number(1) }).unwrap()
}

#[test]
fn external_ids_are_written_once_however_often_the_commit_is_tried() {
    let dir = tempfile::tempdir().unwrap();
    let mut ids = index(dir.path());
    (1..=100).for_each(|position| assert_eq!(ids.first(u128::from(position), position).unwrap(), position));
    let rig = Rig::new();
    rig.store.change(3, |faults| faults.failing_commits = 4);
    rig.write(3, 100, Some(frozen(&mut ids)));
    for _ in 0..4 {
        assert!(is_postponed(&rig.next()));
        rig.writer.retry_now(3);
    }
    let JobOutcome::Saved { ids: Some(run) } = rig.end().outcome else { panic!("not saved") };
    ids.adopt(run);
    assert_eq!((ids.tables(), ids.entries(), ids.unwritten()), (1, 100, 0));
    drop(ids);
    assert_eq!(index(dir.path()).tables(), 1, "nor on disk");
}

#[test]
fn what_is_given_up_hands_back_the_ids_that_were_written() {
    let dir = tempfile::tempdir().unwrap();
    let mut ids = index(dir.path());
    ids.first(1, 1).unwrap();
    let rig = Rig::new();
    rig.store.change(3, |faults| faults.no_begin = true);
    rig.write(3, 1, Some(frozen(&mut ids)));
    assert!(is_postponed(&rig.next()));
    rig.writer.stop_retrying();
    let JobOutcome::Dropped { ids: Some(run) } = rig.end().outcome else { panic!("not dropped") };
    ids.adopt(run);
    assert_eq!((ids.tables(), ids.unwritten()), (1, 0));
}

#[test]
fn a_checkpoint_does_not_wait_for_merges() {
    let dir = tempfile::tempdir().unwrap();
    let mut ids = index(dir.path());
    for position in 1..=4 {
        ids.first(u128::from(position), position).unwrap();
        let run = frozen(&mut ids).write().unwrap();
        ids.adopt(run);
    }
    let rig = Rig::new();
    let (merges, merged) = Mailbox::new();
    // The merging thread is blocked until the end.
    let (go_on, wait) = channel::<()>();
    let wait = Mutex::new(wait);
    merges.notify_with(move || {
        let _ = wait.lock().unwrap().recv();
    });
    let (reply, claim) = (Reply::new(5, 1, merges), Arc::new(Claim::default()));
    rig.writer.merge(MergeJob { reply, claim, merge: ids.merge().unwrap() });
    let JobOutcome::Merged(Some(run)) = merged.recv_timeout(LONG).unwrap().outcome else { panic!("not merged") };
    ids.adopt(run);
    assert_eq!((ids.tables(), ids.entries()), (1, 4));
    for position in 1..=3 {
        rig.write(4, position, None);
        assert!(is_saved(&rig.next()));
    }
    drop(go_on);
}

#[test]
fn taking_work_back_waits_for_its_end_and_for_no_other() {
    let rig = Rig::new();
    rig.store.change(1, |faults| faults.no_begin = true);
    let postponed = rig.write(1, 10, None);
    assert!(is_postponed(&rig.next()));
    postponed.cancel_and_wait();
    rig.store.change(1, |faults| faults.no_begin = false);
    rig.writer.retry_now(1);
    assert!(matches!(rig.end().outcome, JobOutcome::Dropped { ids: None }));
    assert_eq!(rig.saved(1), 0);

    let claim = Claim::default();
    let running = claim.begin().unwrap();
    std::thread::scope(|scope| {
        let taking = scope.spawn(|| claim.cancel_and_wait());
        while !claim.stopped().load(std::sync::atomic::Ordering::Acquire) {
            std::thread::yield_now();
        }
        assert!(!taking.is_finished());
        drop(running);
        taking.join().unwrap();
    });
    assert!(claim.begin().is_none());
}

#[test]
fn a_report_is_made_even_where_the_writer_is_gone() {
    let (mailbox, reports) = Mailbox::new();
    drop(Reply::new(1, 2, mailbox));
    let report = reports.try_recv().unwrap();
    assert!(report.partition == 1 && report.job == 2 && matches!(report.outcome, JobOutcome::Dropped { ids: None }));
}
