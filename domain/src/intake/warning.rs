//! Warnings about repaired events.

use std::borrow::Cow;

use serde::Serialize;

use crate::named_values;

named_values! {
    /// The kinds of repairs.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum WarningCode by as_str {
        /// The time lay too far ahead, and the time of receipt is used.
        Clamped = "clamped",
        /// The currency is no ISO 4217 code: the event has no money.
        CurrencyUnknown = "currency_unknown",
        /// The field has a type that it can't have, or is an id that is too long: it is as absent.
        FieldIgnored = "field_ignored",
        /// The group can't be one: the event is in none.
        GroupIgnored = "group_ignored",
        /// The metadata was cut to its bounds.
        MetadataTrimmed = "metadata_trimmed",
        /// A field of a usual other spelling stands where the known one is absent.
        MisspeltField = "misspelt_field",
        /// The currency has no rate: totals leave the money out.
        NoRate = "no_rate",
        /// The id is what programs write of users whom they don't know: it is as absent.
        PlaceholderId = "placeholder_id",
        /// The text was cut.
        TextCut = "text_cut",
        /// The timestamp was read as seconds since 1970.
        TimestampInSeconds = "timestamp_in_seconds",
        /// The value is no amount: the event has no money.
        ValueIgnored = "value_ignored",
    }
}

impl Serialize for WarningCode {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// A repair of an event, reported to its sender.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Warning {
    /// The kind, for programs.
    pub code: WarningCode,
    /// The field.
    pub param: Cow<'static, str>,
    /// The mistake and its repair, as a sentence.
    pub message: String,
}

impl Warning {
    /// Creates a warning about `param`. The message is its name, a space and `problem`.
    pub(crate) fn new(code: WarningCode, param: impl Into<Cow<'static, str>>, problem: impl std::fmt::Display) -> Self {
        let param = param.into();
        Self { code, message: format!("`{param}` {problem}"), param }
    }

    /// Creates the warning for a field of a wrong type.
    pub(crate) fn other_type(param: impl Into<Cow<'static, str>>) -> Self {
        Self::new(WarningCode::FieldIgnored, param, "has the wrong type, and was ignored")
    }
}
