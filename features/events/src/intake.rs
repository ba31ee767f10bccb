//! `GET /projects/{project_id}/intake`

use std::collections::BTreeMap;

use headcount_actors::{DropCounts, ProjectIntake};
use headcount_api::endpoint::*;
use headcount_domain::queries::IntakeQuery;

query_parameters! {
    /// The days of receipt.
    pub(crate) struct IntakeParameters {
        range_days: RangeDays,
    }
}

answer! {
    /// What arrived at a project, by the day of receipt.
    pub(crate) struct IntakeAnswer from |intake: ProjectIntake| {
        /// Recorded events. Exact, also after a crash; erasing an identity lowers it.
        recorded: u64 = intake.recorded.recorded,
        /// Recorded events that were sent without consent: part of `recorded`.
        without_consent: u64 = intake.recorded.without_consent,
        /// Events whose `external_id` was recorded before.
        duplicates: u64 = intake.dropped.duplicates,
        /// Events that were not recorded, by the project's policy.
        dropped: DroppedByReason = (&intake.dropped).into(),
        /// What was repaired of events that were taken, by the `code` of the warning. Codes that did not occur are absent.
        repaired: BTreeMap<&'static str, u64> = intake.dropped.repaired.by_code(),
        /// Events that were refused with 400, and those in the `errors` of batches. A malformed body counts as one.
        invalid: u64 = intake.dropped.invalid,
        /// The latest receipt of a recorded event, of all time; null if there is none.
        #[schema(required)]
        last_event_at: Option<Timestamp> = intake.recorded.last.map(Into::into),
        /// Whether counts other than `recorded` and `without_consent` may be too low: a server died on one of these days and took up to 10 seconds of counts with it, or a day had no room for more projects.
        approximate: bool = intake.is_approximate,
    }
}

answer! {
    /// Dropped events by reason.
    pub(crate) struct DroppedByReason from &DropCounts {
        /// Crawlers, monitors and previewers.
        bot: u64,
        /// Events with a privacy signal.
        consent: u64,
        /// Events of erased identities.
        opted_out: u64,
        /// Events of days that the project no longer keeps.
        retention: u64,
    }
}

/// What arrived at the project in the last days, by the day of receipt: recorded, and why not.
#[utoipa::path(
    get, path = "/projects/{project_id}/intake", tag = "analytics", operation_id = "intake",
    params(ProjectPath, IntakeParameters),
    responses((status = 200, description = "The counts.", body = IntakeAnswer), NotModified, UnavailableErrors),
)]
pub(crate) async fn intake(ApiCall { state, request, .. }: ApiCall, caller: ProjectCaller) -> Result<HttpResponse> {
    let question = ProjectQuestion::<IntakeParameters>::read(&state, &request, caller)?;
    let query = IntakeQuery { window: question.parameters.range_days.0, timezone: question.subject.config.policy.timezone };
    let intake = state.engine.ingest.intake(question.subject.project, query).await?;
    // Counts change without an event, so the tag is that of the answer itself.
    etag::json(&request, &IntakeAnswer::from(intake))
}
