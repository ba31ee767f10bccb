//! Command-line program of [`headcount_crash`].

#![allow(clippy::expect_used, clippy::disallowed_methods, reason = "test support")]

use std::process::ExitCode;

use clap::Parser as _;
use headcount_crash::arguments::{Arguments, Campaign};
use headcount_crash::error::{CampaignError, Result, harness};
use headcount_crash::{cluster, damage, disk_full, faults, kill, overload, power, prove};
use tokio::signal::unix::{SignalKind, signal};

/// Exit codes: 0 success or skipped, 1 a violation by the server, 2 a failure of the harness.
fn main() -> ExitCode {
    let Arguments { campaign } = Arguments::parse();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let local = tokio::task::LocalSet::new();
    match runtime.block_on(local.run_until(run_until_signal(campaign))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("{error}");
            match error {
                CampaignError::Violation(_) => ExitCode::from(1),
                CampaignError::Harness(_) => ExitCode::from(2),
                CampaignError::Skipped(_) => ExitCode::SUCCESS,
            }
        }
    }
}

/// Runs the campaign until a signal arrives. Dropping it kills its servers, unmounts file systems
/// and removes directories.
async fn run_until_signal(campaign: Campaign) -> Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    tokio::select! {
        result = run(campaign) => result,
        _ = terminate.recv() => Err(harness("interrupted by a signal")),
        _ = interrupt.recv() => Err(harness("interrupted by a signal")),
    }
}

async fn run(campaign: Campaign) -> Result<()> {
    match campaign {
        Campaign::Kill(common) => kill::run(&common).await,
        Campaign::Power(common) => power::run(&common).await,
        Campaign::Damage(common) => damage::run(&common).await,
        Campaign::Overload(common) => overload::run(&common).await,
        Campaign::DiskFull(common) => disk_full::run(&common).await,
        Campaign::Faults(arguments) => faults::run(&arguments).await,
        Campaign::Cluster(arguments) => cluster::run(&arguments).await,
        Campaign::Prove(arguments) => prove::run(&arguments),
    }
}
