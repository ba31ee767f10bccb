//! Exact decimals as JSON numbers: 0.1 + 0.2 is 0.3.

use headcount_domain::money::Amount;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, SchemaType, Type};

/// An amount, written without the noise of binary fractions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Decimal(pub Amount);

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

impl utoipa::PartialSchema for Decimal {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new().schema_type(SchemaType::Type(Type::Number)).into()
    }
}

impl utoipa::ToSchema for Decimal {}
