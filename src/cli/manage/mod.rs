//! The commands of management: `organization`, `member`, `project`, `key`, `share`, `token`, `webhook`, `privacy` and `audit-log`.
//!
//! Each is one request of the management API, so it checks and answers the same. The request goes to the server that `--url` names, to the one that runs on
//! the data directory, or, if none does, to a server in this process, which ends with the command.

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
    /// Print the answer of the API, on one line
    #[arg(long, global = true)]
    json: bool,
    /// Organization, by id, if the data directory of a stopped server has several
    #[arg(long, value_name = "ORGANIZATION", global = true)]
    organization: Option<OrganizationId>,
    #[command(flatten)]
    server: ServerFlags,
}

/// The arguments of a command with commands of its own.
#[derive(Debug, clap::Args)]
pub(crate) struct ManageArgs<C: Subcommand> {
    #[command(flatten)]
    common: CommonFlags,
    #[command(subcommand)]
    command: C,
}

/// A command that is a request of the management API.
pub(crate) trait ManagementCommand {
    /// The rights that it needs.
    fn rights(&self) -> Rights {
        Rights::Organization
    }

    /// Sends the request.
    fn send(&self, server: &ManagedServer) -> Result<Reply, Failure>;
}

/// Runs a command with commands of its own.
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
