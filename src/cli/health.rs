//! `headcount health`: reports as an exit code whether the running server is ready.

use std::process::ExitCode;
use std::time::Duration;

use headcount_api::command::{Failure, client, duration, print_line};

use crate::config::Settings;

/// The flags of `health`.
#[derive(Debug, clap::Args)]
pub(crate) struct HealthArgs {
    /// URL of the server [default: the server on the data directory]
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// How long to wait for the answer, such as 5s
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "5s")]
    timeout: Duration,
}

/// Runs the command. Fails with the server's reason if it is not ready.
pub(crate) fn run(settings: &Settings, args: &HealthArgs) -> Result<ExitCode, Failure> {
    client::check_ready(args.url.as_deref(), &settings.server_place(), args.timeout)?;
    print_line("ready")?;
    Ok(ExitCode::SUCCESS)
}
