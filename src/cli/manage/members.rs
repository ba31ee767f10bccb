//! `headcount member`.

use super::ManagementCommand;
use super::managed_server::ManagedServer;
use super::request::{Body, Reply};
use crate::cli::failure::Failure;

/// The path of the members.
const PATH: &str = "/members";

/// A command about the members of the organization.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum MemberCommand {
    /// List the members, oldest first
    List,
    /// Create a member, a person with API tokens
    Create {
        /// E-mail address
        #[arg(long)]
        email: String,
        /// Role: owner, admin or member
        #[arg(long)]
        role: String,
        /// Name
        #[arg(long)]
        name: Option<String>,
    },
    /// Show a member
    Show {
        /// Id of the member: mem_…
        member_id: String,
    },
    /// Change a member. Only the fields with a flag change
    Set {
        /// Id of the member: mem_…
        member_id: String,
        /// New e-mail address
        #[arg(long)]
        email: Option<String>,
        /// New role: owner, admin or member
        #[arg(long)]
        role: Option<String>,
        /// New name; "" removes it
        #[arg(long)]
        name: Option<String>,
    },
    /// Remove a member, and revoke the member's tokens
    Delete {
        /// Id of the member: mem_…
        member_id: String,
    },
}

fn body(email: Option<&str>, role: Option<&str>, name: Option<&str>) -> Result<Vec<u8>, Failure> {
    Body::default().set("email", email).set("role", role).set("name", name).json()
}

impl ManagementCommand for MemberCommand {
    fn send(&self, server: &ManagedServer) -> Result<Reply, Failure> {
        let client = &server.client;
        let path = |id: &str| format!("{PATH}/{id}");
        match self {
            Self::List => {
                Ok(Reply::List { answer: client.get(PATH)?, list: "members", columns: &["member_id", "role", "email", "name"] })
            }
            Self::Create { email, role, name } => {
                client.post_once(PATH, &body(Some(email), Some(role), name.as_deref())?).map(Reply::Object)
            }
            Self::Show { member_id } => client.get(&path(member_id)).map(Reply::Object),
            Self::Set { member_id, email, role, name } => {
                let body = body(email.as_deref(), role.as_deref(), name.as_deref())?;
                client.patch(&path(member_id), &body).map(Reply::Object)
            }
            Self::Delete { member_id } => {
                client.delete(&path(member_id))?;
                Ok(Reply::Done(format!("removed {member_id} and the member's tokens")))
            }
        }
    }
}
