//! `headcount cluster drain`: makes a running node hand its partitions over.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use headcount_api::command::{Failure, duration, print};
use headcount_cluster::drain::Drain;
use serde::Serialize;

use crate::cli::threads::threaded_runtime;
use crate::config::Settings;

/// The interval at which the leases are polled.
const INTERVAL: Duration = Duration::from_millis(500);

#[derive(Debug, clap::Args)]
pub(super) struct DrainArgs {
    /// Addresses of brokers, such as nats://10.0.0.1:4222,10.0.0.2:4222,10.0.0.3:4222. One
    /// reachable broker is enough
    #[arg(value_name = "BROKERS", value_delimiter = ',', required = true)]
    brokers: Vec<String>,
    /// The node: its id, or the address at which other nodes reach it. `headcount cluster status`
    /// prints both
    #[arg(value_name = "NODE")]
    node: String,
    /// Let the node take partitions again
    #[arg(long)]
    undo: bool,
    /// How long to wait until the node has no partition
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "5m", conflicts_with = "undo")]
    timeout: Duration,
    /// Print one line of JSON
    #[arg(long)]
    json: bool,
}

/// The state of the node at the end.
#[derive(Debug, Serialize)]
struct Drained {
    node: String,
    drains: bool,
    partitions: usize,
}

/// Runs the command.
pub(super) fn run(settings: &Settings, args: &DrainArgs) -> Result<ExitCode, Failure> {
    let drained = threaded_runtime()?.block_on(drain(settings, args))?;
    print(args.json, &drained, || text(&drained))?;
    Ok(ExitCode::SUCCESS)
}

async fn drain(settings: &Settings, args: &DrainArgs) -> Result<Drained, Failure> {
    let cluster = Drain::open(&args.brokers, &settings.broker_credentials()).await?;
    let node = cluster.find(&args.node).await?;
    if args.undo {
        cluster.undo(&node).await?;
        let partitions = cluster.held_by(&node).await?.len();
        return Ok(Drained { node, drains: false, partitions });
    }
    cluster.begin(&node).await?;
    let began = Instant::now();
    loop {
        let is_known = cluster.is_known_to(&node).await?;
        let held = cluster.held_by(&node).await?;
        if is_known && held.is_empty() {
            return Ok(Drained { node, drains: true, partitions: 0 });
        }
        if began.elapsed() >= args.timeout && !is_known {
            return Err(Failure(format!("the node {node} does not report that it hands its partitions over: is it running?")));
        }
        if began.elapsed() >= args.timeout {
            return Err(Failure(still_held(&node, held.len(), &cluster.full_of(&held).await?)));
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

/// Reports that a node still has partitions, of which `full` have full streams.
fn still_held(node: &str, partitions: usize, full: &[u16]) -> String {
    let mut text = format!("the node {node} still has {partitions} partitions, and continues to hand them over");
    if full.is_empty() {
        text.push_str(": `headcount cluster status` shows whether another node can take them");
    } else {
        let numbers = full.iter().map(u16::to_string).collect::<Vec<_>>().join(", ");
        text.push_str(&format!(
            "; partitions with a full stream stay until the stream has room, since no other node could write to it: {numbers}"
        ));
    }
    text
}

fn text(Drained { node, drains, partitions }: &Drained) -> String {
    if *drains {
        format!("node {node} has no partition, and takes none until `headcount cluster drain --undo` or a restart")
    } else {
        format!("node {node} has {partitions} partitions, and takes more once no node has joined or left for a minute")
    }
}
