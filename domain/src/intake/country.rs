//! Countries, identified by their ISO 3166-1 code.

use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A country: the two upper-case letters of its ISO 3166-1 alpha-2 code.
///
/// Serialized as text in human-readable formats (JSON), and as two bytes elsewhere.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Country([u8; 2]);

impl Country {
    /// Parses a code in any case, ignoring surrounding white space.
    ///
    /// Returns `None` if it is not two ASCII letters, or if it is a placeholder for an unknown
    /// country (`XX`, `ZZ`). Other codes are not checked against the list of assigned codes, since
    /// the list changes and databases know it better.
    #[must_use]
    pub fn parse(text: &str) -> Option<Country> {
        let code: [u8; 2] = text.trim().as_bytes().try_into().ok()?;
        Country::new(code.map(|letter| letter.to_ascii_uppercase())).filter(|country| !matches!(&country.0, b"XX" | b"ZZ"))
    }

    /// The country of a recorded code; `None` if it is not two upper-case letters.
    #[must_use]
    pub fn from_recorded(code: &[u8]) -> Option<Country> {
        Country::new(code.try_into().ok()?)
    }

    fn new(code: [u8; 2]) -> Option<Country> {
        code.iter().all(u8::is_ascii_uppercase).then_some(Country(code))
    }

    /// The code, in upper case.
    #[must_use]
    pub fn as_str(&self) -> &str {
        // Only ASCII letters are stored, so the fallback is unreachable.
        std::str::from_utf8(&self.0).unwrap_or("XX")
    }
}

impl fmt::Display for Country {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Country {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Country({self})")
    }
}

impl Serialize for Country {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() { serializer.serialize_str(self.as_str()) } else { self.0.serialize(serializer) }
    }
}

impl<'de> Deserialize<'de> for Country {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Country, D::Error> {
        let country = if deserializer.is_human_readable() {
            Country::parse(&String::deserialize(deserializer)?)
        } else {
            Country::new(<[u8; 2]>::deserialize(deserializer)?)
        };
        country.ok_or_else(|| D::Error::custom("is not an ISO 3166-1 country code"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_what_is_none() {
        let table = [
            ("DE", Some("DE")),
            ("de", Some("DE")),
            (" gB\t", Some("GB")),
            ("XK", Some("XK")),
            ("XX", None),
            ("xx", None),
            ("ZZ", None),
            ("T1", None),
            ("", None),
            ("D", None),
            ("DEU", None),
            ("D E", None),
            ("\u{e9}", None),
            ("1.", None),
        ];
        for (text, expected) in table {
            assert_eq!(Country::parse(text).as_ref().map(Country::as_str), expected, "{text:?}");
        }
    }

    #[test]
    fn json_holds_the_letters() {
        let country = Country::parse("ch").unwrap();
        assert_eq!(serde_json::to_string(&country).unwrap(), "\"CH\"");
        assert_eq!(serde_json::from_str::<Country>("\"CH\"").unwrap(), country);
        assert!(serde_json::from_str::<Country>("\"C1\"").is_err());
    }
}
