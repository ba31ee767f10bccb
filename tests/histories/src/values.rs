//! What questions ask about: the ids, fields and values that histories have, and some that none
//! has.

use headcount_model::Json;

pub(crate) const USERS: [&str; 9] =
    ["ada", "ben", "cleo", "dana", "mia@umbrella.co", "Nora@Gmail.com", "owen@acme.com", "nobody", "a1"];
pub(crate) const EMAILS: [&str; 7] =
    ["ADA@acme.com", "ben@globex.io", " team@acme.com", "cleo@gmail.com", "mia@umbrella.co", "nora@gmail.com", "who@acme.com"];
pub(crate) const DOMAINS: [&str; 6] =
    ["acme.com", "https://www.Globex.io/", "umbrella.co", "hooli.dev", "gmail.com", "nobody.example"];
pub(crate) const COMPANIES: [&str; 6] = ["acct_1", "acct_2", "acme.com", "globex.io", "umbrella.co", "hooli.dev"];
pub(crate) const FIELDS: [&str; 22] = [
    "name",
    "url",
    "path",
    "hostname",
    "entry_url",
    "entry_url",
    "acquisition_channel",
    "group_id",
    "referrer",
    "language",
    "screen",
    "channel",
    "currency",
    "group_type",
    "user_id",
    "utm_source",
    "utm_medium",
    "utm_campaign",
    "utm_term",
    "utm_content",
    "acquisition_channel",
    "consent_source",
];
pub(crate) const PATHS: [&str; 7] = ["plan", "seats", "seats", "a.b", "a", "plan.name", "nothing"];
/// Filters; `$` stands for the JSON of a value.
/// The goals of each project, in the form of `POST …/goals`.
pub(crate) const GOALS: [&str; 7] = [
    r#"{"name": "Sold", "event_name": "order"}"#,
    r#"{"name": "Read", "page": "/**"}"#,
    r#"{"name": "Seen", "page": "/*", "filters": [{"field": "metadata.plan", "operator": "is_set"}]}"#,
    r#"{"name": "Found", "event_name": "order", "filters": [{"field": "source", "operator": "is_not", "value": "(direct)"}]}"#,
    r#"{"name": "Left", "event_name": "pageview", "filters": [
        {"any": [[{"field": "exit_url", "operator": "ends_with", "value": "/a"}], [{"field": "user_id", "operator": "is_set"}]]}]}"#,
    r#"{"name": "Entered", "event_name": "pageview", "filters": [{"field": "entry_url", "operator": "is_set"},
        {"field": "medium", "operator": "is_not", "value": "cpc"}]}"#,
    r#"{"name": "Nothing", "event_name": "nothing"}"#,
];

/// The goals as JSON.
pub(crate) fn goals() -> impl Iterator<Item = Json> {
    GOALS.iter().map(|goal| Json::parse(goal).expect("JSON"))
}

/// A segment of people.
pub(crate) const BUYERS: &str = r#"{"name": "Buyers", "people": [{"did": {"event_name": "order"}, "within": "ever"},
        {"did_not": {"filters": [{"field": "path", "operator": "ends_with", "value": "/a"}]}, "at_least": 2, "within": {"days": 9}}]}"#;

/// Segments, in the form of `POST …/segments`. Questions about single events know their fields.
pub(crate) const SEGMENTS: [&str; 3] = [
    r#"{"name": "All", "filters": []}"#,
    r#"{"name": "Pro", "filters": [{"field": "metadata.plan", "operator": "is", "value": "pro"}]}"#,
    r#"{"name": "Either", "filters": [{"any": [[{"field": "user_id", "operator": "is_set"}],
        [{"field": "acquisition_channel", "operator": "is", "value": "Direct"}, {"field": "path", "operator": "matches", "value": "/*"}]]}]}"#,
];

pub(crate) const FILTERS: [(&str, &str, &str); 57] = [
    ("name", "is", r#""pageview""#),
    ("name", "is_not", r#"["order", "refund"]"#),
    ("url", "is", r#""https://shop.example/a""#),
    ("url", "contains", r#""PRICING""#),
    ("path", "is", r#"["/", "/a"]"#),
    ("hostname", "is_not", r#""shop.example""#),
    ("referrer", "is", r#""google.com""#),
    ("referrer", "is_set", "null"),
    ("language", "is_not_set", "null"),
    ("screen", "contains", r#""1080""#),
    ("channel", "is", r#""sales""#),
    ("currency", "is", r#"["EUR", "CHF"]"#),
    ("currency", "is_set", "null"),
    ("group_type", "is", r#""company""#),
    ("group_type", "not_contains", r#""TEAM""#),
    ("group_id", "is", r#""t1""#),
    ("user_id", "is", r#""ada""#),
    ("user_id", "is_set", "null"),
    ("utm_source", "is", r#""newsletter""#),
    ("utm_medium", "is_not", r#""cpc""#),
    ("consent_source", "is", r#""banner""#),
    ("metadata.plan", "is", r#""pro""#),
    ("metadata.seats", "gte", "2.5"),
    ("metadata.seats", "lt", "2.5"),
    ("metadata.seats", "is", r#"[10, "7"]"#),
    ("metadata.a.b", "is", "1"),
    ("entry_url", "is", r#""https://shop.example/""#),
    ("entry_url", "contains", r#""PRICING""#),
    ("entry_url", "is_not_set", "null"),
    ("entry_url", "not_contains", r#""shop""#),
    ("acquisition_channel", "is", r#"["Direct", "Organic Search"]"#),
    ("acquisition_channel", "is_not", r#""Direct""#),
    ("acquisition_channel", "is_set", "null"),
    ("acquisition_channel", "contains", r#""PAID""#),
    ("metadata.plan", "is_set", "null"),
    ("metadata.plan", "is_not", r#"[null, "pro"]"#),
    ("metadata.plan", "contains", r#""PRO""#),
    ("metadata.plan", "contains", r#""οδοσ""#),
    ("metadata.plan", "not_contains", r#""5""#),
    ("metadata.plan", "is", r#"[5, true, ""]"#),
    ("metadata.plan.name", "is", r#""pro""#),
    ("metadata.seats", "gt", "9007199254740992"),
    ("metadata.seats", "lte", "0.0000005"),
    ("metadata.seats", "is", "2.000"),
    ("metadata.seats", "is_not_set", "null"),
    ("metadata.seats", "is_not", "1e20"),
    ("metadata.a", "is_set", "null"),
    ("name", "gt", "1"),
    ("path", "contains", r#""A""#),
    ("utm_content", "is", r#""y""#),
    ("url", "starts_with", r#""HTTPS://shop""#),
    ("url", "ends_with", r#""/A""#),
    ("path", "matches", r#""/*""#),
    ("path", "matches", r#""/**g""#),
    ("entry_url", "ends_with", r#""pricing""#),
    ("metadata.plan", "starts_with", r#""p""#),
    ("metadata.seats", "matches", r#""**""#),
];
