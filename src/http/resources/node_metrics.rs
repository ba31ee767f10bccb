//! The figures of a node of a cluster, for `/metrics`. Labels are partitions that the node holds,
//! of which there are 64.

use headcount_common::{HeldPartition, NodeVitals};
use prometheus::core::Collector;
use prometheus::{Counter, Gauge, GaugeVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry};

/// Adds the figures of a node.
pub(super) fn register(registry: &Registry, node: &NodeVitals) -> prometheus::Result<()> {
    let add = |figure: Box<dyn Collector>| registry.register(figure);
    for (name, help, value) in gauges(node) {
        let gauge = IntGauge::new(name, help)?;
        gauge.set(value);
        add(Box::new(gauge))?;
    }
    let takeovers = Opts::new("headcount_takeovers_total", "Partitions that this node took over, or could not, by outcome.");
    let takeovers = IntCounterVec::new(takeovers, &["outcome"])?;
    takeovers.with_label_values(&["served"]).inc_by(node.takeovers);
    takeovers.with_label_values(&["failed"]).inc_by(node.takeovers_failed);
    add(Box::new(takeovers))?;
    let time = Counter::new("headcount_takeover_seconds_total", "How long taking partitions over took, those that are served.")?;
    time.inc_by(node.takeover_time.as_secs_f64());
    add(Box::new(time))?;
    let longest = Gauge::new("headcount_takeover_longest_seconds", "How long the longest of them took since the start.")?;
    longest.set(node.longest_takeover.as_secs_f64());
    add(Box::new(longest))?;
    let retries = IntCounter::new("headcount_append_retries_total", "How often messages were sent to the brokers again.")?;
    retries.inc_by(node.append_retries);
    add(Box::new(retries))?;
    let help = "1 for each partition that no node may take, because the brokers lost what they had confirmed.";
    let stopped = IntGaugeVec::new(Opts::new("headcount_partition_stopped", help), &["partition"])?;
    for partition in &node.stopped {
        stopped.with_label_values(&[format!("{partition:03}")]).set(1);
    }
    add(Box::new(stopped))?;
    of_partitions(&node.held)?.into_iter().try_for_each(add)
}

/// The figures that are numbers of partitions, or yes and no: name, meaning and value.
fn gauges(node: &NodeVitals) -> [(&'static str, &'static str, i64); 4] {
    let count =
        |is_counted: fn(&&HeldPartition) -> bool| i64::try_from(node.held.iter().filter(is_counted).count()).unwrap_or(i64::MAX);
    [
        ("headcount_node_live", "1 if this node answers requests, 0 if it does not reach the brokers.", node.is_live.into()),
        ("headcount_node_draining", "1 if this node hands its partitions over, and takes none.", node.drains.into()),
        ("headcount_partitions_held", "Partitions that this node serves.", count(|held| held.is_served)),
        ("headcount_partitions_taking_over", "Partitions that this node is taking over.", count(|held| !held.is_served)),
    ]
}

/// The figures of each partition that is held.
fn of_partitions(held: &[HeldPartition]) -> prometheus::Result<[Box<dyn Collector>; 5]> {
    let labels = &["partition"];
    let whole = |name, help| IntGaugeVec::new(Opts::new(name, help), labels);
    let seconds = |name, help| GaugeVec::new(Opts::new(name, help), labels);
    let is_held = whole("headcount_partition_held", "1 if this node serves the partition, 0 if it is taking it over.")?;
    let epoch = whole("headcount_partition_epoch", "The epoch of the partition's lease.")?;
    let position = whole("headcount_partition_position", "The last position that an event confirmed by the brokers can have.")?;
    let left = seconds("headcount_partition_lease_seconds", "How long the lease lasts if it is not renewed.")?;
    let waits =
        seconds("headcount_partition_append_waiting_seconds", "For how long an append waits for the brokers; 0: none does.")?;
    for partition in held {
        let label = &[format!("{:03}", partition.partition)];
        is_held.with_label_values(label).set(partition.is_served.into());
        epoch.with_label_values(label).set(i64::try_from(partition.epoch).unwrap_or(i64::MAX));
        position.with_label_values(label).set(i64::try_from(partition.position).unwrap_or(i64::MAX));
        left.with_label_values(label).set(partition.lease_left.as_secs_f64());
        waits.with_label_values(label).set(partition.append_waits.as_secs_f64());
    }
    Ok([Box::new(is_held), Box::new(epoch), Box::new(position), Box::new(left), Box::new(waits)])
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use prometheus::TextEncoder;

    use super::*;

    #[test]
    fn the_figures_of_a_node_are_written() {
        let held = |partition, is_served| HeldPartition {
            partition,
            epoch: 9,
            lease_left: Duration::from_millis(8_500),
            is_served,
            position: 16_383,
            append_waits: Duration::from_millis(250),
        };
        let node = NodeVitals {
            is_live: true,
            drains: true,
            held: vec![held(3, true), held(63, false)],
            stopped: vec![5],
            takeovers: 2,
            takeovers_failed: 1,
            takeover_time: Duration::from_millis(1_500),
            longest_takeover: Duration::from_secs(1),
            append_retries: 4,
        };
        let registry = Registry::new();
        register(&registry, &node).unwrap();
        let text = TextEncoder::new().encode_to_string(&registry.gather()).unwrap();
        for line in [
            "headcount_node_live 1",
            "headcount_node_draining 1",
            "headcount_partitions_held 1",
            "headcount_partitions_taking_over 1",
            "headcount_takeovers_total{outcome=\"served\"} 2",
            "headcount_takeovers_total{outcome=\"failed\"} 1",
            "headcount_takeover_seconds_total 1.5",
            "headcount_takeover_longest_seconds 1",
            "headcount_append_retries_total 4",
            "headcount_partition_stopped{partition=\"005\"} 1",
            "headcount_partition_held{partition=\"003\"} 1",
            "headcount_partition_held{partition=\"063\"} 0",
            "headcount_partition_epoch{partition=\"003\"} 9",
            "headcount_partition_position{partition=\"003\"} 16383",
            "headcount_partition_lease_seconds{partition=\"003\"} 8.5",
            "headcount_partition_append_waiting_seconds{partition=\"003\"} 0.25",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
    }
}
