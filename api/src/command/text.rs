//! Formats answers as text.

use std::fmt::{self, Display};

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::command::failure::Failure;

/// The fields of an object, in their order.
struct ObjectFields(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for ObjectFields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FieldsVisitor;
        impl<'de> Visitor<'de> for FieldsVisitor {
            type Value = ObjectFields;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ObjectFields, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(ObjectFields(fields))
            }
        }
        deserializer.deserialize_map(FieldsVisitor)
    }
}

/// The error for an answer that is not as expected.
pub fn unexpected(error: impl Display) -> Failure {
    Failure::new("the server's answer could not be read", error)
}

/// Formats an object: a line for each field.
pub(super) fn fields(object: &RawValue) -> Result<String, Failure> {
    let ObjectFields(fields) = serde_json::from_str(object.get()).map_err(unexpected)?;
    let width = fields.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let lines = fields.iter().map(|(name, value)| format!("{name:<width$}  {}", text(value)).trim_end().to_owned());
    Ok(lines.collect::<Vec<_>>().join("\n"))
}

/// Formats objects: a line for each, below the names of the columns.
pub(super) fn table(objects: &[Box<RawValue>], columns: &[&str]) -> Result<String, Failure> {
    let mut rows = vec![columns.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()];
    for object in objects {
        let object: Value = serde_json::from_str(object.get()).map_err(unexpected)?;
        rows.push(columns.iter().map(|name| text(&object[name])).collect());
    }
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns.len()).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    Ok(rows.iter().map(line).collect::<Vec<_>>().join("\n"))
}

/// Formats a value: lists by comma, objects as `name=value`, null as nothing.
fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(list) => list.iter().map(text).collect::<Vec<_>>().join(","),
        Value::Object(object) => {
            object.iter().map(|(name, value)| format!("{name}={}", text(value))).collect::<Vec<_>>().join(",")
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(json: &str) -> Box<RawValue> {
        RawValue::from_string(json.to_owned()).unwrap()
    }

    #[test]
    fn answers_are_lines_and_columns() {
        let object = raw(r#"{"project_id":"prj_1","name":"Shop","keys":["a","b"],"rates":{"EUR":1.08},"limit":null,"on":true}"#);
        let shown = "project_id  prj_1\nname        Shop\nkeys        a,b\nrates       EUR=1.08\nlimit\non          true";
        assert_eq!(fields(&object).unwrap(), shown);
        let objects = [raw(r#"{"id":"p1","name":"Büro","other":1}"#), raw(r#"{"id":"project 2","name":null}"#)];
        assert_eq!(table(&objects, &["id", "name"]).unwrap(), "id         name\np1         Büro\nproject 2");
        assert_eq!(table(&[], &["id"]).unwrap(), "id");
    }
}
