//! `website_event.csv` of Umami: the export of Umami Cloud, or the table of the same name of one's
//! own database.
//!
//! `db/clickhouse/schema.sql` in Umami's repository defines the columns.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::value::RawValue;

use super::foreign::{ForeignEvent, ForeignTable, ForeignVisitor, Record, system, time, url};

/// The file.
pub(crate) const TABLE: ForeignTable =
    ForeignTable { is: "Umami's website_event.csv", needs: &["event_id", "session_id", "created_at", "event_type", "url_path"] };

/// The URL parameters that Umami stores as columns. Except in old events, `url_query` has them,
/// too.
const PARAMETERS: [&str; 11] = [
    "utm_source",
    "utm_medium",
    "utm_campaign",
    "utm_content",
    "utm_term",
    "gclid",
    "fbclid",
    "msclkid",
    "ttclid",
    "li_fat_id",
    "twclid",
];

/// The event of a record. `None` for a record without an event, such as a measurement of a page's
/// load time.
///
/// # Errors
/// The reason, as text.
pub(crate) fn event<'r>(record: &'r Record, hostname: Option<&'r str>) -> Result<Option<ForeignEvent<'r>>, String> {
    let name = match (record.required("event_type")?, record.get("event_name")) {
        ("1", _) => "pageview",
        ("5", _) => return Ok(None),
        (_, Some(name)) => name,
        (kind, None) => return Err(format!("an event of `event_type` {kind} has no `event_name`")),
    };
    let created_at = record.required("created_at")?;
    let at = time(created_at).ok_or_else(|| format!("`created_at` is not a time: {created_at:?}"))?;
    let hostname = hostname.or_else(|| record.get("hostname"));
    let metadata = [("title", "page_title"), ("region", "region"), ("city", "city"), ("tag", "tag")];
    let metadata: BTreeMap<_, _> = metadata.into_iter().filter_map(|(name, column)| Some((name, record.get(column)?))).collect();
    Ok(Some(ForeignEvent {
        name,
        timestamp: at.0,
        external_id: Some(format!("umami:{}", record.required("event_id")?)),
        anonymous_id: Some(record.required("session_id")?),
        user_id: record.get("distinct_id"),
        url: record.get("url_path").map(|path| url(hostname, path, &query(record))),
        hostname,
        referrer: referrer(record),
        language: record.get("language"),
        screen: record.get("screen").map(Cow::Borrowed),
        value: record.get("revenue").map(number).transpose()?,
        currency: record.get("currency").filter(|_| record.get("revenue").is_some()),
        metadata,
        visitor: ForeignVisitor {
            browser: record.get("browser").map(browser),
            browser_version: None,
            os: record.get("os").map(system),
            device: record.get("device").map(device),
            location_country: record.get("country"),
        },
        ..ForeignEvent::default()
    }))
}

/// An amount as JSON, with all of its digits.
fn number(text: &str) -> Result<&RawValue, String> {
    serde_json::from_str(text).map_err(|_| format!("`revenue` is not a number: {text:?}"))
}

/// The query of the page, completed with missing parameters.
fn query(record: &Record) -> Cow<'_, str> {
    let query = record.get("url_query").unwrap_or_default();
    let has = |name: &str| form_urlencoded::parse(query.trim_start_matches('?').as_bytes()).any(|(known, _)| known == name);
    let lacking = PARAMETERS.into_iter().filter_map(|name| Some((name, record.get(name)?))).filter(|(name, _)| !has(name));
    let more = form_urlencoded::Serializer::new(String::new()).extend_pairs(lacking).finish();
    match (query, more.as_str()) {
        (query, "") => Cow::Borrowed(query),
        ("", _) => Cow::Owned(more),
        _ => Cow::Owned(format!("{query}&{more}")),
    }
}

/// The referrer, if it is another site or an app.
fn referrer(record: &Record) -> Option<Cow<'_, str>> {
    let path = record.get("referrer_path").unwrap_or_default();
    match record.get("referrer_domain") {
        Some(domain) => {
            let path = if path.is_empty() { "/" } else { path };
            Some(Cow::Owned(url(Some(domain), path, record.get("referrer_query").unwrap_or_default())))
        }
        None => path.contains("://").then_some(Cow::Borrowed(path)),
    }
}

/// headcount's name of a browser.
fn browser(name: &str) -> &str {
    match name {
        "chrome" | "crios" | "chromium-webview" => "Chrome",
        "edge" | "edge-chromium" | "edge-ios" => "Edge",
        "firefox" | "fxios" => "Firefox",
        "safari" | "ios" | "ios-webview" => "Safari",
        "opera" | "opera-mini" => "Opera",
        "samsung" => "Samsung Internet",
        "ie" => "Internet Explorer",
        "android" => "Android Browser",
        name => name,
    }
}

fn device(name: &str) -> &'static str {
    match name {
        "desktop" | "laptop" => "desktop",
        "mobile" => "mobile",
        "tablet" => "tablet",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn converted(fields: Value, hostname: Option<&str>) -> Result<Option<Value>, String> {
        let mut record = json!({"event_id": "e1", "session_id": "s1", "created_at": "2023-06-02 14:55:06", "event_type": "1",
            "url_path": "/", "event_name": ""});
        record.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let record: Record = serde_json::from_value(record).unwrap();
        Ok(event(&record, hostname)?.map(|event| serde_json::to_value(event).unwrap()))
    }

    #[test]
    fn a_record_becomes_an_event() {
        let common = json!({"name": "pageview", "timestamp": 1_685_717_706_000_i64, "external_id": "umami:e1", "anonymous_id": "s1",
            "url": "/", "_import": {}});
        let with = |fields: Value| {
            let mut event = common.clone();
            event.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
            Some(event)
        };
        for (fields, hostname, expected) in [
            (json!({}), None, with(json!({}))),
            (
                json!({"event_type": "2", "event_name": "signup", "distinct_id": "ada", "hostname": "a.example", "url_path": "/b",
                    "url_query": "c=1", "page_title": "B", "city": "Basel", "region": "CH-BS", "tag": "\\N"}),
                None,
                with(json!({"name": "signup", "user_id": "ada", "url": "https://a.example/b?c=1", "hostname": "a.example",
                    "metadata": {"title": "B", "city": "Basel", "region": "CH-BS"}})),
            ),
            (
                json!({"hostname": "a.example"}),
                Some("b.example"),
                with(json!({"url": "https://b.example/", "hostname": "b.example"})),
            ),
            (
                json!({"browser": "edge-chromium", "os": "Mac OS", "device": "laptop", "country": "CH", "language": "de-CH",
                    "screen": "1470x956"}),
                None,
                with(json!({"language": "de-CH", "screen": "1470x956",
                    "_import": {"browser": "Edge", "os": "macOS", "device": "desktop", "location_country": "CH"}})),
            ),
            (
                json!({"url_query": "utm_source=a", "utm_source": "a", "utm_medium": "b c", "gclid": "d"}),
                None,
                with(json!({"url": "/?utm_source=a&utm_medium=b+c&gclid=d"})),
            ),
            (
                json!({"referrer_domain": "www.google.com", "referrer_query": "q=1"}),
                None,
                with(json!({"referrer": "https://www.google.com/?q=1"})),
            ),
            (json!({"referrer_path": "/before"}), None, with(json!({}))),
            (json!({"referrer_path": "android-app://com.a/"}), None, with(json!({"referrer": "android-app://com.a/"}))),
            (json!({"revenue": "12.5000", "currency": "EUR"}), None, with(json!({"value": 12.5, "currency": "EUR"}))),
            (json!({"revenue": "", "currency": "EUR"}), None, with(json!({}))),
            (json!({"event_type": "5"}), None, None),
        ] {
            assert_eq!(converted(fields.clone(), hostname), Ok(expected), "{fields}");
        }
    }

    #[test]
    fn what_is_no_event_is_refused() {
        for (fields, expected) in [
            (json!({"event_id": ""}), "`event_id` is empty"),
            (json!({"session_id": "\\N"}), "`session_id` is empty"),
            (json!({"created_at": "2023-06-02 14:5"}), "`created_at` is not a time: \"2023-06-02 14:5\""),
            (json!({"event_type": ""}), "`event_type` is empty"),
            (json!({"revenue": "12,5"}), "`revenue` is not a number: \"12,5\""),
            (json!({"event_type": "2"}), "an event of `event_type` 2 has no `event_name`"),
        ] {
            assert_eq!(converted(fields, None).unwrap_err(), expected);
        }
    }
}
