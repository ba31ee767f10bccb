//! What a sender without mistakes would have sent.

use headcount_domain::Event;
use headcount_domain::intake::event::SentIds;
use serde_json::{Map, Value, json};

/// An event as its sender would have sent it, had nothing been wrong with it.
pub(crate) fn body_of(event: &Event) -> String {
    let mut fields = Map::new();
    let mut add = |name: &str, text: Option<&str>| {
        fields.extend(text.map(|text| (name.to_owned(), Value::from(text))));
    };
    let details = &event.details;
    add("name", Some(&event.name));
    add("timestamp", Some(&event.time.to_string()));
    add("user_id", event.who.user_id.as_deref());
    add("anonymous_id", event.who.anonymous_id.as_deref());
    add("external_id", event.external_id.as_deref());
    add("url", details.url.as_deref());
    add("hostname", details.hostname.as_deref());
    add("referrer", details.referrer.as_deref());
    add("screen", details.screen.as_deref());
    add("language", details.language.as_deref());
    add("channel", details.channel.as_deref());
    add("message", details.message.as_deref());
    add("group_type", details.group_type.as_deref());
    add("group_id", details.group_id.as_deref());
    add("privacy_categories", details.privacy_categories.as_deref());
    add("privacy_signals", details.privacy_signals.as_deref());
    add("consent_source", details.consent_source.as_deref());
    add("currency", event.money.as_ref().map(|money| money.currency.as_str()));
    fields.extend(details.notify.map(|notify| ("notify".to_owned(), json!(notify))));
    let mut body = Value::Object(fields).to_string();
    let mut add_raw = |name: &str, json: Option<String>| {
        if let Some(json) = json {
            body.insert_str(body.len() - 1, &format!(",\"{name}\":{json}"));
        }
    };
    add_raw("value", event.money.as_ref().map(|money| money.amount.to_string()));
    add_raw("metadata", details.metadata.as_ref().map(ToString::to_string));
    body
}

/// An event without what its overrides decided: what was resent has none.
pub(crate) fn without_acquisition(mut event: Event) -> Event {
    assert!(event.has_consent() || event.who == SentIds::default());
    event.details.acquisition = None;
    event
}
