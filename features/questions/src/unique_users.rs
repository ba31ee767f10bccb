//! `POST /projects/{project_id}/analytics/count-unique-users-per-day`

use headcount_api::endpoint::*;
use headcount_api::extract::filters::{self, FilterShape};
use headcount_api::extract::people::{self, PeopleShape, SentCondition, named_by_people};
use headcount_api::extract::share_rules::named_by_filters;
use headcount_domain::queries::{UniqueUsers, UniqueUsersQuery};
use headcount_domain::{Clause, Day, Timezone, Window};

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
        filters: Vec<Clause> = with(filters::read),
        /// Only events of this segment: its id.
        segment: Option<String> = optional("a string"),
        /// Only events of people for whom all of these hold; at most 5.
        #[schema(value_type = Option<Vec<PeopleShape>>)]
        people: Vec<SentCondition> = with(people::read),
    }
}

headcount_api::chooses_events!(UniqueUsersQuestion);

impl SharedQuestion for UniqueUsersQuestion {
    fn named_fields(&self) -> Vec<NamedField> {
        let Self { start_date: _, end_date: _, event_name: _, filters, segment: _, people } = self;
        named_by_filters(filters).into_iter().chain(named_by_people(people)).collect()
    }
}

answer! {
    /// Unique users per day.
    pub(crate) struct UniqueUsersAnswer from |users: UniqueUsers, window: Window, timezone: Timezone| {
        /// Every day of the window.
        series: Vec<UsersDay> = shown(users.series),
        /// The distinct users of the whole window: a union, not a sum.
        total_unique_users: u64 = users.total,
        /// The first day.
        start_date: String = window.start.to_string(),
        /// The last day.
        end_date: String = window.end.to_string(),
        /// The timezone of the days.
        timezone: String = timezone.name().to_owned(),
    }
}

answer! {
    /// One day's unique users.
    pub(crate) struct UsersDay from |counted: (Day, u64)| {
        /// The day, `YYYY-MM-DD`.
        day: String = counted.0.to_string(),
        /// How many different users were active.
        unique_users: u64 = counted.1,
    }
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
    let asked = &mut question.parameters;
    let event_name = asked.event_name.take();
    let predicate = question.predicate(event_name.as_deref())?;
    let UniqueUsersQuestion { start_date, end_date, .. } = &question.parameters;
    let (start, end) = (start_date.as_deref(), end_date.as_deref());
    let timezone = question.subject.config.policy.timezone;
    let answer = |users, window| UniqueUsersAnswer::new(users, window, timezone);
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
