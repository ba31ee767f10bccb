//! A row: the columns of an export, and what the event's identity and session tell.

use std::io;

use headcount_actors::PagedEvent;
use headcount_archive::export::{self, Nulls, json_fields};
use headcount_archive::schema::{Access, METADATA};
use headcount_archive::{Currencies, Row};
use headcount_domain::acquisition::Channel;
use headcount_domain::ids::event_id;
use headcount_domain::intake::policy::Policy;
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{KnownFormat, Object, ObjectBuilder, Schema, SchemaFormat, SchemaType, Type};
use utoipa::{PartialSchema, ToSchema};

/// An event as `GET /projects/{project_id}/events` shows it.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub(crate) struct EventRow(Box<RawValue>);

#[derive(Serialize)]
struct Added<'r> {
    id: &'r str,
    identity_id: Option<String>,
    acquisition_channel: Option<&'static str>,
    entry_url: Option<&'r str>,
}

impl EventRow {
    /// Returns the row of an event of the project of `policy`.
    pub(crate) fn of(paged: PagedEvent, policy: &Policy) -> io::Result<Self> {
        let PagedEvent { position, event, identity, entry } = paged;
        let id = event_id(policy.project, event.external_id.as_deref(), position);
        let currencies = Currencies { project: policy.currency, organization: policy.organization_currency };
        let mut json = vec![b'{'];
        json_fields(&mut json, &Row::new(position, *event, currencies), Nulls::Written)?;
        let added = serde_json::to_vec(&Added {
            id: &id,
            identity_id: identity.map(|identity| identity.public(policy.organization, policy.project)),
            acquisition_channel: entry.as_ref().and_then(|entry| entry.channel).map(Channel::name),
            entry_url: entry.as_ref().and_then(|entry| entry.url.as_deref()),
        })?;
        json.push(b',');
        json.extend_from_slice(added.strip_prefix(b"{").unwrap_or(&added));
        let json = String::from_utf8(json).map_err(io::Error::other)?;
        Ok(Self(RawValue::from_string(json)?))
    }
}

impl ToSchema for EventRow {}

impl PartialSchema for EventRow {
    fn schema() -> RefOr<Schema> {
        let mut row =
            ObjectBuilder::new().description(Some("A recorded event. Every column is there; those without a value are null."));
        for column in export::columns() {
            row = row.property(column.name, schema_of(column.name, column.required, column.access)).required(column.name);
        }
        let added = [
            ("id", true, "The event's id, as the answer to it has it."),
            ("identity_id", false, "The identity, after links. Null without ids."),
            ("acquisition_channel", false, "The channel of the session. Null without one."),
            ("entry_url", false, "The page of the session's first event that has one, without query and fragment."),
        ];
        for (name, required, description) in added {
            let schema = ObjectBuilder::new().schema_type(kind(Type::String, required)).description(Some(description));
            row = row.property(name, schema).required(name);
        }
        row.into()
    }
}

fn kind(kind: Type, required: bool) -> SchemaType {
    if required { SchemaType::Type(kind) } else { SchemaType::from_iter([kind, Type::Null]) }
}

fn schema_of(name: &str, required: bool, access: Access) -> Object {
    if name == METADATA {
        let description = "The metadata: any JSON, as it was sent.";
        return ObjectBuilder::new().schema_type(SchemaType::AnyValue).description(Some(description)).build();
    }
    let (of, description) = match access {
        Access::Integer(..) => (Type::Integer, "The position in the order of recording. It rises, with gaps."),
        Access::Timestamp(..) => (Type::String, "An instant in UTC, with milliseconds."),
        Access::Date(..) => (Type::String, "The calendar day of `timestamp` in the organization's timezone."),
        Access::Boolean(..) => (Type::Boolean, "As recorded."),
        Access::Decimal(..) => (Type::Number, "An exact amount with at most 6 decimals."),
        Access::Bytes16(..) => (Type::String, "32 hexadecimal digits."),
        Access::Text(..) => (Type::String, "As recorded."),
    };
    let format = match access {
        Access::Timestamp(..) => Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)),
        Access::Date(..) => Some(SchemaFormat::KnownFormat(KnownFormat::Date)),
        _ => None,
    };
    ObjectBuilder::new().schema_type(kind(of, required)).format(format).description(Some(description)).build()
}
