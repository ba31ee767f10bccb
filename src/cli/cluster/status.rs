//! `headcount cluster status`: the state of a cluster, as the brokers know it.

use std::collections::BTreeMap;
use std::process::ExitCode;

use headcount_api::command::failure::Failure;
use headcount_api::command::output::print;
use headcount_cluster::node::KnownNode;
use headcount_cluster::status::{Status, status};
use headcount_cluster::{AgreedLevels, ClusterRecord};

use crate::cli::threads::threaded_runtime;
use crate::config::Settings;

#[derive(Debug, clap::Args)]
pub(super) struct StatusArgs {
    /// Addresses of brokers, such as nats://10.0.0.1:4222,10.0.0.2:4222,10.0.0.3:4222. One
    /// reachable broker is enough
    #[arg(value_name = "BROKERS", value_delimiter = ',', required = true)]
    brokers: Vec<String>,
    /// Print one line of JSON, with each partition
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(super) fn run(settings: &Settings, args: &StatusArgs) -> Result<ExitCode, Failure> {
    let found = threaded_runtime()?.block_on(status(&args.brokers, &settings.broker_credentials()))?;
    print(args.json, &found, || text(&found))?;
    Ok(ExitCode::SUCCESS)
}

fn text(found: &Status) -> String {
    let ClusterRecord { incarnation, partitions, replicas, .. } = &found.cluster;
    let sum = |of: fn(&_) -> u64| found.partitions.iter().map(of).sum::<u64>();
    let (messages, bytes) = (sum(|partition| partition.messages), sum(|partition| partition.bytes));
    let mut lines = vec![
        format!("cluster {incarnation}: {partitions} partitions, replicas: {replicas}"),
        format!("levels: {}{}", found.levels.levels, finalized(&found.levels)),
        format!("{} control records", found.control_records),
        format!("{messages} messages in the partitions, {bytes} bytes"),
    ];
    let mut held = BTreeMap::<Option<&str>, usize>::new();
    for node in &found.nodes {
        held.insert(Some(&node.node), 0);
    }
    for partition in &found.partitions {
        *held.entry(partition.node.as_deref()).or_default() += 1;
    }
    lines.extend(held.into_iter().map(|(node, count)| match node {
        Some(node) => format!("node {node}{} has, or had last, {count} partitions", about(found, node)),
        None => format!("{count} partitions have no node"),
    }));
    lines.extend(found.partitions.iter().filter_map(|partition| {
        let reason = partition.stopped.as_ref()?;
        Some(format!("partition {} is stopped: {reason}", partition.partition))
    }));
    lines.join("\n")
}

/// The version that raised the levels, if any.
fn finalized(agreed: &AgreedLevels) -> String {
    if agreed.by.is_empty() { String::new() } else { format!(" (finalized by version {})", agreed.by) }
}

/// The address, version and state that a node reports.
fn about(found: &Status, node: &str) -> String {
    let Some(KnownNode { address, version, drains, ailment, levels, .. }) = found.nodes.iter().find(|known| known.node == node)
    else {
        return String::new();
    };
    let drains = match ailment {
        Some(reason) => format!(", hands its partitions over because {reason},"),
        None if *drains => ", is being drained,".to_owned(),
        None => String::new(),
    };
    let levels = if *levels == found.levels.levels { String::new() } else { format!(": {levels}") };
    format!(" at {address} (version {version}{levels}){drains}")
}
