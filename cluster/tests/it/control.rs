//! The control log over a stream, alone and below registries.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use headcount_actors::domain::time;
use headcount_cluster::control::ControlStream;
use headcount_cluster::log::{Chain, Content, Message};
use headcount_cluster::{Connection, Credentials, StreamName};
use headcount_common::{ControlError, ControlLog};
use headcount_control::{AuditQuery, Registry};
use headcount_storage::log::{LogError, RemoteFailure};
use tempfile::TempDir;
use tokio::runtime::Handle;
use tokio::task::block_in_place;

use crate::brokers::Brokers;

const NOW: time::Instant = time::Instant(1_700_000_000_000);
/// More than a log may take to give up.
const PATIENCE: Duration = Duration::from_secs(60);

async fn start(count: usize) -> Option<Brokers> {
    let brokers = Brokers::start(count).await?;
    StreamName::control().create(&brokers.connect().await, count, -1).await.unwrap();
    Some(brokers)
}

fn open(connection: &Connection) -> ControlStream {
    ControlStream::open(&Handle::current(), connection).unwrap()
}

fn read(log: &ControlStream) -> Result<Vec<(u64, String)>, ControlError> {
    let mut found = Vec::new();
    log.read_after(0, &mut |position, record| {
        found.push((position, String::from_utf8(record.to_vec()).unwrap()));
        ControlFlow::Continue(())
    })?;
    Ok(found)
}

/// Appends a record at the next position.
fn append(log: &mut ControlStream, record: &str) {
    loop {
        let expected = log.last_position() + 1;
        match log.append_at(expected, record.as_bytes()) {
            Ok(()) => return,
            Err(ControlError::Conflict { .. }) => assert!(log.last_position() >= expected, "a conflict without a record"),
            Err(error) => panic!("{error}"),
        }
    }
}

/// Retries until the brokers answer.
fn until_answered<T>(mut act: impl FnMut() -> Result<T, ControlError>) -> T {
    let began = Instant::now();
    loop {
        match act() {
            Err(ControlError::Log(LogError::Remote { kind: RemoteFailure::Unavailable, .. })) if began.elapsed() < PATIENCE => {
                std::thread::sleep(Duration::from_millis(200));
            }
            result => return result.unwrap(),
        }
    }
}

fn is_damage(error: &ControlError) -> bool {
    matches!(error, ControlError::Log(LogError::Remote { kind: RemoteFailure::Damaged, .. }))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn control_records_are_recorded_once_and_in_one_order() {
    let Some(brokers) = start(3).await else { return };
    let (one, other) = (brokers.connect().await, brokers.connect().await);
    block_in_place(|| {
        let (mut one, mut other) = (open(&one), open(&other));
        for number in 0..20 {
            append(if number % 2 == 0 { &mut one } else { &mut other }, &format!("in turn {number}"));
        }
        std::thread::scope(|scope| {
            for (name, log) in [("one", &mut one), ("other", &mut other)] {
                let runtime = Handle::current();
                scope.spawn(move || {
                    let _entered = runtime.enter();
                    (0..60).for_each(|number| append(log, &format!("{name} {number}")));
                });
            }
        });
        for log in [&mut one, &mut other] {
            log.refresh().unwrap();
            assert_eq!(log.last_position(), 140);
        }
        let all = read(&one).unwrap();
        assert_eq!(read(&other).unwrap(), all);
        assert!(all.iter().map(|(position, _)| *position).eq(1..=140));
        for (name, count) in [("in turn", 20), ("one", 60), ("other", 60)] {
            let found: Vec<_> = all.iter().map(|(_, record)| record.clone()).filter(|record| record.starts_with(name)).collect();
            assert_eq!(found, (0..count).map(|number| format!("{name} {number}")).collect::<Vec<_>>());
        }
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_equal_control_record_of_another_node_is_not_an_own_one() {
    let Some(brokers) = start(1).await else { return };
    let connection = brokers.connect().await;
    block_in_place(|| {
        let (mut one, mut other) = (open(&connection), open(&connection));
        one.append_at(1, b"same").unwrap();
        let refused = other.append_at(1, b"same").unwrap_err();
        assert!(matches!(refused, ControlError::Conflict { expected: 1, next: 2 }), "{refused}");
        other.append_at(2, b"same").unwrap();
        let refused = other.append_at(2, b"same").unwrap_err();
        assert!(matches!(refused, ControlError::Conflict { expected: 2, next: 3 }), "{refused}");
        assert_eq!(read(&one).unwrap().len(), 2);
        // A position that does not follow is refused.
        assert!(is_damage(&other.append_at(9, b"beyond").unwrap_err()));
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_control_record_is_noticed() {
    let Some(brokers) = Brokers::start(1).await else { return };
    let connection = brokers.connect().await;
    let client = async_nats::connect(brokers.addresses()).await.unwrap();
    let context = async_nats::jetstream::new(client);
    let name = StreamName::control();
    let epoch =
        Message { epoch: 1, content: Content::Epoch }.encode(&headcount_cluster::Levels::FIRST, Chain::default()).unwrap().0;
    for foreign in [Bytes::from_static(b"\x01something else"), epoch.into(), Bytes::new()] {
        name.create(&connection, 1, -1).await.unwrap();
        context.publish(name.subject.clone(), foreign).await.unwrap().await.unwrap();
        block_in_place(|| assert!(is_damage(&read(&open(&connection)).unwrap_err())));
        name.delete(&connection).await.unwrap();
    }
    // A copy of a record.
    name.create(&connection, 1, -1).await.unwrap();
    let mut log = block_in_place(|| open(&connection));
    block_in_place(|| log.append_at(1, b"first").unwrap());
    let copied = context.get_stream(&name.stream).await.unwrap().get_raw_message(1).await.unwrap().payload;
    context.publish(name.subject.clone(), copied).await.unwrap().await.unwrap();
    block_in_place(|| {
        let refused = log.append_at(2, b"second").unwrap_err();
        assert!(matches!(refused, ControlError::Conflict { .. }), "{refused}");
        assert!(is_damage(&read(&log).unwrap_err()));
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_control_log_that_lost_its_end_takes_no_record() {
    let Some(brokers) = start(1).await else { return };
    let connection = brokers.connect().await;
    let mut log = block_in_place(|| open(&connection));
    block_in_place(|| append(&mut log, "first"));
    StreamName::control().delete(&connection).await.unwrap();
    StreamName::control().create(&connection, 1, -1).await.unwrap();
    block_in_place(|| {
        assert!(is_damage(&log.append_at(2, b"second").unwrap_err()));
        // The brokers may have another record in its place.
        append(&mut open(&connection), "another");
        assert!(is_damage(&log.append_at(2, b"second").unwrap_err()));
        assert_eq!(read(&open(&connection)).unwrap(), [(1, "another".to_owned())]);
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn control_records_survive_leaders_that_are_killed() {
    let Some(mut brokers) = start(3).await else { return };
    let connection = brokers.connect().await;
    let writing = tokio::task::spawn_blocking(move || {
        let (mut log, mut recorded) = (open(&connection), Vec::new());
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(12) {
            let (expected, record) = (log.last_position() + 1, format!("{}", recorded.len()));
            match log.append_at(expected, record.as_bytes()) {
                Ok(()) => recorded.push((expected, record)),
                // Only its own record may be there by now.
                Err(ControlError::Undecided(_)) => {
                    until_answered(|| log.refresh());
                    recorded.extend(until_answered(|| read(&log)).into_iter().filter(|(position, _)| *position == expected));
                }
                // Nothing was recorded.
                Err(ControlError::Log(LogError::Remote { kind: RemoteFailure::Unavailable, .. })) => {}
                Err(error) => panic!("{error}"),
            }
        }
        recorded
    });
    for _ in 0..2 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let leader = brokers.leader_of("HC_CTL").await;
        brokers.kill(leader);
        tokio::time::sleep(Duration::from_secs(3)).await;
        brokers.restart(leader);
    }
    let recorded = tokio::time::timeout(PATIENCE, writing).await.unwrap().unwrap();
    assert!(recorded.len() > 30, "only {} were recorded", recorded.len());
    let connection = brokers.connect().await;
    let found = block_in_place(|| until_answered(|| read(&ControlStream::open(&Handle::current(), &connection)?)));
    assert_eq!(found, recorded);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_control_record_without_a_majority_is_undecided() {
    let Some(mut brokers) = start(3).await else { return };
    let leader = brokers.leader_of("HC_CTL").await;
    let connection = Connection::open(&brokers.addresses()[leader..=leader], &Credentials::None).await.unwrap();
    let mut log = block_in_place(|| open(&connection));
    block_in_place(|| append(&mut log, "first"));
    let others: Vec<usize> = (0..3).filter(|place| *place != leader).collect();
    others.iter().for_each(|place| brokers.kill(*place));
    let began = Instant::now();
    let undecided = block_in_place(|| log.append_at(2, b"second").unwrap_err());
    assert!(matches!(undecided, ControlError::Undecided(_)), "{undecided}");
    assert!(began.elapsed() < PATIENCE, "{:?}", began.elapsed());
    others.iter().for_each(|place| brokers.restart(*place));
    block_in_place(|| {
        until_answered(|| log.refresh());
        let next = log.last_position() + 1;
        // At the latest, this shows whether the second one was recorded.
        until_answered(|| match log.append_at(next, b"third") {
            Err(ControlError::Conflict { next, .. }) => log.append_at(next, b"third"),
            appended => appended,
        });
        let found: Vec<String> = read(&log).unwrap().into_iter().map(|(_, record)| record).collect();
        assert!(found == ["first", "third"] || found == ["first", "second", "third"], "{found:?}");
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_control_log_gives_up_when_all_brokers_are_killed() {
    let Some(mut brokers) = start(1).await else { return };
    let connection = brokers.connect().await;
    let mut log = block_in_place(|| open(&connection));
    block_in_place(|| append(&mut log, "first"));
    brokers.kill(0);
    block_in_place(|| {
        let began = Instant::now();
        for error in [log.append_at(2, b"second").unwrap_err(), log.refresh().unwrap_err(), read(&log).unwrap_err()] {
            let is_unavailable = matches!(error, ControlError::Log(LogError::Remote { kind: RemoteFailure::Unavailable, .. }));
            assert!(is_unavailable || matches!(error, ControlError::Undecided(_)), "{error}");
        }
        assert!(began.elapsed() < PATIENCE, "{:?}", began.elapsed());
    });
    brokers.restart(0);
    block_in_place(|| {
        until_answered(|| log.refresh());
        append(&mut log, "third");
        assert_eq!(read(&log).unwrap().last().unwrap().1, "third");
    });
}

/// A registry with its own directory.
fn registry(connection: &Connection) -> (TempDir, Registry) {
    let dir = tempfile::tempdir().unwrap();
    let registry = Registry::open_on(dir.path(), Box::new(open(connection))).unwrap();
    (dir, registry)
}

/// All data of a registry about its organizations.
fn everything(registry: &Registry) -> Vec<String> {
    registry.catch_up().unwrap();
    let query = AuditQuery { limit: 100, starting_after: None, action: None, target_id: None };
    let describe = |id| {
        let entries = registry.audit_log(id, &query, NOW).unwrap().entries;
        format!("{:?} {:?} {entries:?}", registry.projects(id).unwrap(), registry.tokens(id).unwrap())
    };
    registry.organizations().iter().map(|organization| format!("{organization:?} {}", describe(organization.id))).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn registries_on_one_control_log_have_equal_contents() {
    let Some(brokers) = start(3).await else { return };
    let connections = [brokers.connect().await, brokers.connect().await];
    block_in_place(|| {
        let registries = connections.each_ref().map(registry);
        let results: Vec<bool> = std::thread::scope(|scope| {
            let initialize = |registry: &Registry| registry.initialize(NOW).is_ok();
            let threads = registries.each_ref().map(|(_, registry)| scope.spawn(move || initialize(registry)));
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(results.iter().filter(|is_first| **is_first).count(), 1, "the first organization is made once");
        std::thread::scope(|scope| {
            for (number, (_, registry)) in registries.iter().enumerate() {
                scope.spawn(move || {
                    for at in 0..20 {
                        registry.create_organization(&format!("{number}-{at}"), NOW.plus_ms(at)).unwrap();
                    }
                });
            }
        });
        let all = everything(&registries[0].1);
        assert_eq!(all.len(), 41);
        assert_eq!(everything(&registries[1].1), all);
        let names: BTreeSet<_> = registries[0].1.organizations().iter().map(|organization| organization.name.clone()).collect();
        assert_eq!(names.len(), 41);
        assert_eq!(everything(&registry(&connections[0]).1), all, "a new node reads the same");
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_registry_goes_on_from_its_snapshot_of_the_control_log() {
    let Some(brokers) = start(1).await else { return };
    let connection = Arc::new(brokers.connect().await);
    block_in_place(|| {
        let (dir, first) = registry(&connection);
        (0..300).for_each(|number| drop(first.create_organization(&number.to_string(), NOW).unwrap()));
        let all = everything(&first);
        drop(first);
        let has_snapshot = |name: &std::ffi::OsStr| name.to_string_lossy().starts_with("snapshot-");
        let control = std::fs::read_dir(dir.path().join("control")).unwrap();
        assert!(control.map(|entry| entry.unwrap().file_name()).any(|name| has_snapshot(&name)));
        let again = Registry::open_on(dir.path(), Box::new(open(&connection))).unwrap();
        again.create_organization("after", NOW).unwrap();
        assert_eq!(everything(&again).len(), all.len() + 1);
        assert_eq!(everything(&registry(&connection).1), everything(&again));
    });
}
