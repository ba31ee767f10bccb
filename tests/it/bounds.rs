//! Every bound of an event, at both ends and one past.

use serde_json::{Value, json};

use crate::client::Call;
use crate::errors::assert_refused;
use crate::tenant::{Tenant, now_ms};

/// Sends events that differ in one field, and checks which are taken: `None`; `text_cut url`, taken
/// with this warning; or the parameter that is named in a refusal.
fn check(rows: &[(String, Option<&str>)]) {
    let tenant = Tenant::new();
    let mut taken = 0;
    for (event, expected) in rows {
        let shown: String = event.chars().take(120).collect();
        let answer = tenant.send(Call::post("/track").key(&tenant.key).text("application/json", event.as_str()));
        match expected {
            Some(param) if !param.contains(' ') => {
                let code = answer.json()["error"]["code"].as_str().unwrap_or_default().to_owned();
                assert!(["invalid_parameter", "missing_parameter"].contains(&&*code), "{shown}: {}", answer.text());
                assert_refused(&shown, &answer, 400, &code, Some(param));
            }
            warning => {
                let recorded = answer.json();
                assert_eq!((answer.status, recorded["status"].as_str()), (202, Some("recorded")), "{shown}: {recorded}");
                assert_eq!(
                    shown_warnings(&recorded, false),
                    warning.iter().map(ToString::to_string).collect::<Vec<_>>(),
                    "{shown}"
                );
                taken += 1;
            }
        }
    }
    // What was refused in single events is refused in a batch, and keeps nothing else back; what
    // was repaired is repaired.
    let events: Vec<&str> = rows.iter().map(|(event, _)| event.as_str()).collect();
    let body = format!("{{\"events\": [{}]}}", events.join(","));
    let answer = tenant.send(Call::post("/i/batch").key(&tenant.key).text("application/json", body)).ok(202);
    let (mut errors, mut warnings) = (Vec::new(), Vec::new());
    for (index, (_, expected)) in rows.iter().enumerate() {
        match expected {
            Some(warning) if warning.contains(' ') => warnings.push(format!("{index} {warning}")),
            Some(param) => errors.push(json!({"index": index, "param": param})),
            None => {}
        }
    }
    let got = answer["errors"].as_array().expect("errors");
    let got: Vec<Value> = got.iter().map(|error| json!({"index": error["index"], "param": error["param"]})).collect();
    assert_eq!((got, shown_warnings(&answer, true)), (errors, warnings));
    // An external_id is known by then.
    let known = ["recorded", "duplicates"].map(|name| answer[name].as_u64().expect("a count"));
    assert_eq!(known.iter().sum::<u64>(), taken, "{answer}");
}

/// The warnings of an answer.
fn shown_warnings(answer: &Value, has_index: bool) -> Vec<String> {
    let shown = |warning: &Value| {
        let text = |name: &str| warning[name].as_str().expect("a text").to_owned();
        assert!(text("message").contains(&format!("`{}`", text("param"))), "{warning}");
        let index = if has_index { format!("{} ", warning["index"]) } else { String::new() };
        format!("{index}{} {}", text("code"), text("param"))
    };
    answer["warnings"].as_array().into_iter().flatten().map(shown).collect()
}

fn event(field: &str, value: Value) -> String {
    let mut event = json!({"name": "a"});
    event[field] = value;
    event.to_string()
}

/// An event with a field written exactly so.
fn raw(field: &str, value: &str) -> String {
    format!("{{\"name\": \"a\", \"{field}\": {value}}}")
}

#[test]
fn names_have_1_to_100_characters() {
    check(&[
        (event("name", json!("x")), None),
        (event("name", json!("x".repeat(100))), None),
        (event("name", json!("ü".repeat(100))), None),
        (event("name", json!("😀".repeat(100))), None),
        (event("name", json!("x".repeat(101))), Some("name")),
        (event("name", json!("😀".repeat(101))), Some("name")),
        (event("name", json!("")), Some("name")),
        (event("name", json!(null)), Some("name")),
        (event("name", json!(5)), None),
        (event("name", json!([])), Some("name")),
        ("{}".to_owned(), Some("name")),
    ]);
}

#[test]
fn texts_have_at_most_4096_bytes() {
    let fields = [
        "message",
        "user_id",
        "anonymous_id",
        "referrer",
        "screen",
        "language",
        "url",
        "hostname",
        "channel",
        "external_id",
        "group_id",
        "privacy_categories",
        "pc",
        "privacy_signals",
        "ps",
        "consent_source",
    ];
    for field in fields {
        let (cut, ignored) = (format!("text_cut {field}"), format!("field_ignored {field}"));
        let too_long = match field {
            "external_id" => field,
            "group_id" => "group_ignored group_id",
            "user_id" | "anonymous_id" => &ignored,
            _ => &cut,
        };
        check(&[
            (event(field, json!(null)), None),
            (event(field, json!("")), None),
            (event(field, json!("ü".repeat(2048))), Some(too_long).filter(|_| field == "group_id")),
            (event(field, json!("ü".repeat(2048) + "x")), Some(too_long)),
            (event(field, json!("x".repeat(4097))), Some(too_long)),
            (event(field, json!(5)), None),
            (event(field, json!(["a"])), Some(&ignored)),
        ]);
    }
    check(&[
        (event("group_id", json!("ü".repeat(512))), None),
        (event("group_id", json!("x".repeat(513))), Some("group_ignored group_id")),
    ]);
    let long = "x".repeat(4097);
    for field in ["source", "medium", "campaign", "channel"] {
        let warning = format!("text_cut _acOverrides.{field}");
        check(&[
            (event("_acOverrides", json!({field: &long[..4096]})), None),
            (event("_acOverrides", json!({field: long})), Some(&warning)),
        ]);
    }
}

#[test]
fn other_fields_have_their_types() {
    check(&[
        (event("notify", json!(true)), None),
        (event("notify", json!(null)), None),
        (event("notify", json!("yes")), Some("field_ignored notify")),
        (event("notify", json!(1)), Some("field_ignored notify")),
        (event("_acOverrides", json!(null)), None),
        (event("_acOverrides", json!({})), None),
        (event("_acOverrides", json!({"source": "a", "channel": null, "more": 5})), None),
        (event("_acOverrides", json!("google")), Some("field_ignored _acOverrides")),
        (event("_acOverrides", json!([])), Some("field_ignored _acOverrides")),
        (event("_acOverrides", json!({"source": 5})), None),
        (event("_acOverrides", json!({"source": {}})), Some("field_ignored _acOverrides.source")),
    ]);
}

#[test]
fn values_are_at_most_1e12_with_6_decimals() {
    let taken = [
        "0",
        "-0",
        "1e12",
        "1000000000000",
        "1000000000000.000000",
        "-1000000000000",
        "999999999999.999999",
        "0.000001",
        "-0.123456",
        "1.5e-5",
        "null",
        "0.0000001",
        "1.1234567",
        "1e-7",
        "\"5\"",
        "\"\"",
    ];
    let ignored =
        ["1000000000000.000001", "1000000000001", "-1000000000000.000001", "1e13", "1e400", "\"5 €\"", "true", "[5]", "{}"];
    let rows = taken.iter().map(|value| (raw("value", value), None));
    check(&rows.chain(ignored.iter().map(|value| (raw("value", value), Some("value_ignored value")))).collect::<Vec<_>>());
}

#[test]
fn currencies_are_of_iso_4217() {
    check(&[
        (event("currency", json!("USD")), None),
        (event("currency", json!("eUr")), None),
        (event("currency", json!("jpy")), None),
        (event("currency", json!("")), None),
        (event("currency", json!(null)), None),
        (event("currency", json!("US")), Some("currency_unknown currency")),
        (event("currency", json!("USDX")), Some("currency_unknown currency")),
        (event("currency", json!("ZZZ")), Some("currency_unknown currency")),
        (event("currency", json!("€")), Some("currency_unknown currency")),
        (event("currency", json!(840)), Some("currency_unknown currency")),
    ]);
}

#[test]
fn group_types_have_their_pattern() {
    let long = "a".repeat(64);
    check(&[
        (event("group_type", json!("a")), None),
        (event("group_type", json!("team_2")), None),
        (event("group_type", json!("company")), None),
        (event("group_type", json!(long)), None),
        (event("group_type", json!("")), None),
        (event("group_type", json!(null)), None),
        (event("group_type", json!(format!("{long}a"))), Some("group_ignored group_type")),
        (event("group_type", json!("Team")), Some("group_ignored group_type")),
        (event("group_type", json!("2team")), Some("group_ignored group_type")),
        (event("group_type", json!("_team")), Some("group_ignored group_type")),
        (event("group_type", json!("te-am")), Some("group_ignored group_type")),
        (event("group_type", json!("team\n")), Some("group_ignored group_type")),
        (event("group_type", json!(5)), Some("group_ignored group_type")),
    ]);
}

fn nested(depth: usize, open: &str, close: &str) -> String {
    format!("{}1{}", open.repeat(depth), close.repeat(depth))
}

fn keys(count: usize) -> String {
    let fields: Vec<String> = (0..count).map(|number| format!("\"k{number}\": {number}")).collect();
    format!("{{{}}}", fields.join(", "))
}

#[test]
fn metadata_has_its_bounds() {
    let key = |key: String| json!({ key: 1 }).to_string();
    let text = |text: String| json!({ "a": text }).to_string();
    let taken = [
        "null".to_owned(),
        "5".to_owned(),
        "\"text\"".to_owned(),
        "[1, null, {}]".to_owned(),
        "true".to_owned(),
        "{}".to_owned(),
        nested(8, "[", "]"),
        nested(8, "{\"a\":", "}"),
        keys(128),
        format!("[{}, {}]", keys(64), keys(64)),
        key("k".repeat(128)),
        key("ü".repeat(64)),
        key(String::new()),
        text("x".repeat(8192)),
        text("ü".repeat(4096)),
    ];
    let trimmed = [
        nested(9, "[", "]"),
        nested(9, "{\"a\":", "}"),
        nested(1000, "[", "]"),
        keys(129),
        format!("[{}, {}]", keys(64), keys(65)),
        key("k".repeat(129)),
        key("ü".repeat(64) + "k"),
        text("x".repeat(8193)),
        text("ü".repeat(4096) + "x"),
        format!("\"{}\"", "x".repeat(8193)),
    ];
    let rows = taken.iter().map(|value| (raw("metadata", value), None));
    check(
        &rows.chain(trimmed.iter().map(|value| (raw("metadata", value), Some("metadata_trimmed metadata")))).collect::<Vec<_>>(),
    );
}

#[test]
fn timestamps_begin_in_1990() {
    check(&[
        (event("timestamp", json!("1990-01-01T00:00:00Z")), None),
        (event("timestamp", json!("1990-01-01T00:00:00.0009Z")), None),
        (event("timestamp", json!("1990-01-01T05:30:00+05:30")), None),
        (event("timestamp", json!(631_152_000_000_i64)), None),
        (event("timestamp", json!("2024-02-29T23:59:59.999999999Z")), None),
        (event("timestamp", json!("2024-01-01t00:00:00z")), None),
        (event("timestamp", json!(null)), None),
        (event("timestamp", json!("")), None),
        (event("timestamp", json!("1989-12-31T23:59:59.999Z")), Some("timestamp")),
        (event("timestamp", json!("1990-01-01T00:00:00+00:01")), Some("timestamp")),
        (event("timestamp", json!(631_151_999_999_i64)), Some("timestamp")),
        (event("timestamp", json!(0)), Some("timestamp")),
        (event("timestamp", json!(-1)), Some("timestamp")),
        (event("timestamp", json!("2024-01-01")), Some("timestamp")),
        (event("timestamp", json!("2024-01-01T00:00:00")), Some("timestamp")),
        (event("timestamp", json!("2023-02-29T00:00:00Z")), Some("timestamp")),
        (event("timestamp", json!("2024-01-01T24:00:00Z")), Some("timestamp")),
        (event("timestamp", json!("1704067200000")), None),
        (event("timestamp", json!(1_704_067_200)), Some("timestamp_in_seconds timestamp")),
        (event("timestamp", json!(true)), Some("timestamp")),
        (event("timestamp", json!({"ms": 1})), Some("timestamp")),
    ]);
}

#[test]
fn timestamps_far_ahead_become_the_time_of_receipt() {
    let tenant = Tenant::new();
    let ahead = |ms: i64| tenant.recorded(&json!({"name": "a", "user_id": "ada", "timestamp": now_ms() + ms}));
    assert_eq!(ahead(0)["clamped"], json!(false));
    assert_eq!(ahead(5 * 60_000 - 5_000)["clamped"], json!(false), "less than 5 minutes");
    assert_eq!(ahead(5 * 60_000 + 5_000)["clamped"], json!(true), "more than 5 minutes");
    assert_eq!(ahead(400 * 86_400_000)["clamped"], json!(true));
    let far = tenant.recorded(&json!({"name": "a", "user_id": "ben", "timestamp": "9999-12-31T23:59:59Z"}));
    assert_eq!(far["clamped"], json!(true));
    let today = tenant.post(&tenant.path("analytics/count-unique-users-per-day"), &json!({})).ok(200);
    assert_eq!(today["total_unique_users"], 2, "they happened today, or yesterday if it is midnight: {today}");
}

/// Empty ids and optional fields are as if absent; the categories alone say something by being
/// empty.
#[test]
fn empty_texts_are_as_if_absent() {
    let tenant = Tenant::new();
    tenant.recorded(&json!({"name": "a", "user_id": "", "anonymous_id": "x1"}));
    tenant.recorded(&json!({"name": "a", "user_id": "ada", "anonymous_id": ""}));
    tenant.recorded(&json!({"name": "a", "user_id": "ben", "anonymous_id": ""}));
    assert_eq!(tenant.users(&tenant.project), 3, "x1, ada and ben: an empty anonymous id links nobody");
    for _ in 0..2 {
        tenant.recorded(&json!({"name": "order", "user_id": "ada", "external_id": "", "value": 5, "currency": ""}));
    }
    let metrics = tenant.metrics(&tenant.project);
    assert_eq!((&metrics["total_revenue"], &metrics["orders"]), (&json!(10), &json!(2)), "an empty external_id counts as none");
    tenant.recorded(&json!({"name": "order", "user_id": "dana", "value": 7, "pc": ""}));
    tenant.recorded(&json!({"name": "order", "user_id": "erin", "value": 7, "privacy_categories": ""}));
    assert_eq!(tenant.users(&tenant.project), 3, "nothing was granted: nobody more");
    assert_eq!(tenant.metrics(&tenant.project)["total_revenue"], json!(24), "their money counts");
}

#[test]
fn a_batch_has_at_most_5000_events() {
    let tenant = Tenant::new();
    let batch = |count: usize| json!({ "events": vec![json!({"name": "a", "user_id": "ada"}); count] });
    let send = |count: usize| tenant.send(Call::post("/i/batch").key(&tenant.key).json(&batch(count)));
    assert_eq!(send(0).ok(202), json!({"recorded": 0, "duplicates": 0, "dropped": 0, "errors": []}));
    assert_eq!(send(1).ok(202)["recorded"], 1);
    assert_eq!(send(5000).ok(202)["recorded"], 5000);
    assert_refused("5,001 events", &send(5001), 400, "invalid_parameter", Some("events"));
    let missing = tenant.send(Call::post("/i/batch").key(&tenant.key).json(&json!({"event": []})));
    assert_refused("no events", &missing, 400, "missing_parameter", Some("events"));
}
