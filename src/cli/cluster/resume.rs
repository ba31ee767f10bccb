//! `headcount cluster resume`: has nodes take a partition again that was stopped.

use std::process::ExitCode;

use headcount_cluster::status::resume;

use crate::cli::failure::Failure;
use crate::cli::runtime::threaded_runtime;
use crate::config::Settings;

#[derive(Debug, clap::Args)]
pub(super) struct ResumeArgs {
    /// Addresses of brokers, such as nats://10.0.0.1:4222,10.0.0.2:4222,10.0.0.3:4222; one that answers is enough
    #[arg(value_name = "BROKERS", value_delimiter = ',', required = true)]
    brokers: Vec<String>,
    /// The number of the partition, as `headcount cluster status` prints it
    #[arg(value_name = "PARTITION", value_parser = clap::value_parser!(u16).range(0..64))]
    partition: u16,
}

/// Runs the command.
pub(super) fn run(settings: &Settings, args: &ResumeArgs) -> Result<ExitCode, Failure> {
    let credentials = settings.broker_credentials();
    match threaded_runtime()?.block_on(resume(&args.brokers, &credentials, args.partition))? {
        Some(reason) => println!("nodes take partition {} again; it was stopped because: {reason}", args.partition),
        None => return Err(Failure(format!("partition {} is not stopped", args.partition))),
    }
    Ok(ExitCode::SUCCESS)
}
