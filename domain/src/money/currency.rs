//! Currencies, identified by their ISO 4217 code.

use std::fmt;
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::iso4217;

/// A currency: the three upper-case letters of its ISO 4217 code.
///
/// Serialized as text in human-readable formats (JSON), and as three bytes elsewhere.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Currency([u8; 3]);

/// The error for text that is not an ISO 4217 code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("is not an ISO 4217 currency code")]
pub struct CurrencyError;

impl Currency {
    /// The US dollar, through which all conversions go.
    pub const USD: Currency = Currency(*b"USD");

    /// Parses a code in any case, ignoring surrounding white space. Accepts codes withdrawn since
    /// 1990, because events can be that old.
    ///
    /// # Errors
    /// [`CurrencyError`] if ISO 4217 doesn't list the code.
    pub fn parse(text: &str) -> Result<Currency, CurrencyError> {
        let code: [u8; 3] = text.trim().as_bytes().try_into().map_err(|_| CurrencyError)?;
        let code = code.map(|letter| letter.to_ascii_uppercase());
        if iso4217::is_listed(code) { Ok(Currency(code)) } else { Err(CurrencyError) }
    }

    /// The three letters of the code.
    #[must_use]
    pub fn code(self) -> [u8; 3] {
        self.0
    }

    /// The currency of a code as [`Currency::code`] returns it; `None` if ISO 4217 doesn't list it.
    #[must_use]
    pub fn of_code(code: [u8; 3]) -> Option<Currency> {
        iso4217::is_listed(code).then_some(Currency(code))
    }

    /// The currency of a recorded code; `None` if it is not three upper-case letters. ISO 4217 may
    /// have dropped a recorded code, which must stay readable.
    #[must_use]
    pub fn from_recorded(code: &[u8]) -> Option<Currency> {
        let code: [u8; 3] = code.try_into().ok()?;
        code.iter().all(u8::is_ascii_uppercase).then_some(Currency(code))
    }

    /// The code, in upper case.
    #[must_use]
    pub fn as_str(&self) -> &str {
        // Only ASCII letters are stored, so the fallback is unreachable.
        std::str::from_utf8(&self.0).unwrap_or("XXX")
    }
}

impl FromStr for Currency {
    type Err = CurrencyError;

    fn from_str(text: &str) -> Result<Currency, CurrencyError> {
        Currency::parse(text)
    }
}

impl fmt::Display for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Currency({self})")
    }
}

impl Serialize for Currency {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() { serializer.serialize_str(self.as_str()) } else { self.0.serialize(serializer) }
    }
}

impl<'de> Deserialize<'de> for Currency {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Currency, D::Error> {
        if deserializer.is_human_readable() {
            let text = String::deserialize(deserializer)?;
            return Currency::parse(&text).map_err(D::Error::custom);
        }
        let code = <[u8; 3]>::deserialize(deserializer)?;
        Currency::from_recorded(&code).ok_or_else(|| D::Error::custom(CurrencyError))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn codes_of_any_case_are_read_and_shown_in_upper_case() {
        for text in ["usd", "USD", "Usd", " usd "] {
            assert_eq!(Currency::parse(text), Ok(Currency::USD), "{text}");
        }
        assert_eq!(Currency::parse("eur").map(|c| c.to_string()).as_deref(), Ok("EUR"));
        for text in ["XCG", "ZWG", "CHF", "XAU", "VES", "HRK", "DEM"] {
            assert!(Currency::parse(text).is_ok(), "{text}");
        }
        for text in ["", "US", "USDT", "ABC", "ZZZ", "12A", "€", "$$$", "BTC", "éé"] {
            assert_eq!(Currency::parse(text), Err(CurrencyError), "{text}");
        }
    }

    #[test]
    fn json_is_text() {
        let json = serde_json::to_string(&Currency::USD).unwrap();
        assert_eq!(json, r#""USD""#);
        assert_eq!(serde_json::from_str::<Currency>(&json).unwrap(), Currency::USD);
        assert!(serde_json::from_str::<Currency>(r#""ABC""#).is_err());
    }

    proptest! {
        #[test]
        fn no_text_panics(text in ".{0,6}") {
            if let Ok(currency) = Currency::parse(&text) {
                prop_assert_eq!(Currency::parse(currency.as_str()), Ok(currency));
            }
        }
    }
}
