//! What users of other products reported: real events that were refused, dropped or misread.

use headcount_domain::intake::client_address::ClientAddress;
use headcount_domain::intake::submission::Submission;
use serde_json::json;

use crate::{RECEIVED, admitted, codes, policy, tracked};

/// The amount of an order with this `value`, and its warnings.
fn amount(value: &str) -> (Option<String>, Vec<String>) {
    let body = format!("{{\"name\":\"order\",\"user_id\":\"u\",\"value\":{value}}}");
    let (event, warnings) = tracked(body.as_bytes()).unwrap();
    (event.money.map(|money| money.amount.to_string()), codes(&warnings))
}

/// matomo-for-wordpress#34, matomo#21392.
#[test]
fn amounts_come_with_noise_and_as_texts() {
    for (value, expected) in [
        ("3.3000000000000003", "3.3"),
        ("\"49.90\"", "49.9"),
        ("\" 49.90 \"", "49.9"),
        ("\"1e2\"", "100"),
        ("19.989999999999998", "19.99"),
        ("-0.30000000000000004", "-0.3"),
        ("0.0000004", "0"),
        ("1e12", "1000000000000"),
        ("1000000000000.0000001", "1000000000000"),
    ] {
        assert_eq!(amount(value), (Some(expected.to_owned()), vec![]), "{value}");
    }
    for value in ["\"12,50 €\"", "true", "[]", "{}", "\"NaN\"", "\" \"", "1e13", "\"1000000000001\"", "\"1,000.00\"", "\"$5\""]
    {
        assert_eq!(amount(value), (None, vec!["value_ignored value".to_owned()]), "{value}");
    }
    for value in ["null", "\"\""] {
        assert_eq!(amount(value), (None, vec![]), "{value}");
    }
}

/// posthog#876.
#[test]
fn placeholders_are_nobody() {
    for id in ["\"undefined\"", "\" Undefined \"", "\"null\"", "\"[object Object]\"", "0", "\"(not set)\"", "\"N/A\"", "\"true\""]
    {
        let body = format!("{{\"name\":\"a\",\"user_id\":{id},\"anonymous_id\":{id}}}");
        let (event, warnings) = tracked(body.as_bytes()).unwrap();
        assert_eq!((event.who.user_id, event.who.anonymous_id), (None, None), "{id}");
        assert!(event.who.visitor.is_some(), "{id}");
        assert_eq!(codes(&warnings), ["placeholder_id user_id", "placeholder_id anonymous_id"], "{id}");
    }
    // What is linked to nobody can still become somebody's.
    let (event, _) = tracked(br#"{"name":"identify","user_id":"null","anonymous_id":"d1"}"#).unwrap();
    assert_eq!((event.who.user_id.as_deref(), event.who.anonymous_id.as_deref()), (None, Some("d1")));
}

/// plausible#5885: an order of 20 products.
#[test]
fn large_metadata_costs_no_order() {
    let products: Vec<_> = (0..20)
        .map(
            |number| json!({"id": number, "name": "a", "price": 5, "brand": "b", "category": "c", "variant": "d", "quantity": 1}),
        )
        .collect();
    let body = json!({"name": "order", "value": 100, "user_id": "u", "metadata": {"coupon": "X", "products": products}});
    let (event, warnings) = tracked(body.to_string().as_bytes()).unwrap();
    assert_eq!(codes(&warnings), ["metadata_trimmed metadata"]);
    let metadata: serde_json::Value = serde_json::from_str(event.details.metadata.as_deref().unwrap()).unwrap();
    assert_eq!((&metadata["coupon"], &metadata["products"][17]["name"]), (&json!("X"), &json!("a")));
    assert_eq!(event.money.unwrap().amount.to_string(), "100");
}

/// posthog PR 25507: a text that was cut in the middle of an emoji.
#[test]
fn half_an_emoji_costs_a_letter() {
    let (event, warnings) =
        tracked(br#"{"name":"a\ud83d","user_id":"u\ude00","screen":"\ud83d\ude00","metadata":{"title":"Hi \ud83d"}}"#).unwrap();
    assert_eq!((&*event.name, event.who.user_id.as_deref()), ("a\u{fffd}", Some("u\u{fffd}")));
    assert_eq!((event.details.screen.as_deref(), codes(&warnings)), (Some("\u{1f600}"), vec![]));
    assert_eq!(event.details.metadata.as_deref(), Some(r#"{"title":"Hi \ufffd"}"#));
    let (event, _) = tracked(b"{\"name\":\"a\",\"screen\":\"\xf0\x9f\x98\"}").unwrap();
    assert_eq!(event.details.screen.as_deref(), Some("\u{fffd}"));
}

/// umami#2260.
#[test]
fn a_long_address_loses_its_query() {
    let page = "https://shop.example/sale";
    let (event, warnings) =
        tracked(json!({"name": "a", "url": format!("{page}?utm_source=news&x={}", "y".repeat(9_000))}).to_string().as_bytes())
            .unwrap();
    let url = event.details.url.unwrap();
    assert!(url.len() == 4_096 && url.starts_with("https://shop.example/sale?utm_source=news&x=y"), "{url}");
    assert_eq!((codes(&warnings), &*event.details.acquisition.unwrap().source), (vec!["text_cut url".to_owned()], "news"));
}

/// umami#1218, umami#3269.
#[test]
fn a_page_has_one_address() {
    for (sent, kept) in [
        ("https://a.example/%C3%BCber?q=%C3%BC", "https://a.example/über?q=%C3%BC"),
        ("https://a.example/%d0%bf%d1%80%d0%b8", "https://a.example/при"),
        ("/a%2fb", "/a%2Fb"),
        ("/%7Emia", "/~mia"),
    ] {
        let (event, warnings) = tracked(json!({"name": "pageview", "url": sent}).to_string().as_bytes()).unwrap();
        assert_eq!((event.details.url.as_deref(), codes(&warnings)), (Some(kept), vec![]));
        let without_consent = json!({"name": "pageview", "url": sent, "pc": ""}).to_string();
        let (event, _) = tracked(without_consent.as_bytes()).unwrap();
        assert_eq!(event.details.url.as_deref(), kept.split('?').next());
    }
}

/// matomo#14255.
#[test]
fn years_back_is_a_time() {
    for (timestamp, expected) in [
        (json!("1990-01-01T00:00:00Z"), "1990-01-01T00:00:00.000Z"),
        (json!("2009-03-01T10:00:00+01:00"), "2009-03-01T09:00:00.000Z"),
        (json!(1_235_898_000_000_i64), "2009-03-01T09:00:00.000Z"),
        (json!("1235898000000"), "2009-03-01T09:00:00.000Z"),
        (json!(1_235_898_000), "2009-03-01T09:00:00.000Z"),
    ] {
        let (event, _) = tracked(json!({"name": "a", "timestamp": timestamp}).to_string().as_bytes()).unwrap();
        assert_eq!(event.time.to_string(), expected, "{timestamp}");
    }
    for timestamp in
        [json!("1989-12-31T23:59:59Z"), json!(631_151_999), json!(-5), json!("soon"), json!(true), json!({}), json!([])]
    {
        let refused = tracked(json!({"name": "a", "timestamp": timestamp}).to_string().as_bytes()).unwrap_err();
        assert_eq!(refused.param.as_deref(), Some("timestamp"), "{timestamp}");
    }
}

#[test]
fn clocks_that_are_wrong_cost_no_event() {
    let at = |fields: serde_json::Value| {
        let mut body = json!({"name": "a"});
        body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let (event, warnings) = tracked(body.to_string().as_bytes()).unwrap();
        (event.time.0 - RECEIVED.0, codes(&warnings))
    };
    // A device whose clock began in 1970 says milliseconds, too.
    assert_eq!(at(json!({"timestamp": 5_000, "_sent_at": 7_500})), (-2_500, vec![]));
    assert_eq!(at(json!({"timestamp": RECEIVED.0 - 60_000, "_sent_at": 9_000_000_000_000_000_i64})), (-60_000, vec![]));
    assert_eq!(at(json!({"timestamp": RECEIVED.0 - 60_000, "_sent_at": [1]})), (-60_000, vec![]));
    assert_eq!(at(json!({"timestamp": RECEIVED.0 + 600_000})), (0, vec!["clamped timestamp".to_owned()]));
}

/// fathom#129: days of visitors end at midnight where the organization is, not in UTC.
#[test]
fn a_visitor_lives_by_the_organizations_day() {
    let visitor = |timezone: &str, time: &str| {
        let body = json!({"name": "a", "timestamp": time}).to_string();
        let read = |submission: &Submission<'_>| admitted(submission, &policy(timezone), RECEIVED);
        Submission::read(body.as_bytes(), read).flatten().unwrap().0.who.visitor
    };
    let (before, after) = ("2026-11-18T23:30:00Z", "2026-11-19T00:30:00Z");
    assert_ne!(visitor("UTC", before), visitor("UTC", after));
    assert_eq!(visitor("America/New_York", before), visitor("America/New_York", after));
    let midnight = ("2026-11-19T04:59:59Z", "2026-11-19T05:00:00Z");
    assert_ne!(visitor("America/New_York", midnight.0), visitor("America/New_York", midnight.1));
}

/// posthog#10111: an address with a port is that address.
#[test]
fn an_address_has_no_port() {
    for text in ["203.0.113.9:41234", " 203.0.113.9 ", "203.0.113.9, 10.0.0.1", "[::ffff:203.0.113.9]:443"] {
        assert_eq!(ClientAddress::parse(text), ClientAddress::parse("203.0.113.9"), "{text}");
    }
}

#[test]
fn other_details_cost_no_event() {
    let long = "x".repeat(5_000);
    for (fields, expected) in [
        (json!({"user_id": long}), "field_ignored user_id"),
        (json!({"group_id": "x".repeat(513)}), "group_ignored group_id"),
        (json!({"group_id": "t", "group_type": "Team X"}), "group_ignored group_type"),
        (json!({"value": 5, "currency": "EURO"}), "currency_unknown currency"),
        (json!({"value": 5, "currency": "EUR"}), "no_rate currency"),
        (json!({"message": long}), "text_cut message"),
        (json!({"notify": 1}), "field_ignored notify"),
        (json!({"url": true}), "field_ignored url"),
        (json!({"userId": "ada"}), "misspelt_field userId"),
        (json!({"userId": "ada", "user_id": "ben"}), ""),
        (json!({"_acOverrides": "partner"}), "field_ignored _acOverrides"),
        (json!({"_acOverrides": {"source": [], "medium": 5}}), "field_ignored _acOverrides.source"),
        (json!({"metadata": {"k".repeat(129): 1}}), "metadata_trimmed metadata"),
    ] {
        let mut body = json!({"name": "a"});
        body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let (_, warnings) = tracked(body.to_string().as_bytes()).unwrap();
        assert_eq!(codes(&warnings).join(","), expected, "{:.100}", fields.to_string());
    }
    let refused = tracked(json!({"name": "a", "external_id": "x".repeat(4_097)}).to_string().as_bytes()).unwrap_err();
    assert_eq!(refused.param.as_deref(), Some("external_id"));
}
