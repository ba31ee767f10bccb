//! The commands that look after a cluster with a question to its brokers.

use std::collections::BTreeMap;
use std::process::ExitCode;

use headcount_api::command::{Failure, print, print_line};
use headcount_cluster::finalize::{Finalized, finalize};
use headcount_cluster::lease::Timing;
use headcount_cluster::node::KnownNode;
use headcount_cluster::restored::restored;
use headcount_cluster::status::{Status, resume, status};
use headcount_cluster::{AgreedLevels, ClusterRecord, Levels};

use crate::cli::threads::threaded_runtime;
use crate::config::Settings;

/// The flags of a command without others.
#[derive(Debug, clap::Args)]
pub(super) struct BrokerArgs {
    /// Addresses of brokers, such as nats://10.0.0.1:4222,10.0.0.2:4222,10.0.0.3:4222. One
    /// reachable broker is enough
    #[arg(value_name = "BROKERS", value_delimiter = ',', required = true)]
    brokers: Vec<String>,
    /// Print one line of JSON
    #[arg(long)]
    json: bool,
}

/// The flags of `cluster resume`.
#[derive(Debug, clap::Args)]
pub(super) struct ResumeArgs {
    /// Addresses of brokers, such as nats://10.0.0.1:4222,10.0.0.2:4222,10.0.0.3:4222. One
    /// reachable broker is enough
    #[arg(value_name = "BROKERS", value_delimiter = ',', num_args = 1, required = true)]
    brokers: Vec<String>,
    /// The numbers of the partitions, as `headcount cluster status` prints them
    #[arg(value_name = "PARTITION", required = true, value_parser = clap::value_parser!(u16).range(0..64))]
    partitions: Vec<u16>,
}

/// Prints the state of a cluster, as the brokers know it.
pub(super) fn run_status(settings: &Settings, BrokerArgs { brokers, json }: &BrokerArgs) -> Result<ExitCode, Failure> {
    let found = threaded_runtime()?.block_on(status(brokers, &settings.broker_credentials()))?;
    print(*json, &found, || status_text(&found))?;
    Ok(ExitCode::SUCCESS)
}

/// Ends an upgrade. From then on nodes write formats that only the new version reads. It is
/// idempotent.
pub(super) fn run_finalize(settings: &Settings, BrokerArgs { brokers, json }: &BrokerArgs) -> Result<ExitCode, Failure> {
    let credentials = settings.broker_credentials();
    let finalized = threaded_runtime()?.block_on(finalize(brokers, &credentials, Levels::own(), Timing::default()))?;
    print(*json, &finalized, || finalized_text(&finalized))?;
    Ok(ExitCode::SUCCESS)
}

/// Invalidates the entity tags and cursors of the time that a restore lost. It is idempotent.
pub(super) fn run_restored(settings: &Settings, BrokerArgs { brokers, json }: &BrokerArgs) -> Result<ExitCode, Failure> {
    let credentials = settings.broker_credentials();
    let record = threaded_runtime()?.block_on(restored(brokers, &credentials, Timing::default()))?;
    let text = || format!("cluster {}: earlier ETags and cursors are no longer valid; start the nodes", record.incarnation);
    print(*json, &record, text)?;
    Ok(ExitCode::SUCCESS)
}

/// Lets nodes take stopped partitions again.
pub(super) fn run_resume(settings: &Settings, args: &ResumeArgs) -> Result<ExitCode, Failure> {
    let credentials = settings.broker_credentials();
    let runtime = threaded_runtime()?;
    for partition in &args.partitions {
        match runtime.block_on(resume(&args.brokers, &credentials, *partition))? {
            Some(reason) => {
                print_line(format_args!("partition {partition} is resumed; it was stopped because {reason}"))?;
            }
            None => return Err(Failure(format!("partition {partition} is not stopped"))),
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn status_text(found: &Status) -> String {
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

fn finalized_text(Finalized { before, levels }: &Finalized) -> String {
    if before == levels {
        format!("the cluster already has {levels}: nothing to do")
    } else {
        format!("the cluster now has {levels} (before: {before}); nodes of the previous version can't join any more")
    }
}
