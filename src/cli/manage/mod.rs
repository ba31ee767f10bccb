//! The management commands, such as `project` and `privacy`.
//!
//! Each command is one request of the management API, with the same checks and answers. The request
//! goes to the server of `--url`, else to the server on the data directory. If no server runs
//! there, this process starts one and stops it at the end.

mod managed_server;

use std::process::ExitCode;

use clap::Subcommand;
use headcount_api::command::{CommonFlags, Failure, ManageArgs, ManagementCommand};

use crate::config::Settings;

/// Runs a command with subcommands.
pub(crate) fn run<C: Subcommand + ManagementCommand>(settings: &Settings, args: &ManageArgs<C>) -> Result<ExitCode, Failure> {
    execute(settings, &args.common, &args.command)
}

/// Runs a command on the server of the data directory, or the one that the flags name.
pub(crate) fn execute(settings: &Settings, common: &CommonFlags, command: &impl ManagementCommand) -> Result<ExitCode, Failure> {
    let (server, own) = managed_server::open(settings, common, command.rights())?;
    let reply = command.send(&server);
    if let Some(own) = own {
        own.close();
    }
    reply?.print(common.json)?;
    Ok(ExitCode::SUCCESS)
}
