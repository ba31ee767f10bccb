//! Answers that consist of what the engine returns, in JSON's types.
//!
//! [`answer!`](crate::http::respond::answer::answer) declares the fields of an answer once: the struct that it defines documents them,
//! and takes each from the field of the same name of the engine's value.

use headcount_domain::time::Instant;
use serde::{Serialize, Serializer};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, Schema, SchemaFormat, Type};

/// A time, written as an RFC 3339 date and time in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Timestamp(Instant);

impl From<Instant> for Timestamp {
    fn from(time: Instant) -> Self {
        Self(time)
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl utoipa::PartialSchema for Timestamp {
    fn schema() -> RefOr<Schema> {
        let format = SchemaFormat::KnownFormat(KnownFormat::DateTime);
        ObjectBuilder::new().schema_type(Type::String).format(Some(format)).into()
    }
}

impl utoipa::ToSchema for Timestamp {}

/// An answer about an organization, which has no days that a project no longer keeps.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct Completed<A> {
    #[serde(flatten)]
    pub(crate) answer: A,
    /// From this day on, the answer has all events of the window: the latest day from which on a project keeps them. Null: all days have all events.
    #[schema(required, value_type = Option<String>, format = Date)]
    pub(crate) complete_from: Option<String>,
}

/// Defines an answer, and how it is made of a value of the engine.
macro_rules! answer {
    (
        $(#[$summary:meta])+
        $visibility:vis struct $name:ident from $source:ty {
            $($(#[$attribute:meta])* $field:ident: $type:ty,)*
        }
    ) => {
        $(#[$summary])+
        #[derive(Debug, serde::Serialize, utoipa::ToSchema)]
        $visibility struct $name {
            $($(#[$attribute])* $field: $type,)*
        }

        impl From<$source> for $name {
            fn from(value: $source) -> Self {
                Self { $($field: value.$field.into(),)* }
            }
        }
    };
}
pub(crate) use answer;
