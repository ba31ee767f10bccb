//! Schemas of the closed lists, taken from the lists themselves.

use headcount_actors::registry::{Capability, Role, Scope};
use utoipa::openapi::schema::{Array, ArrayBuilder, Object, ObjectBuilder, Type};

fn one_of<'a>(names: impl IntoIterator<Item = &'a str>) -> Object {
    ObjectBuilder::new().schema_type(Type::String).enum_values(Some(names)).build()
}

fn list_of(item: Object) -> Array {
    ArrayBuilder::new().items(item).build()
}

/// What is done with bots.
pub(super) fn bots() -> Object {
    one_of(["drop", "record"])
}

/// What is done with events that carry a privacy signal.
pub(super) fn signals_policy() -> Object {
    one_of(["record", "anonymize", "drop"])
}

/// A role.
pub(super) fn role() -> Object {
    one_of(Role::ALL.iter().map(|role| role.as_str()))
}

/// A list of scopes.
pub(super) fn scopes() -> Array {
    list_of(one_of(Scope::ALL.iter().map(|scope| scope.as_str())))
}

/// A list of capabilities.
pub(super) fn capabilities() -> Array {
    list_of(one_of(Capability::ALL.iter().map(|capability| capability.as_str())))
}

#[cfg(test)]
mod tests {
    use headcount_domain::policy::{BotPolicy, SignalsPolicy};

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
