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
pub mod cli;
mod held;
pub mod http;
mod moved;
mod progress;
mod request;
mod sender;
mod sending;
mod store;
mod webhook;

pub use moved::MOVED;
pub use progress::{Delivery, DeliveryPage, DeliveryQuery, DeliveryStatus, MAX_DELIVERIES};
pub use request::{CheckUrl, Deliver, SignedRequest, WebhookSettings};
pub use store::{MAX_WEBHOOKS, Rotation, WebhookPage, WebhookQuery, WebhookReplay, Webhooks, install};
pub use webhook::{NewWebhook, Webhook, WebhookEvent, WebhookPatch, WebhookStatus};

/// The kind of documents that webhooks are.
const KIND: &str = "webhooks";
