//! The log of one broker: the messages that are read, and those that are refused.

use std::ops::ControlFlow;

use bytes::Bytes;
use headcount_cluster::StreamName;
use headcount_cluster::log::{Content, Entry, LogEnd, LogError, LogReader, LogWriter, Message, MessageError};

use crate::brokers::Brokers;

fn entry(number: u32) -> Entry {
    Entry { count: 1 + number % 3, payload: number.to_le_bytes().repeat(1 + number as usize % 50) }
}

async fn owner(brokers: &Brokers, name: &StreamName, epoch: u64) -> Result<LogWriter, LogError> {
    LogWriter::take_over(&brokers.connect().await, name, epoch, LogEnd::default(), &mut |_, _| {}).await
}

/// Reads everything after `end`, in order.
async fn read(brokers: &Brokers, name: &StreamName, end: LogEnd) -> Result<(Vec<(u64, Message)>, LogEnd), LogError> {
    let (mut found, reader) = (Vec::new(), LogReader::open(&brokers.connect().await, &name.stream).await?);
    let end = reader
        .read(end, &mut |end: LogEnd, message| {
            found.push((end.sequence, message));
            ControlFlow::Continue(())
        })
        .await?;
    Ok((found, end))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_recorded_is_read_in_order() {
    let Some(brokers) = Brokers::start(1).await else { return };
    let name = brokers.create("EV_000", -1).await;
    let mut writer = owner(&brokers, &name, 3).await.unwrap();
    let mut written = vec![(1, Message { epoch: 3, content: Content::Epoch })];
    // More than one request of a reader delivers.
    for number in 0..600 {
        let entries = vec![entry(number), entry(number + 1)];
        let sequence = writer.append(entries.clone()).await.unwrap();
        written.push((sequence, Message { epoch: 3, content: Content::Events(entries) }));
    }
    let (found, end) = read(&brokers, &name, LogEnd::default()).await.unwrap();
    assert_eq!(found, written);
    assert_eq!((end.sequence, end.epoch), (601, 3));
    // From any end on.
    let reader = LogReader::open(&brokers.connect().await, &name.stream).await.unwrap();
    assert_eq!(reader.read(end, &mut |_, _| panic!("read twice")).await.unwrap(), end);
    writer.append(vec![entry(7)]).await.unwrap();
    let (found, _) = read(&brokers, &name, end).await.unwrap();
    assert_eq!(found, [(602, Message { epoch: 3, content: Content::Events(vec![entry(7)]) })]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_former_owner_can_not_write() {
    let Some(brokers) = Brokers::start(1).await else { return };
    let name = brokers.create("EV_000", -1).await;
    let mut former = owner(&brokers, &name, 1).await.unwrap();
    former.append(vec![entry(1)]).await.unwrap();
    let mut owner_now = owner(&brokers, &name, 2).await.unwrap();
    for _ in 0..2 {
        assert!(matches!(former.append(vec![entry(2)]).await, Err(LogError::Fenced { by: 2 })));
    }
    owner_now.append(vec![entry(3)]).await.unwrap();
    // An epoch is used once, and never an earlier one.
    for epoch in [1, 2] {
        assert!(matches!(owner(&brokers, &name, epoch).await, Err(LogError::Fenced { by: 2 })));
    }
    let (found, _) = read(&brokers, &name, LogEnd::default()).await.unwrap();
    let events: Vec<_> = found.into_iter().filter(|(_, message)| message.content != Content::Epoch).collect();
    let of = |epoch, number| Message { epoch, content: Content::Events(vec![entry(number)]) };
    assert_eq!(events, [(2, of(1, 1)), (4, of(2, 3))]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_stream_refuses_until_there_is_room() {
    let Some(brokers) = Brokers::start(3).await else { return };
    let name = brokers.create("EV_000", 100_000).await;
    let mut writer = owner(&brokers, &name, 1).await.unwrap();
    let large = |number: u64| {
        let mut random = fastrand::Rng::with_seed(number);
        Entry { count: 1, payload: std::iter::repeat_with(|| random.u8(..)).take(10_000).collect() }
    };
    let mut recorded = 0;
    let refused = loop {
        match writer.append(vec![large(recorded)]).await {
            Ok(_) => recorded += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, LogError::Full(stream) if stream == "EV_000"));
    assert_eq!(recorded, 9);
    let client = async_nats::connect(brokers.addresses()).await.unwrap();
    let stream = async_nats::jetstream::new(client).get_stream(&name.stream).await.unwrap();
    stream.purge().sequence(6).await.unwrap();
    // The same writer continues, and nothing refused is there.
    assert_eq!(writer.append(vec![large(99)]).await.unwrap(), 11);
    // A reader that has not read the purged messages gets an error.
    assert!(matches!(read(&brokers, &name, LogEnd::default()).await, Err(LogError::Missing { wanted: 1, .. })));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_that_do_not_fit_are_refused() {
    let Some(brokers) = Brokers::start_with(1, "max_payload: 100KB", "sync_interval: always").await else { return };
    let name = brokers.create("EV_000", -1).await;
    let mut writer = owner(&brokers, &name, 1).await.unwrap();
    let mut random = fastrand::Rng::with_seed(1);
    let payload: Vec<u8> = std::iter::repeat_with(|| random.u8(..)).take(200_000).collect();
    assert!(matches!(writer.append(vec![Entry { count: 1, payload }]).await, Err(LogError::TooLarge { limit: 101_376, .. })));
    assert!(matches!(writer.append(Vec::new()).await, Err(LogError::Refused(MessageError::Empty))));
    let too_many = vec![Entry { count: 8193, payload: Vec::new() }];
    assert!(matches!(writer.append(too_many).await, Err(LogError::Refused(MessageError::TooLarge { .. }))));
    assert_eq!(writer.append(vec![entry(1)]).await.unwrap(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_others_wrote_is_noticed() {
    let Some(brokers) = Brokers::start(1).await else { return };
    let name = brokers.create("EV_000", -1).await;
    let mut writer = owner(&brokers, &name, 1).await.unwrap();
    let client = async_nats::connect(brokers.addresses()).await.unwrap();
    let context = async_nats::jetstream::new(client);
    // A copy of a message in another place.
    let copied = context.get_stream(&name.stream).await.unwrap().get_raw_message(1).await.unwrap().payload;
    context.publish(name.subject.clone(), copied).await.unwrap().await.unwrap();
    assert!(matches!(
        writer.append(vec![entry(1)]).await,
        Err(LogError::Broken { sequence: 2, reason: MessageError::Unchained, .. })
    ));
    let read_all = || read(&brokers, &name, LogEnd::default());
    assert!(matches!(read_all().await, Err(LogError::Broken { sequence: 2, reason: MessageError::Unchained, .. })));
    // A message with events, of the current epoch. Only its chain shows that it belongs to another
    // place.
    let again = brokers.create("EV_003", -1).await;
    owner(&brokers, &again, 1).await.unwrap().append(vec![entry(1)]).await.unwrap();
    let copied = context.get_stream(&again.stream).await.unwrap().get_raw_message(2).await.unwrap().payload;
    context.publish(again.subject.clone(), copied).await.unwrap().await.unwrap();
    let found = read(&brokers, &again, LogEnd::default()).await;
    assert!(matches!(found, Err(LogError::Broken { sequence: 3, reason: MessageError::Unchained, .. })));
    // A message that follows, of a former epoch.
    let late = brokers.create("EV_002", -1).await;
    owner(&brokers, &late, 2).await.unwrap();
    let (_, end) = read(&brokers, &late, LogEnd::default()).await.unwrap();
    let (bytes, _) = Message { epoch: 1, content: Content::Events(vec![entry(1)]) }
        .encode(&headcount_cluster::Levels::FIRST, end.chain)
        .unwrap();
    context.publish(late.subject.clone(), bytes.into()).await.unwrap().await.unwrap();
    let found = read(&brokers, &late, LogEnd::default()).await;
    assert!(matches!(found, Err(LogError::Broken { sequence: 2, reason: MessageError::Unchained, .. })));
    let other = brokers.create("EV_001", -1).await;
    context.publish(other.subject.clone(), Bytes::from_static(b"\x01something else")).await.unwrap().await.unwrap();
    assert!(matches!(owner(&brokers, &other, 1).await, Err(LogError::Broken { sequence: 1, reason: MessageError::Damaged, .. })));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_has_read_what_the_stream_does_not_have_can_not_take_it_over() {
    let Some(brokers) = Brokers::start(1).await else { return };
    let (name, other) = (brokers.create("EV_000", -1).await, brokers.create("EV_001", -1).await);
    for name in [&name, &other] {
        let mut writer = owner(&brokers, name, 1).await.unwrap();
        writer.append(vec![entry(if *name == other { 2 } else { 1 })]).await.unwrap();
    }
    let (_, end) = read(&brokers, &name, LogEnd::default()).await.unwrap();
    let connection = brokers.connect().await;
    let take_over = async |end, epoch| LogWriter::take_over(&connection, &other, epoch, end, &mut |_, _| {}).await.map(drop);
    assert!(matches!(take_over(end, 5).await, Err(LogError::Broken { sequence: 2, reason: MessageError::Unchained, .. })));
    let beyond = LogEnd { sequence: 3, ..end };
    assert!(matches!(take_over(beyond, 5).await, Err(LogError::Missing { wanted: 3, .. })));
    let (_, end) = read(&brokers, &other, LogEnd::default()).await.unwrap();
    take_over(end, 5).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_that_lost_its_end_stops_its_writer() {
    let Some(brokers) = Brokers::start(1).await else { return };
    let name = brokers.create("EV_000", -1).await;
    let mut writer = owner(&brokers, &name, 1).await.unwrap();
    writer.append(vec![entry(1)]).await.unwrap();
    name.delete(&brokers.connect().await).await.unwrap();
    brokers.create("EV_000", -1).await;
    let appended = tokio::time::timeout(std::time::Duration::from_secs(60), writer.append(vec![entry(2)])).await.unwrap();
    assert!(matches!(appended, Err(LogError::Missing { wanted: 2, .. })), "{appended:?}");
}
