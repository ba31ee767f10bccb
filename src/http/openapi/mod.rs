//! The parts of the OpenAPI document that are not made from the endpoints.

pub(crate) mod event;
pub(crate) mod modifiers;
pub(crate) mod responses;
pub(crate) mod segment;

/// Gives a type a schema that is written by hand.
macro_rules! own_schema {
    ($type:ty, $schema:expr) => {
        impl utoipa::PartialSchema for $type {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
                $schema
            }
        }

        impl utoipa::ToSchema for $type {}
    };
}
pub(crate) use own_schema;
