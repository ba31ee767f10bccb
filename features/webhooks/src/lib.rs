//! Webhooks: the addresses that get a project's notifications, and their progress.
//!
//! A notification is an event with `notify: true`. It is not stored a second time: a webhook stores
//! the position up to which all notifications are done, and reads later ones from the project's
//! history. So a stop at any moment loses none. It can only repeat one, with the same id and the
//! same bytes.
//!
//! `sender.rs` sends. When a receiver fails, `sending.rs` (`tried`) retries or gives up;
//! `request.rs` has the pauses.

#![forbid(unsafe_code)]

mod changes;
mod cli;
mod feature;
mod held;
mod http;
mod moved;
mod progress;
mod request;
mod sender;
mod sending;
mod store;
mod webhook;

use headcount_api::endpoints;
use headcount_api::endpoints::Endpoints;

pub use cli::WebhookCommand;
pub use moved::MOVED;
pub use progress::{Delivery, DeliveryPage, DeliveryQuery, DeliveryStatus, MAX_DELIVERIES};
pub use request::{CheckUrl, Deliver, SignedRequest, WebhookSettings};
pub use store::{MAX_WEBHOOKS, Rotation, WebhookPage, WebhookQuery, WebhookReplay, Webhooks, install};
pub use webhook::{NewWebhook, Webhook, WebhookEvent, WebhookPatch, WebhookStatus};

/// The endpoints.
pub const ENDPOINTS: Endpoints = endpoints! {
    http => list: Organization(Admin, Admin);
    http => create: Organization(Admin, Admin), ByHandler;
    http => show: Organization(Admin, Admin);
    http => change: Organization(Admin, Admin);
    http => remove: Organization(Admin, Admin);
    http => rotate_secret: Organization(Admin, Admin);
    http => deliveries: Organization(Admin, Admin), OwnerOf(Reads, http::project_of);
    http => replay: Organization(Admin, Admin), OwnerOf(Records, http::project_of);
};
