//! `headcount-load`: a load generator, cheap enough to run on the same machine as the server.
//!
//! Results go to standard output, progress and errors to standard error. Exit codes: 0 for success,
//! 1 for a failure or a misbehaving server, 2 for a wrong command line.

mod args;
mod chart;
mod client;
mod compare;
mod crowd;
mod destinations;
mod events;
mod failure;
mod http;
mod ledger;
mod measured;
mod mix;
mod pace;
mod page;
mod process;
mod progress;
mod ramp;
mod report;
mod run;
mod sending;
mod spread;
mod usage;
mod verify;
mod visitor;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    match run::run(&args::LoadArgs::parse()) {
        Ok(code) => code,
        Err(failure) => {
            eprintln!("headcount-load: {failure}");
            ExitCode::FAILURE
        }
    }
}
