//! Answers that consist of what the engine returns, in JSON's types.
//!
//! [`answer!`](crate::respond::answer::answer) declares the fields of an answer once: the struct
//! that it defines documents them, and takes each from the field of the same name of the engine's
//! value.

use std::borrow::Cow;

use headcount_domain::{Amount, Instant};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, Schema, SchemaFormat, SchemaType, Type};

use crate::openapi::own_schema;

/// A time, written as an RFC 3339 date and time in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timestamp(Instant);

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

own_schema!(Timestamp, {
    let format = SchemaFormat::KnownFormat(KnownFormat::DateTime);
    ObjectBuilder::new().schema_type(Type::String).format(Some(format)).into()
});

/// An answer about an organization, which has no days that a project no longer keeps.
#[derive(Debug, Serialize)]
pub struct Completed<A> {
    #[serde(flatten)]
    /// The answer.
    pub answer: A,
    /// From this day on, all projects keep their events. `None`: they keep those of all days of the window.
    pub complete_from: Option<String>,
}

/// One closed object with the properties of both.
impl<A: utoipa::ToSchema> utoipa::PartialSchema for Completed<A> {
    fn schema() -> RefOr<Schema> {
        let mut schema = A::schema();
        if let RefOr::T(Schema::Object(object)) = &mut schema {
            let day = ObjectBuilder::new()
                .schema_type([Type::String, Type::Null].into_iter().collect::<SchemaType>())
                .format(Some(SchemaFormat::KnownFormat(KnownFormat::Date)))
                .description(Some(
                    "From this day on, all projects keep their events; null if they keep those of all days of the window.",
                ));
            object.properties.insert("complete_from".to_owned(), day.into());
            object.required.push("complete_from".to_owned());
        }
        schema
    }
}

impl<A: utoipa::ToSchema> utoipa::ToSchema for Completed<A> {
    fn name() -> Cow<'static, str> {
        format!("Completed{}", A::name()).into()
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        A::schemas(schemas);
    }
}

/// Defines an answer, and how to make it from a value of the engine.
///
/// A field has the value's field of the same name, or the expression after `=`, which uses the names
/// between the bars. With several names, the function `new` takes a value for each, and fields
/// without an expression come from the first.
#[macro_export]
macro_rules! answer {
    (@field $value:ident.$field:ident) => {
        $value.$field.into()
    };
    (@field $value:ident.$field:ident $make:expr) => {
        $make
    };
    (@made $name:ident |$value:ident: $source:ty| { $($field:ident $(= $make:expr)?,)* }) => {
        impl From<$source> for $name {
            fn from($value: $source) -> Self {
                Self { $($field: $crate::answer!(@field $value.$field $($make)?),)* }
            }
        }
    };
    (@made $name:ident |$value:ident: $source:ty, $($more:ident: $of:ty),+| { $($field:ident $(= $make:expr)?,)* }) => {
        impl $name {
            pub(crate) fn new($value: $source, $($more: $of),+) -> Self {
                Self { $($field: $crate::answer!(@field $value.$field $($make)?),)* }
            }
        }
    };
    ($(#[$summary:meta])+ $visibility:vis struct $name:ident from |$($value:ident: $source:ty),+| {
        $($(#[$attribute:meta])* $field:ident: $type:ty $(= $make:expr)?,)*
    }) => {
        $(#[$summary])+
        #[derive(Debug, serde::Serialize, utoipa::ToSchema)]
        $visibility struct $name {
            $($(#[$attribute])* $field: $type,)*
        }

        $crate::answer!(@made $name |$($value: $source),+| { $($field $(= $make)?,)* });
    };
    ($(#[$summary:meta])+ $visibility:vis struct $name:ident from $source:ty { $($fields:tt)* }) => {
        $crate::answer! { $(#[$summary])+ $visibility struct $name from |value: $source| { $($fields)* } }
    };
}
pub use answer;

/// Shows the rows of an answer.
pub fn shown<R, A: From<R>>(rows: Vec<R>) -> Vec<A> {
    rows.into_iter().map(A::from).collect()
}

/// An amount, written without the noise of binary fractions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decimal(pub Amount);

impl From<Amount> for Decimal {
    fn from(amount: Amount) -> Self {
        Self(amount)
    }
}

impl Serialize for Decimal {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw = RawValue::from_string(self.0.to_string()).map_err(serde::ser::Error::custom)?;
        raw.serialize(serializer)
    }
}

own_schema!(Decimal, ObjectBuilder::new().schema_type(SchemaType::Type(Type::Number)).into());
