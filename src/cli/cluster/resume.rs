//! `headcount cluster resume`: lets nodes take stopped partitions again.

use std::process::ExitCode;

use headcount_api::command::failure::Failure;
use headcount_api::command::output::print_line;
use headcount_cluster::status::resume;

use crate::cli::threads::threaded_runtime;
use crate::config::Settings;

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

/// Runs the command.
pub(super) fn run(settings: &Settings, args: &ResumeArgs) -> Result<ExitCode, Failure> {
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
