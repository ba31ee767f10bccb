//! `headcount member`.

use headcount_api::command::ManagementCommand;
use headcount_api::command::failure::Failure;
use headcount_api::command::managed_server::ManagedServer;
use headcount_api::command::request::{Body, Reply};

/// The path of the members.
const PATH: &str = "/members";

/// A command about the members of the organization.
#[derive(Debug, clap::Subcommand)]
pub enum MemberCommand {
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

fn body(email: Option<&str>, role: Option<&str>, name: Option<&str>) -> Body {
    Body::default().set("email", email).set("role", role).set("name", name)
}

impl ManagementCommand for MemberCommand {
    fn send(&self, server: &ManagedServer) -> Result<Reply, Failure> {
        let path = |id: &str| format!("{PATH}/{id}");
        match self {
            Self::List => server.list(PATH, "members", &["member_id", "role", "email", "name"]),
            Self::Create { email, role, name } => server.create(PATH, &body(Some(email), Some(role), name.as_deref())),
            Self::Show { member_id } => server.show(&path(member_id)),
            Self::Set { member_id, email, role, name } => {
                server.change(&path(member_id), &body(email.as_deref(), role.as_deref(), name.as_deref()))
            }
            Self::Delete { member_id } => server.remove(&path(member_id), format!("removed {member_id} and the member's tokens")),
        }
    }
}
