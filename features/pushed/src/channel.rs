//! What a channel is: its kind, its destination, and the fields of its definition.

use headcount_actors::EngineParts;
use headcount_api::definitions::{JsonFields, quoted};
use headcount_api::endpoint::{ApiError, Result};
use headcount_common::secrets::Signer;
use headcount_control::{Definition, DefinitionId};
use headcount_domain::time::Timezone;
use headcount_domain::{OrganizationId, named_values};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::mail::{HandedOver, Mailed};
use crate::message::{Message, is_bot_token, shown_host};
use crate::recipients::{self, AddressState, DailyLimit, Recipients};
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
        /// Addresses for e-mail.
        Email = "email",
    }
}

/// The fields of a body that say where messages go.
pub(crate) struct Destination {
    pub(crate) url: Option<String>,
    pub(crate) bot_token: Option<String>,
    pub(crate) chat_id: Option<String>,
    pub(crate) addresses: Option<Vec<String>>,
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
        let needed = kind.needed();
        if let Some(foreign) = self.given().find(|name| !needed.contains(name)) {
            return Err(ApiError::parameter(foreign, format!("a channel of kind {kind} has no `{foreign}`")));
        }
        let Self { url, bot_token, chat_id, addresses } = self;
        let (secret, target) = match (kind, addresses) {
            (_, Some(_)) if settings.mail.is_none() => {
                let message = "this server sends no e-mail: the operator has set no `smtp_url`";
                return Err(ApiError::parameter("addresses", message));
            }
            (_, Some(addresses)) => return recipients::checked(addresses),
            (ChannelKind::Telegram, None) => (bot_token.map(checked_token).transpose()?, chat_id.map(checked_chat).transpose()?),
            (_, None) => url.map(|url| checked_url(url, settings)).transpose()?.unzip(),
        };
        let seal = |secret: String| SealedSecret::seal(signer, organization, &secret);
        let sealed = secret.map(seal).transpose().map_err(|error| {
            tracing::error!(%error, "a channel can't be changed");
            ApiError::internal()
        })?;
        let sealed = sealed.map(|sealed| serde_json::to_value(sealed).unwrap_or_default().to_string());
        Ok(JsonFields::default().set("secret", sealed).set("target", target.map(|target| quoted(&target))))
    }

    /// The names of the fields that are present.
    fn given(&self) -> impl Iterator<Item = &'static str> {
        let Self { url, bot_token, chat_id, addresses } = self;
        let all = [
            ("url", url.is_some()),
            ("bot_token", bot_token.is_some()),
            ("chat_id", chat_id.is_some()),
            ("addresses", addresses.is_some()),
        ];
        all.into_iter().filter(|(_, is_given)| *is_given).map(|(name, _)| name)
    }

    /// Checks that nothing is missing for a new channel of this kind.
    pub(crate) fn check_whole(&self, kind: ChannelKind) -> Result<()> {
        match kind.needed().iter().find(|name| !self.given().any(|given| given == **name)) {
            Some(missing) => Err(ApiError::missing(missing)),
            None => Ok(()),
        }
    }
}

impl ChannelKind {
    /// The fields of its destination.
    const fn needed(self) -> &'static [&'static str] {
        match self {
            Self::Telegram => &["bot_token", "chat_id"],
            Self::Slack | Self::Discord | Self::Teams => &["url"],
            Self::Email => &["addresses"],
        }
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
    /// The part of the destination that is no secret: the host of the URL, the id of the chat, or the
    /// number of addresses.
    pub(crate) target: String,
    way: Way,
    organization: OrganizationId,
    id: DefinitionId,
}

/// How messages get there.
#[derive(Debug)]
enum Way {
    Chat(SealedSecret),
    Mail(Recipients),
}

/// What became of a message: the status of the answer, or the code of the error without one.
pub(crate) type Sent = Result<u16, &'static str>;

/// Which addresses have a message already, while it is being tried.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MailProgress {
    /// The marks of the addresses that the server took or refused.
    pub(crate) done: Vec<u64>,
    /// The number that it took.
    pub(crate) accepted: u64,
    /// The number that it refused.
    pub(crate) refused: u64,
}

impl MailProgress {
    /// Adds letters, which another node may have sent, too.
    pub(crate) fn add(&mut self, Mailed { accepted, refused }: &Mailed) {
        for (marks, count) in [(accepted, &mut self.accepted), (refused, &mut self.refused)] {
            for mark in marks {
                if !self.done.contains(mark) {
                    self.done.push(*mark);
                    *count = count.saturating_add(1);
                }
            }
        }
    }
}

/// A message, with an id that is the same in each try.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Post<'p> {
    pub(crate) message: &'p Message,
    pub(crate) id: &'p str,
    /// The number of tries before.
    pub(crate) attempts: usize,
    /// The marks of addresses that have it.
    pub(crate) done: &'p [u64],
}

/// The engine, and the settings.
type Means<'m> = (&'m EngineParts, &'m PushSettings);

impl Channel {
    /// Reads a definition; `None` if it is damaged.
    pub(crate) fn of(definition: &Definition) -> Option<Self> {
        let field = |name: &str| definition.fields.get(name).map_or("null", String::as_str);
        let text = |name: &str| serde_json::from_str::<String>(field(name)).ok();
        let kind = text("kind")?.parse().ok()?;
        let way = match kind {
            ChannelKind::Email => Way::Mail(Recipients::of(definition)?),
            _ => Way::Chat(serde_json::from_str(field("secret")).ok()?),
        };
        Some(Self { kind, target: text("target")?, way, organization: definition.organization, id: definition.id.clone() })
    }

    /// The addresses, if it is a channel for e-mail.
    pub(crate) fn recipients(&self) -> Option<&Recipients> {
        match &self.way {
            Way::Mail(recipients) => Some(recipients),
            Way::Chat(_) => None,
        }
    }

    /// Sends a message once. Blocks for 10 s at most, for e-mail for some minutes.
    pub(crate) fn send(&self, post: Post<'_>, means: Means<'_>) -> (Sent, Mailed) {
        match &self.way {
            Way::Mail(recipients) => self.mail(recipients, post, means),
            Way::Chat(secret) => (self.chat(secret, post.message, means), Mailed::default()),
        }
    }

    fn chat(&self, secret: &SealedSecret, message: &Message, (parts, settings): Means<'_>) -> Sent {
        let secret = secret.open(parts.signer(), self.organization).ok_or("unreadable_secret")?;
        let url = match self.kind {
            ChannelKind::Telegram => format!("{}/bot{secret}/sendMessage", settings.telegram),
            _ => secret,
        };
        let body: Value = message.body(self.kind, &self.target);
        (settings.send)(&url, body.to_string().into_bytes())
    }

    /// Sends letters to the confirmed addresses that have none yet.
    fn mail(&self, recipients: &Recipients, post: Post<'_>, means: Means<'_>) -> (Sent, Mailed) {
        let members = recipients::members(means.0.registry(), self.organization);
        let mut left = recipients.in_state(AddressState::Confirmed, &members);
        left.retain(|address| !post.done.contains(&recipients::mark(address)));
        if left.is_empty() {
            return (if post.done.is_empty() { Err("no_recipients") } else { Ok(250) }, Mailed::default());
        }
        // An address at which the server ends the connection does not always come first.
        let turn = post.attempts % left.len();
        left.rotate_left(turn);
        let footed = |link: &str| {
            let Message { title, lines, link: of_page } = post.message.clone();
            let footer = ["", "-- ", &format!("To get no more messages like this one, open {link}")].map(str::to_owned);
            Message { title, lines: lines.into_iter().chain(of_page).chain(footer).collect(), link: None }
        };
        let HandedOver { mailed, refusal, failure, .. } = match self.hand_over(&left, (post.id, footed), means) {
            Ok(handed) => handed,
            Err(code) => return (Err(code), Mailed::default()),
        };
        match refusal {
            // Many servers refuse a sender only when they know the receiver.
            Some(status) if mailed.accepted.is_empty() && post.done.is_empty() => (Ok(status), Mailed::default()),
            _ => (failure.unwrap_or(Ok(250)), mailed),
        }
    }

    /// Hands over what `write` makes for the link of each address.
    fn hand_over(
        &self,
        addresses: &[&str],
        (id, write): (&str, impl Fn(&str) -> Message),
        (parts, settings): Means<'_>,
    ) -> Result<HandedOver, &'static str> {
        let (mail, signer) = (settings.mail.as_ref().ok_or("no_mail_server")?, parts.signer());
        let letter = |address: &&str| {
            let mark = recipients::mark(address);
            let link = format!("{}/mail/{}", mail.public_url, recipients::link(signer, (self.organization, &self.id), mark));
            Some((mark, mail.letter(address, &format!("{id}.{mark}"), &write(&link), &link)?))
        };
        Ok(mail.hand_over(addresses.iter().filter_map(letter).collect()))
    }

    /// Asks addresses that nobody has confirmed whether they want messages, as far as `limit` lets it.
    /// Blocks.
    pub(crate) fn ask(&self, means: Means<'_>, limit: &DailyLimit) -> Result<(), &'static str> {
        let (registry, now) = (means.0.registry(), means.0.clock().now());
        let (Some(recipients), Ok(organization)) = (self.recipients(), registry.organization(self.organization)) else {
            return Ok(());
        };
        let members = recipients::members(registry, self.organization);
        let mut asked = recipients.in_state(AddressState::Unconfirmed, &members);
        let (count, today) = (asked.len(), Timezone::UTC.day_of(now));
        asked.retain(|address| limit.take(self.organization, recipients::mark(address), today));
        let write = |link: &str| {
            let lines = [
                format!("\u{201c}{}\u{201d} wants to send messages about figures to this address.", plain(&organization.name)),
                format!("If you want them, open {link}"),
                "If not, do nothing, or say there that you never want any.".to_owned(),
            ];
            Message { title: "Do you want messages about figures?".to_owned(), lines: lines.to_vec(), link: None }
        };
        let handed = self.hand_over(&asked, (&format!("{}.{}", self.id, now.0), write), means);
        if !handed.as_ref().is_ok_and(|handed| handed.is_connected) {
            asked.iter().for_each(|address| limit.give_back(self.organization, recipients::mark(address)));
        }
        let HandedOver { refusal, failure, .. } = handed?;
        match failure {
            Some(Err(code)) => Err(code),
            Some(Ok(_)) => Err("deferred"),
            None if refusal.is_some() => Err("refused"),
            None if asked.len() < count => Err("asked_too_often"),
            None => Ok(()),
        }
    }
}

/// A name in a letter to somebody who does not know it: short, and nothing that looks like an address.
fn plain(name: &str) -> String {
    let is_plain = |character: &char| character.is_alphanumeric() || matches!(character, ' ' | '&' | '\'' | '-');
    name.chars().filter(is_plain).take(60).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use headcount_actors::{Engine, EngineConfig};
    use headcount_outbound::AllowList;

    use super::*;
    use crate::pushed::Pushed;

    #[test]
    fn each_kind_has_its_address() {
        let dir = tempfile::tempdir().unwrap();
        let (sent, organization) = (Arc::new(Mutex::new(Vec::new())), OrganizationId(7));
        let noted = Arc::clone(&sent);
        let send = move |url: &str, body: Vec<u8>| {
            noted.lock().unwrap().push((url.to_owned(), String::from_utf8(body).unwrap()));
            Ok(200)
        };
        let guarded = PushSettings::guarded(AllowList::default(), false);
        let settings = PushSettings { send: Arc::new(send), telegram: "http://telegram.example".to_owned(), ..guarded };
        let mut config = EngineConfig::new(dir.path());
        config.min_free_bytes = 0;
        config.features = vec![crate::install(settings)];
        let engine = Engine::open(config).unwrap();
        let pushed: Arc<Pushed> = engine.feature().unwrap();
        let message = Message { title: "Signups".to_owned(), lines: Vec::new(), link: None };
        let means = (&pushed.parts, &pushed.settings);
        let send = |channel: &Channel| channel.send(Post { message: &message, id: "1", attempts: 0, done: &[] }, means).0;
        for (kind, secret, target, expected) in [
            (ChannelKind::Telegram, "12:AbC", "-100", ("http://telegram.example/bot12:AbC/sendMessage", r#""chat_id":"-100""#)),
            (ChannelKind::Slack, "https://hooks.example/x", "hooks.example", ("https://hooks.example/x", r#""text":"Signups""#)),
        ] {
            let way = Way::Chat(SealedSecret::seal(pushed.parts.signer(), organization, secret).unwrap());
            let id = "channel_0123456789abcdef".parse().unwrap();
            let channel = Channel { kind, target: target.to_owned(), way, organization, id };
            assert_eq!(send(&channel), Ok(200));
            let (url, body) = sent.lock().unwrap().pop().unwrap();
            assert!(url == expected.0 && body.contains(expected.1), "{url} {body}");
            let stolen = Channel { organization: OrganizationId(8), ..channel };
            assert_eq!(send(&stolen), Err("unreadable_secret"));
        }
    }
}
