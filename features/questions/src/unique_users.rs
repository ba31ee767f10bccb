//! `POST /projects/{project_id}/analytics/count-unique-users-per-day`

use headcount_api::endpoint::*;
use headcount_api::extract::filters::{self, FilterShape};
use headcount_api::extract::share_rules::named_by_filters;
use headcount_domain::filter::Filter;
use headcount_domain::queries::{UniqueUsers, UniqueUsersQuery};
use headcount_domain::time::{Day, Window};

json_body! {
    /// What unique users are asked for.
    #[schema(example = json!({"event_name": "pageview", "filters": [{"field": "browser", "operator": "is", "value": "Firefox"}]}))]
    pub(crate) struct UniqueUsersQuestion {
        /// The first day: `YYYY-MM-DD`, or an RFC 3339 instant of it. Default: 30 days before today.
        start_date: Option<String> = optional("a string"),
        /// The last day. Default: today.
        end_date: Option<String> = optional("a string"),
        /// Only users with an event of this name.
        event_name: Option<String> = optional("a string"),
        /// Only users with an event for which all of these hold; at most 20.
        #[schema(value_type = Option<Vec<FilterShape>>)]
        filters: Vec<Filter> = with(filters::read),
    }
}

impl SharedQuestion for UniqueUsersQuestion {
    fn named_fields(&self) -> Vec<NamedField> {
        let Self { start_date: _, end_date: _, event_name: _, filters } = self;
        named_by_filters(filters)
    }
}

/// Unique users per day.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UniqueUsersAnswer {
    /// Every day of the window.
    series: Vec<UsersDay>,
    /// The distinct users of the whole window: a union, not a sum.
    total_unique_users: u64,
    /// The first day.
    start_date: String,
    /// The last day.
    end_date: String,
    /// The timezone of the days.
    timezone: String,
}

/// One day's unique users.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UsersDay {
    /// The day, `YYYY-MM-DD`.
    day: String,
    /// How many different users were active.
    unique_users: u64,
}

/// Unique users of every day of a window, and of the window.
#[utoipa::path(
    post, path = "/projects/{project_id}/analytics/count-unique-users-per-day", tag = "analytics",
    params(ProjectPath), request_body = UniqueUsersQuestion,
    responses((status = 200, description = "The counts.", body = UniqueUsersAnswer), NotModified),
)]
pub(crate) async fn count_unique_users_per_day(
    ApiCall { state, request, payload }: ApiCall,
    asker: Asker,
) -> Result<HttpResponse> {
    let mut question = ProjectQuestion::<UniqueUsersQuestion>::read_body(&state, &request, payload, asker).await?;
    let filters = std::mem::take(&mut question.parameters.filters);
    let UniqueUsersQuestion { start_date, end_date, event_name, .. } = &question.parameters;
    let predicate = filters::predicate(event_name.as_deref(), filters)?;
    let (start, end) = (start_date.as_deref(), end_date.as_deref());
    let day = |(day, unique_users): &(Day, u64)| UsersDay { day: day.to_string(), unique_users: *unique_users };
    let answer = |users: UniqueUsers, window: Window| UniqueUsersAnswer {
        series: users.series.iter().map(day).collect(),
        total_unique_users: users.total,
        start_date: window.start.to_string(),
        end_date: window.end.to_string(),
        timezone: question.subject.config.policy.timezone.name().to_owned(),
    };
    let Some(predicate) = predicate else {
        let window = question.window(start, end)?;
        return question.reply_to(UniqueUsersQuery { window }, |users| answer(users, window)).await;
    };
    let reply = async |window| {
        let scan = state.engine.scans.unique_users(question.subject.project, window, predicate.clone());
        question.reply(predicate.depends(window), scan, |users| answer(users, window)).await
    };
    question.in_event_window((start, end), reply).await
}
