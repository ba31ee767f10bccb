//! Checks of published archives.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use headcount_archive::Catalog;
use headcount_cluster::files::{Bucket, SharedFiles};
use headcount_common::{SharedArchive, SharedArchiveError, partition_of};

use crate::files::{below, files_in};
use crate::node::Cluster;

#[test]
fn what_the_bucket_or_the_brokers_lost_of_an_archive_is_named() {
    let place = tempfile::tempdir().unwrap();
    let Some(cluster) = Cluster::start_with(Some(files_in(place.path()))) else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let bucket = Bucket::open(&format!("file://{}", place.path().display())).unwrap();
    let connection = runtime.block_on(cluster.connect());
    let files = Arc::new(runtime.block_on(SharedFiles::open(&connection, &cluster.record, &bucket, Duration::ZERO)).unwrap());
    let (partition, root) = (partition_of(cluster.projects[0]), tempfile::tempdir().unwrap());
    let damaged = || files.damaged_objects(partition, &|| false).unwrap();
    assert!(matches!(files.damaged_objects(partition, &|| false), Err(SharedArchiveError::NotOwner(_))));
    runtime.block_on(files.take_over(partition, 5, root.path())).unwrap();
    assert_eq!(damaged(), [], "nothing is published");
    let publish = |until| {
        Catalog::default().advanced(until, &Default::default(), Default::default()).write(root.path()).unwrap();
        files.publish(partition, root.path(), &|| false).unwrap();
    };
    publish(10);
    // The former list is gone.
    publish(20);
    assert_eq!(damaged(), []);
    assert!(matches!(files.damaged_objects(partition, &|| true), Err(SharedArchiveError::Stopped)));
    let [list] = &below(place.path())[..] else { panic!("{:?}", below(place.path())) };
    let sound = fs::read(list).unwrap();
    let named = |reason: &str| {
        let damaged = damaged();
        assert_eq!(damaged.len(), 1, "{damaged:?}");
        assert_eq!(damaged[0].address, format!("file://{}", list.display()));
        assert!(damaged[0].reason.contains(reason), "{damaged:?}");
    };
    let mut flipped = sound.clone();
    flipped[7] ^= 1;
    fs::write(list, flipped).unwrap();
    named("other contents");
    fs::write(list, &sound[..0]).unwrap();
    named("other contents");
    fs::remove_file(list).unwrap();
    named("missing");
    fs::write(list, &sound).unwrap();
    assert_eq!(damaged(), []);
    let key = format!("archive.{partition:03}");
    runtime.block_on(async {
        let client = async_nats::connect(&cluster.addresses()).await.unwrap();
        let store = async_nats::jetstream::new(client).get_key_value("hc").await.unwrap();
        store.put(&key, r#"{"epoch":5,"change":1,"list":null}"#.into()).await.unwrap();
    });
    let damaged = damaged();
    assert_eq!((damaged.len(), damaged[0].address.as_str()), (1, format!("hc/{key}").as_str()), "{damaged:?}");
}
