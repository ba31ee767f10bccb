//! Visitor salts, which all nodes share and no disk of a broker has.

use std::fs;
use std::path::Path;

use headcount_common::PARTITIONS;

use crate::node::{Cluster, record, wait_until};

/// The files below a directory that contain some bytes.
fn files_with(dir: &Path, bytes: &[u8]) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_with(&path, bytes));
        } else if fs::read(&path).unwrap().windows(bytes.len()).any(|window| window == bytes) {
            found.push(path.display().to_string());
        }
    }
    found
}

#[test]
fn no_broker_has_a_salt_on_its_disk_and_nodes_put_it_back() {
    let Some(mut cluster) = Cluster::start_with(None) else { return };
    let first = cluster.join("a");
    wait_until("one node has all", || first.serves() == usize::from(PARTITIONS));
    let nodes = vec![first];
    record(&cluster, &nodes, (0, 5));
    let today = nodes[0].today();
    let salt = nodes[0].visitor_salt(today).unwrap();
    // The keys of nodes are on their disks, which proves that the search works.
    assert!(!files_with(cluster.brokers_dir(), b"cluster").is_empty());
    let hex: String = salt.iter().map(|byte| format!("{byte:02x}")).collect();
    for text in [&salt[..], hex.as_bytes()] {
        assert_eq!(files_with(cluster.brokers_dir(), text), [""; 0]);
    }
    // Their memory is gone. The remaining node writes its salts back, and the next one uses them.
    cluster.restart_brokers();
    let second = cluster.join("b");
    wait_until("the next node knows the salt", || second.visitor_salt(today) == Some(salt));
    assert_eq!(nodes[0].visitor_salt(today), Some(salt));
    for text in [&salt[..], hex.as_bytes()] {
        assert_eq!(files_with(cluster.brokers_dir(), text), [""; 0]);
    }
    nodes.into_iter().for_each(crate::node::ClusterNode::stop);
    second.stop();
}
