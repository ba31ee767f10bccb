//! The management commands: `organization`, `member`, `project`, `key`, `share`, `token`,
//! `webhook`, `privacy` and `audit-log`.
//!
//! Each command is one request of the management API, with the same checks and answers. The request
//! goes to the server of `--url`, else to the server on the data directory. If no server runs
//! there, this process starts one and stops it at the end.

mod audit_log;
mod keys;
mod managed_server;
mod members;
mod organizations;
mod privacy;
mod projects;
mod request;
mod shares;
mod text;
mod tokens;
mod webhooks;

use std::process::ExitCode;

use clap::Subcommand;
use headcount_domain::ids::OrganizationId;

use super::client::ServerFlags;
use super::failure::Failure;
use crate::config::Settings;
pub(crate) use audit_log::AuditLogArgs;
pub(crate) use keys::KeyCommand;
use managed_server::{ManagedServer, Rights};
pub(crate) use members::MemberCommand;
pub(crate) use organizations::OrganizationCommand;
pub(crate) use privacy::PrivacyCommand;
pub(crate) use projects::ProjectCommand;
use request::Reply;
pub(crate) use shares::ShareCommand;
pub(crate) use tokens::TokenCommand;
pub(crate) use webhooks::WebhookCommand;

/// The flags of every management command.
#[derive(Debug, clap::Args)]
struct CommonFlags {
    /// Print the answer of the API as one line of JSON
    #[arg(long, global = true)]
    json: bool,
    /// Organization, by id; needed if the data directory of a stopped server has several
    #[arg(long, value_name = "ORGANIZATION", global = true)]
    organization: Option<OrganizationId>,
    #[command(flatten)]
    server: ServerFlags,
}

/// The arguments of a command with subcommands.
#[derive(Debug, clap::Args)]
pub(crate) struct ManageArgs<C: Subcommand> {
    #[command(flatten)]
    common: CommonFlags,
    #[command(subcommand)]
    command: C,
}

/// A command that sends a request to the management API.
pub(crate) trait ManagementCommand {
    /// The rights that the request needs.
    fn rights(&self) -> Rights {
        Rights::Organization
    }

    /// Sends the request.
    fn send(&self, server: &ManagedServer) -> Result<Reply, Failure>;
}

/// Runs a command with subcommands.
pub(crate) fn run<C: Subcommand + ManagementCommand>(settings: &Settings, args: &ManageArgs<C>) -> Result<ExitCode, Failure> {
    execute(settings, &args.common, &args.command)
}

/// Runs `audit-log`.
pub(crate) fn audit_log(settings: &Settings, args: &AuditLogArgs) -> Result<ExitCode, Failure> {
    execute(settings, &args.common, &args.query)
}

fn execute(settings: &Settings, common: &CommonFlags, command: &impl ManagementCommand) -> Result<ExitCode, Failure> {
    let server = ManagedServer::open(settings, &common.server, common.organization, command.rights())?;
    let reply = command.send(&server);
    server.close();
    reply?.print(common.json)?;
    Ok(ExitCode::SUCCESS)
}
