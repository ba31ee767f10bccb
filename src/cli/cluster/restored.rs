//! `headcount cluster restored`: invalidates the entity tags and cursors of the time that a restore
//! lost.

use std::process::ExitCode;

use headcount_api::command::failure::Failure;
use headcount_api::command::output::print;
use headcount_cluster::lease::Timing;
use headcount_cluster::restored::restored;

use crate::cli::threads::threaded_runtime;
use crate::config::Settings;

#[derive(Debug, clap::Args)]
pub(super) struct RestoredArgs {
    /// Addresses of brokers, such as nats://10.0.0.1:4222,10.0.0.2:4222,10.0.0.3:4222. One
    /// reachable broker is enough
    #[arg(value_name = "BROKERS", value_delimiter = ',', required = true)]
    brokers: Vec<String>,
    /// Print one line of JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command. It is idempotent.
pub(super) fn run(settings: &Settings, args: &RestoredArgs) -> Result<ExitCode, Failure> {
    let credentials = settings.broker_credentials();
    let record = threaded_runtime()?.block_on(restored(&args.brokers, &credentials, Timing::default()))?;
    let text = || format!("cluster {}: earlier ETags and cursors are no longer valid; start the nodes", record.incarnation);
    print(args.json, &record, text)?;
    Ok(ExitCode::SUCCESS)
}
