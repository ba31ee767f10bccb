//! An event as it was sent: what of it can be used, and what had to be repaired.

use crate::decimal::{Decimal, MICROS, Micros};
use crate::event::Refused;
use crate::json::Json;
use crate::time::instant_ms;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// What programs write of users whom they don't know.
const NOBODY: &str = "undefined|null|nil|none|nan|[object object]|anonymous|guest|unknown|(not set)|not set|not_authenticated|n/a|\
                      true|false|0|id|user_id|distinct_id|distinctid|00000000-0000-0000-0000-000000000000";
const TEXTS: [&str; 16] = [
    "message",
    "referrer",
    "screen",
    "language",
    "url",
    "hostname",
    "channel",
    "currency",
    "privacy_categories",
    "pc",
    "privacy_signals",
    "ps",
    "consent_source",
    "user_agent",
    "ip",
    "group_type",
];
const TEXT_BYTES: usize = 4096;

/// The fields of an event.
pub(crate) struct Sent {
    raw: BTreeMap<String, Box<RawValue>>,
    texts: BTreeMap<&'static str, String>,
    /// The codes and fields of repairs, in any order.
    pub(crate) warnings: Vec<String>,
}

impl Sent {
    /// Reads a body.
    pub(crate) fn read(body: &str) -> Result<Sent, Refused> {
        let raw = serde_json::from_str(&whole(body)).map_err(|_| Refused { param: "" })?;
        let mut sent = Sent { raw, texts: BTreeMap::new(), warnings: Vec::new() };
        for name in TEXTS {
            let Some(mut text) = sent.any_text(name) else { continue };
            if text.len() > TEXT_BYTES && name != "group_type" {
                sent.warn("text_cut", name);
                cut(&mut text, TEXT_BYTES);
            }
            sent.texts.insert(name, text);
        }
        for name in ["notify", "non_interaction"] {
            if sent.raw(name).is_some_and(|boolean| !["true", "false"].contains(&boolean)) {
                sent.warn("field_ignored", name);
            }
        }
        Ok(sent)
    }

    pub(crate) fn warn(&mut self, code: &str, param: &str) {
        self.warnings.push(format!("{code} {param}"));
    }

    /// The JSON of a field, unless it is null.
    pub(crate) fn raw(&self, name: &str) -> Option<&str> {
        self.raw.get(name).map(|json| json.get()).filter(|json| *json != "null")
    }

    /// The text of a field, which a number has too.
    fn any_text(&mut self, name: &'static str) -> Option<String> {
        let text = text_of(self.raw(name)?);
        if text.is_none() {
            self.warn("field_ignored", name);
        }
        text
    }

    /// A text, empty or not.
    pub(crate) fn given(&self, name: &str) -> Option<&str> {
        self.texts.get(name).map(String::as_str)
    }

    /// A text that is not empty.
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        self.given(name).filter(|text| !text.is_empty()).map(str::to_owned)
    }

    pub(crate) fn name(&self) -> Result<String, Refused> {
        let name = self.raw("name").and_then(text_of);
        name.filter(|name| (1..=100).contains(&name.chars().count())).ok_or(Refused { param: "name" })
    }

    pub(crate) fn external_id(&mut self) -> Result<Option<String>, Refused> {
        match self.any_text("external_id") {
            Some(id) if id.len() > TEXT_BYTES => Err(Refused { param: "external_id" }),
            id => Ok(id.filter(|id| !id.is_empty())),
        }
    }

    /// The id of a user or a device.
    pub(crate) fn id(&mut self, name: &'static str, misspelt: &str) -> Option<String> {
        let mut id = self.any_text(name).filter(|id| !id.is_empty());
        if id.as_ref().is_some_and(|id| id.len() > TEXT_BYTES) {
            self.warn("field_ignored", name);
            id = None;
        }
        if id.as_ref().is_some_and(|id| NOBODY.split('|').any(|nobody| nobody == id.trim().to_ascii_lowercase())) {
            self.warn("placeholder_id", name);
            id = None;
        }
        if id.is_none() && self.raw(misspelt).is_some() {
            self.warn("misspelt_field", misspelt);
        }
        id
    }

    /// The time that it says, if it says one.
    pub(crate) fn instant(&mut self) -> Result<Option<i64>, Refused> {
        let Some(json) = self.raw("timestamp").filter(|json| *json != "\"\"") else { return Ok(None) };
        let refused = Refused { param: "timestamp" };
        let text = text_of(json).ok_or(refused.clone())?;
        if let Some(at_ms) = instant_ms(text.trim()) {
            return Ok(Some(at_ms));
        }
        let number = Decimal::parse(text.trim()).ok_or(refused.clone())?;
        let micros = number.micros_rounded().ok_or(refused)?;
        let is_seconds = number < Decimal::from(100_000_000_000);
        if is_seconds {
            self.warn("timestamp_in_seconds", "timestamp");
        }
        let at_ms = micros.div_euclid(if is_seconds { 1_000 } else { MICROS });
        Ok(Some(i64::try_from(at_ms).unwrap_or(i64::MAX)))
    }

    /// The group: its type and id.
    pub(crate) fn group(&mut self) -> Option<(String, String)> {
        let kind = self.text("group_type").unwrap_or_else(|| "company".to_owned());
        let id = self.any_text("group_id").filter(|id| !id.is_empty());
        if !crate::event::is_group_type(&kind) {
            self.warn("group_ignored", "group_type");
            return None;
        }
        if id.as_ref().is_some_and(|id| id.chars().count() > 512) {
            self.warn("group_ignored", "group_id");
            return None;
        }
        Some((kind, id?))
    }

    /// The value and its currency, which is by default `usual`.
    pub(crate) fn money(&mut self, usual: &str) -> Option<(Micros, String)> {
        let code = self.text("currency").map(|code| code.trim().to_uppercase()).filter(|code| !code.is_empty());
        let currency = code.unwrap_or_else(|| usual.to_owned());
        if currency.len() != 3 || !currency.bytes().all(|letter| letter.is_ascii_uppercase()) {
            self.warn("currency_unknown", "currency");
            return None;
        }
        let json = self.raw("value").filter(|json| *json != "\"\"")?;
        let number = text_of(json).and_then(|text| Decimal::parse(text.trim())?.micros_rounded());
        let value = number.filter(|value| value.abs() <= 1_000_000_000_000 * MICROS);
        if value.is_none() {
            self.warn("value_ignored", "value");
        }
        Some((value?, currency))
    }

    pub(crate) fn metadata(&mut self) -> Json {
        let Some(json) = self.raw("metadata").map(str::to_owned) else { return Json::Null };
        let mut trimming = Trimming { keys: 0, is_any: false };
        let kept = trimming.kept(&json, 0).unwrap_or(Json::Null);
        if trimming.is_any {
            self.warn("metadata_trimmed", "metadata");
        }
        kept
    }

    pub(crate) fn overrides(&mut self) -> Json {
        let Some(json) = self.raw("_acOverrides").map(str::to_owned) else { return Json::Null };
        let Ok(fields) = serde_json::from_str::<BTreeMap<String, Box<RawValue>>>(&json) else {
            self.warn("field_ignored", "_acOverrides");
            return Json::Null;
        };
        let mut overrides = BTreeMap::new();
        for name in ["source", "medium", "campaign", "channel"] {
            let Some(json) = fields.get(name).map(|json| json.get()).filter(|json| *json != "null") else { continue };
            match text_of(json) {
                Some(mut text) => {
                    if text.len() > TEXT_BYTES {
                        self.warn("text_cut", &format!("_acOverrides.{name}"));
                        cut(&mut text, TEXT_BYTES);
                    }
                    overrides.insert(name.to_owned(), Json::Text(text));
                }
                None => self.warn("field_ignored", &format!("_acOverrides.{name}")),
            }
        }
        Json::Object(overrides)
    }
}

struct Trimming {
    keys: usize,
    is_any: bool,
}

impl Trimming {
    /// What is kept of a value inside `depth` others.
    fn kept(&mut self, json: &str, depth: usize) -> Option<Json> {
        if json.starts_with(['{', '[']) && depth == 8 {
            self.is_any = true;
            return None;
        }
        if json.starts_with('[') {
            return Some(Json::list(parts(json).into_iter().filter_map(|item| self.kept(item, depth + 1))));
        }
        if json.starts_with('{') {
            let mut fields = BTreeMap::new();
            for part in parts(json) {
                let (key, value) = part.split_at(end_of_text(part));
                let key = text_of(key).unwrap_or_default();
                if key.len() > 128 || self.keys == 128 {
                    self.is_any = true;
                    continue;
                }
                self.keys += 1;
                let value = value.trim_start().strip_prefix(':').unwrap_or_default().trim();
                // Of equal keys, the last counts.
                fields.remove(&key);
                fields.extend(self.kept(value, depth + 1).map(|value| (key, value)));
            }
            return Some(Json::Object(fields));
        }
        match Json::parse(json) {
            Ok(Json::Text(mut text)) => {
                self.is_any |= text.len() > 8192;
                cut(&mut text, 8192);
                Some(Json::Text(text))
            }
            Ok(other) => Some(other),
            Err(_) => {
                self.is_any = true;
                None
            }
        }
    }
}

/// The items of a list, or the members of an object.
fn parts(json: &str) -> Vec<&str> {
    let inner = json[1..json.len() - 1].trim();
    let (mut parts, mut start, mut at, mut depth) = (Vec::new(), 0, 0, 0);
    while at < inner.len() {
        match inner.as_bytes()[at] {
            b'"' => {
                at += end_of_text(&inner[at..]);
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            b',' if depth == 0 => {
                parts.push(inner[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
        at += 1;
    }
    parts.extend(Some(inner[start..].trim()).filter(|last| !last.is_empty()));
    parts
}

/// The length of the text that JSON begins with.
fn end_of_text(json: &str) -> usize {
    let mut is_escaped = false;
    let end = json.bytes().skip(1).position(|byte| {
        let ends = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        ends
    });
    end.map_or(json.len(), |end| end + 2)
}

fn text_of(json: &str) -> Option<String> {
    match json.chars().next()? {
        '"' => serde_json::from_str(json).ok(),
        '-' | '0'..='9' => Some(json.to_owned()),
        _ => None,
    }
}

fn cut(text: &mut String, most: usize) {
    while text.len() > most {
        text.pop();
    }
}

/// Writes U+FFFD for each half of a surrogate pair.
pub(crate) fn whole(json: &str) -> String {
    let mut pieces = json.split('\\');
    let mut whole = pieces.next().unwrap_or_default().to_owned();
    // Each piece follows a backslash; an empty one is an escaped backslash, and what follows it is
    // text.
    let mut pieces = pieces.peekable();
    while let Some(piece) = pieces.next() {
        let unit = |piece: &str| piece.strip_prefix('u').and_then(|rest| u32::from_str_radix(rest.get(..4)?, 16).ok());
        match unit(piece) {
            Some(0xd800..=0xdbff) if piece.len() == 5 => match pieces.peek().and_then(|next| unit(next)) {
                Some(0xdc00..=0xdfff) => {
                    whole.extend(["\\", piece, "\\", pieces.next().unwrap_or_default()]);
                }
                _ => whole.push_str("\\ufffd"),
            },
            Some(0xd800..=0xdfff) => whole.extend(["\\ufffd", &piece[5..]]),
            _ => {
                whole.extend(["\\", piece]);
                if piece.is_empty() {
                    whole.extend(pieces.next().map(|text| format!("\\{text}")));
                }
            }
        }
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_replaced_and_pairs_are_not() {
        let json = r#"{"a":"\ud83d","b":"\ud83d\ude00","c":"\\ud83d","d":"\ude00x\n"}"#;
        assert_eq!(whole(json), r#"{"a":"\ufffd","b":"\ud83d\ude00","c":"\\ud83d","d":"\ufffdx\n"}"#);
    }

    #[test]
    fn metadata_is_trimmed_in_the_order_of_its_keys() {
        let keys: Vec<_> = (0..130).map(|key| format!("\"k{:03}\": {key}", 129 - key)).collect();
        let mut sent = Sent::read(&format!(r#"{{"metadata": {{{}}}}}"#, keys.join(", "))).unwrap();
        let Json::Object(kept) = sent.metadata() else { panic!() };
        assert_eq!((kept.len(), kept.keys().next().unwrap().as_str()), (128, "k002"));
        assert_eq!(sent.warnings, ["metadata_trimmed metadata"]);
    }
}
