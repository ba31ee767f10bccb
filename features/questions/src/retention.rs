//! `GET /projects/{project_id}/analytics/retention`

use headcount_api::endpoint::*;
use headcount_domain::Timezone;
use headcount_domain::queries::{Listed, RetentionCohort, RetentionQuery};
use headcount_domain::time::CohortInterval;

query_parameters! {
    /// The cohorts to return.
    pub(crate) struct RetentionParameters {
        /// The length of the intervals. Weeks begin on Monday; the days are those of the organization's timezone.
        interval: RunningInterval,
        /// The number of cohorts: the last so many intervals, the running one included.
        cohorts: Limit<60, 12>,
    }
}

names_no_field! { RetentionParameters { interval, cohorts }; }

answer! {
    /// Who came back, by the interval of the first event.
    pub(crate) struct RetentionAnswer from |found: Listed<RetentionCohort>, interval: CohortInterval, timezone: Timezone| {
        /// The newest cohort first, also those without anybody.
        cohorts: Vec<CohortOfUsers> = shown(found.rows),
        /// `week` or `month`.
        interval: String = interval.to_string(),
        /// The timezone of the days.
        timezone: String = timezone.name().to_owned(),
        /// Whether the first event of somebody is older than these cohorts.
        truncated: bool,
    }
}

answer! {
    /// The users who were first seen in one interval.
    pub(crate) struct CohortOfUsers from RetentionCohort {
        /// The Monday of the week, `YYYY-MM-DD`, or the month, `YYYY-MM`.
        cohort: String,
        /// How many users: those with a `user_id` or an `anonymous_id`. Cookieless visitors are new every day, and left out.
        users: u64,
        /// How many of them were active in each interval, from that of the cohort to the running one, which is not over.
        returned: Vec<u64>,
    }
}

/// Users by the week or month of their first event, and how many of them were active in each later one.
#[utoipa::path(
    get, path = "/projects/{project_id}/analytics/retention", tag = "analytics", operation_id = "retention",
    params(ProjectPath, RetentionParameters),
    responses(
        (status = 200, description = "The cohorts.", body = RetentionAnswer, example = json!({
            "cohorts": [
                {"cohort": "2026-03-09", "users": 40, "returned": [40]},
                {"cohort": "2026-03-02", "users": 52, "returned": [52, 17]},
                {"cohort": "2026-02-23", "users": 38, "returned": [38, 21, 12]},
            ],
            "interval": "week", "timezone": "Europe/Berlin", "truncated": true,
        })),
        NotModified, UnavailableErrors,
    ),
)]
pub(crate) async fn retention(ApiCall { state, request, .. }: ApiCall, asker: Asker) -> Result<HttpResponse> {
    let question = ProjectQuestion::<RetentionParameters>::read(&state, &request, asker)?;
    let RetentionParameters { interval: RunningInterval { interval, first_day }, cohorts } = question.parameters;
    let timezone = question.subject.config.policy.timezone;
    let answer = |found| RetentionAnswer::new(found, interval, timezone);
    let cohorts = u8::try_from(cohorts.0).unwrap_or(u8::MAX);
    question.reply_to(RetentionQuery { interval, cohorts, today: first_day }, answer).await
}
