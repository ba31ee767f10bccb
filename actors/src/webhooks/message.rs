//! The requests to receivers: the body, its id, its signature, and the secret that signs.
//!
//! Only a random number of a secret is stored: the secret is computed from it with the key of the
//! installation.

use std::fmt::Write as _;

use headcount_common::secrets::Signer;
use headcount_control::{Secret, WEBHOOK_SECRET_PREFIX, WebhookId};
use headcount_domain::ids::public_id;
use headcount_domain::intake::event::{Event, Position};
use headcount_domain::time::Instant;
use hmac::{Hmac, Mac};
use serde::Serialize;
use sha2::Sha256;

use super::webhook::{SigningSecret, Webhook};
use crate::live::LiveNotification;

/// The maximum age of an event at its receipt, to be sent.
const MAX_AGE_MS: i64 = 24 * 60 * 60 * 1_000;

/// The id of a delivery: the same for each try, and each replay.
pub(crate) fn delivery_id(webhook: &WebhookId, position: Position) -> String {
    public_id("dlv_", position, 2, webhook.as_str())
}

/// A notification to send.
#[derive(Debug, Clone)]
pub(crate) struct Notification {
    shown: LiveNotification,
    /// The time when it was received.
    received: Instant,
}

#[derive(Serialize)]
struct Body<'a> {
    id: String,
    #[serde(rename = "type")]
    kind: &'static str,
    webhook_id: &'a WebhookId,
    project_id: String,
    position: Position,
    created_at: String,
    data: Data<'a>,
}

#[derive(Serialize)]
struct Data<'a> {
    event_id: &'a str,
    name: &'a str,
    message: Option<&'a str>,
    channel: Option<&'a str>,
    at: String,
}

impl Notification {
    /// Returns the notification of an event, if it is to be sent.
    pub(crate) fn of(position: Position, event: &Event) -> Option<Self> {
        let shown = LiveNotification::of(position, event)?;
        (event.received.0.saturating_sub(event.time.0) <= MAX_AGE_MS).then_some(Self { shown, received: event.received })
    }

    /// Returns its approximate memory, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let LiveNotification { event_id, name, message, channel, .. } = &self.shown;
        let texts = [Some(event_id), Some(name), message.as_ref(), channel.as_ref()];
        size_of::<Self>() + texts.into_iter().flatten().map(String::len).sum::<usize>()
    }

    pub(crate) fn position(&self) -> Position {
        self.shown.position
    }

    pub(crate) fn event_id(&self) -> &str {
        &self.shown.event_id
    }

    pub(crate) fn received(&self) -> Instant {
        self.received
    }

    /// Returns the body for a webhook. It depends only on the event, so that each try has the same
    /// bytes.
    pub(crate) fn body(&self, webhook: &Webhook) -> serde_json::Result<Vec<u8>> {
        let LiveNotification { position, event_id, name, message, channel, at } = &self.shown;
        serde_json::to_vec(&Body {
            id: delivery_id(&webhook.id, *position),
            kind: "notification",
            webhook_id: &webhook.id,
            project_id: webhook.project.to_string(),
            position: *position,
            created_at: self.received.to_string(),
            data: Data { event_id, name, message: message.as_deref(), channel: channel.as_deref(), at: at.to_string() },
        })
    }
}

/// Returns the header that proves the sender and the time of `body` to the receiver: HMAC-SHA256 of
/// `<t>.<body>`, once for each secret.
pub(crate) fn signature(secrets: &[SigningSecret], now: Instant, body: &[u8]) -> String {
    let seconds = now.0.div_euclid(1_000);
    let mut header = format!("t={seconds}");
    for secret in secrets {
        // HMAC takes keys of any length.
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret.key()) else { continue };
        mac.update(format!("{seconds}.").as_bytes());
        mac.update(body);
        header.push_str(",v1=");
        for byte in mac.finalize().into_bytes() {
            header.push_str(&format!("{byte:02x}"));
        }
    }
    header
}

/// The text that is signed with the installation's key, before the number.
const LABEL: &[u8] = b"headcount webhook secret 1";

/// The number of bytes of the signature in a secret.
const SECRET_BYTES: usize = 16;

/// The installation's key, for secrets of webhooks only.
#[derive(Debug, Clone)]
pub(crate) struct WebhookKey(Signer);

impl WebhookKey {
    pub(crate) fn new(signer: Signer) -> Self {
        Self(signer)
    }

    /// Returns the secret for a number.
    pub(super) fn secret_of(&self, number: &SigningSecret) -> Secret {
        let mut text = WEBHOOK_SECRET_PREFIX.to_owned();
        self.0.sign(&[LABEL, number.key()]).iter().take(SECRET_BYTES).for_each(|byte| {
            let _infallible = write!(text, "{byte:02x}");
        });
        Secret::derived(text)
    }
}
