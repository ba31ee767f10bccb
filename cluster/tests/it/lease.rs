//! Leases of nodes that compete.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use headcount_cluster::lease::{Candidate, Failures, Holder, Lease, LeaseError, Leases, Timing};

use crate::brokers::Brokers;

const TIMING: Timing = Timing { held: Duration::from_millis(1000), taken_after: Duration::from_millis(1200) };

fn holder(node: &str) -> Holder {
    Holder { node: node.to_owned(), boot: "boot".to_owned() }
}

/// Asks until the lease is taken.
async fn wait_for(candidate: &mut Candidate) -> Lease {
    loop {
        if let Some(lease) = candidate.take().await.unwrap() {
            return lease;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_is_held_until_it_is_not_renewed_or_released() {
    let Some(brokers) = Brokers::start(1).await else { return };
    let leases = Leases::create(&brokers.connect().await, "hc", 1, TIMING).await.unwrap();
    let mut first = leases.candidate("lease.007", holder("a")).take().await.unwrap().unwrap();
    let mut other = leases.candidate("lease.007", holder("b"));
    // Another lease is free.
    assert!(leases.candidate("lease.008", holder("b")).take().await.unwrap().is_some());
    // Renewed for longer than it would be valid otherwise.
    let mut renewed = Instant::now();
    for _ in 0..20 {
        renewed = Instant::now();
        first.renew().await.unwrap();
        assert!(first.is_valid());
        assert!(other.take().await.unwrap().is_none());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    // No longer renewed: it ends before another node has it.
    let mut second = wait_for(&mut other).await;
    assert!(renewed.elapsed() >= TIMING.held);
    assert!(!first.is_valid() && second.is_valid());
    assert!(second.epoch > first.epoch);
    assert!(matches!(first.renew().await, Err(LeaseError::Lost(_))));
    assert!(!first.is_valid());
    assert!(matches!(first.release().await, Err(LeaseError::Lost(_))));
    second.renew().await.unwrap();
    second.release().await.unwrap();
    // Released: another node has it at once.
    let released = leases.candidate("lease.007", holder("b")).look().await.unwrap();
    assert!(released.is_free && !released.is_own);
    let third = leases.candidate("lease.007", holder("a")).take().await.unwrap().unwrap();
    // So does the next process of the same node, but not after another start of its machine.
    let rebooted = Holder { boot: "another".to_owned(), ..holder("a") };
    assert!(leases.candidate("lease.007", rebooted).take().await.unwrap().is_none());
    let own = leases.candidate("lease.007", holder("a")).look().await.unwrap();
    assert!(own.is_free && own.is_own);
    let fourth = leases.candidate("lease.007", holder("a")).take().await.unwrap().unwrap();
    assert!(fourth.epoch > third.epoch);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_says_who_could_not_serve() {
    let Some(brokers) = Brokers::start(1).await else { return };
    let leases = Leases::create(&brokers.connect().await, "hc", 1, TIMING).await.unwrap();
    let take = async |node: &str| leases.candidate("lease.001", holder(node)).take().await.unwrap().unwrap();
    let failed = async || leases.candidate("lease.001", holder("x")).look().await.unwrap().failed;
    let of = |failures: &[(&str, u32, bool)]| -> BTreeMap<String, Failures> {
        let one = |(node, times, tries_again): &(&str, u32, bool)| {
            ((*node).to_owned(), Failures { times: *times, tries_again: *tries_again })
        };
        failures.iter().map(one).collect()
    };
    take("a").await.fail().await.unwrap();
    take("b").await.fail().await.unwrap();
    assert_eq!(failed().await, of(&[("a", 1, false), ("b", 1, false)]));
    let mut third = take("c").await;
    third.serves();
    third.renew().await.unwrap();
    third.release_to("a").await.unwrap();
    assert_eq!(failed().await, of(&[("a", 1, true), ("b", 1, false)]));
    take("a").await.fail().await.unwrap();
    assert_eq!(failed().await, of(&[("a", 2, false), ("b", 1, false)]));
    let mut served = take("a").await;
    served.serves();
    served.renew().await.unwrap();
    assert_eq!(failed().await, of(&[("b", 1, false)]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_lease_is_left_alone() {
    let Some(brokers) = Brokers::start(1).await else { return };
    let leases = Leases::create(&brokers.connect().await, "hc", 1, TIMING).await.unwrap();
    let client = async_nats::connect(brokers.addresses()).await.unwrap();
    let store = async_nats::jetstream::new(client).get_key_value("hc").await.unwrap();
    store.put("lease.000", "{}".into()).await.unwrap();
    let taken = leases.candidate("lease.000", holder("a")).take().await;
    assert!(matches!(taken, Err(LeaseError::Unreadable { key, .. }) if key == "lease.000"));
}

/// A time in which a node considered itself the owner.
#[derive(Debug, Clone, Copy)]
struct Owned {
    epoch: u64,
    from: Instant,
    until: Instant,
}

/// Takes the lease repeatedly. Either gives it up, or stops renewing it and continues while it is
/// valid.
async fn compete(mut candidate: Candidate, end: Instant, owned: Arc<Mutex<Vec<Owned>>>) {
    while Instant::now() < end {
        let Ok(Some(mut lease)) = candidate.take().await else {
            tokio::time::sleep(Duration::from_millis(fastrand::u64(5..50))).await;
            continue;
        };
        let from = Instant::now();
        let mut until = from;
        for _ in 0..fastrand::u32(1..8) {
            tokio::time::sleep(Duration::from_millis(fastrand::u64(20..150))).await;
            let now = Instant::now();
            if lease.is_valid() {
                until = now;
            }
            if matches!(lease.renew().await, Err(LeaseError::Lost(_))) {
                break;
            }
        }
        let is_released = fastrand::bool();
        loop {
            let now = Instant::now();
            if !lease.is_valid() {
                break;
            }
            until = now;
            if is_released {
                break;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        owned.lock().unwrap().push(Owned { epoch: lease.epoch, from, until });
        if is_released {
            let _ = lease.release().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_node_at_a_time_is_the_owner_while_brokers_are_killed() {
    let Some(mut brokers) = Brokers::start(3).await else { return };
    let leases = Leases::create(&brokers.connect().await, "hc", 3, TIMING).await.unwrap();
    let (owned, end) = (Arc::new(Mutex::new(Vec::new())), Instant::now() + Duration::from_secs(20));
    let mut nodes = Vec::new();
    for node in ["a", "b", "c"] {
        let connection = brokers.connect().await;
        let leases = Leases::create(&connection, "hc", 3, TIMING).await.unwrap_or_else(|_| leases.clone());
        nodes.push(tokio::spawn(compete(leases.candidate("lease.000", holder(node)), end, Arc::clone(&owned))));
    }
    for _ in 0..2 {
        tokio::time::sleep(Duration::from_secs(5)).await;
        let leader = brokers.leader_of("KV_hc").await;
        brokers.kill(leader);
        brokers.restart(leader);
    }
    for node in nodes {
        node.await.unwrap();
    }
    let mut owned = std::mem::take(&mut *owned.lock().unwrap());
    owned.sort_by_key(|owned| owned.from);
    // While brokers elect a leader, no node makes progress for some seconds.
    assert!(owned.len() > 3, "only {} times", owned.len());
    for pair in owned.windows(2) {
        let [first, second] = pair else { unreachable!() };
        assert!(first.until <= second.from && first.epoch < second.epoch, "{first:?} {second:?}");
    }
}
