//! The CSV export of GoatCounter, version 2: the pageviews and events of a site.
//!
//! `exportcsv.go` in GoatCounter's repository defines the columns.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::foreign::{ForeignEvent, ForeignSource, ForeignTable, ForeignVisitor, Record, system, time, url};

/// The file. The header begins with the version of the format.
pub(crate) const TABLE: ForeignTable =
    ForeignTable { is: "version 2 of GoatCounter's CSV export", needs: &["2Path", "Event", "Session", "Referrer", "Date"] };

/// The sites that GoatCounter stores by name instead of by address, with a host for each.
const NAMED_SITES: [(&str, &str); 8] = [
    ("Google", "www.google.com"),
    ("Bing", "www.bing.com"),
    ("DuckDuckGo", "duckduckgo.com"),
    ("Hacker News", "news.ycombinator.com"),
    ("Twitter", "twitter.com"),
    ("Facebook", "www.facebook.com"),
    ("Reddit", "www.reddit.com"),
    ("LinkedIn", "www.linkedin.com"),
];

/// The event of a record.
///
/// # Errors
/// The reason, as text.
pub(crate) fn event<'r>(record: &'r Record, hostname: Option<&'r str>) -> Result<Option<ForeignEvent<'r>>, String> {
    let path = record.required("2Path")?;
    let date = record.required("Date")?;
    let at = time(date).ok_or_else(|| format!("`Date` is not a time: {date:?}"))?;
    let is_event = match record.get("Event") {
        Some("true" | "1") => true,
        Some("false" | "0") | None => false,
        Some(other) => return Err(format!("`Event` is neither true nor false: {other:?}")),
    };
    let session =
        record.get("Session").filter(|session| session.bytes().any(|byte| byte.is_ascii_alphanumeric() && byte != b'0'));
    let (referrer, overrides) = source(record);
    let (browser, browser_version) = record.get("Browser").map_or((None, None), split_version);
    let location = record.get("Location");
    let metadata = [("title", record.get("Title")), ("region", location.filter(|code| code.len() > 2))];
    let metadata: BTreeMap<_, _> = metadata.into_iter().filter_map(|(name, text)| Some((name, text?))).collect();
    let user_agent = record.get("UserAgent");
    let stated = |text: Option<&'r str>| text.filter(|_| user_agent.is_none());
    Ok(Some(ForeignEvent {
        name: if is_event { path } else { "pageview" },
        timestamp: at.0,
        anonymous_id: session,
        // Without a session the visitor is unknown: the pageview counts, but no visitor does.
        privacy_categories: session.is_none().then_some(""),
        url: (!is_event).then(|| url(hostname, path, "")),
        hostname,
        referrer,
        screen: record.get("Screen size").and_then(screen),
        user_agent,
        metadata,
        overrides,
        visitor: ForeignVisitor {
            browser: stated(browser),
            browser_version: stated(browser_version),
            os: stated(record.get("System").and_then(|name| split_version(name).0)).map(system),
            device: record.get("Bot").filter(|bot| *bot != "0").map(|_| "bot"),
            // `US`, or `US-TX` with the state.
            location_country: location.and_then(|code| code.get(..2)),
        },
        ..ForeignEvent::default()
    }))
}

/// The visitor's origin: a URL, or a source without one.
fn source(record: &Record) -> (Option<Cow<'_, str>>, Option<ForeignSource<'_>>) {
    let Some(referrer) = record.get("Referrer") else { return (None, None) };
    let named = NAMED_SITES.iter().find(|(name, _)| *name == referrer);
    match (record.get("Referrer scheme"), named) {
        (Some("h"), _) | (None, None) if referrer.contains("://") => (Some(Cow::Borrowed(referrer)), None),
        (Some("h") | None, None) => (Some(Cow::Owned(format!("https://{referrer}"))), None),
        (Some("g") | None, Some((_, host))) => (Some(Cow::Owned(format!("https://{host}/"))), None),
        // The value of a parameter such as `utm_source` or `ref`.
        (Some("c"), _) => (None, Some(ForeignSource { source: referrer, medium: None })),
        _ => (None, Some(ForeignSource { source: referrer, medium: Some("referral") })),
    }
}

/// Splits `Chrome 120.0` into the name and the optional version.
fn split_version(name: &str) -> (Option<&str>, Option<&str>) {
    let name = name.trim();
    let (name, version) = match name.rsplit_once(' ') {
        Some((name, version)) if version.starts_with(|letter: char| letter.is_ascii_digit()) => (name, Some(version)),
        _ => (name, None),
    };
    (Some(name).filter(|name| !name.is_empty()), version)
}

/// `1920,1080,1` is a width, a height and a scale. Exports have no height.
fn screen(size: &str) -> Option<Cow<'_, str>> {
    let mut parts = size.split(',');
    let (width, height) = (parts.next()?, parts.next().unwrap_or("0"));
    match (width, height) {
        ("0" | "", _) => None,
        (width, "0" | "") => Some(Cow::Borrowed(width)),
        (width, height) => Some(Cow::Owned(format!("{width}x{height}"))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn converted(fields: Value, hostname: Option<&str>) -> Result<Value, String> {
        let mut record = json!({"2Path": "/a", "Title": "", "Event": "false", "Session": "1f", "Bot": "0",
            "Date": "2023-06-02T14:55:06Z"});
        record.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let record: Record = serde_json::from_value(record).unwrap();
        Ok(serde_json::to_value(event(&record, hostname)?.unwrap()).unwrap())
    }

    #[test]
    fn a_record_becomes_an_event() {
        let common =
            json!({"name": "pageview", "timestamp": 1_685_717_706_000_i64, "anonymous_id": "1f", "url": "/a", "_import": {}});
        let with = |fields: Value| {
            let mut event = common.clone();
            event.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
            event.as_object_mut().unwrap().retain(|_, value| !value.is_null());
            event
        };
        for (fields, hostname, expected) in [
            (json!({}), None, with(json!({}))),
            (
                json!({"2Path": "/a?b=c"}),
                Some("a.example"),
                with(json!({"url": "https://a.example/a?b=c", "hostname": "a.example"})),
            ),
            (json!({"2Path": "click", "Event": "1"}), None, with(json!({"name": "click", "url": null}))),
            (json!({"Session": "0"}), None, with(json!({"anonymous_id": null, "privacy_categories": ""}))),
            (
                json!({"Title": "A", "Browser": "Samsung Internet 23.0", "System": "Windows 10", "Location": "US-TX", "Bot": "5",
                    "Screen size": "1920,0,1"}),
                None,
                with(
                    json!({"metadata": {"title": "A", "region": "US-TX"}, "screen": "1920", "_import": {"browser": "Samsung Internet",
                    "browser_version": "23.0", "os": "Windows", "device": "bot", "location_country": "US"}}),
                ),
            ),
            (
                json!({"UserAgent": "Mozilla/5.0", "Browser": "Chrome 1", "System": "Linux", "Screen size": "10,20,2", "Location": "CH"}),
                None,
                with(json!({"user_agent": "Mozilla/5.0", "screen": "10x20", "_import": {"location_country": "CH"}})),
            ),
            (json!({"Referrer": "b.example/c", "Referrer scheme": "h"}), None, with(json!({"referrer": "https://b.example/c"}))),
            (
                json!({"Referrer": "Hacker News", "Referrer scheme": "g"}),
                None,
                with(json!({"referrer": "https://news.ycombinator.com/"})),
            ),
            (
                json!({"Referrer": "Some App", "Referrer scheme": "g"}),
                None,
                with(json!({"_acOverrides": {"source": "Some App", "medium": "referral"}})),
            ),
            (json!({"Referrer": "news", "Referrer scheme": "c"}), None, with(json!({"_acOverrides": {"source": "news"}}))),
        ] {
            assert_eq!(converted(fields.clone(), hostname), Ok(expected), "{fields}");
        }
    }

    #[test]
    fn what_is_no_event_is_refused() {
        for (fields, expected) in [
            (json!({"2Path": ""}), "`2Path` is empty"),
            (json!({"Date": "2 June"}), "`Date` is not a time: \"2 June\""),
            (json!({"Event": "maybe"}), "`Event` is neither true nor false: \"maybe\""),
        ] {
            assert_eq!(converted(fields, None).unwrap_err(), expected);
        }
    }
}
