//! Webhooks: the addresses that get a project's notifications, and their progress.
//!
//! A notification is an event with `notify: true`. It is not stored a second time: a webhook stores
//! the position up to which all notifications are done, and reads later ones from the project's
//! history. So a stop at any moment loses none. It can only repeat one, with the same id and the
//! same bytes.
//!
//! `engine/webhook_sender.rs` sends. When a receiver fails, `store.rs` (`tried`) retries or gives
//! up; `transport.rs` has the pauses.

mod changes;
mod delivery;
mod held;
mod message;
#[cfg(feature = "cluster")]
mod moved;
mod outlook;
mod store;
mod transport;
mod webhook;

pub use delivery::{Delivery, DeliveryPage, DeliveryQuery, DeliveryStatus, MAX_DELIVERIES};
#[cfg(feature = "cluster")]
pub use moved::WebhookDocuments;
pub use outlook::{Rotation, WebhookFigures, WebhookPage, WebhookQuery, WebhookReplay};
pub use store::MAX_WEBHOOKS;
pub use transport::{Deliver, DeliveryFailure, SignedRequest, WebhookSettings};
pub use webhook::{NewWebhook, Webhook, WebhookEvent, WebhookPatch, WebhookStatus};

pub(crate) use delivery::{DeliveryProgress, PROGRESS_SUFFIX};
pub(crate) use message::{Notification, signature};
#[cfg(feature = "cluster")]
pub(crate) use moved::{MovedWebhook, write_moved};
pub(crate) use outlook::{DeliveryAttempt, Outlook};
pub(crate) use store::{WEBHOOKS_DIR, Webhooks};
