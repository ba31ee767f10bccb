//! How a command is written that sends a request to a server: `client` sends it, `request` has
//! bodies and replies, `output` prints.
//! `settings` is what a command knows of the program.

pub mod client;
pub mod credentials;
pub mod failure;
pub mod flags;
pub mod managed_server;
pub mod output;
pub mod request;
pub mod runtime;
pub mod saved_output;
pub mod settings;
pub mod text;

use clap::Subcommand;
use headcount_domain::OrganizationId;

use client::ServerFlags;
use failure::Failure;
use managed_server::ManagedServer;
use request::Reply;

/// The flags of every management command.
#[derive(Debug, clap::Args)]
pub struct CommonFlags {
    /// Print the answer of the API as one line of JSON
    #[arg(long, global = true)]
    pub json: bool,
    /// Organization, by id; needed if the data directory of a stopped server has several
    #[arg(long, value_name = "ORGANIZATION", global = true)]
    pub organization: Option<OrganizationId>,
    /// The flags that select a server.
    #[command(flatten)]
    pub server: ServerFlags,
}

/// The arguments of a command with subcommands.
#[derive(Debug, clap::Args)]
pub struct ManageArgs<C: Subcommand> {
    /// The flags of every management command.
    #[command(flatten)]
    pub common: CommonFlags,
    /// The subcommand.
    #[command(subcommand)]
    pub command: C,
}

/// The rights that a command needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rights {
    /// The rights of an API token of the organization.
    Organization,
    /// The rights of the root token, which creates organizations.
    Root,
}

/// A command that sends a request to the management API.
pub trait ManagementCommand {
    /// The rights that the request needs.
    fn rights(&self) -> Rights {
        Rights::Organization
    }

    /// Sends the request.
    ///
    /// # Errors
    /// The server refuses the request, or does not answer.
    fn send(&self, server: &ManagedServer) -> Result<Reply, Failure>;
}
