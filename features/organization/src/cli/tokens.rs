//! `headcount token`.

use headcount_api::command::ManagementCommand;
use headcount_api::command::failure::Failure;
use headcount_api::command::managed_server::ManagedServer;
use headcount_api::command::request::{Body, Reply, all};
use headcount_control::Scope;

/// The path of the tokens.
const PATH: &str = "/api-tokens";

/// A command about API tokens.
#[derive(Debug, clap::Subcommand)]
pub enum TokenCommand {
    /// List the tokens, without their secrets, oldest first
    List,
    /// Create a token, and print its secret. The secret is shown only once
    Create {
        /// Name
        #[arg(long)]
        name: String,
        /// Role: owner, admin or member
        #[arg(long)]
        role: String,
        /// Scopes, separated by commas, such as analytics:read,revenue:read [default: all]
        #[arg(long, value_delimiter = ',')]
        scopes: Option<Vec<String>>,
        /// Limit the token to one project, by id or unique name [default: all projects]
        #[arg(long, value_name = "PROJECT")]
        project: Option<String>,
        /// Member who owns the token, by id. The lower of the two roles applies, and removing the
        /// member revokes the token
        #[arg(long, value_name = "MEMBER")]
        member: Option<String>,
        /// Time at which it expires (RFC 3339) [default: never]
        #[arg(long, value_name = "TIME")]
        expires_at: Option<String>,
    },
    /// Show a token, without its secret
    Show {
        /// Id of the token: tok_…
        token_id: String,
    },
    /// Change a token. Only the settings with a flag change
    Set {
        /// Id of the token: tok_…
        token_id: String,
        /// Name
        #[arg(long)]
        name: Option<String>,
        /// Requests per second; 0 removes the limit
        #[arg(long, value_name = "N")]
        rate_limit: Option<u32>,
        /// Burst: requests at once after a pause [default: the requests of one second]
        #[arg(long, value_name = "N")]
        burst: Option<u32>,
    },
    /// Revoke a token. The next request with it is refused
    Revoke {
        /// Id of the token: tok_…
        token_id: String,
    },
}

impl ManagementCommand for TokenCommand {
    fn send(&self, server: &ManagedServer) -> Result<Reply, Failure> {
        match self {
            Self::List => server.list(PATH, "api_tokens", &["token_id", "role", "project_id", "expires_at", "name"]),
            Self::Create { name, role, scopes, project, member, expires_at } => {
                let project = project.as_deref().map(|project| server.client.project(Some(project))).transpose()?;
                let body = Body::default()
                    .set("name", Some(name.as_str()))
                    .set("role", Some(role.as_str()))
                    .set("project_id", project.map(|id| id.to_string()))
                    .set("member_id", member.as_deref())
                    .set("expires_at", expires_at.as_deref());
                let body = match scopes {
                    Some(scopes) => body.list("scopes", Some(scopes)),
                    None => body.set("scopes", Some(all(Scope::ALL)?)),
                };
                server.create(PATH, &body)
            }
            Self::Show { token_id } => server.find(PATH, "api_tokens", "token_id", token_id),
            Self::Set { token_id, name, rate_limit, burst } => {
                let body = Body::default().set("name", name.as_deref()).set("rate_limit", *rate_limit).set("burst", *burst);
                server.change(&format!("{PATH}/{token_id}"), &body)
            }
            Self::Revoke { token_id } => server.remove(&format!("{PATH}/{token_id}"), format!("revoked {token_id}")),
        }
    }
}
