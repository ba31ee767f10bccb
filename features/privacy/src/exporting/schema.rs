//! Descriptions of the objects of an artifact.

use std::collections::BTreeMap;

use headcount_api::openapi::schemas::AnyJson;
use headcount_api::respond::answer::{Decimal, Timestamp};
use utoipa::PartialSchema;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, OneOfBuilder, Schema, Type};

/// The type of a value in the artifact.
pub(crate) trait ArtifactValue {
    fn schema() -> RefOr<Schema>;
}

macro_rules! values {
    ($($type:ty),*) => { $(impl ArtifactValue for $type {
        fn schema() -> RefOr<Schema> {
            <$type as PartialSchema>::schema()
        }
    })* };
}

values!(String, u64, bool, Timestamp, Decimal, AnyJson);

impl ArtifactValue for &str {
    fn schema() -> RefOr<Schema> {
        <String as ArtifactValue>::schema()
    }
}

impl<T: ArtifactValue> ArtifactValue for Option<T> {
    fn schema() -> RefOr<Schema> {
        OneOfBuilder::new().item(ObjectBuilder::new().schema_type(Type::Null)).item(T::schema()).into()
    }
}

impl<T: ArtifactValue> ArtifactValue for Vec<T> {
    fn schema() -> RefOr<Schema> {
        ArrayBuilder::new().items(T::schema()).into()
    }
}

impl<T: ArtifactValue> ArtifactValue for BTreeMap<String, T> {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new().additional_properties(Some(T::schema())).into()
    }
}

/// Sets the description of a schema.
pub(crate) fn described(mut schema: RefOr<Schema>, text: &str) -> RefOr<Schema> {
    let text = text.trim().to_owned();
    match &mut schema {
        RefOr::Ref(reference) => reference.description = text,
        RefOr::T(Schema::Object(object)) => object.description = Some(text),
        RefOr::T(Schema::Array(array)) => array.description = Some(text),
        RefOr::T(Schema::OneOf(options)) => options.description = Some(text),
        RefOr::T(_) => {}
    }
    schema
}

/// Describes an object all of whose keys are always there.
macro_rules! object {
    ([$($life:lifetime)?] $name:ident, $summary:expr, $($text:literal $field:ident: $type:ty,)*) => {
        impl $(<$life>)? $crate::exporting::schema::ArtifactValue for $name $(<$life>)? {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
                use $crate::exporting::schema::{ArtifactValue, described};
                use utoipa::openapi::schema::{AdditionalProperties, ObjectBuilder};
                let object = ObjectBuilder::new().additional_properties(Some(AdditionalProperties::FreeForm(false)));
                $(
                    let schema = described(<$type as ArtifactValue>::schema(), $text);
                    let object = object.property(stringify!($field), schema).required(stringify!($field));
                )*
                described(object.into(), $summary)
            }
        }
    };
}

pub(crate) use object;
