//! `headcount webhook`.

use headcount_api::command::{Body, Failure, ManagedServer, ManagementCommand, Reply, asking};

/// The path of the webhooks.
const PATH: &str = "/webhooks";

/// A command about webhooks, which receive notifications.
#[derive(Debug, clap::Subcommand)]
pub enum WebhookCommand {
    /// List the webhooks, newest first
    List {
        /// The most webhooks: 1 to 100
        #[arg(long)]
        limit: Option<u32>,
        /// Only webhooks older than this one: wh_…
        #[arg(long)]
        starting_after: Option<String>,
    },
    /// Create a webhook, and print its signing secret. The secret is shown only once
    Create {
        /// Project whose notifications the webhook receives
        #[arg(long)]
        project: String,
        /// URL that receives the notifications
        #[arg(long, value_name = "URL")]
        to: String,
        /// Kinds of events to send, separated by commas: notification
        #[arg(long, value_delimiter = ',')]
        events: Option<Vec<String>>,
    },
    /// Show a webhook
    Show {
        /// Id of the webhook: wh_…
        webhook_id: String,
    },
    /// Change a webhook; without a flag, nothing changes
    Set {
        /// Id of the webhook: wh_…
        webhook_id: String,
        /// New URL
        #[arg(long, value_name = "URL")]
        to: Option<String>,
        /// Kinds of events to send, separated by commas: notification
        #[arg(long, value_delimiter = ',')]
        events: Option<Vec<String>>,
        /// Status: active or paused. Notifications of a paused webhook wait until it is active
        /// again
        #[arg(long)]
        status: Option<String>,
    },
    /// Remove a webhook
    Delete {
        /// Id of the webhook: wh_…
        webhook_id: String,
    },
    /// List the deliveries of a webhook, latest first
    Deliveries {
        /// Id of the webhook: wh_…
        webhook_id: String,
        /// Only deliveries with this status: pending, delivered or dead
        #[arg(long)]
        status: Option<String>,
        /// The most deliveries: 1 to 100
        #[arg(long)]
        limit: Option<u32>,
        /// Only deliveries before this one: dlv_…
        #[arg(long)]
        starting_after: Option<String>,
    },
    /// Send all notifications from a position again
    Replay {
        /// Id of the webhook: wh_…
        webhook_id: String,
        /// Position of the first notification
        #[arg(long)]
        from_position: u64,
    },
    /// Create a new signing secret, and print it once. For 24 hours the old secret signs, too
    RotateSecret {
        /// Id of the webhook: wh_…
        webhook_id: String,
    },
}

fn path(id: &str) -> String {
    format!("{PATH}/{id}")
}

impl ManagementCommand for WebhookCommand {
    fn send(&self, server: &ManagedServer) -> Result<Reply, Failure> {
        let number = |number: &Option<u32>| number.map(|number| number.to_string());
        match self {
            Self::List { limit, starting_after } => {
                let path = asking(PATH, [("limit", &number(limit)), ("starting_after", starting_after)]);
                server.list(&path, "webhooks", &["id", "project_id", "status", "url"])
            }
            Self::Create { project, to, events } => {
                let body = Body::default().set("project_id", Some(&**project)).set("url", Some(&**to));
                server.create(PATH, &body.list("events", events.as_deref()))
            }
            Self::Show { webhook_id } => server.show(&path(webhook_id)),
            Self::Set { webhook_id, to, events, status } => {
                let body = Body::default().set("url", to.as_deref()).set("status", status.as_deref());
                server.change(&path(webhook_id), &body.list("events", events.as_deref()))
            }
            Self::Delete { webhook_id } => server.remove(&path(webhook_id), format!("removed {webhook_id}")),
            Self::Deliveries { webhook_id, status, limit, starting_after } => {
                let parameters = [("status", status), ("limit", &number(limit)), ("starting_after", starting_after)];
                let path = asking(&format!("{PATH}/{webhook_id}/deliveries"), parameters);
                server.list(&path, "deliveries", &["id", "position", "status", "attempts", "last_status", "last_error"])
            }
            Self::Replay { webhook_id, from_position } => {
                let body = Body::default().set("from_position", Some(*from_position));
                server.create(&format!("{PATH}/{webhook_id}/replay"), &body)
            }
            Self::RotateSecret { webhook_id } => server.create(&format!("{PATH}/{webhook_id}/rotate-secret"), &Body::default()),
        }
    }
}
