//! Organizations in JSON-LD, as schema.org names their properties.

use headcount_outbound::url::Url;
use serde_json::Value;

use super::facts::{ProfileFields, description, short};

/// How deep a document is searched.
const MAX_DEPTH: usize = 8;
/// The most values of a document. Parsed, a value can take hundreds of bytes where its text takes
/// seven.
const MAX_VALUES: usize = 5_000;

/// Returns what a document tells of the organization in it.
pub(crate) fn organization(text: &str, base: &Url) -> Option<ProfileFields> {
    // Each value but the first comes after one of these. Texts have some, too: they count as well.
    if text.bytes().filter(|byte| matches!(byte, b'[' | b'{' | b',')).count() >= MAX_VALUES {
        return None;
    }
    let document: Value = serde_json::from_str(text.trim()).ok()?;
    let found = find(&document, MAX_DEPTH)?;
    let mut facts = ProfileFields::default();
    let texts = |name: &str| found.get(name).and_then(Value::as_str);
    facts.name = texts("name").or_else(|| texts("legalName")).and_then(short);
    facts.description = texts("description").and_then(description);
    facts.industry = texts("industry").and_then(short);
    let logo = found.get("logo").and_then(|logo| logo.as_str().or_else(|| logo.get("url")?.as_str()));
    if let Some(url) = logo.and_then(|logo| base.join(logo).ok()) {
        facts.logo(&url);
    }
    for link in all(found.get("sameAs")).filter_map(|link| Url::parse(link).ok()) {
        facts.link(&link);
    }
    all(found.get("email")).for_each(|email| facts.email(email.strip_prefix("mailto:").unwrap_or(email)));
    Some(facts)
}

/// The texts of a property that has one value or several.
fn all(value: Option<&Value>) -> impl Iterator<Item = &str> {
    let several = value.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    value.and_then(Value::as_str).into_iter().chain(several.iter().filter_map(Value::as_str))
}

/// Finds the first organization.
fn find(value: &Value, depth: usize) -> Option<&Value> {
    let deeper = depth.checked_sub(1)?;
    match value {
        Value::Array(items) => items.iter().find_map(|item| find(item, deeper)),
        Value::Object(fields) if is_organization(value) => fields.contains_key("name").then_some(value),
        Value::Object(fields) => {
            ["@graph", "publisher", "mainEntity", "about", "author"].iter().find_map(|name| find(fields.get(*name)?, deeper))
        }
        _ => None,
    }
}

fn is_organization(value: &Value) -> bool {
    let is_kind = |kind: &str| {
        let kind = kind.rsplit('/').next().unwrap_or(kind);
        kind.ends_with("Organization")
            || kind.ends_with("Business")
            || matches!(kind, "Corporation" | "NGO" | "OnlineStore" | "Store")
    };
    all(value.get("@type")).any(is_kind)
}
