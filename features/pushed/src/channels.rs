//! `/channels`: where messages of an organization go.

use headcount_api::blocking;
use headcount_api::definitions::{self, quoted};
use headcount_api::endpoint::*;
use headcount_api::extract::body::EVENT_LIMIT_BYTES;
use headcount_api::management;
use headcount_api::openapi::schemas;
use headcount_control::{Definition, DefinitionKind};
use utoipa::openapi::schema::Object;

use crate::channel::{Channel, ChannelKind, Destination};
use crate::message::Message;
use crate::pushed::Pushed;

const KIND: DefinitionKind = DefinitionKind::Channel;

fn channel_kind() -> Object {
    schemas::named::<ChannelKind>("What takes the messages.")
}

json_body! {
    /// A channel to be made.
    #[schema(example = json!({"name": "Growth", "kind": "slack", "url": "https://hooks.slack.com/services/T000/B000/XXXX"}))]
    pub(crate) struct NewChannel {
        /// Its name.
        #[schema(min_length = 1, max_length = 200)]
        name: String = required("a string"),
        /// What takes the messages.
        #[schema(value_type = String, schema_with = channel_kind)]
        kind: ChannelKind = with(|fields, name| fields.optional_name(name)?.ok_or_else(|| ApiError::missing(name))),
        /// For `slack`, `discord` and `teams`: the URL of the webhook. It is stored encrypted, and never shown again.
        #[schema(max_length = 2048)]
        url: Option<String> = optional("a string"),
        /// For `telegram`: the token of the bot. It is stored encrypted, and never shown again.
        #[schema(max_length = 2048)]
        bot_token: Option<String> = optional("a string"),
        /// For `telegram`: the id of the chat, or `@` and the name of a public channel.
        #[schema(min_length = 1, max_length = 100)]
        chat_id: Option<String> = optional("a string"),
    }
}

json_body! {
    /// A change of a channel: absent fields stay unchanged. The kind stays.
    #[schema(example = json!({"name": "Marketing"}))]
    pub(crate) struct ChannelPatch {
        /// Its name.
        #[schema(min_length = 1, max_length = 200)]
        name: Option<String> = optional("a string"),
        /// The URL of the webhook.
        #[schema(max_length = 2048)]
        url: Option<String> = optional("a string"),
        /// The token of the bot.
        #[schema(max_length = 2048)]
        bot_token: Option<String> = optional("a string"),
        /// The id of the chat.
        #[schema(min_length = 1, max_length = 100)]
        chat_id: Option<String> = optional("a string"),
    }
}

answer! {
    /// A channel, without its secret.
    pub(crate) struct ChannelAnswer from |definition: &Definition, channel: Channel| {
        /// Its id.
        channel_id: String = definition.id.to_string(),
        /// Its name.
        name: String = definition.name.clone(),
        /// What takes the messages.
        #[schema(schema_with = channel_kind)]
        kind: ChannelKind = channel.kind,
        /// What of the destination is no secret: the host of the URL, or the id of the chat.
        target: String = channel.target,
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

fn shown(definition: &Definition) -> Result<ChannelAnswer> {
    Ok(ChannelAnswer::new(definition, read(definition)?))
}

/// The channels of the organization.
#[utoipa::path(
    get, path = "/channels", tag = "channels", operation_id = "list_channels",
    responses((status = 200, description = "The channels, oldest first.", body = ChannelsAnswer), NotModified),
)]
pub(crate) async fn list(call: ApiCall, caller: Caller) -> Result<HttpResponse> {
    // A damaged channel gets a line in the log. The list has the others.
    let channels = definitions::all(&call, &caller, KIND)?.iter().filter_map(|definition| shown(definition).ok()).collect();
    etag::json(&call.request, &ChannelsAnswer { channels, truncated: false })
}

/// Makes a channel. An organization has at most 200.
#[utoipa::path(
    post, path = "/channels", tag = "channels", operation_id = "create_channel",
    request_body = NewChannel,
    responses((status = 201, description = "The channel.", body = ChannelAnswer), ConflictErrors),
)]
pub(crate) async fn create(ApiCall { state, request, payload }: ApiCall, caller: Caller) -> Result<HttpResponse> {
    let NewChannel { name, kind, url, bot_token, chat_id } =
        json::read_within(&state, &request, payload, EVENT_LIMIT_BYTES).await?;
    let (destination, pushed) = (Destination { url, bot_token, chat_id }, management::feature::<Pushed>(&state)?);
    destination.check_whole(kind)?;
    let fields = destination.fields(kind, (pushed.parts.signer(), caller.organization()), &pushed.settings)?;
    let fields = fields.set("kind", Some(quoted(kind.as_str())));
    let channel = definitions::create(&state, &request, &caller, KIND, (name, fields)).await?;
    Ok(HttpResponse::Created().json(shown(&channel)?))
}

/// Changes a channel.
#[utoipa::path(
    patch, path = "/channels/{channel_id}", tag = "channels", operation_id = "update_channel",
    params(ChannelPath), request_body = ChannelPatch,
    responses((status = 200, description = "The channel as it is now.", body = ChannelAnswer), ConflictErrors),
)]
pub(crate) async fn change(ApiCall { state, request, payload }: ApiCall, caller: Caller) -> Result<HttpResponse> {
    let id = definitions::id_of(&request, KIND, "channel_id")?;
    let ChannelPatch { name, url, bot_token, chat_id } = json::read_within(&state, &request, payload, EVENT_LIMIT_BYTES).await?;
    let pushed = management::feature::<Pushed>(&state)?;
    let kind = read(&*state.engine.registry().definition((caller.organization(), None), &id)?)?.kind;
    let of = (pushed.parts.signer(), caller.organization());
    let fields = Destination { url, bot_token, chat_id }.fields(kind, of, &pushed.settings)?;
    let channel = definitions::change(&state, &request, &caller, id, (name, fields)).await?;
    Ok(HttpResponse::Ok().json(shown(&channel)?))
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

/// Sends a message that says that it is a test, once, and waits for the receiver's answer for at most 10 s. At most two at a time; 429 beyond.
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
    let permit = management::feature::<Pushed>(&state)?.permit(caller.organization());
    let permit =
        permit.ok_or_else(|| ApiError::rate_limited("other tests are being sent; try again when they have ended", 10))?;
    let lines = vec![format!("This is a test of the channel {}. Nothing happened.", definition.name)];
    let message = Message { title: "headcount: a test".to_owned(), lines };
    let sent = blocking::run(move || permit.send(&channel, &message)).await?;
    let delivered = sent.is_ok_and(|status| (200..300).contains(&status));
    Ok(HttpResponse::Ok().json(ChannelTest { delivered, status: sent.ok(), error: sent.err() }))
}
