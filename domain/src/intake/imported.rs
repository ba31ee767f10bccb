//! The visitor of an imported event: the field `_import`.
//!
//! Other products store the properties that they detected, but neither the user agent nor the
//! address. So an import states the properties. Events that browsers or servers send can't.

use super::country::Country;
use super::json_fields::{JsonFields, text_of};
use super::submission::MAX_TEXT_BYTES;
use super::warning::{Warning, WarningCode};
use crate::agent::{Agent, Device};
use crate::text::cut_bytes;

/// The name of the field.
const FIELD: &str = "_import";

/// The properties of an imported event's visitor that another product recorded.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ImportedVisitor {
    /// Browser, operating system and device, if the import states one of them.
    pub agent: Option<Agent>,
    /// The country.
    pub country: Option<Country>,
}

impl ImportedVisitor {
    /// Reads the field from an event's JSON. An event without it has the default. Invalid values
    /// count as absent.
    #[must_use]
    pub fn read(event: &str, warnings: &mut Vec<Warning>) -> Self {
        // Hardly any event has the field, and a search is much faster than a parser.
        if memchr::memmem::find(event.as_bytes(), FIELD.as_bytes()).is_none() {
            return Self::default();
        }
        let Some(import) = JsonFields::read(event).ok().and_then(|fields| fields.get(FIELD)) else { return Self::default() };
        let Ok(fields) = JsonFields::read(import) else {
            warnings.push(Warning::other_type(FIELD));
            return Self::default();
        };
        let mut text = |name| text(&fields, name, warnings);
        let [browser, browser_version, os] = ["browser", "browser_version", "os"].map(|name| text(name).map(Into::into));
        let [device, country] = ["device", "location_country"].map(text);
        let found = device.as_ref().and_then(|text| Device::ALL.iter().copied().find(|device| device.name() == text));
        if device.is_some() && found.is_none() {
            let names: Vec<_> = Device::ALL.iter().map(|device| device.name()).collect();
            warnings.push(wrong("device", &format!("is not one of {}", names.join(", "))));
        }
        let is_code = |code: &String| code.len() == 2 && code.bytes().all(|byte| byte.is_ascii_alphabetic());
        if country.as_ref().is_some_and(|country| !is_code(country)) {
            warnings.push(wrong("location_country", "is not two letters"));
        }
        let agent = Agent { browser, browser_version, os, device: found.unwrap_or_default() };
        let states_agent = found.is_some() || agent != Agent::default();
        // `XX` and `ZZ` stand for an unknown country.
        Self { agent: states_agent.then_some(agent), country: country.and_then(|country| Country::parse(&country)) }
    }
}

/// Returns the text of a field, truncated if it is too long. Empty text counts as absent.
fn text(fields: &JsonFields<'_>, name: &str, warnings: &mut Vec<Warning>) -> Option<String> {
    let Some(text) = text_of(fields.get(name)?) else {
        warnings.push(Warning::other_type(format!("{FIELD}.{name}")));
        return None;
    };
    if text.len() > MAX_TEXT_BYTES {
        let problem = format!("was truncated to {MAX_TEXT_BYTES} bytes");
        warnings.push(Warning::new(WarningCode::TextCut, format!("{FIELD}.{name}"), problem));
    }
    Some(cut_bytes(&text, MAX_TEXT_BYTES).to_owned()).filter(|text| !text.is_empty())
}

fn wrong(field: &str, problem: &str) -> Warning {
    Warning::new(WarningCode::FieldIgnored, format!("{FIELD}.{field}"), format!("{problem}, and was ignored"))
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
            let mut warnings = Vec::new();
            assert_eq!(ImportedVisitor::read(event, &mut warnings), ImportedVisitor { agent, country }, "{event}");
            assert_eq!(warnings, [], "{event}");
        }
    }

    #[test]
    fn what_is_not_allowed_costs_a_detail() {
        let long = format!(r#"{{"_import":{{"os":"{}"}}}}"#, "x".repeat(MAX_TEXT_BYTES + 1));
        for (event, code, param, message) in [
            (r#"{"_import":5}"#, WarningCode::FieldIgnored, "_import", "wrong type"),
            (r#"{"_import":{"browser":[]}}"#, WarningCode::FieldIgnored, "_import.browser", "wrong type"),
            (
                r#"{"_import":{"device":"phone"}}"#,
                WarningCode::FieldIgnored,
                "_import.device",
                "desktop, mobile, tablet, bot, other",
            ),
            (r#"{"_import":{"location_country":"CHE"}}"#, WarningCode::FieldIgnored, "_import.location_country", "two letters"),
            (&long, WarningCode::TextCut, "_import.os", "4096"),
        ] {
            let mut warnings = Vec::new();
            let visitor = ImportedVisitor::read(event, &mut warnings);
            let [warning] = &warnings[..] else { panic!("{warnings:?}") };
            assert_eq!((warning.code, &*warning.param), (code, param), "{event}");
            assert!(warning.message.contains(message), "{}", warning.message);
            assert_eq!(visitor.agent.is_some(), code == WarningCode::TextCut, "{event}");
        }
    }
}
