//! Bodies of requests, and replies.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::command::failure::Failure;
use crate::command::output::print_line;
use crate::command::text::{fields, table, unexpected};

/// The body of a request. It has only the fields whose flags are given.
#[derive(Debug, Default, Serialize)]
pub struct Body(BTreeMap<&'static str, Field>);

/// The value of a field.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Field {
    Value(Value),
    /// Numbers by name. They keep the digits of the flag.
    Numbers(BTreeMap<String, Box<RawValue>>),
}

impl Body {
    /// Sets a field, if its flag is given.
    pub fn set(mut self, name: &'static str, value: Option<impl Into<Value>>) -> Self {
        if let Some(value) = value {
            self.0.insert(name, Field::Value(value.into()));
        }
        self
    }

    /// Sets a field to a list, if its flag is given. An empty text stands for an empty list.
    pub fn list(self, name: &'static str, list: Option<&[String]>) -> Self {
        self.set(name, list.map(|list| list.iter().filter(|item| !item.is_empty()).cloned().collect::<Value>()))
    }

    /// Sets a field to numbers by name, if its flag is given.
    pub fn numbers(mut self, name: &'static str, numbers: Option<BTreeMap<String, Box<RawValue>>>) -> Self {
        if let Some(numbers) = numbers {
            self.0.insert(name, Field::Numbers(numbers));
        }
        self
    }

    /// The body as JSON.
    pub fn json(&self) -> Result<Vec<u8>, Failure> {
        serde_json::to_vec(self).map_err(|error| Failure::new("the request could not be written", error))
    }
}

/// The answer of the API, and how to print it.
#[derive(Debug)]
pub enum Reply {
    /// One object.
    Object(Box<RawValue>),
    /// A list of objects in the field `list`; the text output shows `columns`.
    List {
        /// The answer.
        answer: Box<RawValue>,
        /// The name of the field with the list.
        list: &'static str,
        /// The fields of the objects to show.
        columns: &'static [&'static str],
    },
    /// The command has written its output already.
    Written,
    /// Success without an answer; the text says what was done.
    Done(String),
}

impl Reply {
    /// Prints the answer as one line of JSON, or as text.
    pub fn print(&self, json: bool) -> Result<(), Failure> {
        match (self, json) {
            (Self::Object(answer) | Self::List { answer, .. }, true) => print_line(answer.get()),
            (Self::Object(answer), false) => print_line(fields(answer)?),
            (Self::List { answer, list, columns }, false) => print_line(table(&items(answer, list)?, columns)?),
            (Self::Written, _) | (Self::Done(_), true) => Ok(()),
            (Self::Done(text), false) => print_line(text),
        }
    }
}

/// Returns a path with the parameters whose flags are given.
pub fn asking<const N: usize>(path: &str, parameters: [(&str, &Option<String>); N]) -> String {
    let given = parameters.into_iter().filter_map(|(name, value)| Some((name, value.as_ref()?)));
    match form_urlencoded::Serializer::new(String::new()).extend_pairs(given).finish() {
        query if query.is_empty() => path.to_owned(),
        query => format!("{path}?{query}"),
    }
}

/// Returns the objects of the list in the field `list`.
pub(crate) fn items(answer: &RawValue, list: &str) -> Result<Vec<Box<RawValue>>, Failure> {
    let mut answer: BTreeMap<String, Box<RawValue>> = serde_json::from_str(answer.get()).map_err(unexpected)?;
    let items = answer.remove(list).ok_or_else(|| unexpected(format!("it has no {list}")))?;
    serde_json::from_str(items.get()).map_err(unexpected)
}

/// Returns the names of all values of an enumeration, as JSON.
pub fn all<T: Serialize>(values: &[T]) -> Result<Value, Failure> {
    serde_json::to_value(values).map_err(unexpected)
}
