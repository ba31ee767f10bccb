//! `headcount cluster`: the NATS brokers that the nodes of a cluster share.

mod drain;
mod init;
mod moving;
mod status;

use std::process::ExitCode;
use std::time::Duration;

use clap::Subcommand;
use headcount_api::command::{Failure, duration, print, runtime};
use headcount_cluster::bench::{self, BenchOptions, Measured};
use headcount_cluster::check::{Broker, CheckOptions, Report, Trial, check};

use super::threads::threaded_runtime;
use crate::config::Settings;

/// The flags of `cluster`.
#[derive(Debug, clap::Args)]
pub(crate) struct ClusterArgs {
    #[command(subcommand)]
    command: ClusterCommand,
}

#[derive(Debug, Subcommand)]
enum ClusterCommand {
    /// Check whether NATS brokers meet the requirements of a cluster: their versions, their
    /// settings, and a trial on a temporary stream
    Check(CheckArgs),
    /// Create a cluster on NATS brokers, with the first organization. Prints its keys, and saves
    /// them in a new data directory
    Init(init::ClusterInitArgs),
    /// Print the state of a cluster: control records, messages, nodes, and the partitions of each
    /// node
    Status(status::BrokerArgs),
    /// Make a running node hand its partitions over, before maintenance
    Drain(drain::DrainArgs),
    /// Finalize an upgrade once all nodes run this version: from then on they write formats that
    /// earlier versions can't read
    Finalize(status::BrokerArgs),
    /// Resume a partition that was stopped because the brokers lost confirmed messages
    Resume(status::ResumeArgs),
    /// Declare that brokers and files were restored from copies, before the nodes start.
    /// Invalidates ETags and cursors of the lost time
    Restored(status::BrokerArgs),
    /// Measure how many events NATS brokers record, on temporary streams
    Bench(BenchArgs),
}

#[derive(Debug, clap::Args)]
struct CheckArgs {
    /// Addresses of all brokers, such as nats://10.0.0.1:4222,10.0.0.2:4222,10.0.0.3:4222
    #[arg(value_name = "BROKERS", value_delimiter = ',', required = true)]
    brokers: Vec<String>,
    /// Monitoring addresses of all brokers (`http` in their configuration), such as
    /// http://10.0.0.1:8222; they show whether a broker syncs each message
    #[arg(long, value_name = "URLS", value_delimiter = ',')]
    monitors: Vec<String>,
    /// Number of brokers that must have each message
    #[arg(long, value_name = "NUMBER", default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=5))]
    replicas: u8,
    /// Number of messages that the trial records
    #[arg(long, value_name = "NUMBER", default_value_t = 200, value_parser = clap::value_parser!(u16).range(1..=2000))]
    messages: u16,
    /// Print one line of JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct BenchArgs {
    /// Addresses of all brokers, such as nats://10.0.0.1:4222,10.0.0.2:4222,10.0.0.3:4222
    #[arg(value_name = "BROKERS", value_delimiter = ',', required = true)]
    brokers: Vec<String>,
    /// Number of brokers that must have each message
    #[arg(long, value_name = "NUMBER", default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=5))]
    replicas: u8,
    /// Number of partitions, each with its own stream
    #[arg(long, value_name = "NUMBER", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=64))]
    partitions: u16,
    /// Number of submissions in flight for each partition
    #[arg(long, value_name = "NUMBER", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=1024))]
    in_flight: u16,
    /// Number of events in a submission
    #[arg(long, value_name = "NUMBER", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=8192))]
    batch: u32,
    /// Encoded size of an event, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 200, value_parser = clap::value_parser!(u16).range(1..=800))]
    event_bytes: u16,
    /// How long to record, such as 10s
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "10s")]
    duration: Duration,
    /// Print one line of JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(settings: &Settings, args: ClusterArgs) -> Result<ExitCode, Failure> {
    match args.command {
        ClusterCommand::Check(args) => run_check(settings, args),
        ClusterCommand::Init(args) => init::run(settings, args),
        ClusterCommand::Status(args) => status::run_status(settings, &args),
        ClusterCommand::Drain(args) => drain::run(settings, &args),
        ClusterCommand::Finalize(args) => status::run_finalize(settings, &args),
        ClusterCommand::Resume(args) => status::run_resume(settings, &args),
        ClusterCommand::Restored(args) => status::run_restored(settings, &args),
        ClusterCommand::Bench(args) => run_bench(settings, args),
    }
}

fn run_bench(settings: &Settings, args: BenchArgs) -> Result<ExitCode, Failure> {
    let options = BenchOptions {
        brokers: args.brokers,
        credentials: settings.broker_credentials(),
        replicas: args.replicas.into(),
        partitions: args.partitions,
        in_flight: args.in_flight.into(),
        batch: args.batch,
        event_bytes: args.event_bytes.into(),
        duration: args.duration,
    };
    let runtime = threaded_runtime()?;
    let measured = bench::measure(runtime.handle(), &options)?;
    print(args.json, &measured, || {
        let Measured { events, seconds, events_per_second, p50_ms, p99_ms, read_seconds } = measured;
        format!(
            "{events} events recorded in {seconds:.1} s: {events_per_second:.0} events/s, p50 {p50_ms:.1} ms, p99 {p99_ms:.1} ms\n\
             all of them read back in {read_seconds:.1} s"
        )
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Runs the command. The exit code is 1 if there are problems.
fn run_check(settings: &Settings, args: CheckArgs) -> Result<ExitCode, Failure> {
    let options = CheckOptions {
        brokers: args.brokers,
        monitors: args.monitors,
        credentials: settings.broker_credentials(),
        replicas: args.replicas.into(),
        messages: args.messages.into(),
        files: settings.files.clone(),
    };
    let report = runtime()?.block_on(check(&options));
    print(args.json, &report, || text(&report))?;
    Ok(if report.problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn text(report: &Report) -> String {
    let mut lines: Vec<String> = report.brokers.iter().map(broker).collect();
    lines.extend(report.problems.iter().map(|problem| format!("problem: {problem}")));
    if let Some(Trial { messages, p50_ms, p99_ms, take_over_ms }) = report.trial {
        lines.push(format!("{messages} messages recorded, one after the other: p50 {p50_ms:.1} ms, p99 {p99_ms:.1} ms"));
        lines.push(format!("a new owner took over in {take_over_ms:.1} ms; the former owner could no longer write"));
        lines.push("these brokers can carry a cluster".to_owned());
    }
    lines.extend(report.files.iter().map(|place| format!("files can be kept at {place}")));
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
