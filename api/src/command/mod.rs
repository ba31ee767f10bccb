//! How a command is written that sends a request to a server: `client` sends it, `request` has
//! bodies and replies, `output` prints.
//! `settings` is what a command knows of the program.

pub mod client;
mod credentials;
mod failure;
mod flags;
mod managed_server;
mod output;
mod request;
mod runtime;
mod saved_output;
mod settings;
mod text;

use clap::Subcommand;
use headcount_domain::OrganizationId;

pub use client::{Client, OperatorFlags, ServerFlags, ServerPlace, is_held, pick};
pub use credentials::{CREDENTIALS_FILE, InitialCredentials, describe_sign_in};
pub use failure::Failure;
pub use flags::{duration, parse_duration};
pub use managed_server::ManagedServer;
pub use output::{print, print_line};
pub use request::{Body, Reply, all, asking};
pub use runtime::{runtime, since_epoch, stop_signal, threaded_runtime};
pub use saved_output::SavedOutput;
pub use settings::{CommandSettings, ProcessServer};
pub use text::unexpected;

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
