use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::mapped::Mapped;
use super::message::{Batch, Call, Envelope, Message, write_key};
use crate::agent;
use crate::hosts::HostList;
use crate::ids::{OrganizationId, ProjectId};
use crate::intake::admission::{Client, Sender, Verdict, admit};
use crate::intake::client_address::ClientAddress;
use crate::intake::event::Event;
use crate::intake::policy::{BotPolicy, Policy, SignalsPolicy};
use crate::intake::submission::Invalid;
use crate::intake::warning::Warning;
use crate::money::Currency;
use crate::time::{Instant, Timezone};

/// 2024-06-01T12:00:00Z
const RECEIVED: Instant = Instant(1_717_243_200_000);

/// The code and the field of a repair.
type Repair = (&'static str, String);

/// Admits the only message of a batch, which says what it is.
fn recorded_in(batch: &Value) -> Result<Event, Invalid> {
    admitted_in(batch).map(|(event, _)| event)
}

/// As [`recorded_in`], with the kinds and fields of its repairs.
fn admitted_in(batch: &Value) -> Result<(Event, Vec<Repair>), Invalid> {
    let body = batch.to_string();
    let Batch { messages, envelope } = Batch::parse(&body)?;
    let message = Message::parse(messages[0])?;
    let mapped = Mapped::new(&message, message.call()?, &envelope);
    let policy = Policy {
        project: ProjectId(1),
        organization: OrganizationId(1),
        currency: Currency::USD,
        organization_currency: Currency::USD,
        rates: Arc::default(),
        timezone: Timezone::default(),
        bots: BotPolicy::Record,
        signals: SignalsPolicy::Record,
        cookieless: true,
        server_only_revenue: false,
        no_referrers: HostList::default(),
    };
    let agent = agent::parse(mapped.user_agent().unwrap_or_default());
    let sender = Sender::Public;
    let client = Client {
        sender,
        address: mapped.ip().map(ClientAddress::parse),
        user_agent: mapped.user_agent(),
        country: None,
        agent: &agent,
        gpc: false,
        dnt: false,
        salt: Some([0; 16]),
    };
    match admit(&mapped.submission(), &policy, &client, RECEIVED).map_err(|invalid| mapped.renamed(invalid))? {
        Verdict::Record { event, warnings, .. } => {
            let warnings = warnings.into_iter().map(|warning| mapped.renamed_warning(warning));
            let shown = |warning: Warning| {
                assert!(warning.message.contains(&format!("`{}`", warning.param)), "{}", warning.message);
                (warning.code.as_str(), warning.param.into_owned())
            };
            Ok((*event, warnings.map(shown).collect()))
        }
        Verdict::Dropped(reason) => panic!("{reason:?}"),
    }
}

fn recorded(message: &Value) -> Result<Event, Invalid> {
    recorded_in(&json!({"batch": [message]}))
}

/// The same message with more fields.
fn with(message: Value, more: Value) -> Value {
    let (Value::Object(mut fields), Value::Object(more)) = (message, more) else { panic!("objects") };
    fields.extend(more);
    fields.into()
}

fn track(event: &str, properties: Value) -> Value {
    json!({"type": "track", "userId": "ada", "event": event, "properties": properties})
}

#[test]
fn every_call_becomes_an_event() {
    let ids = json!({"userId": "ada", "anonymousId": "a-1"});
    let table = [
        // message, name, metadata
        (json!({"type": "track", "event": "Signed Up", "properties": {"plan": "pro"}}), "Signed Up", json!({"plan": "pro"})),
        (json!({"type": "identify", "traits": {"email": "Ada@Acme.com"}}), "identify", json!({"email": "Ada@Acme.com"})),
        (json!({"type": "page", "name": "Home", "properties": {"a": 1}}), "page", json!({"name": "Home", "a": 1})),
        (json!({"type": "page", "name": "Home", "properties": {"name": "Start"}}), "page", json!({"name": "Start"})),
        (json!({"type": "page", "category": "Docs", "name": ""}), "page", json!({"category": "Docs"})),
        (json!({"type": "page", "properties": {}}), "page", json!({})),
        (json!({"type": "page"}), "page", Value::Null),
        (json!({"type": "screen", "name": "Cart"}), "screen", json!({"name": "Cart"})),
        (json!({"type": "group", "groupId": "g", "traits": {"name": "Acme"}}), "group", json!({"name": "Acme"})),
        (
            json!({"type": "group", "groupId": "g", "traits": {"email": "info@acme.com", "n": 1.50}}),
            "group",
            json!({"group_email": "info@acme.com", "n": 1.50}),
        ),
        (json!({"type": "alias", "previousId": "a-1", "traits": {"a": 1}}), "alias", Value::Null),
        (json!({"type": "track", "event": 404, "properties": [1]}), "404", json!([1])),
    ];
    for (message, name, metadata) in table {
        let event = recorded(&with(message.clone(), ids.clone())).unwrap_or_else(|error| panic!("{message}: {error:?}"));
        let found: Value = event.details.metadata.as_deref().map_or(Value::Null, |json| serde_json::from_str(json).unwrap());
        assert_eq!((&*event.name, found), (name, metadata), "{message}");
        let who = [event.who.user_id.as_deref(), event.who.anonymous_id.as_deref()];
        assert_eq!((who, event.who.visitor), ([Some("ada"), Some("a-1")], None), "{message}");
        assert_eq!(event.is_pageview(), name == "page", "{message}");
    }
}

#[test]
fn the_fields_of_a_context_are_those_of_an_event() {
    let context = json!({
        "page": {"url": "https://a.example/b?utm_source=news", "referrer": "https://c.example/", "title": "B"},
        "campaign": {"name": "Spring", "source": "Letter", "medium": "email", "term": "t"},
        "screen": {"width": 1280, "height": 720, "density": 2},
        "locale": "de-AT",
        "userAgent": "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36",
        "groupId": "acme.com",
        "library": {"name": "analytics.js"},
        "timezone": "Europe/Vienna",
    });
    let message = json!({"type": "track", "event": "a", "anonymousId": 5, "messageId": "m-1"});
    let own = recorded(&with(message.clone(), json!({"context": context.clone()}))).unwrap();
    // What a message lacks is that of its batch.
    let shared = recorded_in(&json!({"batch": [message], "context": context})).unwrap();
    assert_eq!(own, shared);
    let details = &own.details;
    assert_eq!(details.url.as_deref(), Some("https://a.example/b?utm_source=news"));
    assert_eq!(details.referrer.as_deref(), Some("https://c.example/"));
    assert_eq!((details.language.as_deref(), details.screen.as_deref()), (Some("de-AT"), Some("1280x720")));
    assert_eq!(details.agent.as_ref().unwrap().browser.as_deref(), Some("Chrome"));
    let acquisition = details.acquisition.as_ref().unwrap();
    assert_eq!((&*acquisition.source, &*acquisition.medium, &*acquisition.campaign), ("letter", "email", "spring"));
    assert_eq!((details.group_type.as_deref(), details.group_id.as_deref()), (Some("company"), Some("acme.com")));
    assert_eq!((own.who.anonymous_id.as_deref(), own.external_id.as_deref()), (Some("5"), Some("m-1")));

    let both = json!({
        "batch": [{"type": "track", "event": "a", "userId": "u", "context": {"locale": "en"}}],
        "context": {"locale": "fr", "page": {"url": "https://d.example/"}},
    });
    let details = recorded_in(&both).unwrap().details;
    assert_eq!((details.language.as_deref(), details.url.as_deref()), (Some("en"), Some("https://d.example/")));
}

#[test]
fn a_context_is_read_leniently() {
    for context in [json!([]), json!("a"), json!({"page": 5, "locale": {}, "campaign": [], "screen": {"width": 1}, "ip": null})] {
        let event = recorded(&with(track("a", json!({})), json!({"context": context.clone()}))).unwrap();
        let details = event.details;
        assert_eq!((details.url, details.language, details.screen), (None, None, None), "{context}");
    }
}

#[test]
fn a_page_that_a_server_sends_has_its_address_in_properties() {
    let properties = json!({"properties": {"url": "https://a.example/", "referrer": "https://b.example/"}});
    let page = recorded(&with(json!({"type": "page", "userId": "u"}), properties.clone())).unwrap().details;
    assert_eq!((page.url.as_deref(), page.referrer.as_deref()), (Some("https://a.example/"), Some("https://b.example/")));
    let other = recorded(&with(json!({"type": "track", "event": "e", "userId": "u"}), properties)).unwrap().details;
    assert_eq!((other.url, other.referrer), (None, None), "the property of another event is its own");
}

#[test]
fn who_runs_on_a_device_is_known() {
    for (library, expected) in [
        (json!({"name": "analytics.js", "version": "npm:next-1.84.3"}), true),
        (json!({"name": "analytics-kotlin"}), true),
        (json!({"name": "analytics-node"}), false),
        (json!({"name": "analytics-python"}), false),
        (json!(5), false),
    ] {
        let json = with(track("a", json!({})), json!({"context": {"library": library}})).to_string();
        let message = Message::parse(&json).unwrap();
        let mapped = Mapped::new(&message, Call::Track, &Envelope::default());
        assert_eq!(mapped.is_of_device(), expected, "{json}");
    }
}

#[test]
fn clocks_of_senders_are_corrected() {
    let at = |seconds: i64| RECEIVED.plus_ms(seconds * 1_000).to_string();
    let table = [
        // timestamp, sentAt of the message, sentAt of the batch, seconds before the receipt
        (json!(at(-60)), Value::Null, Value::Null, 60),
        (json!(at(-60)), json!(at(0)), Value::Null, 60),
        (json!(at(-3_660)), json!(at(-3_600)), Value::Null, 60),
        (json!(at(3_540)), Value::Null, json!(at(3_600)), 60),
        (json!(at(-60)), json!(at(-30)), json!(at(900)), 30),
        (json!(RECEIVED.plus_ms(-5_000).0), json!(RECEIVED.0), Value::Null, 5),
        (json!(at(-60)), json!("yesterday"), Value::Null, 60),
        (Value::Null, json!(at(-900)), Value::Null, 0),
        (json!(""), Value::Null, Value::Null, 0),
    ];
    for (timestamp, sent_at, batch_sent_at, expected) in table {
        let message = with(track("a", json!({})), json!({"timestamp": timestamp, "sentAt": sent_at}));
        let event = recorded_in(&json!({"batch": [message.clone()], "sentAt": batch_sent_at})).unwrap();
        assert_eq!((RECEIVED.0 - event.time.0) / 1_000, expected, "{message} {batch_sent_at}");
    }
}

#[test]
fn money_is_that_of_orders_and_refunds() {
    let table = [
        ("Order Completed", json!({"revenue": 25.5, "total": 30}), Some("25.5")),
        ("Order Completed", json!({"total": "30.10"}), Some("30.1")),
        ("Order Completed", json!({"revenue": null, "total": 30}), Some("30")),
        ("order_completed", json!({"revenue": "", "total": 30}), Some("30")),
        ("Order Completed", json!({"value": 30}), None),
        ("Order Completed", json!({"revenue": 0}), Some("0")),
        ("Order Completed", json!({"revenue": 59.970_000_000_000_006}), Some("59.97")),
        ("Order Refunded", json!({"total": 30}), Some("-30")),
        ("Order Refunded", json!({"revenue": -30, "total": 5}), Some("-30")),
        ("Order Refunded", json!({}), None),
        ("Subscription Renewed", json!({"revenue": 9, "total": 10}), Some("9")),
        ("Subscription Renewed", json!({"total": 10}), None),
        ("Subscription Refunded", json!({"revenue": -9}), Some("-9")),
        ("Product Added", json!({"revenue": 9}), None),
        ("product_viewed", json!({"revenue": 9}), None),
        ("Cart Viewed", json!({"revenue": 9}), None),
        ("Checkout Started", json!({"revenue": 9}), None),
        ("Checkout Step Completed", json!({"revenue": 9}), None),
        ("Payment Info Entered", json!({"revenue": 9}), None),
        ("Order Updated", json!({"revenue": 9, "total": 9}), None),
        ("Order Cancelled", json!({"revenue": 9, "total": 9}), None),
        ("Order Canceled", json!({"revenue": 9}), None),
        ("Started Order", json!({"revenue": 9}), None),
        ("Checkout Started", json!({"revenue": "much"}), None),
        ("Productivity Course Bought", json!({"revenue": 9}), Some("9")),
        ("Checkout", json!({"revenue": 9}), Some("9")),
    ];
    for (event, properties, expected) in table {
        let money = recorded(&track(event, properties.clone())).unwrap().money;
        assert_eq!(money.map(|money| money.amount.to_string()).as_deref(), expected, "{event} {properties}");
    }
    let euros = recorded(&track("Order Completed", json!({"revenue": 5, "currency": "eur"}))).unwrap().money.unwrap();
    assert_eq!(euros.currency.as_str(), "EUR");
    let points = recorded(&track("Points Earned", json!({"currency": "points"}))).unwrap();
    assert_eq!(points.money, None);
    let identify = json!({"type": "identify", "userId": "u", "traits": {"revenue": 5, "total": 5}});
    assert_eq!(recorded(&identify).unwrap().money, None, "a trait of a company");
}

#[test]
fn what_is_wrong_is_named_as_senders_know_it() {
    let long = "x".repeat(5_000);
    let table = [
        (json!({"type": "track", "userId": "u"}), "missing_parameter", "event"),
        (json!({"type": "track", "event": "x".repeat(101), "userId": "u"}), "invalid_parameter", "event"),
        (json!({"type": "track", "event": {}, "userId": "u"}), "invalid_parameter", "event"),
        (json!({"type": "track", "event": "a", "userId": "u", "messageId": long}), "invalid_parameter", "messageId"),
        (json!({"type": "track", "event": "a", "userId": "u", "timestamp": "now"}), "invalid_parameter", "timestamp"),
        (
            json!({"type": "track", "event": "a", "userId": "u", "timestamp": "1980-01-01T00:00:00Z"}),
            "invalid_parameter",
            "timestamp",
        ),
        (json!({"type": "delete", "userId": "u"}), "invalid_parameter", "type"),
        (json!({"userId": "u"}), "missing_parameter", "type"),
    ];
    for (message, code, param) in table {
        let shown = message.to_string();
        let error = recorded(&message).expect_err(&shown[..shown.len().min(200)]);
        assert_eq!((error.code, error.param.as_deref()), (code, Some(param)), "{error}");
        assert!(error.message.contains(&format!("`{param}`")), "{error}");
    }
}

#[test]
fn what_else_is_wrong_costs_a_detail() {
    let long = "x".repeat(5_000);
    let table = [
        (json!({"type": "track", "event": "a"}), None),
        (json!({"type": "track", "event": "a", "userId": "", "anonymousId": null}), None),
        (json!({"type": "track", "event": "a", "userId": {"id": 1}}), Some(("field_ignored", "userId"))),
        (json!({"type": "track", "event": "a", "userId": "undefined"}), Some(("placeholder_id", "userId"))),
        (json!({"type": "track", "event": "a", "userId": long}), Some(("field_ignored", "userId"))),
        (json!({"type": "track", "event": "a", "anonymousId": long}), Some(("field_ignored", "anonymousId"))),
        (json!({"type": "track", "event": "a", "messageId": [1]}), Some(("field_ignored", "messageId"))),
        (json!({"type": "track", "event": "a", "timestamp": 1_714_989_600}), Some(("timestamp_in_seconds", "timestamp"))),
        (json!({"type": "group", "userId": "u"}), None),
        (json!({"type": "group", "userId": "u", "groupId": long}), Some(("group_ignored", "groupId"))),
        (json!({"type": "alias", "userId": "u"}), None),
        (json!({"type": "alias", "previousId": long, "userId": "u"}), Some(("field_ignored", "previousId"))),
        (track("a", json!({"revenue": "much"})), Some(("value_ignored", "properties.revenue"))),
        (track("a", json!({"revenue": {"usd": 5}})), Some(("value_ignored", "properties.revenue"))),
        (track("a", json!({"revenue": 1e13})), Some(("value_ignored", "properties.revenue"))),
        (track("Order Completed", json!({"total": true})), Some(("value_ignored", "properties.total"))),
        (track("a", json!({"revenue": 5, "currency": "points"})), Some(("currency_unknown", "properties.currency"))),
        (track("a", json!({"text": "x".repeat(9_000)})), Some(("metadata_trimmed", "properties"))),
        (json!({"type": "identify", "userId": "u", "traits": {"a": "x".repeat(9_000)}}), Some(("metadata_trimmed", "traits"))),
        (with(track("a", json!({})), json!({"context": {"page": {"url": long}}})), Some(("text_cut", "context.page.url"))),
        (
            with(track("a", json!({})), json!({"context": {"campaign": {"name": long}}})),
            Some(("text_cut", "context.campaign.name")),
        ),
    ];
    for (message, expected) in table {
        let (event, warnings) = admitted_in(&json!({"batch": [message]})).unwrap();
        let expected: Vec<_> = expected.into_iter().map(|(code, param)| (code, param.to_owned())).collect();
        assert_eq!(warnings, expected, "{:.200}", message.to_string());
        assert_eq!(event.money, None);
    }
}

#[test]
fn an_order_has_one_key_for_ever() {
    for (event, properties, key) in [
        ("Order Completed", json!({"order_id": "A-7", "revenue": 5}), "order:A-7"),
        ("order_completed", json!({"order_id": 7}), "order:7"),
        ("Order Completed", json!({"order_id": ""}), "m-1"),
        ("Order Completed", json!({"order_id": null}), "m-1"),
        ("Order Completed", json!({"order_id": "undefined"}), "m-1"),
        ("Order Completed", json!({"order_id": {}}), "m-1"),
        ("Order Completed", json!({"order_id": "x".repeat(4_091)}), "m-1"),
        ("Order Completed", json!({"orderId": "A-7"}), "m-1"),
        ("Order Refunded", json!({"order_id": "A-7"}), "m-1"),
        ("Product Added", json!({"order_id": "A-7"}), "m-1"),
    ] {
        let message = with(track(event, properties.clone()), json!({"messageId": "m-1"}));
        assert_eq!(recorded(&message).unwrap().external_id.as_deref(), Some(key), "{event} {properties}");
    }
}

#[test]
fn an_order_of_140_properties_counts() {
    let mut properties = json!({"revenue": 5, "order_id": "o"});
    for product in 0..138 {
        properties[format!("product_{product}")] = json!({"sku": product});
    }
    let (event, warnings) = admitted_in(&json!({"batch": [track("Order Completed", properties)]})).unwrap();
    assert_eq!(warnings, [("metadata_trimmed", "properties".to_owned())]);
    assert_eq!((event.money.unwrap().amount.to_string().as_str(), event.external_id.as_deref()), ("5", Some("order:o")));
}

#[test]
fn what_is_no_message_is_refused() {
    for body in ["", "[]", "null", "5", "{", "[[\"track\"]]"] {
        let error = Batch::parse(body).expect_err(body);
        assert_eq!(error.code, "invalid_json", "{body}");
    }
    for body in ["{}", "{\"batch\": null}", "{\"batch\": {}}", "{\"batch\": 5}"] {
        assert_eq!(Batch::parse(body).unwrap_err().param.as_deref(), Some("batch"), "{body}");
    }
    assert_eq!(Batch::parse("{\"batch\": []}").unwrap().messages, Vec::<&str>::new());
    for body in ["\u{fffd}", "[1]", "\"a\"", "{\"userId\": 1, \"userId\"}"] {
        assert_eq!(Message::parse(body).unwrap_err().code, "invalid_json", "{body:?}");
    }
}

#[test]
fn a_batch_has_5000_messages() {
    let batch = |messages: usize| format!("{{\"batch\": [{}]}}", vec!["1"; messages].join(","));
    for (messages, is_fine) in [(4_999, true), (5_000, true), (5_001, false), (1_000_000, false)] {
        let body = batch(messages);
        let parsed = Batch::parse(&body);
        assert_eq!(parsed.as_ref().map_or(0, |batch| batch.messages.len()), if is_fine { messages } else { 0 });
        assert!(parsed.is_ok() || parsed.unwrap_err().message.ends_with(&format!("not {messages}")));
    }
    assert!(Batch::parse(&batch(5_001).replace("1]", "1")).is_err());
}

#[test]
fn the_key_may_be_in_the_body() {
    for (body, key) in [
        (r#"{"batch": [{"a": [1, {}]}], "writeKey": "pk_1"}"#, Some("pk_1")),
        (r#"{"writeKey": "", "a": 1}"#, None),
        (r#"{"writeKey": {}}"#, None),
        (r#"{"batch": []}"#, None),
        ("[]", None),
        ("{", None),
    ] {
        assert_eq!(write_key(body).as_deref(), key, "{body}");
    }
}

proptest! {
    #[test]
    fn no_message_panics(
        call in "track|identify|page|screen|group|alias",
        fields in prop::collection::vec(
            (
                "userId|anonymousId|previousId|groupId|event|name|messageId|timestamp|sentAt|properties|traits|context|category",
                "null|\"\"|\"[a-z\\\\u0]{0,6}\"|-?[0-9]{1,20}(\\.[0-9]{1,20})?([eE]-?[0-9]{1,4})?|\\[\\]|[{][}]|[{]\"(email|name|revenue|page|screen)\":(1|\"a\"|null|[{][}])[}]",
            ),
            0..8,
        ),
    ) {
        let fields: Vec<String> = fields.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
        let body = format!("{{\"batch\":[{{\"type\":\"{call}\",{}}}]}}", fields.join(",")).replace(",}", "}");
        if let Ok(Batch { messages, envelope }) = Batch::parse(&body)
            && let Ok(message) = Message::parse(messages[0])
        {
            let mapped = Mapped::new(&message, message.call().unwrap(), &envelope);
            // What is made of valid JSON is valid JSON.
            let submission = mapped.submission();
            for raw in [submission.metadata, submission.value, submission.overrides].into_iter().flatten() {
                prop_assert!(serde_json::from_str::<&serde_json::value::RawValue>(raw.0).is_ok(), "{} of {}", raw.0, body);
            }
        }
    }
}
