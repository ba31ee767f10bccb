//! The requests to receivers: the body, its id, its signature, the secret that signs, how they are
//! sent, and when they are tried again.
//!
//! Only a random number of a secret is stored: the secret is computed from it with the key of the
//! installation.

use std::fmt::{self, Write as _};
use std::sync::Arc;
use std::time::Duration;

use headcount_actors::LiveNotification;
use headcount_common::secrets::Signer;
use headcount_control::{Secret, WebhookId};
use headcount_domain::ids::public_id;
use headcount_domain::{Event, Instant, Position};
use headcount_outbound::{AllowList, Method, Outbound, OutboundRequest};
use hmac::{Hmac, Mac};
use serde::Serialize;
use sha2::Sha256;

use crate::webhook::{SECRET_PREFIX, SigningSecret, Webhook};

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
    pub(crate) received: Instant,
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
        size_of::<Self>() + self.shown.bytes()
    }

    pub(crate) fn position(&self) -> Position {
        self.shown.position
    }

    pub(crate) fn event_id(&self) -> &str {
        &self.shown.event_id
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

/// Returns the secret for a number, with the installation's key.
pub(crate) fn secret_of(signer: &Signer, number: &SigningSecret) -> Secret {
    let mut text = SECRET_PREFIX.to_owned();
    signer.sign(&[LABEL, number.key()]).iter().take(SECRET_BYTES).for_each(|byte| {
        let _infallible = write!(text, "{byte:02x}");
    });
    Secret::derived(text)
}

/// A request of a webhook: a POST of JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedRequest {
    /// The URL.
    pub url: String,
    /// The value of the header `headcount-signature`.
    pub signature: String,
    /// The body: the same for each try.
    pub body: Vec<u8>,
    /// The time limit.
    pub timeout: Duration,
}

/// Checks a URL without connecting, and returns it as it is to be stored. The error is in words.
pub type CheckUrl = Arc<dyn Fn(&str) -> Result<String, String> + Send + Sync>;
/// Sends a request, and returns the status of the answer, or a stable code, such as `timeout`, if
/// there was no answer. Redirects are not followed. Blocks.
pub type Deliver = Arc<dyn Fn(&SignedRequest) -> Result<u16, &'static str> + Send + Sync>;

/// The settings of webhooks.
#[derive(Clone)]
pub struct WebhookSettings {
    /// Checks URLs.
    pub check: CheckUrl,
    /// Sends requests.
    pub deliver: Deliver,
    /// The pause after each failed try of a notification. The last one repeats.
    pub waits: Vec<Duration>,
    /// How long a notification is tried.
    pub give_up_after: Duration,
    /// The time limit of an answer.
    pub timeout: Duration,
    /// Whether webhooks are sent. Commands on a stopped data directory only manage them.
    pub sends: bool,
}

impl WebhookSettings {
    /// Creates settings with the waits 1, 5, 30 s, 2, 10, 30 min, 1 h and so on, for 24 hours, and
    /// 10 s for an answer.
    pub fn new(check: CheckUrl, deliver: Deliver) -> Self {
        Self {
            check,
            deliver,
            waits: [1, 5, 30, 120, 600, 1_800, 3_600].map(Duration::from_secs).to_vec(),
            give_up_after: Duration::from_secs(24 * 60 * 60),
            timeout: Duration::from_secs(10),
            sends: true,
        }
    }

    /// Settings with which requests only go to globally reachable addresses, and to addresses that
    /// the operator allows.
    pub fn guarded(allowed: AllowList) -> Self {
        let client = Outbound::new(concat!("headcount/", env!("CARGO_PKG_VERSION")), allowed);
        let checking = client.clone();
        let check = move |url: &str| checking.parse(url).map(Into::into).map_err(|error| format!("can't be used: {error}"));
        Self::new(Arc::new(check), Arc::new(move |request: &SignedRequest| send(&client, request)))
    }

    /// Returns the pause after the failure number `attempts`.
    pub(crate) fn wait_after(&self, attempts: u32) -> Duration {
        let at = usize::try_from(attempts.saturating_sub(1)).unwrap_or(usize::MAX);
        self.waits.get(at).or(self.waits.last()).copied().unwrap_or(Duration::from_secs(1))
    }
}

fn send(client: &Outbound, SignedRequest { url, signature, body, timeout }: &SignedRequest) -> Result<u16, &'static str> {
    let url = client.parse(url).map_err(|_| "blocked_address")?;
    let headers = vec![("content-type", "application/json".to_owned()), ("headcount-signature", signature.clone())];
    let (body, timeout) = (Some(body.clone()), *timeout);
    let request = OutboundRequest { method: Method::Post, url, headers, body, timeout, most_body_bytes: None };
    client.send(&request).map(|response| response.status).map_err(|error| error.code())
}

impl fmt::Debug for WebhookSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebhookSettings").field("waits", &self.waits).finish_non_exhaustive()
    }
}
