//! The answer to calls.

use serde::Serialize;
use utoipa::ToSchema;

use crate::http::resources::events::answer::{BatchAnswer, BatchError};

/// What a call answers.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SegmentAnswer {
    /// True: all valid messages are on disk, and every later read counts them.
    success: bool,
    /// The invalid messages of a batch, and those that a quota refused (`quota_exceeded`). Absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    errors: Vec<BatchError>,
}

impl SegmentAnswer {
    /// The answer to a message that needs no resending.
    pub(super) const DONE: Self = Self { success: true, errors: Vec::new() };
}

impl From<BatchAnswer> for SegmentAnswer {
    fn from(answer: BatchAnswer) -> Self {
        Self { success: true, errors: answer.errors }
    }
}
