//! The schemas of the messages of Segment's SDKs.

use serde_json::json;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{AdditionalProperties, ArrayBuilder, ObjectBuilder, Ref, Schema, SchemaType, Type};
use utoipa::{PartialSchema, ToSchema};

use crate::openapi::own_schema;

/// The schema of a message.
pub struct MessageShape;

/// The schema of a batch of messages.
pub struct MessageBatchShape;

own_schema!(MessageShape, {
    let message = ObjectBuilder::new()
        .schema_type(Type::Object)
        .description(Some(
            "What an SDK of Segment sends. `docs/SEGMENT.md` says what becomes of each field. Other fields are ignored.",
        ))
        .property("type", of_type([Type::String], "The call; only in batches: track, identify, page, screen, group or alias."));
    let id = [Type::String, Type::Number, Type::Null];
    let ids = [
        ("messageId", "Names the message for ever within its project: a second one with the same changes nothing."),
        ("userId", "Who. A message has this or `anonymousId`, and `alias` has it."),
        ("anonymousId", "Who, before the user is known. With both ids the message links them."),
        ("previousId", "Of `alias`: the anonymous id that is linked."),
        ("groupId", "Of `group`: the company."),
        ("event", "Of `track`: what happened."),
    ];
    let message = ids.iter().fold(message, |message, (name, meaning)| message.property(*name, of_type(id.clone(), meaning)));
    message
        .property("name", of_type([Type::String, Type::Null], "Of `page` and `screen`: the name."))
        .property("category", of_type([Type::String, Type::Null], "Of `page` and `screen`: the category."))
        .property("properties", open("Of `track`, `page` and `screen`: the metadata, and `revenue`, `total`, `currency`."))
        .property("traits", open("Of `identify` and `group`: the metadata."))
        .property("context", open("The page, the campaign, the user agent and such."))
        .property("timestamp", of_type([Type::String, Type::Number, Type::Null], "When it happened, by the clock of the sender."))
        .property("sentAt", of_type([Type::String, Type::Number, Type::Null], "When it was sent, by the same clock."))
        .property("writeKey", of_type([Type::String, Type::Null], "The public key, where no header has it."))
        .into()
});

impl PartialSchema for MessageBatchShape {
    fn schema() -> RefOr<Schema> {
        let messages = ArrayBuilder::new().items(Ref::from_schema_name(MessageShape::name()));
        ObjectBuilder::new()
            .description(Some("A batch of messages."))
            .property("batch", messages.description(Some("The messages, at most 5,000.")))
            .required("batch")
            .property("context", open("The context of messages that lack it, by its fields."))
            .property(
                "sentAt",
                of_type([Type::String, Type::Number, Type::Null], "When it was sent, by the clock of the sender."),
            )
            .property("writeKey", of_type([Type::String, Type::Null], "The public key, where no header has it."))
            .into()
    }
}

impl ToSchema for MessageBatchShape {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((MessageShape::name().into_owned(), MessageShape::schema()));
    }
}

fn of_type(kinds: impl IntoIterator<Item = Type>, description: &str) -> ObjectBuilder {
    ObjectBuilder::new().schema_type(SchemaType::from_iter(kinds)).description(Some(description))
}

/// The schema of an object with any fields.
fn open(description: &str) -> ObjectBuilder {
    let any = Some(AdditionalProperties::FreeForm(true));
    of_type([Type::Object, Type::Null], description).additional_properties(any).examples([json!({})])
}
