//! The log while brokers are killed and owners change.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use headcount_cluster::log::{Content, Entry, LogEnd, LogError, LogReader, LogWriter, Message};
use headcount_cluster::{Connection, Credentials, StreamName};

use crate::brokers::Brokers;

/// The time limit of an owner's last message.
const PATIENCE: Duration = Duration::from_secs(60);

fn entries(number: u64) -> Vec<Entry> {
    vec![Entry { count: 1, payload: number.to_le_bytes().to_vec() }]
}

/// Returns the numbers of all events that were read, in order.
fn numbers(messages: &[Message]) -> Vec<u64> {
    let number = |message: &Message| match &message.content {
        Content::Events(entries) => Some(u64::from_le_bytes(entries[0].payload[..8].try_into().unwrap())),
        Content::Epoch => None,
    };
    messages.iter().filter_map(number).collect()
}

async fn read_all(connection: &Connection, name: &StreamName) -> Vec<Message> {
    let reader = LogReader::open(connection, &name.stream).await.unwrap();
    loop {
        let mut found = Vec::new();
        let mut visit = |_, message| {
            found.push(message);
            ControlFlow::Continue(())
        };
        match reader.read(LogEnd::default(), &mut visit).await {
            Ok(_) => return found,
            Err(LogError::Unavailable(_)) => tokio::time::sleep(Duration::from_millis(200)).await,
            Err(error) => panic!("{error}"),
        }
    }
}

/// Appends numbers from 0 on until `stop` is set. Returns the number of recorded ones.
async fn write(mut writer: LogWriter, stop: Arc<AtomicBool>) -> u64 {
    let mut number = 0;
    while !stop.load(Ordering::Relaxed) {
        writer.append(entries(number)).await.unwrap();
        number += 1;
    }
    number
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_are_recorded_once_while_brokers_are_killed() {
    let Some(mut brokers) = Brokers::start(3).await else { return };
    let name = brokers.create("EV_000", -1).await;
    let connection = brokers.connect().await;
    let writer = LogWriter::take_over(&connection, &name, 1, LogEnd::default(), &mut |_, _| {}).await.unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let writing = tokio::spawn(write(writer, Arc::clone(&stop)));
    let some_time = || tokio::time::sleep(Duration::from_millis(700));
    for _ in 0..3 {
        some_time().await;
        let leader = brokers.leader_of(&name.stream).await;
        brokers.kill(leader);
        some_time().await;
        brokers.restart(leader);
        // Until another majority is possible.
        tokio::time::sleep(Duration::from_secs(3)).await;
    }
    (0..3).for_each(|place| brokers.kill(place));
    some_time().await;
    (0..3).for_each(|place| brokers.restart(place));
    tokio::time::sleep(Duration::from_secs(6)).await;
    stop.store(true, Ordering::Relaxed);
    let recorded = tokio::time::timeout(PATIENCE, writing).await.unwrap().unwrap();
    assert!(recorded > 30, "only {recorded} were recorded");
    let found = numbers(&read_all(&connection, &name).await);
    assert_eq!(found, (0..recorded).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn owners_that_follow_one_another_lose_nothing() {
    let Some(mut brokers) = Brokers::start(3).await else { return };
    let name = brokers.create("EV_000", -1).await;
    let connection = brokers.connect().await;
    let mut acknowledged = Vec::new();
    let mut writing: Option<tokio::task::JoinHandle<Vec<u64>>> = None;
    for epoch in 1..=20 {
        if epoch % 7 == 0 {
            let leader = brokers.leader_of(&name.stream).await;
            brokers.kill(leader);
            brokers.restart(leader);
        }
        // The former owner knows nothing of the next one, and continues.
        let mut before = Vec::new();
        let end = LogEnd::default();
        let owner =
            LogWriter::take_over(&brokers.connect().await, &name, epoch, end, &mut |_, message| before.push(message)).await;
        let mut owner = match owner {
            Err(LogError::Unavailable(_)) => continue,
            owner => owner.unwrap(),
        };
        if let Some(former) = writing.take() {
            acknowledged.extend(tokio::time::timeout(PATIENCE, former).await.unwrap().unwrap());
        }
        assert_eq!(numbers(&before), acknowledged, "epoch {epoch}");
        writing = Some(tokio::spawn(async move {
            let mut recorded = Vec::new();
            loop {
                // Without a pause it would always be a message ahead of its successor.
                tokio::time::sleep(Duration::from_millis(fastrand::u64(0..40))).await;
                let number = epoch << 32 | recorded.len() as u64;
                match owner.append(entries(number)).await {
                    Ok(_) => recorded.push(number),
                    Err(LogError::Fenced { by }) if by > epoch => return recorded,
                    Err(error) => panic!("{error}"),
                }
            }
        }));
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    let last = LogWriter::take_over(&connection, &name, 99, LogEnd::default(), &mut |_, _| {}).await.unwrap();
    acknowledged.extend(tokio::time::timeout(PATIENCE, writing.take().unwrap()).await.unwrap().unwrap());
    drop(last);
    assert!(acknowledged.len() > 30, "only {} were recorded", acknowledged.len());
    assert_eq!(numbers(&read_all(&connection, &name).await), acknowledged);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replay_is_whole_although_the_broker_that_serves_it_is_killed() {
    const MESSAGES: u64 = 1_000;
    let Some(mut brokers) = Brokers::start(3).await else { return };
    let name = brokers.create("EV_000", -1).await;
    let connection = brokers.connect().await;
    let mut writer = LogWriter::take_over(&connection, &name, 1, LogEnd::default(), &mut |_, _| {}).await.unwrap();
    for number in 0..MESSAGES {
        let payload = [&number.to_le_bytes()[..], &vec![fastrand::u8(..); 16 << 10]].concat();
        writer.append(vec![Entry { count: 1, payload }]).await.unwrap();
    }
    for kills_leader in [true, false, true] {
        let leader = brokers.leader_of(&name.stream).await;
        let place = if kills_leader { leader } else { (leader + 1) % 3 };
        // Through the broker that is killed, too.
        let address = vec![brokers.addresses()[place].clone(), brokers.addresses()[(place + 1) % 3].clone()];
        let connection = Connection::open(&address, &Credentials::None).await.unwrap();
        let reader = LogReader::open(&connection, &name.stream).await.unwrap();
        let (mut found, mut end, mut attempts) = (Vec::new(), LogEnd::default(), 0);
        while found.len() as u64 <= MESSAGES {
            let from = end;
            let mut visit = |at, message| {
                if found.len() == 300 {
                    brokers.kill(place);
                }
                end = at;
                found.push(message);
                ControlFlow::Continue(())
            };
            // It continues after the messages that were read, like a replay.
            match reader.read(from, &mut visit).await {
                Ok(_) => {}
                Err(LogError::Unavailable(_)) => tokio::time::sleep(Duration::from_millis(200)).await,
                Err(error) => panic!("{error}"),
            }
            attempts += 1;
            assert!(attempts < 200, "{} messages", found.len());
        }
        assert_eq!(numbers(&found), (0..MESSAGES).collect::<Vec<_>>());
        brokers.restart(place);
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
}
