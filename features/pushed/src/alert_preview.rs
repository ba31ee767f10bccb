//! `/projects/{project_id}/alerts/preview`: what an alert would have done.

use headcount_api::endpoint::*;
use headcount_api::extract::body::EVENT_LIMIT_BYTES;
use headcount_api::management;
use headcount_domain::time::{Interval, Timezone};
use headcount_domain::{Amount, Day, Instant, ProjectId, Window};

use crate::alert::{AlertEvents, AlertRule};
use crate::alert_values::{Asked, Read, read};
use crate::alerts::{AlertBody, checked};
use crate::evaluation::{ChangeKind, Evaluation, Firings, Reading};
use crate::pushed::Pushed;

/// The days that a preview looks back.
const PREVIEWED_DAYS: i32 = 90;
/// The maximum number of windows of a preview whose events depend on people: each is a pass over all
/// events.
const MAX_WINDOWS_OF_PEOPLE: usize = 14;

/// A window of a preview.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PreviewWindow {
    /// Its first day.
    pub(crate) start_date: String,
    /// Its last day.
    end_date: String,
    /// The value of the figure, up to now.
    value: Decimal,
    /// Whether the window is over.
    complete: bool,
    /// Whether the alert would have fired for it.
    pub(crate) fires: bool,
}

/// What an alert would have done.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PreviewAnswer {
    /// The windows of the last 90 days, oldest first.
    windows: Vec<PreviewWindow>,
    /// The timezone of the days.
    timezone: String,
}

/// Evaluates a window of a preview as it was when it ended: a new window begins with nothing. Returns
/// whether the alert fires for it.
fn fires(rule: &AlertRule, firings: &mut Firings, reading: Reading, (start, end): (Instant, Instant)) -> bool {
    let mut step = |reading, at| {
        let evaluation = firings.evaluate(rule.condition, rule.figure, reading, at);
        if let Evaluation::Changed(change) = evaluation {
            *firings = firings.after(change, reading, at);
        }
        evaluation == Evaluation::Changed(ChangeKind::Fired)
    };
    let begins = rule.is_running() && step(Reading { value: Amount::ZERO, ..reading }, start);
    step(reading, end) || begins
}

/// Evaluates an alert in windows that follow each other.
pub(crate) async fn previewed(
    pushed: &Pushed,
    project: ProjectId,
    (rule, events): (&AlertRule, &AlertEvents),
    windows: &[Window],
    (timezone, now, floor): (Timezone, Instant, Option<Day>),
) -> Result<Vec<PreviewWindow>> {
    let asked: Vec<_> = windows.iter().map(|window| Asked { rule, events, window: *window }).collect();
    let (read, failure) = read(&pushed.parts, project, &asked, (timezone.day_of(now), floor)).await;
    if let Some(error) = failure {
        return Err(error.into());
    }
    let mut firings = Firings::default();
    let mut preview = |window: Window, (value, baseline): Read| {
        let (begin, end) = (timezone.start_of(window.start), timezone.end_of(window.end));
        let (reading, complete) = (Reading { window, is_late: false, value, baseline }, end <= now);
        let fires = (complete || rule.is_running()) && fires(rule, &mut firings, reading, (begin, end));
        let (start_date, end_date) = (window.start.to_string(), window.end.to_string());
        PreviewWindow { start_date, end_date, value: Decimal(value), complete, fires }
    };
    Ok(windows.iter().zip(read).filter_map(|(window, read)| Some(preview(*window, read?))).collect())
}

/// Tries an alert against the last 90 days: for each window, its value now, and whether the alert would have fired. Late events, refunds and erasures since count as if they had been there. With conditions on people there are at most 14 windows.
#[utoipa::path(
    post, path = "/projects/{project_id}/alerts/preview", tag = "alerts", operation_id = "preview_alert",
    params(ProjectPath), request_body = AlertBody,
    responses((status = 200, description = "The windows.", body = PreviewAnswer), BodyErrors),
)]
pub(crate) async fn preview(ApiCall { state, request, payload }: ApiCall, caller: ProjectCaller) -> Result<HttpResponse> {
    let body: AlertBody = json::read_within(&state, &request, payload, EVENT_LIMIT_BYTES).await?;
    let (rule, events) = checked(&body.into_fields().1, &state, &caller)?;
    let pushed = management::feature::<Pushed>(&state)?;
    let (timezone, now) = (caller.config.policy.timezone, state.engine.clock().now());
    let (interval, today) = (Interval::from(rule.over), timezone.day_of(now));
    let floor = match &events.predicate {
        Some(_) => state.engine.floor(caller.project).await?,
        None => None,
    };
    let mut windows = vec![interval.window_of(today)];
    let has_people = events.predicate.as_ref().is_some_and(|predicate| !predicate.people().is_empty());
    let most = if has_people { MAX_WINDOWS_OF_PEOPLE - rule.condition.least_baselines() } else { usize::MAX };
    while let Some(first) = windows.last().filter(|_| windows.len() < most) {
        let before = interval.window_of(first.start.plus(-1));
        if before.end <= today.plus(-PREVIEWED_DAYS) || floor.is_some_and(|floor| before.start < floor) {
            break;
        }
        windows.push(before);
    }
    windows.reverse();
    let windows = previewed(&pushed, caller.project, (&rule, &events), &windows, (timezone, now, floor)).await?;
    Ok(HttpResponse::Ok().json(PreviewAnswer { windows, timezone: timezone.name().to_owned() }))
}
