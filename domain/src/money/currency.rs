//! Currencies, identified by their ISO 4217 code, as published by its maintenance agency (SIX).

use std::fmt;
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

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
        if is_listed(code) { Ok(Currency(code)) } else { Err(CurrencyError) }
    }

    /// The three letters of the code.
    pub fn code(self) -> [u8; 3] {
        self.0
    }

    /// The currency of a code as [`Currency::code`] returns it; `None` if ISO 4217 doesn't list it.
    pub fn of_code(code: [u8; 3]) -> Option<Currency> {
        is_listed(code).then_some(Currency(code))
    }

    /// The currency of a recorded code; `None` if it is not three upper-case letters. ISO 4217 may
    /// have dropped a recorded code, which must stay readable.
    pub fn from_recorded(code: &[u8]) -> Option<Currency> {
        let code: [u8; 3] = code.try_into().ok()?;
        code.iter().all(u8::is_ascii_uppercase).then_some(Currency(code))
    }

    /// The code, in upper case.
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

/// List one, "current currency and funds codes", 2026; includes funds, metals, and the codes for
/// testing and for "no currency".
#[rustfmt::skip]
static CURRENT: [[u8; 3]; 178] = [
    *b"AED", *b"AFN", *b"ALL", *b"AMD", *b"AOA", *b"ARS", *b"AUD", *b"AWG", *b"AZN", *b"BAM",
    *b"BBD", *b"BDT", *b"BHD", *b"BIF", *b"BMD", *b"BND", *b"BOB", *b"BOV", *b"BRL", *b"BSD",
    *b"BTN", *b"BWP", *b"BYN", *b"BZD", *b"CAD", *b"CDF", *b"CHE", *b"CHF", *b"CHW", *b"CLF",
    *b"CLP", *b"CNY", *b"COP", *b"COU", *b"CRC", *b"CUP", *b"CVE", *b"CZK", *b"DJF", *b"DKK",
    *b"DOP", *b"DZD", *b"EGP", *b"ERN", *b"ETB", *b"EUR", *b"FJD", *b"FKP", *b"GBP", *b"GEL",
    *b"GHS", *b"GIP", *b"GMD", *b"GNF", *b"GTQ", *b"GYD", *b"HKD", *b"HNL", *b"HTG", *b"HUF",
    *b"IDR", *b"ILS", *b"INR", *b"IQD", *b"IRR", *b"ISK", *b"JMD", *b"JOD", *b"JPY", *b"KES",
    *b"KGS", *b"KHR", *b"KMF", *b"KPW", *b"KRW", *b"KWD", *b"KYD", *b"KZT", *b"LAK", *b"LBP",
    *b"LKR", *b"LRD", *b"LSL", *b"LYD", *b"MAD", *b"MDL", *b"MGA", *b"MKD", *b"MMK", *b"MNT",
    *b"MOP", *b"MRU", *b"MUR", *b"MVR", *b"MWK", *b"MXN", *b"MXV", *b"MYR", *b"MZN", *b"NAD",
    *b"NGN", *b"NIO", *b"NOK", *b"NPR", *b"NZD", *b"OMR", *b"PAB", *b"PEN", *b"PGK", *b"PHP",
    *b"PKR", *b"PLN", *b"PYG", *b"QAR", *b"RON", *b"RSD", *b"RUB", *b"RWF", *b"SAR", *b"SBD",
    *b"SCR", *b"SDG", *b"SEK", *b"SGD", *b"SHP", *b"SLE", *b"SOS", *b"SRD", *b"SSP", *b"STN",
    *b"SVC", *b"SYP", *b"SZL", *b"THB", *b"TJS", *b"TMT", *b"TND", *b"TOP", *b"TRY", *b"TTD",
    *b"TWD", *b"TZS", *b"UAH", *b"UGX", *b"USD", *b"USN", *b"UYI", *b"UYU", *b"UYW", *b"UZS",
    *b"VED", *b"VES", *b"VND", *b"VUV", *b"WST", *b"XAD", *b"XAF", *b"XAG", *b"XAU", *b"XBA",
    *b"XBB", *b"XBC", *b"XBD", *b"XCD", *b"XCG", *b"XDR", *b"XOF", *b"XPD", *b"XPF", *b"XPT",
    *b"XSU", *b"XTS", *b"XUA", *b"XXX", *b"YER", *b"ZAR", *b"ZMW", *b"ZWG",
];

/// List three, "historic denominations": codes withdrawn since 1990, for events dated before their
/// withdrawal.
#[rustfmt::skip]
static WITHDRAWN: [[u8; 3]; 87] = [
    *b"ADP", *b"AFA", *b"ANG", *b"AOK", *b"AON", *b"AOR", *b"ARA", *b"ATS", *b"AZM", *b"BAD",
    *b"BEF", *b"BGL", *b"BGN", *b"BRC", *b"BRE", *b"BRN", *b"BRR", *b"BYB", *b"BYR", *b"CSD",
    *b"CSK", *b"CUC", *b"CYP", *b"DDM", *b"DEM", *b"ECS", *b"EEK", *b"ESP", *b"FIM", *b"FRF",
    *b"GHC", *b"GRD", *b"GWP", *b"HRD", *b"HRK", *b"IEP", *b"ITL", *b"LTL", *b"LTT", *b"LUF",
    *b"LVL", *b"LVR", *b"MGF", *b"MLF", *b"MRO", *b"MTL", *b"MXP", *b"MZM", *b"NIC", *b"NLG",
    *b"PEI", *b"PES", *b"PLZ", *b"PTE", *b"ROL", *b"RUR", *b"SDD", *b"SDP", *b"SIT", *b"SKK",
    *b"SLL", *b"SRG", *b"STD", *b"SUR", *b"TJR", *b"TMM", *b"TPE", *b"TRL", *b"UAK", *b"UGS",
    *b"USS", *b"UYP", *b"VEB", *b"VEF", *b"XEU", *b"YDD", *b"YUD", *b"YUM", *b"YUN", *b"ZAL",
    *b"ZMK", *b"ZRN", *b"ZRZ", *b"ZWD", *b"ZWL", *b"ZWN", *b"ZWR",
];

/// Whether ISO 4217 lists the upper-case code, now or in the past.
fn is_listed(code: [u8; 3]) -> bool {
    CURRENT.binary_search(&code).is_ok() || WITHDRAWN.binary_search(&code).is_ok()
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

    #[test]
    fn the_lists_are_sorted_apart_and_made_of_letters() {
        assert!(CURRENT.is_sorted_by(|a, b| a < b));
        assert!(WITHDRAWN.is_sorted_by(|a, b| a < b));
        assert!(WITHDRAWN.iter().all(|code| CURRENT.binary_search(code).is_err()));
        assert!(CURRENT.iter().chain(&WITHDRAWN).flatten().all(u8::is_ascii_uppercase));
    }
}
