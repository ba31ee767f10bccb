//! Verification that the server counted what it acknowledged.

use headcount_domain::ids::ProjectId;
use serde::Deserialize;

use super::report::Verified;
use crate::cli::client::Client;
use crate::cli::failure::Failure;

/// The counts of a project at one time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Counts {
    orders: i64,
    users: i64,
}

#[derive(Deserialize)]
struct Metrics {
    orders: i64,
}

#[derive(Deserialize)]
struct UniqueUsers {
    total_unique_users: i64,
}

/// Reads the counts from the server.
pub(crate) fn counts(client: &Client, project: ProjectId) -> Result<Counts, Failure> {
    let Metrics { orders } = client.get(&format!("/projects/{project}/revenue/metrics"))?;
    let path = format!("/projects/{project}/analytics/count-unique-users-per-day");
    let UniqueUsers { total_unique_users } = client.post(&path, b"{}")?;
    Ok(Counts { orders, users: total_unique_users })
}

/// Finds the project of a public key.
pub(crate) fn project_of(client: &Client, public_key: &str) -> Result<ProjectId, Failure> {
    let projects = client.projects()?;
    let mut found = projects.iter().filter(|project| project.public_keys.iter().any(|key| key == public_key));
    let project = found.next().and_then(|project| project.project_id.parse().ok());
    project.ok_or_else(|| Failure("the token's organization has no project with this public key: give --project".into()))
}

impl Counts {
    /// Compares the increase since then with what was sent.
    pub(crate) fn compare(self, after: Self, orders_sent: u64, users_sent: u64, any_unanswered: bool) -> Verified {
        let (orders, users) = (after.orders - self.orders, after.users - self.users);
        let same = |sent: u64, counted: i64| {
            let sent = i64::try_from(sent).unwrap_or(i64::MAX);
            sent == counted || (any_unanswered && counted > sent)
        };
        let agrees = same(orders_sent, orders) && same(users_sent, users);
        Verified { orders_sent, orders_counted: orders, users_sent, users_counted: users, agrees }
    }
}
