//! `/webhooks`.

use headcount_actors::admission_gate::Holder;
use headcount_api::endpoint::*;
use headcount_api::extract::body::{self, BodyContent, Media};
use headcount_api::forward::travel::Travel;
use headcount_api::forward::{forward, way};
use headcount_api::management::{self, on_feature};
use headcount_api::openapi::schemas;
use headcount_control::{Secret, WebhookId};
use headcount_domain::{Position, ProjectId, Timezone};
use utoipa::openapi::schema::Object;

use crate::progress::{Delivery, DeliveryQuery, DeliveryStatus};
use crate::store::{WebhookQuery, Webhooks};
use crate::webhook::{NewWebhook, Webhook, WebhookEvent, WebhookPatch, WebhookStatus, events, optional_events, webhook_status};

fn delivery_status() -> Object {
    schemas::named::<DeliveryStatus>("`pending`: it is tried; `delivered`: the receiver took it; `dead`: it was given up.")
}

json_body! {
    /// A new webhook.
    #[schema(example = json!({"project_id": "prj_00000000001", "url": "https://hooks.example.com/headcount", "events": ["notification"]}))]
    pub(crate) struct NewWebhookShape {
        /// The project whose notifications are sent.
        project_id: String = required("a string"),
        /// Where they are sent: an `http` or `https` URL. Only globally reachable addresses are connected to.
        #[schema(max_length = 2048)]
        url: String = required("a string"),
        /// What it sends. Default: `["notification"]`.
        #[schema(schema_with = events)]
        events: Option<Vec<WebhookEvent>> = with(optional_events),
    }
}

json_body! {
    /// What to send again.
    #[schema(example = json!({"from_position": 1000}))]
    pub(crate) struct WebhookReplayShape {
        /// The position of the first notification. None from before the webhook was made is sent.
        from_position: u64 = required("a position"),
    }
}

query_parameters! {
    /// The webhooks to list.
    pub(crate) struct WebhookParameters {
        /// The most webhooks to return.
        limit: ListLimit,
        /// Only webhooks older than this one of the list: `wh_…`.
        starting_after: Option<Text<64>>,
    }
}

query_parameters! {
    /// The deliveries to list.
    pub(crate) struct DeliveryParameters {
        /// The most deliveries to return.
        limit: ListLimit,
        /// Only deliveries before this one of the list: `dlv_…`.
        starting_after: Option<Text<64>>,
        /// Only deliveries that are this far.
        status: Option<Choice<DeliveryStatus>>,
    }
}

answer! {
    /// A webhook.
    pub(crate) struct WebhookAnswer from |webhook: &Webhook| {
        /// The webhook's id.
        id: String = webhook.id.to_string(),
        /// The project whose notifications are sent.
        project_id: String = webhook.project.to_string(),
        /// Where they are sent.
        url: String = webhook.url.clone(),
        /// What it sends.
        #[schema(schema_with = events)]
        events: Vec<WebhookEvent> = webhook.events.clone(),
        /// Whether it sends.
        #[schema(schema_with = webhook_status)]
        status: WebhookStatus,
        /// When it was made.
        created_at: Timestamp,
    }
}

answer! {
    /// A webhook that was made.
    pub(crate) struct NewWebhookAnswer from |webhook: &Webhook, secret: &Secret| {
        /// The webhook's id.
        id: String = webhook.id.to_string(),
        /// The project whose notifications are sent.
        project_id: String = webhook.project.to_string(),
        /// Where they are sent.
        url: String = webhook.url.clone(),
        /// What is sent.
        #[schema(schema_with = events)]
        events: Vec<WebhookEvent> = webhook.events.clone(),
        /// Whether it sends.
        #[schema(schema_with = webhook_status)]
        status: WebhookStatus,
        /// When it was made.
        created_at: Timestamp,
        /// The secret that signs: shown this once. The header `headcount-signature: t=<seconds>,v1=<hex>` has the HMAC-SHA256 of `<t>.<body>`, with
        /// the whole secret as key.
        secret: String = secret.expose().to_owned(),
    }
}

/// A part of the webhooks.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct WebhooksAnswer {
    /// The webhooks, newest first.
    webhooks: Vec<WebhookAnswer>,
    /// Whether older ones follow.
    truncated: bool,
}

/// A new secret.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RotatedSecretAnswer {
    /// The secret: shown this once.
    secret: String,
    /// Until when each request has a second `v1`, by the former secret.
    previous_valid_until: Timestamp,
}

answer! {
    /// What became of a notification.
    pub(crate) struct DeliveryAnswer from |delivery: Delivery, id: String| {
        /// The delivery's id: the same at each try, and after a replay.
        id: String = id,
        /// The position of the event.
        position: u64,
        /// The id of the event.
        event_id: String,
        /// How far it is.
        #[schema(schema_with = delivery_status)]
        status: DeliveryStatus,
        /// How often it was tried.
        attempts: u32,
        /// The status of the last answer; null if there was none.
        #[schema(required)]
        last_status: Option<u16>,
        /// Why there was none; null if there was one.
        #[schema(required)]
        last_error: Option<String>,
        /// When the event was received.
        created_at: Timestamp,
        /// When the receiver took it; null if it did not.
        #[schema(required)]
        delivered_at: Option<Timestamp> = delivery.delivered_at.map(Into::into),
    }
}

/// A part of the deliveries.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DeliveriesAnswer {
    /// The deliveries, latest first.
    deliveries: Vec<DeliveryAnswer>,
    /// Whether earlier ones follow.
    truncated: bool,
}

/// The notifications that are sent again.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct WebhookReplayAnswer {
    /// The first position.
    from_position: u64,
    /// The last position when the replay was asked for. Later notifications follow.
    to_position: u64,
}

/// The id in the path.
fn webhook_id(request: &HttpRequest) -> Result<WebhookId> {
    request.parameter("webhook_id").parse().map_err(|_| ApiError::not_found("webhook"))
}

/// The id in the path, of an operation without parameters.
fn only_id(request: &HttpRequest) -> Result<WebhookId> {
    NoParameters::check(request)?;
    id_in_path(request, "webhook_id", "webhook")
}

/// The project of the webhook in the path of a request.
pub(crate) fn project_of(state: &AppState, request: &HttpRequest) -> Option<ProjectId> {
    let id = request.parameter("webhook_id").parse().ok()?;
    management::feature::<Webhooks>(state).ok()?.project_of(&id)
}

path_parameters! {
    WebhookPath "webhook_id" "^wh_[0-9A-Za-z]{16}$" "The webhook's id.";
}

/// The webhooks of the organization.
#[utoipa::path(
    get, path = "/webhooks", tag = "webhooks", operation_id = "list_webhooks",
    params(WebhookParameters),
    responses((status = 200, description = "The webhooks, newest first.", body = WebhooksAnswer), NotModified, UnavailableErrors),
)]
pub(crate) async fn list(ApiCall { state, request, .. }: ApiCall, caller: Caller) -> Result<HttpResponse> {
    let WebhookParameters { limit, starting_after } = WebhookParameters::read(&request, &Calendar::new(&state, Timezone::UTC))?;
    let query = WebhookQuery { limit: limit.rows(), starting_after: after(starting_after)? };
    let page = management::feature::<Webhooks>(&state)?.page(caller.organization(), &query)?;
    let webhooks = page.webhooks.iter().map(Into::into).collect();
    etag::json(&request, &WebhooksAnswer { webhooks, truncated: page.truncated })
}

/// Makes a webhook. It sends the notifications that are recorded from now on, in order, each at least once.
#[utoipa::path(
    post, path = "/webhooks", tag = "webhooks", operation_id = "create_webhook",
    request_body = NewWebhookShape,
    responses(
        (status = 201, description = "The webhook, with its secret.", body = NewWebhookAnswer), NotFoundErrors, ConflictErrors,
    ),
)]
pub(crate) async fn create(ApiCall { state, request, payload }: ApiCall, caller: Caller) -> Result<HttpResponse> {
    NoParameters::check(&request)?;
    body::check_media(&request, Media::Json)?;
    let content = BodyContent::Other(Some(Holder::Organization(caller.organization())));
    let permit = body::admit(&state, &request, content, body::FIRST_BYTES)?;
    let (bytes, permit) = body::read(&state, &request, payload, permit, body::EVENT_LIMIT_BYTES).await?;
    let NewWebhookShape { project_id, url, events } = NewWebhookShape::from_json(&bytes)?;
    let project = project_id.parse().map_err(|_| ApiError::not_found("project"))?;
    if auth::is_visible(&state, &request, project)
        && let Some(owner) = way(&state, &request, project)?
    {
        return forward(state.forwarding(), &request, (bytes, permit).into(), owner, Travel::Records).await;
    }
    let (organization, author) = (caller.organization(), caller.author(&state, &request));
    let new = NewWebhook { project, url, events };
    let make = move |webhooks: &Webhooks| webhooks.create(organization, new, author);
    let (webhook, secret) = on_feature(&state, make).await?;
    Ok(management::created(&NewWebhookAnswer::new(&webhook, &secret)))
}

/// One webhook.
#[utoipa::path(
    get, path = "/webhooks/{webhook_id}", tag = "webhooks", operation_id = "get_webhook",
    params(WebhookPath),
    responses((status = 200, description = "The webhook.", body = WebhookAnswer), NotModified),
)]
pub(crate) async fn show(ApiCall { state, request, .. }: ApiCall, caller: Caller) -> Result<HttpResponse> {
    let id = only_id(&request)?;
    etag::json(&request, &WebhookAnswer::from(&management::feature::<Webhooks>(&state)?.get(caller.organization(), &id)?))
}

/// Changes a webhook: all fields of the body, or none.
#[utoipa::path(
    patch, path = "/webhooks/{webhook_id}", tag = "webhooks", operation_id = "update_webhook",
    params(WebhookPath), request_body = WebhookPatch,
    responses((status = 200, description = "The webhook as it is now.", body = WebhookAnswer)),
)]
pub(crate) async fn change(ApiCall { state, request, payload }: ApiCall, caller: Caller) -> Result<HttpResponse> {
    let id = only_id(&request)?;
    let patch: WebhookPatch = json::read(&state, &request, payload).await?;
    let (organization, author) = (caller.organization(), caller.author(&state, &request));
    let change = move |webhooks: &Webhooks| webhooks.change(organization, &id, patch, author);
    let webhook = on_feature(&state, change).await?;
    Ok(HttpResponse::Ok().json(WebhookAnswer::from(&webhook)))
}

/// Removes a webhook, with its list of deliveries.
#[utoipa::path(
    delete, path = "/webhooks/{webhook_id}", tag = "webhooks", operation_id = "delete_webhook",
    params(WebhookPath),
    responses((status = 204, description = "The webhook is removed.")),
)]
pub(crate) async fn remove(ApiCall { state, request, .. }: ApiCall, caller: Caller) -> Result<HttpResponse> {
    let id = only_id(&request)?;
    let (organization, author) = (caller.organization(), caller.author(&state, &request));
    let remove = move |webhooks: &Webhooks| webhooks.remove(organization, &id, author);
    on_feature(&state, remove).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// Gives a webhook a new secret. For 24 hours the former one signs, too.
#[utoipa::path(
    post, path = "/webhooks/{webhook_id}/rotate-secret", tag = "webhooks", operation_id = "rotate_webhook_secret",
    params(WebhookPath),
    responses((status = 200, description = "The new secret.", body = RotatedSecretAnswer), BodyErrors),
)]
pub(crate) async fn rotate_secret(ApiCall { state, request, payload }: ApiCall, caller: Caller) -> Result<HttpResponse> {
    let id = only_id(&request)?;
    let EmptyBody = json::read(&state, &request, payload).await?;
    let (organization, author) = (caller.organization(), caller.author(&state, &request));
    let rotate = move |webhooks: &Webhooks| webhooks.rotate_secret(organization, &id, author);
    let rotation = on_feature(&state, rotate).await?;
    let secret = rotation.secret.expose().to_owned();
    let answer = RotatedSecretAnswer { secret, previous_valid_until: rotation.previous_valid_until.into() };
    Ok(management::unstored(&answer))
}

/// What became of a webhook's notifications: the last 1,000, for at most 30 days.
#[utoipa::path(
    get, path = "/webhooks/{webhook_id}/deliveries", tag = "webhooks", operation_id = "list_webhook_deliveries",
    params(WebhookPath, DeliveryParameters),
    responses(
        (status = 200, description = "The deliveries, latest first. A notification is listed once it was tried.", body = DeliveriesAnswer),
        NotModified, UnavailableErrors,
    ),
)]
pub(crate) async fn deliveries(ApiCall { state, request, .. }: ApiCall, caller: Caller) -> Result<HttpResponse> {
    let DeliveryParameters { limit, starting_after, status } =
        DeliveryParameters::read(&request, &Calendar::new(&state, Timezone::UTC))?;
    let id = webhook_id(&request)?;
    let query = DeliveryQuery {
        limit: limit.rows(),
        starting_after: starting_after.map(|Text(id)| id),
        status: status.map(|Choice(status)| status),
    };
    let organization = caller.organization();
    let page = on_feature(&state, move |webhooks: &Webhooks| webhooks.deliveries(organization, &id, &query)).await?;
    let deliveries = page.deliveries.into_iter().map(|(id, delivery)| DeliveryAnswer::new(delivery, id)).collect();
    etag::json(&request, &DeliveriesAnswer { deliveries, truncated: page.truncated })
}

/// Sends all notifications from a position on again, in order, with the same ids.
#[utoipa::path(
    post, path = "/webhooks/{webhook_id}/replay", tag = "webhooks", operation_id = "replay_webhook",
    params(WebhookPath), request_body = WebhookReplayShape,
    responses((status = 202, description = "The notifications are sent in the background.", body = WebhookReplayAnswer)),
)]
pub(crate) async fn replay(ApiCall { state, request, payload }: ApiCall, caller: Caller) -> Result<HttpResponse> {
    let id = only_id(&request)?;
    let WebhookReplayShape { from_position } = json::read(&state, &request, payload).await?;
    let (organization, author): (_, _) = (caller.organization(), caller.author(&state, &request));
    let from: Position = from_position;
    let replay = move |webhooks: &Webhooks| webhooks.replay(organization, &id, from, author);
    let replay = on_feature(&state, replay).await?;
    Ok(HttpResponse::Accepted().json(WebhookReplayAnswer { from_position: replay.from, to_position: replay.to }))
}
