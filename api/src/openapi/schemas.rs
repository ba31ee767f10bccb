//! Schemas of the closed lists, taken from the lists themselves.

use headcount_control::{Capability, MAX_RATE_LIMIT, Role, Scope};
use headcount_domain::NamedValues;
use utoipa::openapi::schema::{Array, ArrayBuilder, Object, ObjectBuilder, SchemaType, Type};

use super::own_schema;

/// The schema of any JSON.
#[derive(Debug)]
pub struct AnyJson;

own_schema!(AnyJson, ObjectBuilder::new().schema_type(SchemaType::AnyValue).description(Some("Any JSON.")).into());

fn one_of(names: impl IntoIterator<Item = impl Into<String>>) -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String).enum_values(Some(names.into_iter().map(Into::into)))
}

fn list_of(item: ObjectBuilder, description: &str) -> ArrayBuilder {
    ArrayBuilder::new().items(item).description(Some(description))
}

/// The schema of a value that has a name.
pub fn named<T: NamedValues>(description: &str) -> Object {
    one_of(T::names()).description(Some(description)).build()
}

/// The schema of the name of one of a list, with a default.
pub fn named_by_default<T: NamedValues>(default: &str) -> ObjectBuilder {
    one_of(T::names()).default(Some(default.into()))
}

/// The schema of the policy for bots.
pub fn bots() -> Object {
    one_of(["drop", "record"]).description(Some("The policy for events of crawlers, monitors and previewers.")).build()
}

/// The policy for events that carry a privacy signal.
pub fn signals_policy() -> Object {
    let description = "The policy for events that carry a privacy signal.";
    one_of(["record", "anonymize", "drop"]).description(Some(description)).build()
}

/// A role.
pub fn role() -> Object {
    let description = "The role in the organization. That of a token is the lower of its own and its member's.";
    one_of(Role::names()).description(Some(description)).build()
}

/// A list of scopes, never an empty one.
pub fn scopes() -> Array {
    let scope = one_of(Scope::names());
    list_of(scope, "What the token may be used for. No scope implies another.").min_items(Some(1)).build()
}

/// A list of capabilities.
pub fn capabilities() -> Array {
    let capability = one_of(Capability::names());
    list_of(capability, "The optional features that the organization may use.").build()
}

/// What a part of a rate limit must be.
pub fn up_to_rate(what: &str) -> String {
    format!("an integer from 0 to {MAX_RATE_LIMIT}: {what}")
}

#[cfg(test)]
mod tests {
    use headcount_domain::intake::policy::{BotPolicy, SignalsPolicy};

    use super::*;

    #[test]
    fn policies_are_spelled_as_they_are_read() {
        let names = |object: Object| object.enum_values.unwrap_or_default();
        let bots = names(bots()).into_iter().map(|name| serde_json::from_value::<BotPolicy>(name).unwrap());
        assert_eq!(bots.collect::<Vec<_>>(), [BotPolicy::Drop, BotPolicy::Record]);
        let signals = names(signals_policy()).into_iter().map(|name| serde_json::from_value::<SignalsPolicy>(name).unwrap());
        assert_eq!(signals.collect::<Vec<_>>(), [SignalsPolicy::Record, SignalsPolicy::Anonymize, SignalsPolicy::Drop]);
    }
}
