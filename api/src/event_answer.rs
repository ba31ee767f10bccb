//! The answers to events and batches.

use std::borrow::Cow;

use headcount_actors::ingest::{BatchReceipt, Receipt, Status};
use headcount_domain::intake::submission::Invalid;
use headcount_domain::intake::warning::Warning;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The outcome of an event.
#[derive(Debug, Serialize, ToSchema)]
pub struct TrackAnswer {
    /// Its id; a duplicate has the id of the first. Null if it was dropped.
    #[schema(required)]
    id: Option<String>,
    /// `recorded`, `duplicate` or `dropped`.
    status: TrackStatus,
    /// Whether an event with its `external_id` was recorded before.
    duplicate: bool,
    /// Why it was dropped: `bot`, `consent`, `opted_out`, `retention`.
    #[schema(required)]
    reason: Option<&'static str>,
    /// Its position, which rises within a project; a duplicate has that of the first. Null if it was dropped.
    #[schema(required)]
    position: Option<u64>,
    /// Its `timestamp` lay too far ahead, and the time of receipt is used.
    clamped: bool,
    /// What was repaired of the event, and probable mistakes in it. Absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    warnings: Vec<EventWarning>,
}

/// What was wrong with an event that was taken all the same.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct EventWarning {
    /// Its kind, for programs: `clamped`, `currency_unknown`, `field_ignored`, `group_ignored`, `metadata_trimmed`, `misspelt_field`, `no_rate`,
    /// `placeholder_id`, `text_cut`, `timestamp_in_seconds` or `value_ignored`.
    code: Cow<'static, str>,
    /// The field.
    param: String,
    /// What was wrong and what became of it, for people.
    message: String,
}

/// A warning about an event of a batch.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct BatchWarning {
    /// The event's place in the batch, from 0.
    pub index: usize,
    /// Its kind, for programs, as of a single event.
    pub code: Cow<'static, str>,
    /// The field.
    pub param: String,
    /// What was wrong and what became of it, for people.
    pub message: String,
}

impl From<Warning> for EventWarning {
    fn from(Warning { code, param, message }: Warning) -> Self {
        Self { code: code.as_str().into(), param: param.into_owned(), message }
    }
}

/// Whether an event counts.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TrackStatus {
    /// It is on disk, and every later read counts it.
    Recorded,
    /// It changes nothing: an event with its `external_id` was recorded before.
    Duplicate,
    /// It was not recorded, by the project's policy.
    Dropped,
}

/// The outcome of a batch.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct BatchAnswer {
    /// How many were recorded.
    pub recorded: usize,
    /// How many had been recorded before.
    pub duplicates: usize,
    /// How many were dropped, by the project's policy.
    pub dropped: usize,
    /// The places, from 0, of those that were recorded with the time of receipt, as their `timestamp` lay too far ahead. Absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub clamped: Vec<usize>,
    /// What was repaired of the events, and probable mistakes in them: the first 100. Absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub warnings: Vec<BatchWarning>,
    /// The invalid ones, and those that a quota refused (`quota_exceeded`). All others need no resending.
    pub errors: Vec<BatchError>,
}

/// An event of a batch that was not recorded.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct BatchError {
    /// Its place in the batch, from 0.
    pub index: usize,
    /// The code of the error, for programs.
    pub code: Cow<'static, str>,
    /// The field that is wrong, where it is one.
    #[schema(required)]
    param: Option<String>,
    /// The error, for people.
    pub message: String,
}

impl TrackAnswer {
    /// The answer to an event.
    pub fn new(receipt: Receipt, warnings: Vec<EventWarning>) -> Self {
        let (status, reason) = match receipt.status {
            Status::Recorded => (TrackStatus::Recorded, None),
            Status::Duplicate => (TrackStatus::Duplicate, None),
            Status::Dropped(reason) => (TrackStatus::Dropped, Some(reason.as_str())),
        };
        let duplicate = receipt.status == Status::Duplicate;
        Self { id: receipt.id, status, duplicate, reason, position: receipt.position, clamped: receipt.clamped, warnings }
    }
}

impl From<BatchReceipt> for BatchAnswer {
    fn from(receipt: BatchReceipt) -> Self {
        let error = |(index, invalid): (usize, Invalid)| BatchError {
            index,
            code: invalid.code.into(),
            param: invalid.param,
            message: invalid.message,
        };
        let warning = |(index, warning): (usize, Warning)| {
            let EventWarning { code, param, message } = warning.into();
            BatchWarning { index, code, param, message }
        };
        Self {
            recorded: receipt.recorded,
            duplicates: receipt.duplicates,
            dropped: receipt.dropped,
            clamped: receipt.clamped,
            warnings: receipt.warnings.into_iter().map(warning).collect(),
            errors: receipt.errors.into_iter().map(error).collect(),
        }
    }
}
