//! `headcount audit-log`.

use headcount_api::command::failure::Failure;
use headcount_api::command::managed_server::ManagedServer;
use headcount_api::command::request::{Reply, asking};
use headcount_api::command::{CommonFlags, ManagementCommand};

/// The arguments of `audit-log`.
#[derive(Debug, clap::Args)]
pub struct AuditLogArgs {
    #[command(flatten)]
    pub common: CommonFlags,
    #[command(flatten)]
    pub query: AuditLogQuery,
}

/// The entries to list.
#[derive(Debug, clap::Args)]
pub struct AuditLogQuery {
    /// Only entries of this action, such as api_token.revoked
    #[arg(long)]
    action: Option<String>,
    /// Only entries about the object with this id
    #[arg(long, value_name = "ID")]
    target_id: Option<String>,
    /// Most entries to list, 1 to 100 [default: 20]
    #[arg(long, value_name = "N")]
    limit: Option<u32>,
    /// Only entries older than this one: aud_…
    #[arg(long, value_name = "ID")]
    starting_after: Option<String>,
}

impl ManagementCommand for AuditLogQuery {
    fn send(&self, server: &ManagedServer) -> Result<Reply, Failure> {
        let Self { action, target_id, limit, starting_after } = self;
        let limit = limit.map(|limit| limit.to_string());
        let parameters = [("action", action), ("target_id", target_id), ("limit", &limit), ("starting_after", starting_after)];
        server.list(&asking("/audit-log", parameters), "entries", &["at", "action", "target", "actor", "id"])
    }
}
