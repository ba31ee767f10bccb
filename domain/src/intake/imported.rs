//! What an import knows about a visitor: the field `_import` of an event.
//!
//! Other products store what they found in a user agent and for an address, and neither of the two. So an import states the results. Events
//! that are sent, by browsers or by servers, can't.

use compact_str::CompactString;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::country::Country;
use super::submission::{Invalid, MAX_TEXT_BYTES, Text};
use crate::agent::{Agent, Device};

/// The name of the field.
const FIELD: &str = "_import";

/// The visitor of an imported event, as far as another product recorded it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ImportedVisitor {
    /// Browser, operating system and device, if the import states one of them.
    pub agent: Option<Agent>,
    /// The country.
    pub country: Option<Country>,
}

#[derive(Deserialize)]
struct ImportedLine<'a> {
    #[serde(borrow, rename = "_import")]
    import: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields<'a> {
    #[serde(borrow)]
    browser: Option<Text<'a>>,
    #[serde(borrow)]
    browser_version: Option<Text<'a>>,
    #[serde(borrow)]
    os: Option<Text<'a>>,
    #[serde(borrow)]
    device: Option<Text<'a>>,
    #[serde(borrow)]
    location_country: Option<Text<'a>>,
}

impl ImportedVisitor {
    /// Reads the field of an event's JSON. An event without it, or that is not an object, has the default.
    ///
    /// # Errors
    /// The field is not an object, has an unknown field, or a value that is not allowed.
    pub fn read(event: &[u8]) -> Result<Self, Invalid> {
        // Nearly no event has the field, and a search is much quicker than a parser.
        if memchr::memmem::find(event, FIELD.as_bytes()).is_none() {
            return Ok(Self::default());
        }
        let Ok(ImportedLine { import: Some(import) }) = serde_json::from_slice(event) else { return Ok(Self::default()) };
        let fields: Fields<'_> = serde_json::from_str(import.get())
            .map_err(|error| Invalid::parameter(FIELD, format!("`{FIELD}` is not an object of known fields: {error}")))?;
        let device = device(given(fields.device.as_ref()))?;
        let agent = Agent {
            browser: name("browser", fields.browser.as_ref())?,
            browser_version: name("browser_version", fields.browser_version.as_ref())?,
            os: name("os", fields.os.as_ref())?,
            device: device.unwrap_or_default(),
        };
        let states_agent = device.is_some() || agent != Agent::default();
        Ok(Self { agent: states_agent.then_some(agent), country: country(given(fields.location_country.as_ref()))? })
    }
}

/// An empty text is as absent.
fn given<'t>(field: Option<&'t Text<'_>>) -> Option<&'t str> {
    field.map(|text| text.0.as_ref()).filter(|text| !text.is_empty())
}

fn wrong(field: &str, why: String) -> Invalid {
    let param = format!("{FIELD}.{field}");
    let message = format!("`{param}` {why}");
    Invalid::parameter(param, message)
}

fn name(field: &str, text: Option<&Text<'_>>) -> Result<Option<CompactString>, Invalid> {
    match given(text) {
        Some(text) if text.len() > MAX_TEXT_BYTES => {
            Err(wrong(field, format!("has {} bytes; at most {MAX_TEXT_BYTES} are allowed", text.len())))
        }
        text => Ok(text.map(Into::into)),
    }
}

fn device(text: Option<&str>) -> Result<Option<Device>, Invalid> {
    let Some(text) = text else { return Ok(None) };
    let found = Device::ALL.iter().copied().find(|device| device.name() == text);
    let names = || Device::ALL.iter().map(|device| device.name()).collect::<Vec<_>>().join(", ");
    found.map(Some).ok_or_else(|| wrong("device", format!("must be one of {}, not {text:?}", names())))
}

/// `XX` and `ZZ` stand for an unknown country.
fn country(text: Option<&str>) -> Result<Option<Country>, Invalid> {
    let Some(text) = text else { return Ok(None) };
    let is_code = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_alphabetic());
    if is_code { Ok(Country::parse(text)) } else { Err(wrong("location_country", format!("must be two letters, not {text:?}"))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_states_what_another_product_found() {
        let agent = |browser: Option<&str>, os: Option<&str>, device| {
            Some(Agent { browser: browser.map(Into::into), browser_version: None, os: os.map(Into::into), device })
        };
        let table = [
            (r#"{"name":"a"}"#, None, None),
            (r#"{"name":"a","_import":null}"#, None, None),
            (r#"{"name":"a","_import":{}}"#, None, None),
            (r#"{"name":"_import"}"#, None, None),
            (r#"{"metadata":{"_import":{"device":"desktop"}}}"#, None, None),
            (r#"{"_import":{"browser":"Chrome","os":"macOS"}}"#, agent(Some("Chrome"), Some("macOS"), Device::Other), None),
            (r#"{"_import":{"device":"tablet","browser":""}}"#, agent(None, None, Device::Tablet), None),
            (r#"{"_import":{"device":"bot"}}"#, agent(None, None, Device::Bot), None),
            (r#"{"_import":{"device":"other"}}"#, agent(None, None, Device::Other), None),
            (r#"{"_import":{"location_country":"ch"}}"#, None, Country::parse("CH")),
            (r#"{"_import":{"location_country":"XX"}}"#, None, None),
            ("[1]", None, None),
            (r#"{"_import":"#, None, None),
        ];
        for (event, agent, country) in table {
            assert_eq!(ImportedVisitor::read(event.as_bytes()), Ok(ImportedVisitor { agent, country }), "{event}");
        }
    }

    #[test]
    fn what_is_not_allowed_is_named() {
        let long = format!(r#"{{"_import":{{"os":"{}"}}}}"#, "x".repeat(MAX_TEXT_BYTES + 1));
        for (event, param, message) in [
            (r#"{"_import":5}"#, "_import", "is not an object"),
            (r#"{"_import":{"city":"Basel"}}"#, "_import", "unknown field `city`"),
            (r#"{"_import":{"browser":5}}"#, "_import", "invalid type"),
            (r#"{"_import":{"device":"phone"}}"#, "_import.device", "desktop, mobile, tablet, bot, other"),
            (r#"{"_import":{"location_country":"CHE"}}"#, "_import.location_country", "two letters, not \"CHE\""),
            (&long, "_import.os", "at most 4096"),
        ] {
            let invalid = ImportedVisitor::read(event.as_bytes()).unwrap_err();
            assert_eq!(invalid.param.as_deref(), Some(param), "{event}");
            assert!(invalid.message.contains(message), "{}", invalid.message);
        }
    }
}
