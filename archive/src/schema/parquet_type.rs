//! The Parquet schema of the columns.

use std::sync::Arc;

use headcount_domain::AMOUNT_DECIMALS;
use headcount_domain::intake::fields::MetadataPath;
use parquet::basic::{LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::errors::Result;
use parquet::schema::types::{Type, TypePtr};

use super::column::{Access, Column};

/// The prefix of the names of metadata columns.
pub const METADATA_PREFIX: &str = "metadata.";

/// The precision of decimals.
pub(crate) const DECIMAL_DIGITS: i32 = 38;

/// The schema of a file: these columns of the table, then a column for each path.
///
/// # Errors
/// Any error of the Parquet library. No list of paths causes one.
pub fn message(columns: &[Column], paths: &[MetadataPath]) -> Result<TypePtr> {
    let columns = columns.iter().map(|column| field(column.name, column.required, column.access));
    let text = Access::Text(|_| None, |_, _| None);
    let paths = paths.iter().map(|path| field(&format!("{METADATA_PREFIX}{path}"), false, text));
    let fields = columns.chain(paths).collect::<Result<_>>()?;
    Ok(Arc::new(Type::group_type_builder("event").with_fields(fields).build()?))
}

fn field(name: &str, required: bool, access: Access) -> Result<TypePtr> {
    let millis = LogicalType::timestamp(true, TimeUnit::MILLIS);
    let decimal = LogicalType::decimal(AMOUNT_DECIMALS.cast_signed(), DECIMAL_DIGITS);
    let (physical, logical, length) = match access {
        Access::Integer(..) => (Physical::INT64, None, 0),
        Access::Timestamp(..) => (Physical::INT64, Some(millis), 0),
        Access::Date(..) => (Physical::INT32, Some(LogicalType::Date), 0),
        Access::Boolean(..) => (Physical::BOOLEAN, None, 0),
        Access::Decimal(..) => (Physical::FIXED_LEN_BYTE_ARRAY, Some(decimal), 16),
        Access::Bytes16(..) => (Physical::FIXED_LEN_BYTE_ARRAY, None, 16),
        Access::Text(..) => (Physical::BYTE_ARRAY, Some(LogicalType::String), 0),
    };
    let mut builder = Type::primitive_type_builder(name, physical)
        .with_repetition(if required { Repetition::REQUIRED } else { Repetition::OPTIONAL })
        .with_logical_type(logical)
        .with_length(length);
    if matches!(access, Access::Decimal(..)) {
        builder = builder.with_precision(DECIMAL_DIGITS).with_scale(AMOUNT_DECIMALS.cast_signed());
    }
    Ok(Arc::new(builder.build()?))
}
