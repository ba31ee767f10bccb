//! `POST /projects/{project_id}/analytics/goals`

use std::collections::BTreeMap;

use headcount_api::endpoint::*;
use headcount_api::extract::definitions::predicate_of;
use headcount_api::extract::filters::{self, FilterShape};
use headcount_api::extract::people::{self, PeopleShape, SentCondition, named_by_people};
use headcount_api::extract::share_rules::named_by_filters;
use headcount_control::Definition;
use headcount_domain::Clause;
use headcount_domain::figures::{ComparedWindows, GoalFigures, GoalsQuestion, GoalsReport, WindowGoals};
use headcount_domain::intake::policy::Policy;
use headcount_domain::money::ratio_of_counts;

use super::compare::{Compare, CompareShape};
use crate::revenue::{UnconvertedMoney, unconverted};

json_body! {
    /// Which figures of the project's goals are asked for. Events are chosen by the window and the filters.
    #[schema(example = json!({
        "start_date": "2024-03-01", "end_date": "2024-03-31", "compare": "previous_period",
        "filters": [{"field": "source", "operator": "is", "value": "google"}]
    }))]
    pub(crate) struct GoalsBody {
        /// The first day: `YYYY-MM-DD`, or an RFC 3339 instant of it. Default: 30 days before today.
        start_date: Option<String> = optional("a string"),
        /// The last day. Default: today.
        end_date: Option<String> = optional("a string"),
        /// What the window is compared with: as many days before it, the same dates a year earlier, or a window of its own.
        #[schema(value_type = Option<CompareShape>)]
        compare: Compare = with(Compare::read),
        /// Only events for which all of these hold; at most 20. `source`, `medium`, `campaign` and `exit_url` may be fields too.
        #[schema(value_type = Option<Vec<FilterShape>>)]
        filters: Vec<Clause> = with(filters::read_in_sessions),
        /// Only events of this segment: its id.
        segment: Option<String> = optional("a string"),
        /// Only events of people for whom all of these hold; at most 5.
        #[schema(value_type = Option<Vec<PeopleShape>>)]
        people: Vec<SentCondition> = with(people::read),
    }
}

headcount_api::chooses_events!(GoalsBody);

impl SharedQuestion for GoalsBody {
    fn named_fields(&self) -> Vec<NamedField> {
        let Self { start_date: _, end_date: _, compare: _, filters, segment: _, people } = self;
        named_by_filters(filters).into_iter().chain(named_by_people(people)).collect()
    }
}

answer! {
    /// The figures of the project's goals. Money is there if the token may see it.
    pub(crate) struct GoalsFiguresAnswer from |report: GoalsReport, goals: Vec<GoalRow>, windows: ComparedWindows, policy: &Policy, has_money: bool| {
        /// The goals, oldest first.
        goals: Vec<GoalRow> = goals,
        /// The distinct users of all chosen events.
        unique_users: u64 = report.current.unique_users,
        /// The figures of the window that was asked to compare with.
        #[schema(required)]
        previous: Option<PreviousGoals> = report.previous.as_ref().zip(windows.previous).map(|(previous, window)| PreviousGoals {
            unique_users: previous.unique_users,
            start_date: window.start.to_string(),
            end_date: window.end.to_string(),
        }),
        /// Money of conversions that the figures leave out because its currency had no rate, by currency.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(required = false, value_type = BTreeMap<String, UnconvertedMoney>)]
        unconverted: Option<BTreeMap<String, UnconvertedMoney>> = has_money.then(|| unconverted(&report.unconverted)),
        /// The currency of all amounts: the project's.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(required = false, value_type = String)]
        currency: Option<String> = has_money.then(|| policy.currency.to_string()),
        /// The first day.
        start_date: String = windows.window.start.to_string(),
        /// The last day.
        end_date: String = windows.window.end.to_string(),
        /// The timezone of the days.
        timezone: String = policy.timezone.name().to_owned(),
    }
}

/// The window that is compared with.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PreviousGoals {
    /// The distinct users of its chosen events.
    unique_users: u64,
    /// The first day.
    start_date: String,
    /// The last day.
    end_date: String,
}

answer! {
    /// A goal and its figures.
    pub(crate) struct GoalRow from |figures: GoalFigures, unique_users: u64, goal: &Definition, previous: Option<PreviousGoal>, has_money: bool| {
        /// The goal's id.
        goal_id: String = goal.id.to_string(),
        /// Its name.
        name: String = goal.name.clone(),
        /// The chosen events that fit.
        conversions: u64,
        /// Their distinct users.
        converters: u64,
        /// `converters` of `unique_users`, 0 to 1.
        rate: Decimal = Decimal(ratio_of_counts(figures.converters, unique_users)),
        /// Orders less refunds of the conversions.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(required = false, value_type = Decimal)]
        revenue: Option<Decimal> = has_money.then_some(Decimal(figures.revenue)),
        /// The same figures of the window that is compared with; null without one.
        #[schema(required)]
        previous: Option<PreviousGoal> = previous,
    }
}

answer! {
    /// The figures of a goal in the window that is compared with.
    pub(crate) struct PreviousGoal from |figures: GoalFigures, unique_users: u64, has_money: bool| {
        /// The chosen events that fit.
        conversions: u64,
        /// Their distinct users.
        converters: u64,
        /// `converters` of the window's users, 0 to 1.
        rate: Decimal = Decimal(ratio_of_counts(figures.converters, unique_users)),
        /// Orders less refunds of the conversions.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(required = false, value_type = Decimal)]
        revenue: Option<Decimal> = has_money.then_some(Decimal(figures.revenue)),
    }
}

/// Returns the figures of a goal in the comparison window.
fn previous(window: Option<&WindowGoals>, number: usize, has_money: bool) -> Option<PreviousGoal> {
    let window = window?;
    window.goals.get(number).map(|figures| PreviousGoal::new(*figures, window.unique_users, has_money))
}

/// Conversions and converters of every goal of a project.
#[utoipa::path(
    post, path = "/projects/{project_id}/analytics/goals", tag = "analytics", operation_id = "goals",
    params(ProjectPath), request_body = GoalsBody,
    responses(
        (status = 200, description = "The figures.", body = GoalsFiguresAnswer, example = json!({
            "goals": [
                {"goal_id": "goal_0123456789abcdef", "name": "Signed up", "conversions": 12, "converters": 11, "rate": 0.275,
                 "revenue": 0, "previous": {"conversions": 9, "converters": 9, "rate": 0.25, "revenue": 0}}
            ],
            "unique_users": 40, "previous": {"unique_users": 36, "start_date": "2024-01-30", "end_date": "2024-02-29"},
            "unconverted": {}, "currency": "EUR", "start_date": "2024-03-01", "end_date": "2024-03-31", "timezone": "Europe/Zurich"
        })),
        NotModified,
    ),
)]
pub(crate) async fn goals(ApiCall { state, request, payload }: ApiCall, asker: Asker) -> Result<HttpResponse> {
    let mut question = ProjectQuestion::<GoalsBody>::read_body(&state, &request, payload, asker).await?;
    let has_money = question.subject.check_money().is_ok();
    let predicate = question.predicate(None)?.unwrap_or_default();
    let definitions = question.goals()?;
    question.calendar.set_variant(has_money.into());
    let GoalsBody { start_date, end_date, compare, .. } = &question.parameters;
    let policy = &question.subject.config.policy;
    let answer = |report: GoalsReport, windows| {
        let rows = definitions.iter().zip(&report.current.goals).enumerate().map(|(number, (goal, figures))| {
            let previous = previous(report.previous.as_ref(), number, has_money);
            GoalRow::new(*figures, report.current.unique_users, goal, previous, has_money)
        });
        let rows = rows.collect();
        GoalsFiguresAnswer::new(report, rows, windows, policy, has_money)
    };
    let reply = async |window| {
        let windows = compare.event_windows(&question, window).await?;
        let depends = predicate.depends_at_least(windows.depends());
        // Polls cost no predicates of goals.
        if let Ok(not_modified) = question.not_modified(&depends).await? {
            return Ok(not_modified);
        }
        let goals = definitions.iter().map(|goal| predicate_of(goal)).collect::<Result<_>>()?;
        let asked = GoalsQuestion { windows, predicate: predicate.clone(), goals };
        let report = state.engine.scans.goals(question.subject.project, asked);
        question.reply(depends, report, |report| answer(report, windows)).await
    };
    question.in_event_window((start_date.as_deref(), end_date.as_deref()), reply).await
}
