//! `headcount key`.

use headcount_api::command::ManagementCommand;
use headcount_api::command::failure::Failure;
use headcount_api::command::managed_server::ManagedServer;
use headcount_api::command::request::{Body, Reply};

/// A command about the public keys of a project.
#[derive(Debug, clap::Args)]
pub struct KeyArgs {
    /// Project, by id or unique name [default: the only one]
    #[arg(long, value_name = "PROJECT")]
    project: Option<String>,
}

/// A command about the public keys of a project.
#[derive(Debug, clap::Subcommand)]
pub enum KeyCommand {
    /// List the keys that are valid, oldest first
    List {
        #[command(flatten)]
        of: KeyArgs,
    },
    /// Add a key; the others stay valid
    Create {
        #[command(flatten)]
        of: KeyArgs,
    },
    /// Show a key and its rate limit
    Show {
        /// Public key
        public_key: String,
        #[command(flatten)]
        of: KeyArgs,
    },
    /// Change the rate limit of a key
    Set {
        /// Public key
        public_key: String,
        /// Events per second; 0 removes the limit
        #[arg(long, value_name = "N")]
        rate_limit: Option<u32>,
        /// Burst: events at once after a pause [default: the events of one second]
        #[arg(long, value_name = "N")]
        burst: Option<u32>,
        #[command(flatten)]
        of: KeyArgs,
    },
    /// Remove a key. The next request with it is refused
    Delete {
        /// Public key
        public_key: String,
        #[command(flatten)]
        of: KeyArgs,
    },
}

impl ManagementCommand for KeyCommand {
    fn send(&self, server: &ManagedServer) -> Result<Reply, Failure> {
        let (Self::List { of } | Self::Create { of } | Self::Show { of, .. } | Self::Set { of, .. } | Self::Delete { of, .. }) =
            self;
        let path = format!("/projects/{}/keys", server.client.project(of.project.as_deref())?);
        match self {
            Self::List { .. } => server.list(&path, "keys", &["public_key", "rate_limit", "burst"]),
            Self::Create { .. } => server.create(&path, &Body::default()),
            Self::Show { public_key, .. } => server.find(&path, "keys", "public_key", public_key),
            Self::Set { public_key, rate_limit, burst, .. } => {
                let body = Body::default().set("rate_limit", *rate_limit).set("burst", *burst);
                server.change(&format!("{path}/{public_key}"), &body)
            }
            Self::Delete { public_key, .. } => server.remove(&format!("{path}/{public_key}"), format!("deleted {public_key}")),
        }
    }
}
