//! Committing to several partitions, and reading them as one log.

use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use headcount_cluster::StreamName;
use headcount_cluster::log::{LogEnd, LogWriter, StreamCommit, StreamLog};
use headcount_storage::log::{Commit as _, LogError, Outcome, Position, ReadLog as _, RemoteFailure};
use tokio::runtime::{Builder, Runtime};

use crate::brokers::Brokers;

const OUTCOME: Duration = Duration::from_secs(30);

/// A runtime, a broker, and the streams of some partitions.
struct Partitions {
    brokers: Brokers,
    names: Vec<StreamName>,
    runtime: Runtime,
}

impl Partitions {
    fn start(count: u16) -> Option<Self> {
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let brokers = runtime.block_on(Brokers::start(1))?;
        let names = (0..count).map(|partition| runtime.block_on(brokers.create(&format!("EV_{partition:03}"), -1))).collect();
        Some(Self { brokers, names, runtime })
    }

    fn owner(&self, partition: u16, epoch: u64) -> LogWriter {
        let name = &self.names[usize::from(partition)];
        self.runtime.block_on(async {
            LogWriter::take_over(&self.brokers.connect().await, name, epoch, LogEnd::default(), &mut |_, _| {}).await.unwrap()
        })
    }

    /// Starts committing to all partitions, and reading them.
    fn commit(&self) -> (StreamCommit<u32>, StreamLog, Receiver<Outcome<u32>>) {
        let (outcomes, received) = channel();
        let sink = move |some: Vec<Outcome<u32>>| some.into_iter().for_each(|outcome| outcomes.send(outcome).unwrap());
        let commit = StreamCommit::start(self.runtime.handle(), sink);
        let log = StreamLog::new(self.runtime.handle().clone());
        for (partition, _) in (0..).zip(&self.names) {
            let writer = self.owner(partition, 1);
            log.adopt(partition, writer.reader(), 0);
            commit.adopt(partition, writer);
        }
        (commit, log, received)
    }
}

fn payload(ticket: u32) -> Vec<u8> {
    ticket.to_le_bytes().repeat(1 + ticket as usize % 40)
}

/// A record: its partition, first position, number of events and payload.
type Found = (u16, Position, u32, Vec<u8>);

fn read(log: &StreamLog, wanted: impl Fn(u16) -> Option<Position>, most: usize) -> Vec<Found> {
    let mut found = Vec::new();
    let mut visit = |record: headcount_storage::log::Record<'_>| {
        found.push((record.partition, record.first, record.count, record.payload.to_vec()));
        if found.len() == most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    log.read(&wanted, &mut visit).unwrap();
    found
}

#[test]
fn a_partition_that_is_released_has_its_outcomes_and_takes_nothing_more() {
    let Some(partitions) = Partitions::start(2) else { return };
    let (commit, log, outcomes) = partitions.commit();
    for ticket in 0..200 {
        commit.submit(0, 1, payload(ticket), ticket).unwrap();
    }
    partitions.runtime.block_on(commit.release(0, OUTCOME));
    // All were reported before it returned.
    let recorded: Vec<_> = outcomes.try_iter().collect();
    assert_eq!(recorded.len(), 200);
    assert!(recorded.iter().all(|outcome| matches!(outcome, Outcome::Committed(_))), "{recorded:?}");
    assert_eq!(commit.submit(0, 1, payload(1), 1).unwrap_err(), 1);
    commit.submit(1, 1, payload(2), 2).unwrap();
    assert!(matches!(outcomes.recv_timeout(OUTCOME).unwrap(), Outcome::Committed(_)));
    // It is taken over again, even by the same machine.
    log.release(0);
    // Reading a released partition is an error, not a log without events.
    let unread = log.read(&|partition| (partition == 0).then_some(0), &mut |_| ControlFlow::Continue(()));
    assert!(matches!(unread, Err(LogError::Remote { kind: RemoteFailure::Unavailable, .. })), "{unread:?}");
    let writer = partitions.owner(0, 2);
    log.adopt(0, writer.reader(), 0);
    commit.adopt(0, writer);
    commit.submit(0, 1, payload(3), 3).unwrap();
    assert!(matches!(outcomes.recv_timeout(OUTCOME).unwrap(), Outcome::Committed(_)));
    assert_eq!(read(&log, |partition| (partition == 0).then_some(0), usize::MAX).len(), 201);
    // Without brokers, waiting submissions are given up in time.
    drop(partitions.brokers);
    commit.submit(0, 1, payload(4), 4).unwrap();
    partitions.runtime.block_on(commit.release(0, Duration::from_millis(300)));
    assert!(matches!(outcomes.try_recv().unwrap(), Outcome::Undecided(4)));
    commit.close();
}

#[test]
fn what_was_committed_is_read() {
    let Some(partitions) = Partitions::start(3) else { return };
    let (commit, log, outcomes) = partitions.commit();
    assert_eq!((log.first_position(0), log.last_position(0)), (1, 16383));
    assert_eq!((log.first_position(63), log.last_position(63)), (1, 0));
    for ticket in 0..900 {
        let partition = (ticket % 3) as u16;
        commit.submit(partition, 1 + ticket % 7, payload(ticket), ticket).unwrap();
    }
    // This machine does not own it.
    assert_eq!(commit.submit(3, 1, payload(1), 7), Err(7));
    commit.close();
    assert_eq!(commit.submit(0, 1, payload(1), 8), Err(8));
    // Every submission has an outcome, in order.
    let mut committed: Vec<Found> = Vec::new();
    let mut last_tickets = [None; 3];
    for outcome in outcomes.try_iter() {
        let Outcome::Committed(of) = outcome else { panic!("{outcome:?}") };
        assert!(last_tickets[usize::from(of.partition)] < Some(of.ticket));
        last_tickets[usize::from(of.partition)] = Some(of.ticket);
        assert_eq!(of.count, 1 + of.ticket % 7);
        committed.push((of.partition, of.first, of.count, payload(of.ticket)));
    }
    assert_eq!(committed.len(), 900);
    committed.sort();
    for pair in committed.windows(2).filter(|pair| pair[0].0 == pair[1].0) {
        assert!(pair[0].1 + u64::from(pair[0].2) <= pair[1].1, "positions overlap");
    }
    // Several submissions were gathered in one message.
    assert!(committed.iter().any(|(_, first, ..)| first % 8192 > 7));
    assert_eq!(read(&log, |partition| (partition < 3).then_some(0), usize::MAX), committed);
    // After a position within a record, at its end, and of some partitions.
    for (partition, first, count, _) in committed.iter().step_by(97) {
        for after in [first - 1, *first, first + u64::from(*count) - 1] {
            let wanted = |of| (of == *partition).then_some(after);
            let rest = committed.iter().filter(|(of, first, count, _)| of == partition && first + u64::from(*count) - 1 > after);
            assert_eq!(read(&log, wanted, usize::MAX), rest.cloned().collect::<Vec<_>>(), "after {after}");
        }
    }
    assert_eq!(read(&log, |partition| (partition < 3).then_some(0), 5), committed[..5]);
    assert!(log.last_position(2) >= committed.last().unwrap().1);
    assert_eq!(log.events_after(1, log.last_position(1)), 0);
}

#[test]
fn what_can_not_be_recorded_is_refused_alone() {
    let Some(partitions) = Partitions::start(1) else { return };
    let (commit, _, outcomes) = partitions.commit();
    // While the first one is sent, the others are gathered.
    for (ticket, count) in [1, 2, 0, 3, 8193, 4, 0, 8192].into_iter().enumerate() {
        commit.submit(0, count, payload(1), ticket as u32).unwrap();
    }
    commit.close();
    let found: Vec<_> = outcomes
        .try_iter()
        .map(|outcome| match outcome {
            Outcome::Committed(of) => (of.ticket, of.count),
            Outcome::Refused(refused) => {
                let is_too_large = matches!(&*refused.reason, LogError::Remote { kind: RemoteFailure::TooLarge, .. });
                assert!(is_too_large || matches!(&*refused.reason, LogError::Empty), "{refused:?}");
                (refused.ticket, 0)
            }
            Outcome::Undecided(_) => panic!("undecided"),
        })
        .collect();
    assert_eq!(found, [(0, 1), (1, 2), (2, 0), (3, 3), (4, 0), (5, 4), (6, 0), (7, 8192)]);
}

#[test]
fn a_partition_that_another_owner_took_refuses_everything() {
    let Some(partitions) = Partitions::start(2) else { return };
    let (commit, _, outcomes) = partitions.commit();
    let _other = partitions.owner(0, 2);
    for ticket in 0..3 {
        commit.submit(0, 1, payload(ticket), ticket).unwrap();
        let Outcome::Refused(refused) = outcomes.recv_timeout(OUTCOME).unwrap() else { panic!("not refused") };
        assert!(matches!(&*refused.reason, LogError::Remote { kind: RemoteFailure::Unavailable, .. }), "{refused:?}");
    }
    // The other partition continues.
    commit.submit(1, 1, payload(9), 9).unwrap();
    assert!(matches!(outcomes.recv_timeout(OUTCOME).unwrap(), Outcome::Committed(of) if of.ticket == 9));
    commit.close();
}

/// Returns whether each outcome belongs to an event that may be recorded, in order.
fn may_be_recorded(outcomes: &Receiver<Outcome<u32>>, count: usize) -> Vec<(u32, bool)> {
    let outcome = |_| match outcomes.recv_timeout(OUTCOME).unwrap() {
        Outcome::Undecided(ticket) => (ticket, true),
        Outcome::Refused(refused) => (refused.ticket, false),
        Outcome::Committed(of) => panic!("{of:?}"),
    };
    (0..count).map(outcome).collect()
}

#[test]
fn closing_does_not_wait_for_brokers_that_are_gone() {
    let Some(mut partitions) = Partitions::start(1) else { return };
    let (commit, _, outcomes) = partitions.commit();
    partitions.brokers.kill(0);
    commit.submit(0, 1, payload(0), 0).unwrap();
    std::thread::sleep(Duration::from_millis(500));
    commit.submit(0, 1, payload(1), 1).unwrap();
    commit.close();
    assert_eq!(may_be_recorded(&outcomes, 2), [(0, true), (1, false)]);
    assert!(outcomes.try_recv().is_err());
}

#[test]
fn every_submission_has_an_outcome_when_the_runtime_ends() {
    let Some(mut partitions) = Partitions::start(1) else { return };
    let (commit, _, outcomes) = partitions.commit();
    partitions.brokers.kill(0);
    for ticket in 0..3 {
        commit.submit(0, 1, payload(ticket), ticket).unwrap();
        std::thread::sleep(Duration::from_millis(300));
    }
    partitions.runtime.shutdown_background();
    assert_eq!(may_be_recorded(&outcomes, 3), [(0, true), (1, false), (2, false)]);
    // Nothing accepts it any more.
    assert_eq!(commit.submit(0, 1, payload(3), 3), Err(3));
}

#[test]
fn a_purged_log_is_read_from_what_is_left() {
    let Some(partitions) = Partitions::start(1) else { return };
    let (commit, log, outcomes) = partitions.commit();
    let mut last = 0;
    for ticket in 0..6 {
        commit.submit(0, 2, payload(ticket), ticket).unwrap();
        let Outcome::Committed(of) = outcomes.recv_timeout(OUTCOME).unwrap() else { panic!("not committed") };
        last = of.first + 1;
    }
    commit.close();
    partitions.runtime.block_on(async {
        let client = async_nats::connect(partitions.brokers.addresses()).await.unwrap();
        let stream = async_nats::jetstream::new(client).get_stream("EV_000").await.unwrap();
        stream.purge().sequence(5).await.unwrap();
    });
    // Message 5 is the first. Nothing before its last event can be wanted, since nothing shows what
    // it follows.
    let firsts = |after| {
        read(&log, |partition| (partition < 1).then_some(after), usize::MAX)
            .into_iter()
            .map(|(_, first, ..)| first / 8192)
            .collect::<Vec<_>>()
    };
    assert_eq!(firsts(5 * 8192 + 1), [6, 7]);
    assert_eq!(firsts(6 * 8192), [6, 7]);
    assert_eq!(firsts(last), [0; 0]);
    assert_eq!(log.first_position(0), 5 * 8192);
    for after in [0, 3 * 8192, 5 * 8192] {
        let failed = log.read(&|partition| (partition < 1).then_some(after), &mut |_| ControlFlow::Continue(()));
        assert!(matches!(failed, Err(LogError::Remote { kind: RemoteFailure::Damaged, .. })), "after {after}: {failed:?}");
    }
}
