//! `headcount key`.

use super::ManagementCommand;
use super::managed_server::ManagedServer;
use super::request::{Body, Reply, find};
use crate::cli::failure::Failure;

/// A command about the public keys of a project.
#[derive(Debug, clap::Args)]
pub(crate) struct KeyArgs {
    /// Project, by id or unique name [default: the only one]
    #[arg(long, value_name = "PROJECT")]
    project: Option<String>,
}

/// A command about the public keys of a project.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum KeyCommand {
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
        let client = &server.client;
        let (Self::List { of } | Self::Create { of } | Self::Show { of, .. } | Self::Set { of, .. } | Self::Delete { of, .. }) =
            self;
        let path = format!("/projects/{}/keys", client.project(of.project.as_deref())?);
        match self {
            Self::List { .. } => {
                Ok(Reply::List { answer: client.get(&path)?, list: "keys", columns: &["public_key", "rate_limit", "burst"] })
            }
            Self::Create { .. } => client.post_once(&path, b"{}").map(Reply::Object),
            Self::Show { public_key, .. } => {
                let answer: Box<serde_json::value::RawValue> = client.get(&path)?;
                find(&answer, "keys", "public_key", public_key)
            }
            Self::Set { public_key, rate_limit, burst, .. } => {
                let body = Body::default().set("rate_limit", *rate_limit).set("burst", *burst);
                client.patch(&format!("{path}/{public_key}"), &body.json()?).map(Reply::Object)
            }
            Self::Delete { public_key, .. } => {
                client.delete(&format!("{path}/{public_key}"))?;
                Ok(Reply::Done(format!("deleted {public_key}")))
            }
        }
    }
}
