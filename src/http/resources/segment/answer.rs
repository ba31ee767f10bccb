//! The answer to calls.

use serde::Serialize;
use utoipa::ToSchema;

use crate::http::resources::events::answer::{BatchAnswer, BatchError, BatchWarning, EventWarning};

/// What a call answers.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SegmentAnswer {
    /// True: all valid messages are on disk, and every later read counts them.
    success: bool,
    /// The invalid messages of a batch, and those that a quota refused (`quota_exceeded`). Absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    errors: Vec<BatchError>,
    /// What was repaired of the messages, and probable mistakes in them: the first 100. Those of a batch have their place. Absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    warnings: Vec<SegmentWarning>,
}

/// A warning about a message.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
enum SegmentWarning {
    /// A message of a batch.
    InBatch(BatchWarning),
    /// The only message.
    Single(EventWarning),
}

impl SegmentAnswer {
    /// The answer to a message that needs no resending.
    pub(super) const DONE: Self = Self { success: true, errors: Vec::new(), warnings: Vec::new() };

    /// The answer to one message.
    pub(super) fn of_message(warnings: Vec<EventWarning>) -> Self {
        Self { warnings: warnings.into_iter().map(SegmentWarning::Single).collect(), ..Self::DONE }
    }
}

impl From<BatchAnswer> for SegmentAnswer {
    fn from(answer: BatchAnswer) -> Self {
        let warnings = answer.warnings.into_iter().map(SegmentWarning::InBatch).collect();
        Self { success: true, errors: answer.errors, warnings }
    }
}
