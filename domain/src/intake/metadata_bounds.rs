//! The bounds of an event's metadata.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::json_fields::{JsonFields, text_of};
use super::submission::{Invalid, MAX_METADATA_DEPTH, MAX_METADATA_KEY_BYTES, MAX_METADATA_KEYS, MAX_METADATA_TEXT_BYTES};
use crate::text::cut_bytes;

/// Returns the part of `metadata` within its bounds; unchanged if all of it is. `json` comes from a
/// parser.
pub(crate) fn within_bounds(json: &str) -> Option<Cow<'_, str>> {
    if is_small(json.as_bytes()) {
        return Some(Cow::Borrowed(json));
    }
    let mut kept = Kept { json: String::with_capacity(json.len()), keys: 0, is_trimmed: false };
    let is_any = kept.value(json, 0);
    match kept {
        Kept { is_trimmed: false, .. } => Some(Cow::Borrowed(json)),
        Kept { json, .. } => is_any.then_some(Cow::Owned(json)),
    }
}

/// Checks that a text is JSON within the bounds of `metadata`.
pub(crate) fn check_metadata_text(json: &str) -> Result<(), Invalid> {
    let wrong = |problem: String| Invalid::parameter("metadata", format!("`metadata` {problem}"));
    serde_json::from_str::<&RawValue>(json).map_err(|error| wrong(format!("is not valid JSON: {error}")))?;
    match within_bounds(json.trim()) {
        Some(Cow::Borrowed(_)) => Ok(()),
        _ => Err(wrong(format!(
            "exceeds the limits of metadata: {MAX_METADATA_DEPTH} levels, {MAX_METADATA_KEYS} keys of {MAX_METADATA_KEY_BYTES} bytes, texts of {MAX_METADATA_TEXT_BYTES}"
        ))),
    }
}

/// Whether valid JSON is far below every bound, as nearly all metadata is. It then has no escapes
/// and no unusual numbers.
fn is_small(json: &[u8]) -> bool {
    const MAX_NUMBER_CHARACTERS: usize = 15;
    let (mut depth, mut keys, mut number, mut place) = (0, 0, 0, 0);
    while let Some(byte) = json.get(place) {
        place += 1;
        number = match byte {
            b'0'..=b'9' | b'-' | b'.' => number + 1,
            b'e' | b'E' if number > 0 => return false,
            _ => 0,
        };
        match byte {
            b'"' => {
                let Some(end) = memchr::memchr2(b'"', b'\\', &json[place..]) else { return false };
                if json[place + end] == b'\\' || end > MAX_METADATA_KEY_BYTES {
                    return false;
                }
                place += end + 1;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = usize::saturating_sub(depth, 1),
            b':' => keys += 1,
            _ => {}
        }
        if depth > MAX_METADATA_DEPTH || keys > MAX_METADATA_KEYS || number > MAX_NUMBER_CHARACTERS {
            return false;
        }
    }
    true
}

/// The kept part of metadata, during parsing.
struct Kept {
    json: String,
    /// The keys so far, in all objects.
    keys: usize,
    is_trimmed: bool,
}

impl Kept {
    /// Adds a value at a depth. Returns whether it is kept.
    fn value(&mut self, json: &str, depth: usize) -> bool {
        let is_kept = match json.as_bytes().first() {
            Some(b'{') if depth < MAX_METADATA_DEPTH => self.object(json, depth),
            Some(b'[') if depth < MAX_METADATA_DEPTH => self.array(json, depth),
            Some(b'{' | b'[') => false,
            Some(b'"') => self.text(json),
            // Later readers of metadata can't read a number that fits no float.
            Some(b'-' | b'0'..=b'9') if json.len() > MAX_METADATA_TEXT_BYTES || !is_float(json) => false,
            _ => {
                self.json.push_str(json);
                true
            }
        };
        self.is_trimmed |= !is_kept;
        is_kept
    }

    fn object(&mut self, json: &str, depth: usize) -> bool {
        let Ok(JsonFields(fields)) = JsonFields::read(json) else { return false };
        self.json.push('{');
        let start = self.json.len();
        for (key, value) in fields {
            if key.len() > MAX_METADATA_KEY_BYTES || self.keys == MAX_METADATA_KEYS {
                self.is_trimmed = true;
                continue;
            }
            self.keys += 1;
            let before = self.json.len();
            if before > start {
                self.json.push(',');
            }
            self.json.push_str(&quoted(&key));
            self.json.push(':');
            if !self.value(value, depth + 1) {
                self.json.truncate(before);
            }
        }
        self.json.push('}');
        true
    }

    fn array(&mut self, json: &str, depth: usize) -> bool {
        let Ok(items) = serde_json::from_str::<Vec<&RawValue>>(json) else { return false };
        self.json.push('[');
        let start = self.json.len();
        for item in items {
            let before = self.json.len();
            if before > start {
                self.json.push(',');
            }
            if !self.value(item.get(), depth + 1) {
                self.json.truncate(before);
            }
        }
        self.json.push(']');
        true
    }

    fn text(&mut self, json: &str) -> bool {
        // An escape is never shorter than its character.
        if json.len() <= MAX_METADATA_TEXT_BYTES {
            self.json.push_str(json);
            return true;
        }
        let Some(text) = text_of(json) else { return false };
        let cut = cut_bytes(&text, MAX_METADATA_TEXT_BYTES);
        self.is_trimmed |= cut.len() < text.len();
        self.json.push_str(&quoted(cut));
        true
    }
}

fn is_float(json: &str) -> bool {
    json.parse().is_ok_and(f64::is_finite)
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn nested(depth: usize) -> String {
        format!("{}1{}", "[".repeat(depth), "]".repeat(depth))
    }

    fn object(keys: usize) -> String {
        let entries: Vec<String> = (0..keys).map(|i| format!("\"k{i}\":{i}")).collect();
        format!("{{{}}}", entries.join(","))
    }

    #[test]
    fn metadata_is_kept_up_to_its_bounds() {
        let text = |n: usize| format!("\"{}\"", "x".repeat(n));
        let key = |n: usize| format!("{{\"{}\":1}}", "k".repeat(n));
        let number = |n: usize| format!("{{\"a\\\"\":[0.{}]}}", "1".repeat(n));
        // What is longer than its bounds, and what is kept of it; an empty text for nothing.
        let table: &[(String, String)] = &[
            (nested(8), nested(8)),
            (nested(9), format!("{}{}", "[".repeat(8), "]".repeat(8))),
            (nested(30_000), format!("{}{}", "[".repeat(8), "]".repeat(8))),
            ("{\"a\":1,\"b\":[[[[[[[[5]]]]]]],2],\"c\":3}".into(), "{\"a\":1,\"b\":[[[[[[[]]]]]],2],\"c\":3}".into()),
            (number(8 * 1024 - 2), number(8 * 1024 - 2)),
            (number(8 * 1024 - 1), "{\"a\\\"\":[]}".into()),
            (format!("[{}]", vec!["12"; 8 * 1024].join(",")), format!("[{}]", vec!["12"; 8 * 1024].join(","))),
            (object(128), object(128)),
            (object(129), object(128)),
            (object(200), object(128)),
            (format!("[{},{}]", object(64), object(65)), format!("[{},{}]", object(64), object(64))),
            (format!("[{},{},7]", object(128), object(1)), format!("[{},{{}},7]", object(128))),
            (text(8192), text(8192)),
            (text(8193), text(8192)),
            (format!("\"x{}\"", "é".repeat(4096)), format!("\"x{}\"", "é".repeat(4095))),
            (format!("\"{}\"", "\\u0041".repeat(8192)), format!("\"{}\"", "\\u0041".repeat(8192))),
            (key(128), key(128)),
            (key(129), "{}".into()),
            ("[1e999, 5]".into(), "[5]".into()),
            ("{\"a\":1E999}".into(), "{}".into()),
            ("1".repeat(400), String::new()),
            ("5".into(), "5".into()),
        ];
        for (json, kept) in table {
            let found = within_bounds(json).unwrap_or_default();
            assert_eq!(&found, kept, "{}", &json[..json.len().min(40)]);
            assert_eq!(matches!(found, Cow::Borrowed(_)), json == kept, "{}", &json[..json.len().min(40)]);
            assert!(kept.is_empty() || check_metadata_text(kept).is_ok());
        }
        for json in ["", "{", "[1,]", "{\"a\":}"] {
            assert!(check_metadata_text(json).is_err(), "{json}");
        }
    }

    proptest! {
        #[test]
        fn small_metadata_is_within_all_bounds(
            parts in prop::collection::vec("[\\[{]{1,3}|[\\]}]{1,3}|\"[a-z\\\\]{0,3}\"[:,]?|[0-9.eE-]{1,17},?|true,", 0..12),
            values in prop::collection::vec(("[ -~é]{0,130}", any::<f64>()), 0..4),
        ) {
            let listed = serde_json::json!(values).to_string();
            for json in [parts.concat(), format!("[{}]", parts.concat()), listed] {
                let Ok(json) = serde_json::from_str::<&RawValue>(&json).map(RawValue::get) else { continue };
                let mut kept = Kept { json: String::new(), keys: 0, is_trimmed: false };
                kept.value(json, 0);
                prop_assert!(!is_small(json.as_bytes()) || !kept.is_trimmed, "{}", json);
                // What is kept is JSON within the bounds.
                prop_assert!(kept.json.is_empty() || check_metadata_text(&kept.json).is_ok(), "{}", kept.json);
            }
        }
    }
}
