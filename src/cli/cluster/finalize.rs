//! `headcount cluster finalize`: ends an upgrade. From then on nodes write formats that only the
//! new version reads.

use std::process::ExitCode;

use headcount_api::command::failure::Failure;
use headcount_api::command::output::print;
use headcount_cluster::Levels;
use headcount_cluster::finalize::{Finalized, finalize};
use headcount_cluster::lease::Timing;

use crate::cli::threads::threaded_runtime;
use crate::config::Settings;

#[derive(Debug, clap::Args)]
pub(super) struct FinalizeArgs {
    /// Addresses of brokers, such as nats://10.0.0.1:4222,10.0.0.2:4222,10.0.0.3:4222. One
    /// reachable broker is enough
    #[arg(value_name = "BROKERS", value_delimiter = ',', required = true)]
    brokers: Vec<String>,
    /// Print one line of JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command. It is idempotent.
pub(super) fn run(settings: &Settings, args: &FinalizeArgs) -> Result<ExitCode, Failure> {
    let credentials = settings.broker_credentials();
    let asked = finalize(&args.brokers, &credentials, Levels::own(), Timing::default());
    let finalized = threaded_runtime()?.block_on(asked)?;
    print(args.json, &finalized, || text(&finalized))?;
    Ok(ExitCode::SUCCESS)
}

fn text(Finalized { before, levels }: &Finalized) -> String {
    if before == levels {
        format!("the cluster already has {levels}: nothing to do")
    } else {
        format!("the cluster now has {levels} (before: {before}); nodes of the previous version can't join any more")
    }
}
