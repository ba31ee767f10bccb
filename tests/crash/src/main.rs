//! See [`headcount_crash`].

#![allow(clippy::expect_used, clippy::disallowed_methods, reason = "test support")]

use std::process::ExitCode;

use clap::Parser as _;
use headcount_crash::arguments::{Arguments, Campaign};
use headcount_crash::trouble::{Result, Trouble, harness};
use headcount_crash::{damage, disk_full, faults, kill, overload, power, prove};
use tokio::signal::unix::{SignalKind, signal};

/// Exit codes: 0 done, or skipped (loudly); 1 the server broke a promise; 2 the harness failed.
fn main() -> ExitCode {
    let Arguments { campaign } = Arguments::parse();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let local = tokio::task::LocalSet::new();
    match runtime.block_on(local.run_until(until_told_to_stop(campaign))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(trouble) => {
            println!("{trouble}");
            match trouble {
                Trouble::Violation(_) => ExitCode::from(1),
                Trouble::Harness(_) => ExitCode::from(2),
                Trouble::Skipped(_) => ExitCode::SUCCESS,
            }
        }
    }
}

/// On a signal everything is dropped: servers are killed, file systems unmounted, directories removed.
async fn until_told_to_stop(campaign: Campaign) -> Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    tokio::select! {
        result = run(campaign) => result,
        _ = terminate.recv() => Err(harness("told to stop")),
        _ = interrupt.recv() => Err(harness("told to stop")),
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
        Campaign::Prove(common) => prove::run(&common),
    }
}
