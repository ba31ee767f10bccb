//! Decodes Arrow columns to rows.

use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, Decimal128Type, Int64Type, TimestampMillisecondType};
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, TimeUnit};
use headcount_domain::{Amount, Day, Instant, ProjectId};

use super::column::{Access, Column};
use super::draft::Draft;
use super::table::{COLUMNS, EXPORT_COLUMNS};
use crate::row::Row;

/// Decodes the rows of a batch that has all columns of [`COLUMNS`]. Ignores other columns.
///
/// # Errors
/// A message if a column is missing or has another type, if it does not allow a text, or if columns
/// are inconsistent.
pub fn decode(batch: &RecordBatch, project: ProjectId) -> Result<Vec<Row>, String> {
    decode_columns(batch, project, COLUMNS)
}

/// Decodes the rows of a batch that has all columns of [`EXPORT_COLUMNS`].
///
/// # Errors
/// Same as [`decode`].
pub(crate) fn decode_export(batch: &RecordBatch, project: ProjectId) -> Result<Vec<Row>, String> {
    decode_columns(batch, project, EXPORT_COLUMNS)
}

fn decode_columns(batch: &RecordBatch, project: ProjectId, columns: &[Column]) -> Result<Vec<Row>, String> {
    let mut drafts: Vec<Draft> = (0..batch.num_rows()).map(|_| Draft::default()).collect();
    for column in columns {
        let array = batch.column_by_name(column.name).ok_or_else(|| format!("there is no column {}", column.name))?;
        fill(column, array, &mut drafts)?;
    }
    drafts.into_iter().map(|draft| draft.finish(project).map_err(|error| error.to_string())).collect()
}

fn fill(column: &Column, array: &dyn Array, drafts: &mut [Draft]) -> Result<(), String> {
    let wrong = || format!("column {} has the type {}", column.name, array.data_type());
    if column.required && array.null_count() > 0 {
        return Err(format!("column {} has nulls", column.name));
    }
    let rows = drafts.iter_mut().enumerate().filter(|(at, _)| array.is_valid(*at));
    match column.access {
        Access::Integer(_, set) => {
            let values = array.as_primitive_opt::<Int64Type>().ok_or_else(wrong)?;
            rows.for_each(|(at, draft)| set(draft, values.value(at)));
        }
        Access::Timestamp(_, set) => {
            let is_utc = matches!(array.data_type(), DataType::Timestamp(TimeUnit::Millisecond, Some(_)));
            let values = array.as_primitive_opt::<TimestampMillisecondType>().filter(|_| is_utc).ok_or_else(wrong)?;
            rows.for_each(|(at, draft)| set(draft, Instant(values.value(at))));
        }
        Access::Date(_, set) => {
            let values = array.as_primitive_opt::<Date32Type>().ok_or_else(wrong)?;
            rows.for_each(|(at, draft)| set(draft, Day(values.value(at))));
        }
        Access::Boolean(_, set) => {
            let values = array.as_boolean_opt().ok_or_else(wrong)?;
            rows.for_each(|(at, draft)| set(draft, values.value(at)));
        }
        Access::Decimal(_, set) => {
            let is_amount = *array.data_type() == DataType::Decimal128(38, 6);
            let values = array.as_primitive_opt::<Decimal128Type>().filter(|_| is_amount).ok_or_else(wrong)?;
            rows.for_each(|(at, draft)| set(draft, Amount(values.value(at))));
        }
        Access::Bytes16(_, set) => {
            let values = array.as_fixed_size_binary_opt().ok_or_else(wrong)?;
            for (at, draft) in rows {
                set(draft, u128::from_be_bytes(values.value(at).try_into().map_err(|_| wrong())?));
            }
        }
        Access::Text(_, set) => {
            let values = array.as_string_opt::<i32>().ok_or_else(wrong)?;
            for (at, draft) in rows {
                let text = values.value(at);
                set(draft, text).ok_or_else(|| format!("column {} has a text that it does not allow", column.name))?;
            }
        }
    }
    Ok(())
}
