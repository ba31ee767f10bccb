//! What a channel is: its kind, its destination, and the fields of its definition.

use headcount_api::definitions::{JsonFields, quoted};
use headcount_api::endpoint::{ApiError, Result};
use headcount_common::secrets::Signer;
use headcount_control::Definition;
use headcount_domain::{OrganizationId, named_values};
use serde::Serialize;
use serde_json::Value;

use crate::message::{Message, is_bot_token, shown_host};
use crate::sealed::SealedSecret;
use crate::settings::PushSettings;

/// The maximum length of a URL or of the token of a bot, in bytes.
const MAX_SECRET_BYTES: usize = 2_048;
/// The maximum length of the id of a chat, in bytes.
const MAX_CHAT_BYTES: usize = 100;

named_values! {
    /// The kind of a channel.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum ChannelKind by as_str {
        /// An incoming webhook of Slack.
        Slack = "slack",
        /// A webhook of Discord.
        Discord = "discord",
        /// A workflow of Microsoft Teams that begins with a webhook.
        Teams = "teams",
        /// A chat of Telegram that a bot writes to.
        Telegram = "telegram",
    }
}

/// The fields of a body that say where messages go.
pub(crate) struct Destination {
    pub(crate) url: Option<String>,
    pub(crate) bot_token: Option<String>,
    pub(crate) chat_id: Option<String>,
}

impl Destination {
    /// Returns the fields of a definition for a channel of this kind. Absent ones stay as they are.
    ///
    /// # Errors
    /// A field is of another kind, or can't be used.
    pub(crate) fn fields(
        self,
        kind: ChannelKind,
        (signer, organization): (&Signer, OrganizationId),
        settings: &PushSettings,
    ) -> Result<JsonFields> {
        let Self { url, bot_token, chat_id } = self;
        let foreign = |param: &str| ApiError::parameter(param, format!("a channel of kind {kind} has no `{param}`"));
        let (secret, target) = match (kind, url, bot_token, chat_id) {
            (ChannelKind::Telegram, Some(_), ..) => return Err(foreign("url")),
            (ChannelKind::Telegram, None, token, chat) => {
                (token.map(checked_token).transpose()?, chat.map(checked_chat).transpose()?)
            }
            (_, _, Some(_), _) => return Err(foreign("bot_token")),
            (_, _, _, Some(_)) => return Err(foreign("chat_id")),
            (_, url, None, None) => url.map(|url| checked_url(url, settings)).transpose()?.unzip(),
        };
        let seal = |secret: String| SealedSecret::seal(signer, organization, &secret);
        let sealed = secret.map(seal).transpose().map_err(|error| {
            tracing::error!(%error, "a channel can't be changed");
            ApiError::internal()
        })?;
        let sealed = sealed.map(|sealed| serde_json::to_value(sealed).unwrap_or_default().to_string());
        Ok(JsonFields::default().set("secret", sealed).set("target", target.map(|target| quoted(&target))))
    }

    /// Checks that nothing is missing for a new channel of this kind.
    pub(crate) fn check_whole(&self, kind: ChannelKind) -> Result<()> {
        let needed: &[(&str, &Option<String>)] = match kind {
            ChannelKind::Telegram => &[("bot_token", &self.bot_token), ("chat_id", &self.chat_id)],
            ChannelKind::Slack | ChannelKind::Discord | ChannelKind::Teams => &[("url", &self.url)],
        };
        needed.iter().try_for_each(|(name, value)| if value.is_some() { Ok(()) } else { Err(ApiError::missing(name)) })
    }
}

/// Checks a URL as far as possible without a connection. Returns it, and the part that is no secret.
fn checked_url(url: String, settings: &PushSettings) -> Result<(String, String)> {
    if url.len() > MAX_SECRET_BYTES {
        return Err(ApiError::parameter("url", format!("`url` must have at most {MAX_SECRET_BYTES} bytes")));
    }
    let parsed = (settings.check)(&url).map_err(|error| ApiError::parameter("url", format!("`url` {error}")))?;
    Ok((url, shown_host(&parsed)))
}

fn checked_token(token: String) -> Result<String> {
    match token.len() <= MAX_SECRET_BYTES && is_bot_token(&token) {
        true => Ok(token),
        false => Err(ApiError::parameter("bot_token", "`bot_token` must be the token of a bot, such as 123456:ABC-DEF")),
    }
}

fn checked_chat(chat: String) -> Result<String> {
    match !chat.is_empty() && chat.len() <= MAX_CHAT_BYTES {
        true => Ok(chat),
        false => Err(ApiError::parameter("chat_id", format!("`chat_id` must have 1 to {MAX_CHAT_BYTES} bytes"))),
    }
}

/// A channel to send to.
#[derive(Debug)]
pub(crate) struct Channel {
    pub(crate) kind: ChannelKind,
    /// The part of the destination that is no secret: the host of the URL, or the id of the chat.
    pub(crate) target: String,
    secret: SealedSecret,
    organization: OrganizationId,
}

/// What became of a message: the status of the answer, or the code of the error without one.
pub(crate) type Sent = Result<u16, &'static str>;

impl Channel {
    /// Reads a definition; `None` if it is damaged.
    pub(crate) fn of(definition: &Definition) -> Option<Self> {
        let field = |name: &str| definition.fields.get(name).map_or("null", String::as_str);
        let text = |name: &str| serde_json::from_str::<String>(field(name)).ok();
        let secret = serde_json::from_str(field("secret")).ok()?;
        Some(Self { kind: text("kind")?.parse().ok()?, target: text("target")?, secret, organization: definition.organization })
    }

    /// Sends a message once. Blocks for 10 s at most.
    pub(crate) fn send(&self, message: &Message, signer: &Signer, settings: &PushSettings) -> Sent {
        let secret = self.secret.open(signer, self.organization).ok_or("unreadable_secret")?;
        let url = match self.kind {
            ChannelKind::Slack | ChannelKind::Discord | ChannelKind::Teams => secret,
            ChannelKind::Telegram => format!("{}/bot{secret}/sendMessage", settings.telegram),
        };
        let body: Value = message.body(self.kind, &self.target);
        (settings.send)(&url, body.to_string().into_bytes())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use headcount_common::secrets::Secrets;
    use headcount_outbound::AllowList;

    use super::*;

    #[test]
    fn each_kind_has_its_address() {
        let dir = tempfile::tempdir().unwrap();
        let secrets = Secrets::open(dir.path()).unwrap();
        let (sent, organization) = (Arc::new(Mutex::new(Vec::new())), OrganizationId(7));
        let noted = Arc::clone(&sent);
        let send = move |url: &str, body: Vec<u8>| {
            noted.lock().unwrap().push((url.to_owned(), String::from_utf8(body).unwrap()));
            Ok(200)
        };
        let guarded = PushSettings::guarded(AllowList::default(), false);
        let settings = PushSettings { send: Arc::new(send), telegram: "http://telegram.example".to_owned(), ..guarded };
        let message = Message { title: "Signups".to_owned(), lines: Vec::new() };
        for (kind, secret, target, expected) in [
            (ChannelKind::Telegram, "12:AbC", "-100", ("http://telegram.example/bot12:AbC/sendMessage", r#""chat_id":"-100""#)),
            (ChannelKind::Slack, "https://hooks.example/x", "hooks.example", ("https://hooks.example/x", r#""text":"Signups""#)),
        ] {
            let secret = SealedSecret::seal(secrets.signer(), organization, secret).unwrap();
            let channel = Channel { kind, target: target.to_owned(), secret, organization };
            assert_eq!(channel.send(&message, secrets.signer(), &settings), Ok(200));
            let (url, body) = sent.lock().unwrap().pop().unwrap();
            assert!(url == expected.0 && body.contains(expected.1), "{url} {body}");
            let stolen = Channel { organization: OrganizationId(8), ..channel };
            assert_eq!(stolen.send(&message, secrets.signer(), &settings), Err("unreadable_secret"));
        }
    }
}
