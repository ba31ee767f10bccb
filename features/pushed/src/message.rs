//! Messages, as each kind of channel takes them.

use headcount_outbound::url::Url;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::channel::ChannelKind;

/// The maximum length of a message, in characters: Discord takes 2,000, and each may be escaped.
const MAX_CHARACTERS: usize = 990;
/// Discord's flag for messages whose addresses are not unfolded.
const WITHOUT_PREVIEWS: u32 = 1 << 2;

/// A message for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Message {
    /// What happened, in one line.
    pub(crate) title: String,
    /// Further lines.
    pub(crate) lines: Vec<String>,
    /// The address of the page with the figures, if this server knows its own.
    pub(crate) link: Option<String>,
}

impl Message {
    /// The whole text.
    fn text(&self) -> String {
        std::iter::once(&self.title).chain(&self.lines).map(String::as_str).collect::<Vec<_>>().join("\n")
    }

    /// The body for a kind of channel. `target` is the id of the chat, if the kind has chats. The
    /// text mentions nobody, hides no address behind other words, and unfolds none.
    pub(crate) fn body(&self, kind: ChannelKind, target: &str) -> Value {
        let link = self.link.as_deref().unwrap_or_default();
        let text = without_mentions(&cut(&self.text(), MAX_CHARACTERS.saturating_sub(link.len() / 2 + 1)));
        let linked = |text: String| if link.is_empty() { text } else { format!("{text}\n{link}") };
        match kind {
            ChannelKind::Slack => {
                let text = linked(text).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
                json!({"text": text, "mrkdwn": false, "unfurl_links": false, "unfurl_media": false})
            }
            ChannelKind::Discord => {
                json!({"content": linked(without_markdown(&text)), "allowed_mentions": {"parse": []}, "flags": WITHOUT_PREVIEWS})
            }
            // Runs of text are no Markdown, unlike blocks of it.
            ChannelKind::Teams => json!({
                "type": "message",
                "attachments": [{
                    "contentType": "application/vnd.microsoft.card.adaptive",
                    "content": {
                        "actions": self.link.iter().map(|url| json!({"type": "Action.OpenUrl", "title": "Open", "url": url})).collect::<Vec<_>>(),
                        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json", "type": "AdaptiveCard", "version": "1.2",
                        "body": [{"type": "RichTextBlock", "inlines": [{"type": "TextRun", "text": text}]}]
                    }
                }]
            }),
            ChannelKind::Telegram => {
                json!({"chat_id": target, "text": linked(text), "link_preview_options": {"is_disabled": true}})
            }
            // Letters are no JSON.
            ChannelKind::Email => Value::Null,
        }
    }
}

/// Shortens text to at most `most` characters.
fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Divides each `@` from the name after it, invisibly.
fn without_mentions(text: &str) -> String {
    text.replace('@', "@\u{2060}")
}

/// Escapes the marks of Markdown.
fn without_markdown(text: &str) -> String {
    let escaped = |character: char| [Some('\\').filter(|_| "\\*_~`|>[]()<#-".contains(character)), Some(character)];
    text.chars().flat_map(escaped).flatten().collect()
}

/// Whether text is the token of a bot: a number, a colon, and letters, digits, `_` and `-`.
pub(crate) fn is_bot_token(text: &str) -> bool {
    let is_secret = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    text.split_once(':').is_some_and(|(bot, secret)| {
        !bot.is_empty() && bot.bytes().all(|byte| byte.is_ascii_digit()) && !secret.is_empty() && secret.bytes().all(is_secret)
    })
}

/// The part of a URL that is no secret: its host, with the port if it is unusual.
pub(crate) fn shown_host(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(title: &str) -> Message {
        Message { title: title.to_owned(), lines: vec!["Signups: 3".to_owned()], link: None }
    }

    #[test]
    fn text_can_not_mention_or_link() {
        let message = message("<!channel> & <https://evil.example|here> @everyone");
        let slack = message.body(ChannelKind::Slack, "");
        assert_eq!(slack["text"], "&lt;!channel&gt; &amp; &lt;https://evil.example|here&gt; @\u{2060}everyone\nSignups: 3");
        let discord = message.body(ChannelKind::Discord, "");
        assert_eq!(discord["allowed_mentions"], json!({"parse": []}));
        assert!(discord["content"].as_str().unwrap().contains(r"\<https://evil.example\|here\>"), "{discord}");
        assert!(message.body(ChannelKind::Telegram, "-5").get("parse_mode").is_none());
    }

    #[test]
    fn long_messages_are_cut() {
        for (sent, at_most) in [("ä", MAX_CHARACTERS + 1), ("*", 2_000)] {
            let body = message(&sent.repeat(5_000)).body(ChannelKind::Discord, "");
            let text = body["content"].as_str().unwrap();
            assert!(text.chars().count() <= at_most && text.ends_with(&format!("{sent}…")), "{text}");
        }
    }

    #[test]
    fn a_link_stays_as_it_is() {
        let link = "https://stats.example/ui/prj_1/overview?from=2024-03-01&f=name~is~a_b";
        let message = Message { link: Some(link.to_owned()), ..message(&"*".repeat(5_000)) };
        let discord = message.body(ChannelKind::Discord, "");
        let text = discord["content"].as_str().unwrap();
        assert!(text.ends_with(&format!("\n{link}")) && text.chars().count() <= 2_000, "{text}");
        let slack = message.body(ChannelKind::Slack, "");
        assert!(slack["text"].as_str().unwrap().ends_with("&amp;f=name~is~a_b"), "{slack}");
    }

    #[test]
    fn tokens_of_bots_have_no_path() {
        for (text, is_token) in
            [("123456:ABC-DEF_1", true), ("123:a/../x", false), ("a:b", false), (":b", false), ("1:", false), ("1:b?", false)]
        {
            assert_eq!(is_bot_token(text), is_token, "{text}");
        }
    }
}
