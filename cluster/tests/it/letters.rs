//! Dead letters: any owner of their partition counts without them.

use std::sync::Arc;

use headcount_actors::EngineConfig;
use headcount_actors::domain::intake::event::Event;
use headcount_actors::ingest::{NewEvent, Status};
use headcount_common::{PARTITIONS, partition_of};

use crate::lost::{lose_events, wait_until_served};
use crate::node::{BASE_MS, Cluster, ClusterNode, check, record, wait_until};

fn panics(config: &mut EngineConfig) {
    config.probe = Some(Arc::new(|event: &Event| assert!(&*event.name != "poison", "planted")));
}

#[test]
fn the_next_owner_counts_without_what_a_killed_one_has_set_aside() {
    let Some(cluster) = Cluster::start() else { return };
    let mut nodes = vec![cluster.join_with("a", panics)];
    wait_until("one node has all", || nodes[0].serves() == usize::from(PARTITIONS));
    // Two partitions in which the same positions mean different events.
    let poisoned = cluster.projects[0];
    let other = *cluster.projects.iter().find(|other| partition_of(**other) != partition_of(poisoned)).unwrap();
    record(&cluster, &nodes, (0, 3));
    let poison = NewEvent::new("poison").user("eve").external_id("poison").at_ms(BASE_MS);
    let receipt = nodes[0].block_on(nodes[0].engine.track(poisoned, &poison)).unwrap();
    assert_eq!(receipt.status, Status::Recorded);
    record(&cluster, &nodes, (3, 12));
    let places = |nodes: &[ClusterNode]| nodes.iter().map(|node| node.engine.vitals().dead_letters).collect::<Vec<_>>();
    assert_eq!(places(&nodes), [1]);
    // The next owner would count it, since nothing makes it panic.
    nodes.push(cluster.join("b"));
    record(&cluster, &nodes, (12, 15));
    nodes.remove(0).kill();
    wait_until("the other one has all", || nodes[0].serves() == usize::from(PARTITIONS));
    record(&cluster, &nodes, (15, 20));
    for project in [poisoned, other] {
        check(&nodes, project, 20);
        assert_eq!(nodes[0].orders_by_a_scan(project), 20);
    }
    assert_eq!(places(&nodes), [1]);
    // So does a later owner, after one that has never counted it.
    nodes.push(cluster.join("c"));
    wait_until("it has its part", || nodes[1].serves() >= 16);
    nodes.remove(0).stop();
    wait_until("it has all", || nodes[0].serves() == usize::from(PARTITIONS));
    check(&nodes, poisoned, 20);
    assert_eq!((nodes[0].orders_by_a_scan(poisoned), places(&nodes)), (20, vec![1]));
    nodes.remove(0).stop();
}

#[test]
fn an_event_with_the_position_of_a_lost_one_that_was_set_aside_counts() {
    let Some(mut cluster) = Cluster::start() else { return };
    let poisoned = cluster.projects[0];
    let set_aside = |node: &ClusterNode| node.engine.vitals().dead_letters;
    let dir = {
        let nodes = [cluster.join_with("a", panics)];
        wait_until_served(&nodes[0]);
        record(&cluster, &nodes, (0, 3));
        let [node] = nodes;
        node.leave()
    };
    let earlier = cluster.restart_brokers_after(|brokers| brokers.copy(0));
    let nodes = [cluster.rejoin("a", dir, panics)];
    wait_until_served(&nodes[0]);
    record(&cluster, &nodes, (3, 6));
    let poison = NewEvent::new("poison").user("eve").external_id("poison").at_ms(BASE_MS);
    let receipt = nodes[0].block_on(nodes[0].engine.track(poisoned, &poison)).unwrap();
    wait_until("it is set aside", || set_aside(&nodes[0]) == 1);
    nodes.into_iter().for_each(ClusterNode::stop);
    lose_events(&mut cluster, &earlier);
    let nodes = [cluster.join("b")];
    wait_until_served(&nodes[0]);
    assert_eq!(set_aside(&nodes[0]), 0);
    // The same events as before the loss, and then others, up to the one with the position.
    record(&cluster, &nodes, (3, 6));
    let (mut users, mut last) = (6, None);
    while last < receipt.position {
        let order = NewEvent::new("order").user(format!("u{users}")).external_id(format!("o{users}")).at_ms(BASE_MS);
        last = nodes[0].block_on(nodes[0].engine.track(poisoned, &order)).unwrap().position;
        users += 1;
    }
    check(&nodes, poisoned, users);
    assert_eq!(nodes[0].orders_by_a_scan(poisoned) as u64, users);
    // The next owner knows it, too.
    nodes.into_iter().for_each(ClusterNode::stop);
    let nodes = [cluster.join("c")];
    wait_until_served(&nodes[0]);
    check(&nodes, poisoned, users);
    assert_eq!((nodes[0].orders_by_a_scan(poisoned) as u64, set_aside(&nodes[0])), (users, 0));
    nodes.into_iter().for_each(ClusterNode::stop);
}
