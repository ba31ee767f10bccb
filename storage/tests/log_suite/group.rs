//! Group commit.

use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Barrier};

use headcount_storage::log::{Commit, Committed, GroupCommit, GroupOptions, LogError, LogReader, MAX_BLOCK_BYTES, Outcome};

use crate::support::*;

type Batches<T> = Receiver<Vec<Outcome<T>>>;

fn spawn<T: Send + 'static>(dir: &std::path::Path, options: GroupOptions) -> (GroupCommit<T>, LogReader, Batches<T>) {
    let (log, _) = open(dir);
    let reader = log.reader();
    let (sender, receiver) = channel();
    let group = GroupCommit::spawn(log, options, move |outcomes| sender.send(outcomes).unwrap()).unwrap();
    (group, reader, receiver)
}

#[test]
fn what_many_threads_submit_is_committed_once_and_in_order() {
    let dir = temporary();
    let (group, reader, receiver) = spawn::<(u16, u32)>(dir.path(), GroupOptions::default());
    let group = Arc::new(group);
    std::thread::scope(|scope| {
        for thread in 0..4u16 {
            let group = Arc::clone(&group);
            scope.spawn(move || {
                for n in 0..200u32 {
                    let payload = format!("{thread}:{n}").into_bytes();
                    group.submit(thread, n % 3 + 1, payload, (thread, n)).unwrap();
                }
            });
        }
    });
    group.close();
    assert_eq!(group.submit(0, 1, Vec::new(), (0, 0)), Err((0, 0)));
    let batches: Vec<_> = receiver.try_iter().collect();
    let (mut next, mut per_thread) = (1, [0u32; 4]);
    for outcome in batches.iter().flatten() {
        let Outcome::Committed(Committed { partition, first, count, ticket }) = outcome else { panic!("refused") };
        assert_eq!((*first, *partition, *count), (next, ticket.0, ticket.1 % 3 + 1));
        assert_eq!(ticket.1, per_thread[usize::from(ticket.0)]);
        per_thread[usize::from(ticket.0)] += 1;
        next += u64::from(*count);
    }
    assert_eq!(per_thread, [200; 4]);
    let kept = read_all(&reader).unwrap();
    assert_eq!(kept.len(), 800);
    assert_eq!(reader.verify_all().unwrap().blocks, batches.len() as u64);
    for (record, outcome) in kept.iter().zip(batches.iter().flatten()) {
        let Outcome::Committed(committed) = outcome else { panic!("refused") };
        assert_eq!(record.1, committed.first);
        assert_eq!(record.3, format!("{}:{}", committed.ticket.0, committed.ticket.1).into_bytes());
    }
}

/// A group whose thread is held in the sink, so that what is submitted meanwhile gathers.
fn held(dir: &std::path::Path, options: GroupOptions) -> (GroupCommit<u32>, Arc<Barrier>, Batches<u32>) {
    let (log, _) = open(dir);
    let (sender, receiver) = channel();
    let barrier = Arc::new(Barrier::new(2));
    let mut gate = Some(Arc::clone(&barrier));
    let group = GroupCommit::spawn(log, options, move |outcomes| {
        sender.send(outcomes).unwrap();
        if let Some(barrier) = gate.take() {
            barrier.wait();
        }
    })
    .unwrap();
    group.submit(0, 1, vec![0; 8], 0).unwrap();
    assert_eq!(receiver.recv().unwrap().len(), 1);
    (group, barrier, receiver)
}

#[test]
fn what_gathers_during_a_sync_is_one_block_up_to_the_limits() {
    let dir = temporary();
    let options = GroupOptions { max_bytes: 1000, max_events: 20, ..GroupOptions::default() };
    let (group, barrier, receiver) = held(dir.path(), options);
    for ticket in 1..=25 {
        group.submit(1, 1, vec![0; 10], ticket).unwrap();
    }
    for ticket in 26..=28 {
        group.submit(1, 1, vec![0; 600], ticket).unwrap();
    }
    group.submit(1, 1, vec![0; 5000], 29).unwrap();
    barrier.wait();
    drop(group);
    let sizes: Vec<usize> = receiver.iter().map(|batch| batch.len()).collect();
    assert_eq!(sizes, [20, 6, 1, 1, 1]);
}

#[test]
fn one_that_cannot_be_appended_does_not_take_the_others_with_it() {
    let dir = temporary();
    let options = GroupOptions { max_bytes: usize::MAX, ..GroupOptions::default() };
    let (group, barrier, receiver) = held(dir.path(), options);
    group.submit(1, 1, vec![1], 1).unwrap();
    group.submit(1, 0, vec![2], 2).unwrap();
    group.submit(1, 1, vec![0; MAX_BLOCK_BYTES as usize], 3).unwrap();
    group.submit(1, 1, vec![4], 4).unwrap();
    barrier.wait();
    drop(group);
    let outcomes: Vec<_> = receiver.iter().flatten().collect();
    let seen: Vec<(u32, Option<u64>)> = outcomes
        .iter()
        .map(|outcome| match outcome {
            Outcome::Committed(committed) => (committed.ticket, Some(committed.first)),
            Outcome::Refused(refused) => {
                assert!(matches!(*refused.reason, LogError::Empty | LogError::TooLarge { .. }));
                (refused.ticket, None)
            }
            Outcome::Undecided(_) => panic!("undecided"),
        })
        .collect();
    assert_eq!(seen, [(1, Some(2)), (2, None), (3, None), (4, Some(3))]);
}

#[cfg(feature = "fault-injection")]
#[test]
fn faults_still_hand_out_the_right_positions() {
    use headcount_storage::log::Fault;
    for fault in [Fault::AckBeforeSync, Fault::AckBeforeWrite] {
        let dir = temporary();
        let options = GroupOptions { fault, ..GroupOptions::default() };
        let (group, reader, receiver) = spawn::<u32>(dir.path(), options);
        group.submit(1, 2, b"a".to_vec(), 1).unwrap();
        group.submit(1, 2, b"b".to_vec(), 2).unwrap();
        group.close();
        let firsts: Vec<u64> = receiver
            .try_iter()
            .flatten()
            .map(|outcome| match outcome {
                Outcome::Committed(committed) => committed.first,
                Outcome::Refused(_) | Outcome::Undecided(_) => panic!("not committed"),
            })
            .collect();
        assert_eq!(firsts, [1, 3]);
        assert_eq!(read_all(&reader).unwrap().len(), 2);
    }
}

#[test]
fn a_segment_that_is_ended_can_be_removed_once_it_is_not_needed() {
    let dir = temporary();
    let (group, reader, receiver) = spawn::<u32>(dir.path(), GroupOptions::default());
    for number in 0..5 {
        group.submit(1, 1, vec![7; 100], number).unwrap();
        let _ = receiver.recv().unwrap();
    }
    group.end_segment(0);
    group.end_segment(5);
    // Nothing is in the new one.
    group.end_segment(5);
    group.submit(1, 1, vec![8; 100], 5).unwrap();
    let _ = receiver.recv().unwrap();
    assert_eq!((reader.first_position(), reader.last_position()), (1, 6));
    assert_eq!(reader.verify_all().unwrap().segments, 2);
    group.close();
    let (log, _) = open(dir.path());
    let removed = log.trimmer().remove_before(6).unwrap();
    assert_eq!((removed.segments, removed.first_position), (1, 6));
    drop(log);
    let (mut log, _) = open(dir.path());
    log.end_segment(6).unwrap();
    log.remove_before(7).unwrap();
    drop(log);
    let (log, _) = open(dir.path());
    assert_eq!((log.reader().first_position(), log.last_position()), (7, 6), "an empty log goes on");
}
