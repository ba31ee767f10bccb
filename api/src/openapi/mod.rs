//! The parts of the OpenAPI document that are not made from the endpoints.

pub mod event;
pub mod modifiers;
pub mod responses;
pub mod schemas;
pub mod segment;

/// Gives a type a schema that is written by hand.
#[macro_export]
macro_rules! own_schema {
    ($type:ty, $schema:expr $(, refers to $($named:ty),+)?) => {
        impl utoipa::PartialSchema for $type {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
                $schema
            }
        }

        impl utoipa::ToSchema for $type {
            $(fn schemas(schemas: &mut Vec<(String, utoipa::openapi::RefOr<utoipa::openapi::schema::Schema>)>) {
                $(
                    schemas.push((<$named>::name().into_owned(), <$named as utoipa::PartialSchema>::schema()));
                    <$named as utoipa::ToSchema>::schemas(schemas);
                )+
            })?
        }
    };
}
pub use own_schema;
