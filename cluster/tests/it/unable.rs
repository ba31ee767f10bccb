//! Nodes that are live but can't serve: other nodes serve instead.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use futures_util::TryStreamExt as _;
use headcount_actors::EngineConfig;
use headcount_cluster::Credentials;
use headcount_cluster::drain::Drain;
use headcount_cluster::status::status;
use headcount_common::PARTITIONS;

use crate::node::{Cluster, ClusterNode, NOW, TIMING, check, record, runtime, wait_until};

const ALL: usize = PARTITIONS as usize;

/// Puts a file in place of the archive of each partition, or removes it.
fn block_archives(data: &Path, is_blocked: bool) {
    let archives = data.join("archive");
    std::fs::create_dir_all(&archives).unwrap();
    for partition in 0..PARTITIONS {
        let place = archives.join(format!("partition={partition:02}"));
        if !is_blocked {
            std::fs::remove_file(place).unwrap();
            continue;
        }
        if place.exists() {
            std::fs::remove_dir_all(&place).unwrap();
        }
        std::fs::write(place, "").unwrap();
    }
}

#[test]
fn partitions_stay_away_from_a_node_that_can_take_none_over() {
    let Some(cluster) = Cluster::start() else { return };
    let mut nodes = vec![cluster.join("a")];
    wait_until("one node has all", || nodes[0].serves() == ALL);
    record(&cluster, &nodes, (0, 5));
    let dir = cluster.join("b").leave();
    block_archives(&dir.path().join("data"), true);
    nodes.push(cluster.rejoin("b", dir, |_| {}));
    let failed = |nodes: &[ClusterNode]| nodes[1].engine.owners().node_vitals().unwrap().takeovers_failed;
    wait_until("its part has come to it", || failed(&nodes) >= 20);
    record(&cluster, &nodes, (5, 10));
    // It is retried after growing pauses.
    wait_until("its part has come to it several times", || failed(&nodes) >= 150);
    let (mut looks, mut served) = (0, 0);
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(8) {
        (looks, served) = (looks + ALL, served + nodes[0].serves());
        std::thread::sleep(Duration::from_millis(50));
    }
    println!("{served} of {looks} times, a partition was served; {} takeovers failed", failed(&nodes));
    assert!(served * 100 >= looks * 80, "{served} of {looks}");
    assert_eq!(nodes[1].serves(), 0);
    block_archives(&nodes[1].dir().join("data"), false);
    wait_until("it has its part once it can", || nodes[1].serves() >= 16 && nodes[0].serves() + nodes[1].serves() == ALL);
    record(&cluster, &nodes, (10, 12));
    cluster.projects.iter().for_each(|project| check(&nodes, *project, 12));
    nodes.into_iter().for_each(ClusterNode::stop);
}

#[test]
fn a_node_that_can_follow_no_change_hands_its_partitions_over_and_is_not_waited_for() {
    let Some(cluster) = Cluster::start() else { return };
    let nodes: Vec<ClusterNode> = ["a", "b"].map(|name| cluster.join(name)).into();
    let all = |nodes: &[ClusterNode]| nodes.iter().map(ClusterNode::serves).sum::<usize>() == ALL;
    wait_until("each has its part", || all(&nodes) && nodes.iter().all(|node| node.serves() >= 16));
    record(&cluster, &nodes, (0, 5));
    // A directory in place of the file with deleted projects.
    let noted = nodes[1].dir().join("data/deletions.json");
    std::fs::remove_file(&noted)
        .or_else(|error| if error.kind() == std::io::ErrorKind::NotFound { Ok(()) } else { Err(error) })
        .unwrap();
    std::fs::create_dir_all(noted.join("x")).unwrap();
    let organization = nodes[0].engine.registry().organizations()[0].id;
    let delete = |project| nodes[0].blocking(move |engine| engine.delete_project(organization, project, NOW).unwrap());
    let (first, second, third) = (cluster.projects[0], cluster.projects[1], cluster.projects[2]);
    delete(first);
    wait_until("it hands everything over", || nodes[0].serves() == ALL && nodes[1].serves() == 0);
    assert!(!nodes[1].is_live());
    let shown = nodes[0].block_on(status(&cluster.addresses(), &Credentials::None)).unwrap();
    let ailments: Vec<_> = shown.nodes.iter().map(|node| node.ailment.as_deref()).collect();
    assert_eq!(ailments, [None, Some("it can't apply what other nodes change")]);
    let began = Instant::now();
    delete(second);
    assert!(began.elapsed() < TIMING.leases.taken_after, "{:?}", began.elapsed());
    std::fs::remove_dir_all(&noted).unwrap();
    wait_until("it answers again", || nodes[1].is_live());
    // Other nodes wait for it again: it knows an answered change at once.
    delete(third);
    for deleted in [first, second, third] {
        assert!(nodes[1].engine.registry().policy(deleted).is_none());
    }
    wait_until("it has its part", || nodes[1].serves() >= 16 && all(&nodes));
    cluster.projects[3..].iter().for_each(|project| check(&nodes, *project, 5));
    nodes.into_iter().for_each(ClusterNode::stop);
}

#[test]
fn a_node_whose_disk_is_full_hands_its_partitions_over() {
    let Some(cluster) = Cluster::start() else { return };
    let mut nodes = vec![cluster.join("a")];
    wait_until("one node has all", || nodes[0].serves() == ALL);
    // More than exists.
    nodes.push(cluster.join_with("b", |config: &mut EngineConfig| config.min_free_bytes = u64::MAX / 2));
    wait_until("it takes none", || nodes[1].engine.owners().node_vitals().unwrap().drains && nodes[0].serves() == ALL);
    record(&cluster, &nodes, (0, 5));
    // It forwards requests, and knows changes.
    assert!(nodes[1].is_live());
    let shown = nodes[0].block_on(status(&cluster.addresses(), &Credentials::None)).unwrap();
    assert_eq!(shown.nodes[1].ailment.as_deref(), Some("the disk is nearly full"));
    nodes.into_iter().for_each(ClusterNode::stop);
}

#[test]
fn a_node_that_is_gone_is_not_taken_for_one_with_its_address() {
    let Some(cluster) = Cluster::start() else { return };
    let node = cluster.join("b");
    let drain = node.block_on(Drain::open(&cluster.addresses(), &Credentials::None)).unwrap();
    let announce = |id: &str, text: &'static str| {
        let key = format!("node.{id}");
        node.block_on(async {
            let client = async_nats::connect(cluster.addresses()).await.unwrap();
            let store = async_nats::jetstream::new(client).get_key_value("hc").await.unwrap();
            store.put(key, text.into()).await.unwrap();
        });
    };
    // It comes first in the list.
    announce("a", r#"{"address":"http://b","version":"0.0.1","drains":true}"#);
    assert_eq!(node.block_on(drain.find("http://b/")).unwrap(), "b");
    assert_eq!(node.block_on(drain.find("a")).unwrap(), "a", "by its id");
    announce("c", r#"{"address":"http://d","version":"0.0.1"}"#);
    announce("d", r#"{"address":"http://d","version":"0.0.1"}"#);
    let several = node.block_on(drain.find("http://d")).unwrap_err().to_string();
    assert!(several.contains("c at http://d, d at http://d") && several.contains("by its id"), "{several}");
    node.stop();
}

/// All nodes read the keys of all nodes repeatedly.
#[test]
fn the_keys_of_nodes_that_do_not_come_back_are_removed() {
    let Some(cluster) = Cluster::start() else { return };
    let forgotten_after = Duration::from_secs(3);
    let mut nodes: Vec<ClusterNode> = ["a", "b", "c"].map(|name| cluster.join_forgetting(name, forgotten_after)).into();
    let asking = runtime();
    let keys = || {
        asking.block_on(async {
            let client = async_nats::connect(cluster.addresses()).await.unwrap();
            let stream = async_nats::jetstream::new(client).get_stream("KV_hc").await.unwrap();
            let found = stream.info_with_subjects("$KV.hc.node.>").await.unwrap();
            let subjects: Vec<(String, usize)> = found.try_collect().await.unwrap();
            subjects.into_iter().filter_map(|(subject, _)| subject.rsplit('.').next().map(str::to_owned)).collect::<BTreeSet<_>>()
        })
    };
    assert_eq!(keys(), BTreeSet::from(["a", "b", "c"].map(str::to_owned)));
    nodes.remove(2).stop();
    nodes.remove(1).kill();
    assert_eq!(keys().len(), 3, "one says that it is withdrawn");
    wait_until("they are forgotten", || keys().len() == 1);
    // Its directory is elsewhere, and its name is free.
    nodes.push(cluster.join_forgetting("b", forgotten_after));
    wait_until("it has its part", || nodes[1].serves() >= 16 && nodes[0].serves() + nodes[1].serves() == ALL);
    let began = Instant::now();
    while began.elapsed() < forgotten_after * 2 {
        assert_eq!(keys().len(), 2, "what is renewed stays");
        std::thread::sleep(Duration::from_millis(200));
    }
    nodes.into_iter().for_each(ClusterNode::stop);
}
