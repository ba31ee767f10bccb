//! Reads the rows that [`json_fields`](super::json_fields) writes.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::LazyLock;

use headcount_domain::intake::submission::Invalid;
use headcount_domain::{Amount, Day, Instant, ProjectId};
use memchr::memchr;
use memchr::memmem::Finder;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{ROW_VERSION, VERSION_FIELD, columns};
use crate::row::Row;
use crate::schema::{Access, Column, Draft, METADATA};

/// Columns that an import recomputes.
const DECIDED_ANEW: [&str; 2] = ["position", "received_at"];

#[derive(Deserialize)]
struct Version<'j> {
    #[serde(borrow, rename = "_v")]
    version: Option<&'j RawValue>,
}

/// Parses a row of an export of any project as a row of `project`. Returns `None` for any other
/// JSON: an event as sent to the API.
///
/// # Errors
/// The name of the first invalid field.
pub fn parse_row(json: &[u8], project: ProjectId) -> Result<Option<Row>, Invalid> {
    if !may_have_version(json) {
        return Ok(None);
    }
    let Ok(Version { version: Some(version) }) = serde_json::from_slice(json) else { return Ok(None) };
    if version.get() != ROW_VERSION.to_string() {
        let message = format!("`{VERSION_FIELD}` must be {ROW_VERSION}, the version of rows that this program reads");
        return Err(Invalid::parameter(VERSION_FIELD, message));
    }
    let fields: BTreeMap<Cow<'_, str>, &RawValue> = serde_json::from_slice(json).map_err(|error| Invalid::json(&error))?;
    let mut draft = Draft::default();
    for column in columns().filter(|column| !DECIDED_ANEW.contains(&column.name)) {
        match fields.get(column.name).map(|value| value.get()).filter(|json| *json != "null") {
            Some(json) => set(column, &mut draft, json).ok_or_else(|| wrong(column))?,
            None if column.required => return Err(Invalid::missing(column.name)),
            None => {}
        }
    }
    let row = draft.finish(project).map_err(|malformed| Invalid {
        code: "invalid_parameter",
        param: None,
        message: malformed.to_string(),
    })?;
    Ok(Some(row))
}

/// Whether JSON may have the version field. An event as sent to the API does not, and need not be
/// parsed to find that out.
fn may_have_version(json: &[u8]) -> bool {
    // A name with escapes is not literally in the text.
    static NAME: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(br#""_v""#));
    NAME.find(json).is_some() || memchr(b'\\', json).is_some()
}

fn set(column: &Column, draft: &mut Draft, json: &str) -> Option<()> {
    if column.name == METADATA {
        let Access::Text(_, set) = column.access else { return None };
        return set(draft, json);
    }
    match column.access {
        Access::Integer(_, set) => set(draft, serde_json::from_str(json).ok()?),
        Access::Timestamp(_, set) => set(draft, Instant::parse_rfc3339(&text(json)?)?),
        Access::Date(_, set) => set(draft, Day::parse(&text(json)?)?),
        Access::Boolean(_, set) => set(draft, serde_json::from_str(json).ok()?),
        Access::Decimal(_, set) => set(draft, Amount::parse_converted(json).ok()?),
        Access::Bytes16(_, set) => {
            let digits = text(json).filter(|digits| digits.len() == 32 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
            set(draft, u128::from_str_radix(&digits, 16).ok()?);
        }
        Access::Text(_, set) => set(draft, &text(json)?)?,
    }
    Some(())
}

fn text(json: &str) -> Option<Cow<'_, str>> {
    #[derive(Deserialize)]
    struct Text<'j>(#[serde(borrow)] Cow<'j, str>);
    serde_json::from_str::<Text<'_>>(json).ok().map(|Text(text)| text)
}

fn wrong(column: &Column) -> Invalid {
    let expected = match column.access {
        Access::Integer(..) => "an integer",
        Access::Timestamp(..) => "an RFC 3339 instant",
        Access::Date(..) => "a day (YYYY-MM-DD)",
        Access::Boolean(..) => "true or false",
        Access::Decimal(..) => "a number with at most 6 decimals",
        Access::Bytes16(..) => "32 hexadecimal digits",
        Access::Text(..) => "one of the texts that an export has there",
    };
    Invalid::parameter(column.name, format!("`{}` must be {expected}", column.name))
}
