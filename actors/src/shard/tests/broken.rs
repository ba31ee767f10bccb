//! Faults of one partition, and their effects on the others.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError, channel};

use headcount_common::{PARTITIONS, partition_of};
use headcount_domain::FaultKind;

use super::*;
use crate::faulty_store::ReadFault;

/// The query of these tests.
fn try_users(rig: &mut Rig, project: ProjectId) -> Result<u64, FaultKind> {
    let window = Window { start: Day(19_000), end: Day(19_001) };
    rig.shard.answer(project, &UniqueUsersQuery { window }).map(|users| users.total).map_err(|fault| fault.kind)
}

/// Logs events and hands them over, without waiting for them.
fn hand_over(rig: &mut Rig, project: ProjectId, events: Vec<Event>) -> Receiver<Vec<Outcome>> {
    let events: Events = events.into_iter().map(Box::new).collect();
    let record = LogRecord::Events(events);
    let (partition, payload) = (partition_of(project), record.encode().unwrap());
    let share = AppendEntry { partition, count: u32::try_from(record.count()).unwrap(), payload: &payload };
    let first = rig.log.append(&[share]).unwrap();
    let (answer, answered) = channel();
    let reply = Box::new(move |outcomes| drop(answer.send(outcomes)));
    rig.shard.enqueue(Work { partition, project, first, record, permits: Vec::new(), reply });
    answered
}

/// Runs the shard until a condition holds.
fn work_until(rig: &mut Rig, mut is_so: impl FnMut(&mut Rig) -> bool) {
    for _ in 0..6_000 {
        rig.shard.advance();
        if is_so(rig) {
            return;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    panic!("it did not come");
}

fn is_well(rig: &Rig, project: ProjectId) -> bool {
    rig.shard.pipeline.context.health.check(partition_of(project)).is_ok()
}

/// Creates a rig whose state is partly saved, and not in memory, so that queries must read the
/// store.
fn rig() -> (Rig, ProjectId, ProjectId) {
    let mut rig = Rig::new(NEVER, 1 << 30);
    let (project, other) = two();
    rig.send(project, users(project, 0..300));
    rig.send(other, users(other, 0..20));
    rig.round();
    rig.restart();
    rig.send(project, users(project, 300..320));
    rig.restart();
    (rig, project, other)
}

#[test]
fn a_question_that_meets_an_io_error_is_answered_later() {
    let (mut rig, project, other) = rig();
    rig.round();
    rig.restart();
    rig.store.change(partition_of(project), |faults| faults.reads = Some(ReadFault::Io));
    for _ in 0..3 {
        assert_eq!(try_users(&mut rig, project), Err(FaultKind::Io));
    }
    assert!(is_well(&rig, project), "its state is what it was");
    assert_eq!(rig.users(other), 20);
    rig.store.change(partition_of(project), |faults| faults.reads = None);
    assert_eq!(rig.users(project), 320);
}

#[test]
fn a_damaged_part_of_the_store_is_made_up_for_by_the_log_and_the_others_go_on() {
    let (mut rig, project, other) = rig();
    rig.round();
    rig.restart();
    let partition = partition_of(project);
    rig.store.change(partition, |faults| faults.reads = Some(ReadFault::Damage));
    assert_eq!(try_users(&mut rig, project), Err(FaultKind::DamagedStore));
    assert!(!is_well(&rig, project));
    // Pending events are acknowledged once, after the state is restored.
    let mut answered = hand_over(&mut rig, project, users(project, 310..330));
    let mut of_other = hand_over(&mut rig, other, users(other, 20..25));
    // A single slice, unless the machine is slow.
    let first = (0..10).find_map(|_| {
        rig.shard.advance();
        of_other.try_recv().ok()
    });
    assert_eq!(first.unwrap().len(), 5, "the neighbour does not wait");
    assert!(matches!(answered.try_recv(), Err(TryRecvError::Empty)));
    work_until(&mut rig, |rig| is_well(rig, project));
    work_until(&mut rig, |rig| !rig.shard.has_queued());
    let outcomes = answered.recv().unwrap();
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_duplicate()).count(), 10);
    assert_eq!((rig.users(project), rig.users(other)), (330, 25));
    // From now on it is saved in another part, and fails a second time.
    rig.round();
    rig.store.change(partition + PARTITIONS, |faults| faults.reads = Some(ReadFault::Damage));
    rig.shard.break_partition((partition, headcount_domain::fault::Fault::damaged_store("planted")));
    rig.store.change(partition + PARTITIONS, |faults| faults.reads = None);
    answered = hand_over(&mut rig, project, users(project, 330..331));
    of_other = hand_over(&mut rig, other, users(other, 25..26));
    work_until(&mut rig, |rig| !rig.shard.has_queued());
    assert_eq!((answered.recv().unwrap().len(), of_other.recv().unwrap().len()), (1, 1));
    assert_eq!((rig.users(project), rig.users(other)), (331, 26));
    // The next start finds the partition in its own part, and the log has the missing events.
    rig.store.change(partition, |faults| faults.reads = None);
    rig.round();
    rig.restart();
    assert_eq!((rig.users(project), rig.users(other)), (331, 26));
}

#[test]
fn an_io_error_while_applying_costs_a_rebuild_that_is_tried_until_it_succeeds() {
    let (mut rig, project, other) = rig();
    let partition = partition_of(project);
    rig.round();
    rig.restart();
    rig.store.change(partition, |faults| faults.reads = Some(ReadFault::Io));
    let answered = hand_over(&mut rig, project, users(project, 315..325));
    work_until(&mut rig, |rig| rig.store.change(partition, |faults| faults.failed_reads) >= 3);
    assert!(!is_well(&rig, project));
    assert!(matches!(answered.try_recv(), Err(TryRecvError::Empty)), "it waits");
    rig.send(other, users(other, 20..30));
    assert_eq!(rig.users(other), 30);
    rig.store.change(partition, |faults| faults.reads = None);
    work_until(&mut rig, |rig| is_well(rig, project) && !rig.shard.has_queued());
    assert_eq!(answered.recv().unwrap().iter().filter(|outcome| outcome.is_duplicate()).count(), 5);
    assert_eq!(rig.users(project), 325);
}

#[test]
fn a_damaged_index_is_filled_again_from_the_log() {
    let (mut rig, project, _) = rig();
    let partition = partition_of(project);
    rig.round();
    let dir = rig.dir.path().join("state/fingerprints").join(partition.to_string());
    for file in std::fs::read_dir(&dir).unwrap() {
        std::fs::write(file.unwrap().path(), b"nothing of this kind").unwrap();
    }
    rig.shard.break_partition((partition, headcount_domain::fault::Fault::damaged_index("planted")));
    work_until(&mut rig, |rig| is_well(rig, project));
    let answered = hand_over(&mut rig, project, users(project, 0..321));
    work_until(&mut rig, |rig| !rig.shard.has_queued());
    assert_eq!(answered.recv().unwrap().iter().filter(|outcome| !outcome.is_duplicate()).count(), 1);
    assert_eq!(rig.users(project), 321);
}

#[test]
fn where_only_a_start_helps_the_senders_hear_at_once_and_nothing_more_is_taken() {
    let (mut rig, project, other) = rig();
    let partition = partition_of(project);
    let answered = hand_over(&mut rig, project, users(project, 320..330));
    rig.shard.break_partition((partition, headcount_domain::fault::Fault::damaged_log("planted")));
    assert!(answered.recv().is_err(), "the reply is dropped");
    assert!(hand_over(&mut rig, project, users(project, 330..340)).recv().is_err());
    let not_working = rig.shard.pipeline.context.health.not_working();
    assert_eq!(
        not_working.iter().map(|(number, condition, _)| (*number, *condition)).collect::<Vec<_>>(),
        [(partition, Condition::Failed)]
    );
    rig.send(other, users(other, 20..30));
    rig.round();
    assert_eq!(rig.users(other), 30);
    rig.restart();
    assert_eq!((rig.users(project), rig.users(other)), (340, 30));
}

/// Restarts from the data on disk. The former writer must not run meanwhile.
fn kill(rig: &mut Rig, project: ProjectId) {
    let cancelled = rig.shard.checkpoints.cancel(partition_of(project));
    cancelled.wait(&rig.store);
    rig.restart();
}

#[test]
fn checkpoints_between_projects_that_overtake_each_other_lose_and_double_nothing() {
    let mut rig = Rig::new(NEVER, 1 << 30);
    let project = ProjectId(1);
    let beside = (2..).map(ProjectId).find(|other| partition_of(*other) == partition_of(project)).unwrap();
    let seed = AtomicU32::new(7);
    let random = |below: u32| {
        let next = seed.load(Ordering::Relaxed).wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        seed.store(next, Ordering::Relaxed);
        (next >> 8) % below
    };
    let mut sent: [u64; 2] = [0, 0];
    for _ in 0..60 {
        for (place, project) in [project, beside].into_iter().enumerate() {
            // Some events are sent twice.
            let (from, to) = (sent[place].saturating_sub(3), sent[place] + u64::from(random(200)));
            drop(hand_over(&mut rig, project, users(project, from..to)));
            sent[place] = sent[place].max(to);
        }
        for _ in 0..random(4) {
            rig.shard.advance();
        }
        if random(3) == 0 {
            rig.round();
        }
        if random(5) == 0 {
            kill(&mut rig, project);
            assert_eq!([rig.users(project), rig.users(beside)], sent);
        }
    }
    kill(&mut rig, project);
    assert_eq!([rig.users(project), rig.users(beside)], sent);
    rig.round();
    assert_eq!(rig.meta(project).external_ids, sent[0] + sent[1]);
    kill(&mut rig, project);
    assert_eq!((rig.shard.replayed, [rig.users(project), rig.users(beside)]), (0, sent));
}
