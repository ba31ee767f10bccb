//! Converts exports of other products to events in the format of `POST /projects/{id}/import`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use headcount_domain::Instant;
use headcount_domain::time::EARLIEST;
use serde::Serialize;
use serde_json::value::RawValue;

/// The CSV header that a format requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ForeignTable {
    /// The name of the file in messages.
    pub(crate) is: &'static str,
    /// The required columns.
    pub(crate) needs: &'static [&'static str],
}

/// A record: its texts by the names of their columns.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(transparent)]
pub(crate) struct Record(BTreeMap<String, String>);

impl Record {
    /// The text of a column, unless it is missing, empty, or `\N` (the null of ClickHouse and
    /// MySQL).
    pub(crate) fn get(&self, column: &str) -> Option<&str> {
        self.0.get(column).map(String::as_str).filter(|text| !text.is_empty() && *text != "\\N")
    }

    /// The text of a required column.
    ///
    /// # Errors
    /// The column is missing or empty.
    pub(crate) fn required(&self, column: &str) -> Result<&str, String> {
        self.get(column).ok_or_else(|| format!("`{column}` is empty"))
    }
}

/// An event of another product.
#[derive(Debug, Default, Serialize)]
pub(crate) struct ForeignEvent<'r> {
    pub(crate) name: &'r str,
    /// Milliseconds since 1970.
    pub(crate) timestamp: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) external_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) anonymous_id: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) user_id: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hostname: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) referrer: Option<Cow<'r, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) language: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) screen: Option<Cow<'r, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) user_agent: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) value: Option<&'r RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) currency: Option<&'r str>,
    /// Empty: without consent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) privacy_categories: Option<&'static str>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) metadata: BTreeMap<&'static str, &'r str>,
    #[serde(rename = "_acOverrides", skip_serializing_if = "Option::is_none")]
    pub(crate) overrides: Option<ForeignSource<'r>>,
    #[serde(rename = "_import")]
    pub(crate) visitor: ForeignVisitor<'r>,
}

/// The visitor's source, if it is not a URL.
#[derive(Debug, Serialize)]
pub(crate) struct ForeignSource<'r> {
    pub(crate) source: &'r str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) medium: Option<&'static str>,
}

/// The properties of the visitor that the other product detected.
#[derive(Debug, Default, Serialize)]
pub(crate) struct ForeignVisitor<'r> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) browser: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) browser_version: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) os: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) device: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) location_country: Option<&'r str>,
}

/// The address of a page. A path without a host stays a path.
pub(crate) fn url(host: Option<&str>, path: &str, query: &str) -> String {
    let mark = if query.is_empty() || query.starts_with('?') { "" } else { "?" };
    match host {
        Some(host) if path.starts_with('/') => format!("https://{host}{path}{mark}{query}"),
        _ => format!("{path}{mark}{query}"),
    }
}

/// The time of a text such as `2023-06-02 14:55:06`, `2023-06-02 14:55:06.123+00` or RFC 3339.
/// Without an offset it is UTC.
pub(crate) fn time(text: &str) -> Option<Instant> {
    let (date, time) = text.split_once([' ', 'T'])?;
    let offset = time.find(['+', '-', 'Z']).map_or("", |at| &time[at..]);
    let clock = time.strip_suffix(offset)?;
    let offset = match (offset.len(), offset) {
        (0, _) => Cow::Borrowed("Z"),
        // The form of PostgreSQL.
        (3, hours) => Cow::Owned(format!("{hours}:00")),
        (_, offset) => Cow::Borrowed(offset),
    };
    // Earlier times would be refused, or read as seconds.
    Instant::parse_rfc3339(&format!("{date}T{clock}{offset}")).filter(|time| *time >= EARLIEST)
}

/// headcount's name of an operating system.
pub(crate) fn system(name: &str) -> &str {
    match name {
        "Mac OS" | "Mac OS X" | "OS X" => "macOS",
        "Android OS" => "Android",
        "Chrome OS" => "ChromeOS",
        name if name.starts_with("Windows Phone") => "Windows Phone",
        name if name.starts_with("Windows") => "Windows",
        name => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_an_offset_or_are_utc() {
        let at = |text| Instant::parse_rfc3339(text);
        for (text, expected) in [
            ("2023-06-02 14:55:06", at("2023-06-02T14:55:06Z")),
            ("2023-06-02 14:55:06.123456+00", at("2023-06-02T14:55:06.123Z")),
            ("2023-06-02 14:55:06-03", at("2023-06-02T17:55:06Z")),
            ("2023-06-02 14:55:06+05:30", at("2023-06-02T09:25:06Z")),
            ("2023-06-02T14:55:06Z", at("2023-06-02T14:55:06Z")),
            ("2023-06-02T14:55:06+02:00", at("2023-06-02T12:55:06Z")),
            ("2023-06-02", None),
            ("2023-06-02 14:5", None),
            ("2023-06-02 14:55:06+", None),
            ("yesterday noon", None),
            ("", None),
        ] {
            assert_eq!(time(text), expected, "{text}");
        }
        assert!(at("2023-06-02T14:55:06Z").is_some());
    }

    #[test]
    fn paths_are_completed_where_the_host_is_known() {
        for (host, path, query, expected) in [
            (Some("a.example"), "/b", "", "https://a.example/b"),
            (Some("a.example"), "/b", "c=1", "https://a.example/b?c=1"),
            (Some("a.example"), "/b", "?c=1", "https://a.example/b?c=1"),
            (Some("a.example"), "app://b", "", "app://b"),
            (None, "/b", "c=1", "/b?c=1"),
        ] {
            assert_eq!(url(host, path, query), expected);
        }
    }
}
