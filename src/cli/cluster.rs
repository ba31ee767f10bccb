//! `headcount cluster`: the brokers that several machines would share.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Subcommand;
use headcount_cluster::Credentials;
use headcount_cluster::check::{Broker, Options, Report, Trial, check};

use super::failure::Failure;
use super::output;
use super::runtime::runtime;

/// The flags of `cluster`.
#[derive(Debug, clap::Args)]
pub(crate) struct ClusterArgs {
    #[command(subcommand)]
    command: ClusterCommand,
}

#[derive(Debug, Subcommand)]
enum ClusterCommand {
    /// Check whether NATS brokers keep what a cluster relies on: their versions and settings, and a trial with a stream that is deleted afterwards
    Check(CheckArgs),
}

#[derive(Debug, clap::Args)]
struct CheckArgs {
    /// Addresses of all brokers, such as nats://10.0.0.1:4222,10.0.0.2:4222,10.0.0.3:4222
    #[arg(value_name = "BROKERS", value_delimiter = ',', required = true)]
    brokers: Vec<String>,
    /// Monitoring addresses of all brokers (`http` in their configuration), such as http://10.0.0.1:8222; they tell whether a broker syncs each message
    #[arg(long, value_name = "URLS", value_delimiter = ',')]
    monitors: Vec<String>,
    /// File of credentials for the brokers, as `nsc` writes it
    #[arg(long, value_name = "FILE")]
    nats_creds: Option<PathBuf>,
    /// On how many brokers each message has to be
    #[arg(long, value_name = "NUMBER", default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=5))]
    replicas: u8,
    /// How many messages the trial records
    #[arg(long, value_name = "NUMBER", default_value_t = 200, value_parser = clap::value_parser!(u16).range(1..=2000))]
    messages: u16,
    /// Print one line of JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command. The exit code is 1 if there are problems.
pub(crate) fn run(args: ClusterArgs) -> Result<ExitCode, Failure> {
    let ClusterCommand::Check(args) = args.command;
    let options = Options {
        brokers: args.brokers,
        monitors: args.monitors,
        credentials: args.nats_creds.map_or(Credentials::None, Credentials::File),
        replicas: args.replicas.into(),
        messages: args.messages.into(),
    };
    let report = runtime()?.block_on(check(&options));
    output::print(args.json, &report, || text(&report))?;
    Ok(if report.problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn text(report: &Report) -> String {
    let mut lines: Vec<String> = report.brokers.iter().map(broker).collect();
    lines.extend(report.problems.iter().map(|problem| format!("problem: {problem}")));
    if let Some(Trial { messages, p50_ms, p99_ms, take_over_ms }) = report.trial {
        lines.push(format!("{messages} messages recorded, one after the other: p50 {p50_ms:.1} ms, p99 {p99_ms:.1} ms"));
        lines.push(format!("taken over by another owner in {take_over_ms:.1} ms; the former one could not write any more"));
        lines.push("these brokers can carry a cluster".to_owned());
    }
    lines.join("\n")
}

fn broker(broker: &Broker) -> String {
    let cluster = broker.cluster.as_ref().map_or_else(|| "in no cluster".to_owned(), |cluster| format!("in cluster {cluster}"));
    let syncs = match broker.syncs_always {
        Some(true) => "syncs each message",
        Some(false) => "does not sync each message",
        None => "may not sync each message",
    };
    format!("{} at {}: version {}, {cluster}, {syncs}", broker.name, broker.address, broker.version)
}
