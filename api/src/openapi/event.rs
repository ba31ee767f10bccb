//! The schema of an event, made from the list of its fields.

use headcount_domain::intake::submission::{MAX_NAME_CHARS, MAX_TEXT_BYTES, TEXT_FIELDS};
use serde_json::json;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, OneOfBuilder, Ref, Schema, SchemaFormat, SchemaType, Type};
use utoipa::{PartialSchema, ToSchema};

use crate::openapi::own_schema;

/// The schema of an event.
pub struct EventShape;

impl PartialSchema for EventShape {
    fn schema() -> RefOr<Schema> {
        let name = ObjectBuilder::new().schema_type(Type::String).min_length(Some(1)).max_length(Some(MAX_NAME_CHARS));
        let value = nullable(
            Type::Number,
            "Money: above 0 an order, below 0 a refund. Rounded to 6 decimals. A text that reads as a number is one.",
        );
        let metadata = ObjectBuilder::new().schema_type(SchemaType::AnyValue);
        let event = ObjectBuilder::new()
            .schema_type(Type::Object)
            .description(Some(
                "Something that happened. Fields that are not listed are ignored; null and empty text are as if absent, but for \
                 `privacy_categories` and `pc`. An event is refused without a usable `name`, for a `timestamp` that is no time, and for an \
                 `external_id` that is too long; whatever else is wrong costs a detail, which `warnings` in the answer names.",
            ))
            .property("name", name.description(Some("What happened: `pageview`, `signup`, `order` …")))
            .required("name")
            .property("timestamp", timestamp())
            .property("_sent_at", sent_at())
            .property("notify", nullable(Type::Boolean, "Whether to send a notification about it."))
            .property(
                "non_interaction",
                nullable(Type::Boolean, "`true`: nobody did anything at its time, so it makes no session. Anything else is as absent."),
            )
            .property(
                "metadata",
                metadata.description(Some("Any JSON; the fields of an object can be filtered, grouped and summed by.")),
            )
            .property("value", value.format(Some(SchemaFormat::KnownFormat(KnownFormat::Double))).minimum(Some(-1e12)).maximum(Some(1e12)))
            .property("_acOverrides", overrides())
            .examples([json!({"name": "order", "user_id": "ada", "url": "https://shop.example/thanks", "value": 12.5, "currency": "EUR"})]);
        TEXT_FIELDS.iter().fold(event, |event, (name, meaning)| event.property(*name, text(name, meaning))).into()
    }
}

impl ToSchema for EventShape {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((OverridesShape::name().into_owned(), OverridesShape::schema()));
    }
}

/// The schema of `_acOverrides`.
struct OverridesShape;

own_schema!(OverridesShape, {
    let fields = [
        ("source", "The source, such as `google`."),
        ("medium", "The medium, such as `cpc`."),
        ("campaign", "The campaign."),
        ("channel", "The channel; counts if it is the name of one, such as `Paid Search`."),
    ];
    let overrides = ObjectBuilder::new().schema_type(Type::Object).description(Some("Where a visitor came from."));
    fields.iter().fold(overrides, |shape, (name, meaning)| shape.property(*name, nullable(Type::String, meaning))).into()
});

fn text(name: &str, meaning: &str) -> ObjectBuilder {
    let schema = nullable(Type::String, meaning.trim());
    match name {
        "currency" => schema.pattern(Some("^[A-Za-z]{3}$")),
        "group_type" => schema.pattern(Some("^[a-z][a-z0-9_]{0,63}$")),
        _ => schema.max_length(Some(MAX_TEXT_BYTES)),
    }
}

fn nullable(kind: Type, description: &str) -> ObjectBuilder {
    ObjectBuilder::new().schema_type(SchemaType::from_iter([kind, Type::Null])).description(Some(description))
}

fn overrides() -> OneOfBuilder {
    OneOfBuilder::new()
        .item(ObjectBuilder::new().schema_type(Type::Null))
        .item(Ref::from_schema_name(OverridesShape::name()))
        .description(Some("Where the visitor came from, instead of what url and referrer say."))
}

fn timestamp() -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(SchemaType::from_iter([Type::String, Type::Number, Type::Null]))
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
        .description(Some(
            "When it happened: RFC 3339, or milliseconds since 1970; a number below 1e11 is seconds. Default: now. More than 5 minutes ahead: now. Before 1990: refused.",
        ))
}

fn sent_at() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(SchemaType::from_iter([Type::String, Type::Number, Type::Null])).description(Some(
        "When it was sent, by the clock of `timestamp`, which may be wrong: the event then happened as long before its receipt as lies \
         between the two. Ignored without a `timestamp`, or if it is no time.",
    ))
}
