//! `/channels`: where messages of an organization go.

use std::collections::BTreeSet;
use std::sync::Arc;

use actix_web::HttpResponseBuilder;
use headcount_api::blocking;
use headcount_api::definitions::{self, quoted};
use headcount_api::endpoint::*;
use headcount_api::extract::body::EVENT_LIMIT_BYTES;
use headcount_api::management;
use headcount_api::openapi::schemas;
use headcount_control::{Definition, DefinitionKind};
use headcount_domain::time::Timezone;
use tokio::task::spawn_blocking;
use utoipa::openapi::schema::Object;

use crate::channel::{Channel, ChannelKind, Destination, Post};
use crate::mail::Mailed;
use crate::message::Message;
use crate::pushed::Pushed;
use crate::recipients::{self, AddressState, Recipients};

const KIND: DefinitionKind = DefinitionKind::Channel;

fn channel_kind() -> Object {
    schemas::named::<ChannelKind>("What takes the messages.")
}

fn address_state() -> Object {
    schemas::named::<AddressState>("Whether it gets messages.")
}

json_body! {
    /// A channel to be made, or a change of one: absent fields then stay unchanged, and the kind always does. A new one needs `name`, `kind` and what its kind needs.
    #[schema(example = json!({"name": "Growth", "kind": "slack", "url": "https://hooks.slack.com/services/T000/B000/XXXX"}))]
    pub(crate) struct ChannelBody {
        /// Its name.
        #[schema(min_length = 1, max_length = 200)]
        name: Option<String> = optional("a string"),
        /// What takes the messages.
        #[schema(value_type = Option<String>, schema_with = channel_kind)]
        kind: Option<ChannelKind> = with(|fields, name| fields.optional_name(name)),
        /// For `slack`, `discord` and `teams`: the URL of the webhook. It is stored encrypted, and never shown again.
        #[schema(max_length = 2048)]
        url: Option<String> = optional("a string"),
        /// For `telegram`: the token of the bot. It is stored encrypted, and never shown again.
        #[schema(max_length = 2048)]
        bot_token: Option<String> = optional("a string"),
        /// For `telegram`: the id of the chat, or `@` and the name of a public channel.
        #[schema(min_length = 1, max_length = 100)]
        chat_id: Option<String> = optional("a string"),
        /// For `email`: at most 100 addresses. Each that is not a member's is asked by mail whether it wants messages.
        #[schema(min_items = 1, max_items = 100)]
        addresses: Option<Vec<String>> = optional("a list of addresses"),
    }
}

impl ChannelBody {
    /// The name, the kind and the destination.
    fn parts(self) -> (Option<String>, Option<ChannelKind>, Destination) {
        let Self { name, kind, url, bot_token, chat_id, addresses } = self;
        (name, kind, Destination { url, bot_token, chat_id, addresses })
    }
}

answer! {
    /// An address for e-mail.
    pub(crate) struct AddressAnswer from |address: &str, state: AddressState| {
        /// The address.
        address: String = address.to_owned(),
        /// Whether it gets messages: `confirmed`, `unconfirmed`, or `unsubscribed`.
        #[schema(schema_with = address_state)]
        state: AddressState = state,
    }
}

answer! {
    /// A channel, without its secret.
    pub(crate) struct ChannelAnswer from |definition: &Definition, channel: Channel, members: &BTreeSet<String>| {
        /// Its id.
        channel_id: String = definition.id.to_string(),
        /// Its name.
        name: String = definition.name.clone(),
        /// What takes the messages.
        #[schema(schema_with = channel_kind)]
        kind: ChannelKind = channel.kind,
        /// What of the destination is no secret: the host of the URL, the id of the chat, or the number of addresses.
        target: String = channel.target.clone(),
        /// The addresses of a channel for e-mail; empty for others.
        addresses: Vec<AddressAnswer> = channel.recipients().iter().flat_map(|recipients| {
            recipients.addresses.iter().map(|address| AddressAnswer::new(address, recipients.state(address, members)))
        }).collect(),
        /// When it was made.
        created_at: Timestamp = definition.created_at.into(),
    }
}

/// The channels of the organization.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ChannelsAnswer {
    /// The channels, oldest first.
    channels: Vec<ChannelAnswer>,
    /// Whether some are left out: never.
    truncated: bool,
}

/// What became of a message.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ChannelTest {
    /// Whether the receiver took it: its status is 200 to 299.
    delivered: bool,
    /// The status of the receiver's answer; null if there was none.
    #[schema(required)]
    status: Option<u16>,
    /// Why there was none, such as `timeout`; null if there was one.
    #[schema(required)]
    error: Option<&'static str>,
    /// Of e-mail, the number of addresses that have the message.
    accepted: usize,
    /// Of e-mail, the number of addresses that the mail server refused.
    refused: usize,
}

path_parameters! {
    ChannelPath "channel_id" "^channel_[0-9A-Za-z]{16}$" "The channel's id.";
}

/// Reads a channel. If it is damaged, the answer is 500.
fn read(definition: &Definition) -> Result<Channel> {
    Channel::of(definition).ok_or_else(|| {
        tracing::error!(id = %definition.id, "a channel can't be read");
        ApiError::internal()
    })
}

fn shown(definition: &Definition, members: &BTreeSet<String>) -> Result<ChannelAnswer> {
    Ok(ChannelAnswer::new(definition, read(definition)?, members))
}

/// Answers with a channel that was made or changed. Asks its unconfirmed addresses, if `asks`.
fn changed(
    mut answer: HttpResponseBuilder,
    (state, pushed): (&AppState, &Arc<Pushed>),
    (definition, asks): (&Definition, bool),
) -> Result<HttpResponse> {
    let members = recipients::members(state.engine.registry(), definition.organization);
    let channel = read(definition)?;
    let is_unasked = |recipients: &Recipients| !recipients.in_state(AddressState::Unconfirmed, &members).is_empty();
    if asks && channel.recipients().is_some_and(is_unasked) {
        // A slow server keeps nobody waiting. A test asks again.
        match pushed.permit((definition.organization, true)) {
            Some(permit) => {
                let id = definition.id.clone();
                drop(spawn_blocking(move || {
                    if let Err(error) = permit.ask(&channel) {
                        tracing::warn!(%id, error, "a channel's addresses were not asked; a test of the channel asks them");
                    }
                }));
            }
            None => tracing::warn!(id = %definition.id, "a channel's addresses were not asked; a test of the channel asks them"),
        }
    }
    Ok(answer.json(shown(definition, &members)?))
}

/// The channels of the organization.
#[utoipa::path(
    get, path = "/channels", tag = "channels", operation_id = "list_channels",
    responses((status = 200, description = "The channels, oldest first.", body = ChannelsAnswer), NotModified),
)]
pub(crate) async fn list(call: ApiCall, caller: Caller) -> Result<HttpResponse> {
    let members = recipients::members(call.state.engine.registry(), caller.organization());
    // A damaged channel gets a line in the log. The list has the others.
    let channels =
        definitions::all(&call, &caller, KIND)?.iter().filter_map(|definition| shown(definition, &members).ok()).collect();
    etag::json(&call.request, &ChannelsAnswer { channels, truncated: false })
}

/// Makes a channel. An organization has at most 200.
#[utoipa::path(
    post, path = "/channels", tag = "channels", operation_id = "create_channel",
    request_body = ChannelBody,
    responses((status = 201, description = "The channel.", body = ChannelAnswer), ConflictErrors),
)]
pub(crate) async fn create(ApiCall { state, request, payload }: ApiCall, caller: Caller) -> Result<HttpResponse> {
    let (name, kind, destination) = json::read_within::<ChannelBody>(&state, &request, payload, EVENT_LIMIT_BYTES).await?.parts();
    let name = name.ok_or_else(|| ApiError::missing("name"))?;
    let kind = kind.ok_or_else(|| ApiError::missing("kind"))?;
    let pushed = management::feature::<Pushed>(&state)?;
    destination.check_whole(kind)?;
    let fields = destination.fields(kind, (pushed.parts.signer(), caller.organization()), &pushed.settings)?;
    let fields = fields.set("kind", Some(quoted(kind.as_str())));
    let channel = definitions::create(&state, &request, &caller, KIND, (name, fields)).await?;
    changed(HttpResponse::Created(), (&state, &pushed), (&channel, true))
}

/// Changes a channel.
#[utoipa::path(
    patch, path = "/channels/{channel_id}", tag = "channels", operation_id = "update_channel",
    params(ChannelPath), request_body = ChannelBody,
    responses((status = 200, description = "The channel as it is now.", body = ChannelAnswer), ConflictErrors),
)]
pub(crate) async fn change(ApiCall { state, request, payload }: ApiCall, caller: Caller) -> Result<HttpResponse> {
    let id = definitions::id_of(&request, KIND, "channel_id")?;
    let (name, given, destination) =
        json::read_within::<ChannelBody>(&state, &request, payload, EVENT_LIMIT_BYTES).await?.parts();
    let pushed = management::feature::<Pushed>(&state)?;
    let kind = read(&*state.engine.registry().definition((caller.organization(), None), &id)?)?.kind;
    if given.is_some_and(|given| given != kind) {
        return Err(ApiError::parameter("kind", format!("the kind stays {kind}: make another channel instead")));
    }
    let asks = destination.addresses.is_some();
    let fields = destination.fields(kind, (pushed.parts.signer(), caller.organization()), &pushed.settings)?;
    let channel = definitions::change(&state, &request, &caller, id, (name, fields)).await?;
    changed(HttpResponse::Ok(), (&state, &pushed), (&channel, asks))
}

/// Removes a channel.
#[utoipa::path(
    delete, path = "/channels/{channel_id}", tag = "channels", operation_id = "delete_channel",
    params(ChannelPath),
    responses((status = 204, description = "The channel is removed.")),
)]
pub(crate) async fn remove(call: ApiCall, caller: Caller) -> Result<HttpResponse> {
    definitions::remove(call, &caller, KIND, "channel_id").await
}

/// Sends a message that says that it is a test, once, and waits for the receiver's answer for at most 10 s, for e-mail for some minutes. Addresses that are not confirmed are asked again instead, at most three times a day. At most two at a time, for e-mail 20 a day; 429 beyond.
#[utoipa::path(
    post, path = "/channels/{channel_id}/test", tag = "channels", operation_id = "test_channel",
    params(ChannelPath),
    responses((status = 200, description = "What became of the message.", body = ChannelTest), BodyErrors),
)]
pub(crate) async fn test(ApiCall { state, request, payload }: ApiCall, caller: Caller) -> Result<HttpResponse> {
    let id = definitions::id_of(&request, KIND, "channel_id")?;
    let EmptyBody = json::read(&state, &request, payload).await?;
    let definition = state.engine.registry().definition((caller.organization(), None), &id)?;
    let channel = read(&definition)?;
    let pushed = management::feature::<Pushed>(&state)?;
    let (is_mail, now) = (channel.recipients().is_some(), state.engine.clock().now());
    let today = Timezone::UTC.day_of(now);
    let permit = pushed.permit((caller.organization(), is_mail));
    let permit =
        permit.ok_or_else(|| ApiError::rate_limited("other tests are being sent; try again when they have ended", 10))?;
    if is_mail && !pushed.tested.take(caller.organization(), 0, today) {
        return Err(ApiError::rate_limited("channels for e-mail were tested too often today; try again tomorrow", 3_600));
    }
    let lines = vec![format!("This is a test of the channel {}. Nothing happened.", definition.name)];
    let message = Message { title: "headcount: a test".to_owned(), lines, link: None };
    let id = format!("{}.{}", definition.id, now.0);
    let send = move || {
        let asked = permit.ask(&channel);
        let (sent, mailed) = permit.send(&channel, Post { message: &message, id: &id, attempts: 0, done: &[] });
        (if sent == Err("no_recipients") { asked.and(sent) } else { sent }, mailed)
    };
    let (sent, Mailed { accepted, refused }) = blocking::run(send).await?;
    let delivered = sent.is_ok_and(|status| (200..300).contains(&status));
    let (accepted, refused) = (accepted.len(), refused.len());
    Ok(HttpResponse::Ok().json(ChannelTest { delivered, status: sent.ok(), error: sent.err(), accepted, refused }))
}
