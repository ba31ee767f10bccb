//! Creating a cluster, and its data on the brokers.

use std::path::Path;
use std::time::Duration;

use async_nats::jetstream::stream::Config;
use headcount_actors::domain::time::Instant;
use headcount_cluster::control::{OpenRegistryError, open_registry};
use headcount_cluster::init::{InitError, InitOptions, init};
use headcount_cluster::lease::{Holder, Leases, Timing};
use headcount_cluster::status::{Status, status};
use headcount_cluster::{ClusterError, ClusterRecord, Credentials, RecordError, StreamError, StreamName};
use headcount_control::{Registry, RegistryError};
use headcount_storage::format::{Format, FormatError, Incarnation};
use tokio::runtime::Handle;
use tokio::task::block_in_place;

use crate::brokers::Brokers;

const NOW: Instant = Instant(1_700_000_000_000);

fn options(brokers: &Brokers, replicas: usize, dir: &Path) -> InitOptions {
    InitOptions {
        brokers: brokers.addresses(),
        credentials: Credentials::None,
        replicas,
        max_bytes: 8 << 20,
        data_dir: dir.to_owned(),
        files: None,
    }
}

/// Creates the first organization, if there is none.
fn first(registry: &Registry) -> Result<(), InitError> {
    match registry.initialize(NOW) {
        Err(RegistryError::Conflict { code: "already_initialized", .. }) => Ok(()),
        made => Ok(made.map(drop)?),
    }
}

/// Fails, so that the attempt is interrupted.
fn interrupted(_: &Registry) -> Result<(), InitError> {
    Err(InitError::Left("interrupted".into()))
}

fn make(options: &InitOptions, first: impl FnOnce(&Registry) -> Result<(), InitError>) -> Result<ClusterRecord, InitError> {
    block_in_place(|| init(&Handle::current(), options, first)).map(|(record, ())| record)
}

async fn state(brokers: &Brokers) -> Result<Status, ClusterError> {
    status(&brokers.addresses(), &Credentials::None).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_is_made_once() {
    let Some(brokers) = Brokers::start(3).await else { return };
    assert!(matches!(state(&brokers).await, Err(ClusterError::NoCluster)));
    let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let record = make(&options(&brokers, 3, dir.path()), first).unwrap();
    assert_eq!((record.partitions, record.replicas, record.hash_key_digest.len()), (64, 3, 64));
    assert_eq!(Format::open_as(dir.path(), record.incarnation).unwrap().incarnation, record.incarnation);
    assert!(matches!(Format::open(dir.path()), Err(FormatError::OfNode { .. })), "only a node opens it");
    for dir in [dir.path(), other.path()] {
        let refused = make(&options(&brokers, 3, dir), |_| panic!("there is a cluster")).unwrap_err();
        assert!(matches!(refused, InitError::Record(RecordError::Exists(found)) if found == record.incarnation), "{refused}");
    }
    assert_eq!(std::fs::read_dir(other.path()).unwrap().count(), 0, "nothing was made");
    let found = state(&brokers).await.unwrap();
    assert_eq!((&found.cluster, found.control_records, found.partitions.len()), (&record, 1, 64));
    assert!(found.partitions.iter().all(|partition| (partition.messages, &partition.node) == (0, &None)));
    // The streams have the settings that a cluster needs.
    let context = async_nats::jetstream::new(async_nats::connect(brokers.addresses()).await.unwrap());
    for (name, max_bytes) in [("EV_000", 8 << 20), ("EV_063", 8 << 20), ("HC_CTL", -1)] {
        let config = context.get_stream(name).await.unwrap().cached_info().config.clone();
        assert_eq!((config.num_replicas, config.deny_delete, config.deny_purge, config.max_bytes), (3, true, false, max_bytes));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_is_made_after_attempts_that_were_interrupted() {
    let Some(brokers) = Brokers::start(1).await else { return };
    let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let options = |dir: &Path| options(&brokers, 1, dir);
    // Before the organization exists, any directory can continue.
    make(&options(dir.path()), interrupted).unwrap_err();
    make(&options(other.path()), interrupted).unwrap_err();
    assert!(matches!(state(&brokers).await, Err(ClusterError::NoCluster)));
    make(&options(dir.path()), |registry| first(registry).and_then(|()| interrupted(registry))).unwrap_err();
    let incarnation = Format::open(dir.path()).unwrap().incarnation;
    let changed = InitOptions { max_bytes: 9 << 20, ..options(dir.path()) };
    assert!(matches!(make(&changed, first), Err(InitError::Stream(StreamError::Differs(_)))));
    let record = make(&options(dir.path()), |registry| {
        assert!(!registry.is_empty());
        first(registry)
    });
    assert_eq!(record.unwrap().incarnation, incarnation);
    assert_eq!(state(&brokers).await.unwrap().control_records, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_attempts_at_once_one_makes_the_cluster() {
    let Some(brokers) = Brokers::start(1).await else { return };
    let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let initialize = |registry: &Registry| Ok(registry.initialize(NOW).map(drop)?);
    let runtime = Handle::current();
    let results = block_in_place(|| {
        std::thread::scope(|scope| {
            let threads = dirs.each_ref().map(|dir| {
                let (options, runtime) = (options(&brokers, 1, dir.path()), runtime.clone());
                scope.spawn(move || init::<(), InitError>(&runtime, &options, initialize).map(|(record, ())| record))
            });
            threads.map(|thread| thread.join().unwrap())
        })
    });
    let [made] = &results.iter().flatten().collect::<Vec<_>>()[..] else { panic!("{results:?}") };
    let found = state(&brokers).await.unwrap();
    assert_eq!((&found.cluster, found.control_records), (*made, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_attempt_that_another_one_overtook_makes_no_cluster() {
    let Some(brokers) = Brokers::start(1).await else { return };
    let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (options, others) = (options(&brokers, 1, dir.path()), options(&brokers, 1, other.path()));
    let mut made = None;
    let refused = make(&options, |registry| {
        made = Some(init::<(), InitError>(&Handle::current(), &others, first)?.0);
        first(registry)
    });
    let found = state(&brokers).await.unwrap();
    assert_eq!((Some(&found.cluster), found.control_records), (made.as_ref(), 1));
    let incarnation = found.cluster.incarnation;
    assert!(matches!(refused, Err(InitError::Record(RecordError::Exists(it))) if it == incarnation), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_in_use_is_left_alone() {
    let Some(brokers) = Brokers::start(1).await else { return };
    let dir = tempfile::tempdir().unwrap();
    Registry::open(dir.path()).unwrap().initialize(NOW).unwrap();
    let refused = make(&options(&brokers, 1, dir.path()), first).unwrap_err();
    assert!(matches!(&refused, InitError::NotEmpty { name, .. } if name == "log"), "{refused}");
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("thesis.txt"), "").unwrap();
    let refused = make(&options(&brokers, 1, dir.path()), first).unwrap_err();
    assert!(matches!(&refused, InitError::NotEmpty { name, .. } if name == "thesis.txt"), "{refused}");
    let (connection, name) = (brokers.connect().await, StreamName::of_partition(7));
    name.create(&connection, 1, 8 << 20).await.unwrap();
    let context = async_nats::jetstream::new(async_nats::connect(brokers.addresses()).await.unwrap());
    context.publish(name.subject, "message".into()).await.unwrap().await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    let refused = make(&options(&brokers, 1, dir.path()), first).unwrap_err();
    assert!(matches!(&refused, InitError::Left(stream) if stream == "EV_007"), "{refused}");
    let refused = make(&options(&brokers, 3, dir.path()), first).unwrap_err();
    assert!(matches!(&refused, InitError::Brokers(_)) && refused.to_string().contains("need as many brokers"), "{refused}");
}

/// Webhooks of an earlier cluster would send to forgotten addresses.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn documents_of_an_earlier_cluster_are_refused() {
    let Some(brokers) = Brokers::start(1).await else { return };
    let dir = tempfile::tempdir().unwrap();
    let context = async_nats::jetstream::new(async_nats::connect(brokers.addresses()).await.unwrap());
    let (name, subject) = ("HC_DOC_WEBHOOKS".to_owned(), "hc.doc.webhooks.w1");
    let config = Config { name, subjects: vec!["hc.doc.webhooks.>".to_owned()], ..Config::default() };
    context.create_stream(config).await.unwrap();
    context.publish(subject, "{}".into()).await.unwrap().await.unwrap();
    let refused = make(&options(&brokers, 1, dir.path()), first).unwrap_err();
    assert!(matches!(&refused, InitError::Left(stream) if stream == "HC_DOC_WEBHOOKS"), "{refused}");
    context.delete_stream("HC_DOC_WEBHOOKS").await.unwrap();
    make(&options(&brokers, 1, dir.path()), first).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_that_do_not_fit_are_refused() {
    let Some(brokers) = Brokers::start(1).await else { return };
    let dir = tempfile::tempdir().unwrap();
    let large = InitOptions { max_bytes: 1 << 30, ..options(&brokers, 1, dir.path()) };
    let refused = make(&large, first).unwrap_err();
    assert!(matches!(&refused, InitError::Stream(StreamError::NoRoom { .. })), "{refused}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_and_a_bucket_wait_for_a_broker_that_is_offline() {
    let Some(mut brokers) = Brokers::start(3).await else { return };
    let connection = brokers.connect().await;
    brokers.stop(1);
    let name = StreamName::of_partition(0);
    let made = loop {
        match name.create(&connection, 3, -1).await {
            // If it was the leader, the others have to elect another one first.
            Err(StreamError::Unavailable { .. }) => {}
            made => break made,
        }
    };
    match made {
        Err(refused) => assert!(matches!(&refused, StreamError::TooFewBrokers { .. }), "{refused}"),
        // Later broker versions work with a majority once all brokers have been there.
        Ok(()) => assert_ne!(brokers.version().await, "2.10.27"),
    }
    let of_bucket = connection.clone();
    let bucket = tokio::spawn(async move { Leases::create(&of_bucket, "waiting", 3, Timing::default()).await });
    // Its first attempt is refused while the broker is away.
    tokio::time::sleep(Duration::from_secs(1)).await;
    brokers.restart(1);
    name.create(&connection, 3, -1).await.unwrap();
    bucket.await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_needs_a_directory_and_the_key_of_its_cluster() {
    let Some(brokers) = Brokers::start(1).await else { return };
    let dirs = [(); 3].map(|()| tempfile::tempdir().unwrap());
    let [first_node, node, other] = dirs.each_ref().map(tempfile::TempDir::path);
    let record = make(&options(&brokers, 1, first_node), first).unwrap();
    let connection = brokers.connect().await;
    let open = |dir: &Path| block_in_place(|| open_registry(&Handle::current(), &connection, &record, dir));
    let refused = open(node).unwrap_err();
    assert!(matches!(refused, OpenRegistryError::HashKey(_)), "{refused}");
    std::fs::create_dir(node.join("keys")).unwrap();
    std::fs::write(node.join("keys/hash.key"), [1; 16]).unwrap();
    assert!(matches!(open(node), Err(OpenRegistryError::HashKey(_))));
    std::fs::copy(first_node.join("keys/hash.key"), node.join("keys/hash.key")).unwrap();
    let organizations = open(node).unwrap().organizations();
    assert_eq!(organizations, open(first_node).unwrap().organizations());
    assert_eq!(organizations.len(), 1);
    Format::open_as(other, Incarnation::from_number(1)).unwrap();
    assert!(matches!(open(other), Err(OpenRegistryError::Format(FormatError::OtherIncarnation { .. }))));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_status_names_the_holders_of_leases() {
    let Some(brokers) = Brokers::start(1).await else { return };
    let dir = tempfile::tempdir().unwrap();
    make(&options(&brokers, 1, dir.path()), first).unwrap();
    let leases = Leases::create(&brokers.connect().await, "hc", 1, Timing::default()).await.unwrap();
    let take = async |partition: u16| {
        let holder = Holder { node: "node-1".into(), boot: "boot".into() };
        leases.candidate(&format!("lease.{partition:03}"), holder).take().await.unwrap().unwrap()
    };
    let (_held, released) = (take(7).await, take(8).await);
    released.release().await.unwrap();
    let found = state(&brokers).await.unwrap();
    let nodes: Vec<_> = found.partitions.iter().filter_map(|it| Some((it.partition, it.node.as_deref()?))).collect();
    assert_eq!(nodes, [(7, "node-1")]);
}
