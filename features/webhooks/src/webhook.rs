//! A webhook, as stored and as shown.

use std::collections::BTreeMap;
use std::fmt;

use headcount_api::endpoint::{ApiError, Fields, json_body};
use headcount_api::openapi::schemas;
use headcount_common::DocumentItem;
use headcount_control::{AuditAction, PlannedChange, RegistryError, Result, Secret, WebhookId, field_changes};
use headcount_domain::{Instant, OrganizationId, Position, ProjectId, named_values};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::openapi::schema::{Array, ArrayBuilder, Object};

/// The kind of documents that webhooks are.
pub(crate) const KIND: &str = "webhooks";
/// The maximum length of a URL, in bytes.
const MAX_URL_BYTES: usize = 2_048;
/// The prefix of the secrets that webhooks sign with.
pub(crate) const SECRET_PREFIX: &str = "whsec_";
/// How long the former secret signs beside a new one.
pub(crate) const BOTH_SIGN_MS: i64 = 24 * 60 * 60 * 1_000;

named_values! {
    /// A kind of event that a webhook sends.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum WebhookEvent by as_str {
        /// An event with `notify: true`.
        Notification = "notification",
    }
}

named_values! {
    /// The status of a webhook.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum WebhookStatus by as_str {
        /// It sends events.
        Active = "active",
        /// It waits. Events in between are sent when it is active again.
        Paused = "paused",
    }
}

/// A secret that signs requests. Debug output does not show it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct SigningSecret(String);

impl SigningSecret {
    /// Returns the signing form of a secret.
    pub(crate) fn of(secret: &Secret) -> Self {
        Self(secret.expose().to_owned())
    }

    /// Generates a number for a secret.
    pub(crate) fn random() -> Result<Self> {
        Ok(Self::of(&Secret::random(SECRET_PREFIX)?))
    }

    /// The key of the signature: the whole secret.
    pub(crate) fn key(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl fmt::Debug for SigningSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningSecret(redacted)")
    }
}

/// The secret before the current one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FormerSecret {
    pub(crate) secret: SigningSecret,
    pub(crate) valid_until: Instant,
}

/// A webhook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Webhook {
    /// The id of the webhook.
    pub id: WebhookId,
    /// The organization that owns it.
    pub organization: OrganizationId,
    /// The project whose notifications it sends.
    pub project: ProjectId,
    /// The URL that gets them.
    pub url: String,
    /// The kinds of events that it sends.
    pub events: Vec<WebhookEvent>,
    /// The status.
    pub status: WebhookStatus,
    /// The time of creation.
    pub created_at: Instant,
    /// The project's last position at that time. Only later notifications are sent.
    pub(crate) created_after: Position,
    pub(crate) secret: SigningSecret,
    pub(crate) former: Option<FormerSecret>,
}

impl DocumentItem for Webhook {
    type Id = WebhookId;
    const WHAT: &'static str = "webhook";

    fn is_of(&self, id: &WebhookId) -> bool {
        self.id == *id
    }
}

/// The settings of a new webhook.
#[derive(Debug, Clone)]
pub struct NewWebhook {
    /// The project.
    pub project: ProjectId,
    /// The URL.
    pub url: String,
    /// The kinds of events to send; `None` for notifications.
    pub events: Option<Vec<WebhookEvent>>,
}

json_body! {
    /// A change of a webhook: absent fields stay unchanged.
    #[derive(Clone, Default)]
    #[schema(as = WebhookPatchShape, example = json!({"status": "paused"}))]
    pub struct WebhookPatch {
        /// The new URL.
        #[schema(max_length = 2048)]
        url: Option<String> = optional("a string"),
        /// What is sent.
        #[schema(schema_with = events)]
        events: Option<Vec<WebhookEvent>> = with(optional_events),
        /// Whether it sends.
        #[schema(schema_with = webhook_status)]
        status: Option<WebhookStatus> = with(optional_status),
    }
}

impl Webhook {
    /// The secrets that sign at `now`, the current one first.
    pub(crate) fn secrets(&self, now: Instant) -> Vec<SigningSecret> {
        let former = self.former.iter().filter(|former| former.valid_until > now).map(|former| former.secret.clone());
        std::iter::once(self.secret.clone()).chain(former).collect()
    }

    /// Plans to create a webhook, to change it, or to remove it.
    pub(crate) fn plan(action: AuditAction, before: Option<&Self>, after: Option<Self>) -> Option<PlannedChange<Self>> {
        let Self { id, organization, .. } = before.or(after.as_ref())?;
        let (id, organization) = (id.clone(), *organization);
        let changes = field_changes(before.map(Self::shown), after.as_ref().map(Self::shown));
        Some(PlannedChange { id, organization, item: after, action: Some(action), changes })
    }

    /// The fields in the audit log.
    fn shown(&self) -> BTreeMap<&'static str, Value> {
        let Self { project, url, events, status, .. } = self;
        let project = json!(project.to_string());
        BTreeMap::from([("project_id", project), ("url", json!(url)), ("events", json!(events)), ("status", json!(status))])
    }
}

/// Checks the kinds of events of a webhook.
pub(crate) fn check_events(events: Option<Vec<WebhookEvent>>) -> Result<Option<Vec<WebhookEvent>>> {
    match events {
        Some(events) if events.is_empty() => Err(RegistryError::invalid("events", "must name at least one event")),
        Some(_) => Ok(Some(vec![WebhookEvent::Notification])),
        None => Ok(None),
    }
}

/// Checks a URL as far as possible without a connection. `check` knows the allowed hosts.
pub(crate) fn check_url(url: &str, check: impl FnOnce(&str) -> Result<String, String>) -> Result<String> {
    if url.len() > MAX_URL_BYTES {
        return Err(RegistryError::invalid("url", format!("must have at most {MAX_URL_BYTES} bytes")));
    }
    check(url).map_err(|message| RegistryError::invalid("url", message))
}

pub(crate) fn events() -> Array {
    let description = "What it sends: `notification`, an event with `notify: true`.";
    ArrayBuilder::new().items(schemas::named::<WebhookEvent>("What it sends.")).description(Some(description)).build()
}

pub(crate) fn webhook_status() -> Object {
    schemas::named::<WebhookStatus>("`active`: it sends; `paused`: it waits, and later sends what came meanwhile.")
}

pub(crate) fn optional_events(fields: &Fields<'_>, name: &str) -> Result<Option<Vec<WebhookEvent>>, ApiError> {
    let Some(names) = fields.optional::<Vec<String>>(name, "a list of strings")? else { return Ok(None) };
    let parse = |text: &String| text.parse().map_err(|error| ApiError::parameter(name, format!("{text:?} {error}")));
    names.iter().map(parse).collect::<Result<_, _>>().map(Some)
}

pub(crate) fn optional_status(fields: &Fields<'_>, name: &str) -> Result<Option<WebhookStatus>, ApiError> {
    let Some(text) = fields.optional::<String>(name, "a string")? else { return Ok(None) };
    text.parse().map(Some).map_err(|error| ApiError::parameter(name, format!("{text:?} {error}")))
}
