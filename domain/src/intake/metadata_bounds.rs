//! The bounds of an event's metadata.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

use super::submission::{Invalid, MAX_METADATA_DEPTH, MAX_METADATA_KEY_BYTES, MAX_METADATA_KEYS, MAX_METADATA_TEXT_BYTES, Text};

/// Checks the bounds of `metadata`: depth, number and length of keys, length of strings. `json` comes from a parser.
pub(crate) fn check_metadata(json: &str) -> Result<(), Invalid> {
    if is_small(json.as_bytes()) { Ok(()) } else { check_metadata_text(json) }
}

/// As [`check_metadata`], of text that may not be JSON.
pub(crate) fn check_metadata_text(json: &str) -> Result<(), Invalid> {
    let mut keys = 0;
    let mut problem = None;
    let mut reader = serde_json::Deserializer::from_str(json);
    let bounds = Bounds { depth: 0, keys: &mut keys, problem: &mut problem };
    match bounds.deserialize(&mut reader) {
        Ok(()) if json.len() > MAX_METADATA_TEXT_BYTES && longest_number(json) > MAX_METADATA_TEXT_BYTES => {
            let message = format!("a number in `metadata` has more than {MAX_METADATA_TEXT_BYTES} characters");
            Err(Invalid::parameter("metadata", message))
        }
        Ok(()) => Ok(()),
        Err(error) => {
            Err(Invalid::parameter("metadata", problem.unwrap_or_else(|| format!("`metadata` is not valid JSON: {error}"))))
        }
    }
}

/// Whether valid JSON is far from every bound, as nearly all metadata is. It has no escapes then, and no number that is hard to read.
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

/// The length of the longest number in valid JSON. Deserializing does not tell it.
fn longest_number(json: &str) -> usize {
    let (mut longest, mut length, mut is_text, mut is_escaped) = (0, 0, false, false);
    for byte in json.bytes() {
        length = match byte {
            b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E' if !is_text => length + 1,
            _ => 0,
        };
        longest = longest.max(length);
        is_text ^= byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
    }
    longest
}

struct Bounds<'b> {
    depth: usize,
    keys: &'b mut usize,
    problem: &'b mut Option<String>,
}

impl Bounds<'_> {
    fn inner(&mut self) -> Bounds<'_> {
        Bounds { depth: self.depth + 1, keys: self.keys, problem: self.problem }
    }

    fn fail<E: serde::de::Error>(&mut self, message: String) -> E {
        let error = E::custom(&message);
        *self.problem = Some(message);
        error
    }

    fn check_text<E: serde::de::Error>(&mut self, text: &str) -> Result<(), E> {
        match text.len() {
            0..=MAX_METADATA_TEXT_BYTES => Ok(()),
            long => {
                Err(self.fail(format!("a string in `metadata` has {long} bytes; at most {MAX_METADATA_TEXT_BYTES} are allowed")))
            }
        }
    }

    fn check_depth<E: serde::de::Error>(&mut self) -> Result<(), E> {
        if self.depth >= MAX_METADATA_DEPTH {
            return Err(self.fail(format!("`metadata` nests deeper than {MAX_METADATA_DEPTH} levels")));
        }
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Bounds<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Bounds<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON")
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E: serde::de::Error>(mut self, text: &str) -> Result<(), E> {
        self.check_text(text)
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
        self.check_depth()?;
        while items.next_element_seed(self.inner())?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut entries: A) -> Result<(), A::Error> {
        self.check_depth()?;
        while let Some(key) = entries.next_key::<Text<'de>>()? {
            *self.keys += 1;
            if *self.keys > MAX_METADATA_KEYS {
                return Err(self.fail(format!("`metadata` has more than {MAX_METADATA_KEYS} keys")));
            }
            if key.0.len() > MAX_METADATA_KEY_BYTES {
                return Err(self.fail(format!(
                    "a key of `metadata` has {} bytes; at most {MAX_METADATA_KEY_BYTES} are allowed",
                    key.0.len()
                )));
            }
            entries.next_value_seed(self.inner())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::value::RawValue;

    use super::*;

    fn nested(depth: usize) -> String {
        format!("{}1{}", "[".repeat(depth), "]".repeat(depth))
    }

    fn object(keys: usize) -> String {
        let entries: Vec<String> = (0..keys).map(|i| format!("\"k{i}\":{i}")).collect();
        format!("{{{}}}", entries.join(","))
    }

    #[test]
    fn metadata_is_taken_up_to_its_bounds_and_not_past_them() {
        let text = |n: usize| format!("\"{}\"", "x".repeat(n));
        let key = |n: usize| format!("{{\"{}\":1}}", "k".repeat(n));
        let table: &[(String, bool)] = &[
            (nested(8), true),
            (nested(9), false),
            (nested(100_000), false),
            (format!("{{\"a\\\"\":[0.{}]}}", "1".repeat(8 * 1024 - 2)), true),
            (format!("{{\"a\\\"\":[0.{}]}}", "1".repeat(8 * 1024 - 1)), false),
            (format!("[\"\\\\\", 0.{}e-5]", "1".repeat(8 * 1024)), false),
            (format!("[{}]", vec!["12"; 8 * 1024].join(",")), true),
            (format!("[\"{}\",\"{}\"]", "1".repeat(8 * 1024), "1".repeat(8 * 1024)), true),
            (object(128), true),
            (object(129), false),
            (format!("[{},{}]", object(64), object(65)), false),
            (text(8192), true),
            (text(8193), false),
            (key(128), true),
            (key(129), false),
            ("[1e999]".into(), false),
            ("{\"a\":1E999}".into(), false),
            (format!("[{}]", "1".repeat(400)), false),
            ("[\"\\ud800\"]".into(), false),
            ("5".into(), true),
            ("null".into(), true),
        ];
        for (json, fine) in table {
            assert_eq!(check_metadata(json).is_ok(), *fine, "{}", &json[..json.len().min(40)]);
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
                let is_json = serde_json::from_str::<&RawValue>(&json).is_ok();
                prop_assert!(!is_json || !is_small(json.as_bytes()) || check_metadata_text(&json).is_ok(), "{}", json);
            }
        }
    }
}
