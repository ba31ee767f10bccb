//! `headcount share`.

use headcount_api::command::ManagementCommand;
use headcount_api::command::failure::Failure;
use headcount_api::command::managed_server::ManagedServer;
use headcount_api::command::request::{Body, Reply};

/// The project of a command about shares.
#[derive(Debug, clap::Args)]
pub struct ShareArgs {
    /// Project, by id or unique name [default: the only one]
    #[arg(long, value_name = "PROJECT")]
    project: Option<String>,
}

/// A command about the shares of a project.
#[derive(Debug, clap::Subcommand)]
pub enum ShareCommand {
    /// List the shares, oldest first
    List {
        #[command(flatten)]
        of: ShareArgs,
    },
    /// Create a share: a link that shows figures of the project. The link is printed only once
    Create {
        /// Name
        name: String,
        /// Include revenue
        #[arg(long)]
        revenue: bool,
        /// Time at which it expires, such as 2030-01-01T00:00:00Z
        #[arg(long, value_name = "TIME")]
        expires_at: Option<String>,
        /// Web origins whose pages may embed it in a frame, as a comma-separated list
        #[arg(long, value_name = "ORIGINS", value_delimiter = ',')]
        embed_origins: Option<Vec<String>>,
        #[command(flatten)]
        of: ShareArgs,
    },
    /// Revoke a share. The next request with it is refused
    Delete {
        /// Id of the share: shr_…
        share_id: String,
        #[command(flatten)]
        of: ShareArgs,
    },
}

impl ManagementCommand for ShareCommand {
    fn send(&self, server: &ManagedServer) -> Result<Reply, Failure> {
        let (Self::List { of } | Self::Create { of, .. } | Self::Delete { of, .. }) = self;
        let path = format!("/projects/{}/shares", server.client.project(of.project.as_deref())?);
        match self {
            Self::List { .. } => server.list(&path, "shares", &["share_id", "name", "revenue", "expires_at"]),
            // A server that this command starts would put its own address into the link.
            Self::Create { .. } if server.is_own => {
                Err(Failure("the link contains the address of the server: start it with `headcount serve` first".into()))
            }
            Self::Create { name, revenue, expires_at, embed_origins, .. } => {
                let body = Body::default().set("name", Some(name.as_str())).set("revenue", Some(*revenue));
                let body = body.set("expires_at", expires_at.as_deref()).list("embed_origins", embed_origins.as_deref());
                server.create(&path, &body)
            }
            Self::Delete { share_id, .. } => server.remove(&format!("{path}/{share_id}"), format!("revoked {share_id}")),
        }
    }
}
