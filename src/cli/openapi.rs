//! `headcount openapi`: prints the OpenAPI document without a server.

use std::io::{self, Write};
use std::process::ExitCode;

use headcount_api::command::Failure;

use crate::http::endpoints;

/// Runs the command.
pub(crate) fn run() -> Result<ExitCode, Failure> {
    let mut output = io::stdout().lock();
    output.write_all(endpoints::json().as_bytes())?;
    output.write_all(b"\n")?;
    output.flush()?;
    Ok(ExitCode::SUCCESS)
}
