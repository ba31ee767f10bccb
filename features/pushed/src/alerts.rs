//! `/projects/{project_id}/alerts`: thresholds of figures.

use std::sync::Arc;

use headcount_api::blocking;
use headcount_api::definitions::{
    self, JsonFields, field, filters_json, list_field, name_json, people_json, sent_json, text_json,
};
use headcount_api::endpoint::*;
use headcount_api::extract::body::EVENT_LIMIT_BYTES;
use headcount_api::extract::filters::FilterShape;
use headcount_api::extract::people::PeopleShape;
use headcount_api::management;
use headcount_api::openapi::schemas;
use headcount_control::{Definition, DefinitionId, DefinitionKind, Registry};
use headcount_domain::{Amount, Instant, OrganizationId, Window};
use serde_json::value::RawValue;
use utoipa::openapi::schema::{AdditionalProperties, Object, ObjectBuilder, OneOfBuilder, Schema, Type};

use crate::alert::{Alert, AlertEvents, AlertFields, AlertFigure, AlertRule, AlertWindow, RULE_FIELDS};
use crate::alert_state::{AlertChange, AlertMessage, AlertState};
use crate::condition::{Against, Condition};
use crate::evaluator::evaluated_windows;
use crate::pushed::Pushed;

const KIND: DefinitionKind = DefinitionKind::Alert;
/// The maximum number of channels of an alert.
const MAX_CHANNELS: usize = 10;

/// The schema of a condition.
#[derive(Debug)]
pub(crate) struct ConditionShape;

own_schema!(ConditionShape, {
    let threshold = |name: &str, description: &str| {
        ObjectBuilder::new()
            .property(name, ObjectBuilder::new().schema_type(Type::Number).description(Some(description)))
            .required(name)
            .additional_properties(Some(AdditionalProperties::<Schema>::FreeForm(false)))
    };
    let change = Object::builder()
        .property("changes_by", OneOfBuilder::new()
            .item(ObjectBuilder::new().schema_type(Type::String).pattern(Some("^[-+±][0-9]+(\\.[0-9]+)?%$")))
            .item(ObjectBuilder::new().schema_type(Type::Number))
            .description(Some("It fires when a window has ended whose figure differs by at least so much: `\"-30%\"` is less, `\"+30%\"` more, `\"±30%\"` both; a number is an absolute change.")))
        .property("against", schemas::named::<Against>("What the figure is compared with. `same_weekday`, for windows of a day, is the median of the four weeks before; at least two of them must have events."))
        .required("changes_by")
        .required("against")
        .additional_properties(Some(AdditionalProperties::<Schema>::FreeForm(false)));
    OneOfBuilder::new()
        .item(change)
        .item(threshold("above", "It fires as soon as the figure of the current window is greater."))
        .item(threshold("below", "It fires when a window has ended whose figure is less."))
        .into()
});

json_body! {
    /// An alert to be made, to be tried, or a change of one: absent fields then stay unchanged. A new one needs `name`, `figure`, `over`, `condition` and `channels`.
    #[schema(example = json!({
        "name": "Many errors", "figure": "events", "over": "day", "condition": {"above": 100},
        "filters": [{"field": "name", "operator": "is", "value": "error"}], "channels": ["channel_0123456789abcdef"]
    }))]
    pub(crate) struct AlertBody {
        /// Its name.
        #[schema(min_length = 1, max_length = 200)]
        name: Option<String> = optional("a string"),
        /// The figure: `unique_users`, `sessions`, `pageviews`, `events`, `bounce_rate`, `revenue`, `orders`; with `goal` `conversions`, `converters` or `rate`.
        figure: Option<String> = with(|fields, name| name_json::<AlertFigure>(fields, name)),
        /// The window: a `day`, a `week` from Monday, or a `month`, in the project's timezone.
        over: Option<String> = with(|fields, name| name_json::<AlertWindow>(fields, name)),
        /// When it fires.
        #[schema(value_type = Option<ConditionShape>)]
        condition: Option<String> = with(condition_json),
        /// The goal of the figure: its id.
        goal: Option<String> = with(text_json),
        /// Only events for which all of these hold; at most 20.
        #[schema(value_type = Option<Vec<FilterShape>>)]
        filters: Option<String> = with(filters_json),
        /// Only events of this segment: its id.
        segment: Option<String> = with(text_json),
        /// Only events of people for whom all of these hold; at most 5.
        #[schema(value_type = Option<Vec<PeopleShape>>)]
        people: Option<String> = with(people_json),
        /// The channels that get its messages: their ids, at most 10.
        #[schema(value_type = Option<Vec<String>>, max_items = 10)]
        channels: Option<String> = with(channels_json),
        /// Until then it sends nothing: an RFC 3339 instant.
        muted_until: Option<String> = with(instant_json),
    }
}

fn condition_json(fields: &Fields<'_>, name: &str) -> Result<Option<String>> {
    let Some(json) = fields.raw(name) else { return Ok(None) };
    let expected = || {
        ApiError::parameter(
            name,
            format!("`{name}` must be an object with a number as `above` or `below`, or with `changes_by` and `against`"),
        )
    };
    Condition::parse(json).map(|_| Some(json.to_owned())).ok_or_else(expected)
}

fn channels_json(fields: &Fields<'_>, name: &str) -> Result<Option<String>> {
    let Some(ids) = fields.optional::<Vec<String>>(name, "a list of ids")? else { return Ok(None) };
    if ids.len() > MAX_CHANNELS {
        return Err(ApiError::parameter(name, format!("`{name}` must have at most {MAX_CHANNELS} ids")));
    }
    // One message to each, whatever is repeated.
    let once: Vec<_> =
        ids.iter().enumerate().filter(|(place, id)| !ids[..*place].contains(id)).map(|(_, id)| id.as_str()).collect();
    Ok(Some(serde_json::Value::from(once).to_string()))
}

fn instant_json(fields: &Fields<'_>, name: &str) -> Result<Option<String>> {
    sent_json(fields, name, || fields.parsed(name, "an RFC 3339 instant", Instant::parse_rfc3339))
}

impl AlertBody {
    /// Returns the name, and the fields that are present.
    pub(crate) fn into_fields(self) -> (Option<String>, AlertFields) {
        let Self { name, figure, over, condition, goal, filters, segment, people, channels, muted_until } = self;
        let all = [
            ("figure", figure),
            ("over", over),
            ("condition", condition),
            ("goal", goal),
            ("filters", filters),
            ("segment", segment),
            ("people", people),
            ("channels", channels),
            ("muted_until", muted_until),
        ];
        (name, all.into_iter().filter_map(|(name, json)| Some((name.to_owned(), json?))).collect())
    }
}

fn as_json_fields(fields: AlertFields) -> JsonFields {
    fields.into_iter().fold(JsonFields::default(), |set, (name, json)| set.set(&name, Some(json)))
}

/// Checks the fields of an alert as a whole.
pub(crate) fn checked(fields: &AlertFields, state: &AppState, caller: &ProjectCaller) -> Result<(AlertRule, AlertEvents)> {
    for name in ["figure", "over", "condition"] {
        if fields.get(name).is_none_or(|json| json == "null") {
            return Err(ApiError::missing(name));
        }
    }
    // Everything else was checked when it was read.
    let rule = AlertRule::of(fields).ok_or_else(|| ApiError::not_found("channel").with_param("channels"))?;
    if rule.figure.is_money() {
        caller.check_money()?;
    }
    if rule.condition.is_against_weekdays() && rule.over != AlertWindow::Day {
        return Err(ApiError::parameter("condition", "`same_weekday` compares days: set `over` to `day`"));
    }
    let (organization, registry) = (caller.config.policy.organization, state.engine.registry());
    check_channels(&rule, organization, registry)?;
    let events = AlertEvents::of(fields, (organization, Some(caller.project)), rule.figure, registry)?;
    let has_people = events.predicate.as_ref().is_some_and(|predicate| !predicate.people().is_empty());
    if has_people && rule.condition.is_against_weekdays() {
        let message =
            "`same_weekday` can't be combined with conditions on people: each evaluation would read all events five times";
        return Err(ApiError::parameter("condition", message));
    }
    Ok((rule, events))
}

/// Checks that the channels exist.
fn check_channels(rule: &AlertRule, organization: OrganizationId, registry: &Registry) -> Result<()> {
    let is_there =
        |id: &DefinitionId| id.kind() == DefinitionKind::Channel && registry.definition((organization, None), id).is_ok();
    match rule.channels.iter().all(is_there) {
        true => Ok(()),
        false => Err(ApiError::not_found("channel").with_param("channels")),
    }
}

answer! {
    /// An alert.
    pub(crate) struct AlertAnswer from |definition: &Definition, state: Option<AlertState>, firing: bool, problem: Option<String>| {
        /// Its id.
        alert_id: String = definition.id.to_string(),
        /// Its name.
        name: String = definition.name.clone(),
        /// The figure.
        #[schema(value_type = String)]
        figure: Box<RawValue> = field(definition, "figure"),
        /// The window.
        #[schema(value_type = String)]
        over: Box<RawValue> = field(definition, "over"),
        /// When it fires.
        #[schema(value_type = ConditionShape)]
        condition: Box<RawValue> = field(definition, "condition"),
        /// The goal of the figure; null without one.
        #[schema(value_type = Option<String>, required)]
        goal: Box<RawValue> = field(definition, "goal"),
        /// The filters, all of which must hold.
        #[schema(value_type = Vec<FilterShape>)]
        filters: Box<RawValue> = list_field(definition, "filters"),
        /// The segment; null without one.
        #[schema(value_type = Option<String>, required)]
        segment: Box<RawValue> = field(definition, "segment"),
        /// The conditions on people, all of which must hold.
        #[schema(value_type = Vec<PeopleShape>)]
        people: Box<RawValue> = list_field(definition, "people"),
        /// The channels that get its messages.
        #[schema(value_type = Vec<String>)]
        channels: Box<RawValue> = list_field(definition, "channels"),
        /// Until then it sends nothing; null if it was never muted.
        #[schema(value_type = Option<String>, required)]
        muted_until: Box<RawValue> = field(definition, "muted_until"),
        /// Whether it fires.
        firing: bool = firing,
        /// Why it can't be evaluated, such as a removed goal; null if it can.
        #[schema(required)]
        problem: Option<String> = problem,
        /// Its last changes, latest first; at most 60.
        changes: Vec<ChangeAnswer> = state.iter().flat_map(|state| state.changes.iter().rev()).map(ChangeAnswer::from).collect(),
        /// When it was made.
        created_at: Timestamp = definition.created_at.into(),
    }
}

answer! {
    /// A change of an alert.
    pub(crate) struct ChangeAnswer from |change: &AlertChange| {
        /// Its number among all changes of the alert, from 1.
        number: u64 = change.number,
        /// What happened: `fired`, `resolved`, or `corrected` if late events, refunds or erasures changed the figure that it fired for.
        kind: &'static str = change.kind.as_str(),
        /// When.
        at: Timestamp = change.at.into(),
        /// The value of the figure.
        value: Decimal = Decimal(Amount::from_micros(change.value.parse().unwrap_or_default())),
        /// The first day of the window.
        start_date: String = change.window.0.to_string(),
        /// The last day of the window.
        end_date: String = change.window.1.to_string(),
        /// Its messages; none if the alert was muted.
        messages: Vec<MessageAnswer> = change.messages.iter().map(MessageAnswer::from).collect(),
    }
}

answer! {
    /// A message to a channel.
    pub(crate) struct MessageAnswer from |message: &AlertMessage| {
        /// The channel's id.
        channel_id: String = message.channel.to_string(),
        /// `pending` while it is being tried, `delivered`, or `dead` after a day of tries.
        status: &'static str = message.status.as_str(),
        /// The number of tries.
        attempts: usize = message.attempts,
        /// The status of the last answer; null if there was none.
        #[schema(required)]
        last_status: Option<u16> = message.last_status,
        /// Why there was none, such as `timeout`; null if there was one.
        #[schema(required)]
        last_error: Option<String> = message.last_error.clone(),
        /// Of e-mail, the number of addresses that have it.
        accepted: u64 = message.progress.accepted,
        /// Of e-mail, the number of addresses that the mail server refused.
        refused: u64 = message.progress.refused,
    }
}

/// The alerts of a project.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AlertsAnswer {
    /// The alerts, oldest first.
    alerts: Vec<AlertAnswer>,
    /// Whether some are left out: never.
    truncated: bool,
}

path_parameters! {
    AlertPath "alert_id" "^alert_[0-9A-Za-z]{16}$" "The alert's id.";
}

/// Shows alerts with their states, as all nodes know them now if they answer.
async fn shown(state: &AppState, caller: &ProjectCaller, alerts: Vec<Arc<Definition>>) -> Result<Vec<AlertAnswer>> {
    let pushed = management::feature::<Pushed>(state)?;
    let following = Arc::clone(&pushed);
    if let Err(error) = blocking::run(move || following.states.follow()).await? {
        tracing::warn!(%error, "the states of alerts are shown as they were known last");
    }
    // Unknown to nodes that don't own the project.
    let floor = state.engine.floor(caller.project).await.unwrap_or_default();
    let (registry, timezone, now) = (state.engine.registry(), caller.config.policy.timezone, state.engine.clock().now());
    let shown = |definition: &Arc<Definition>| {
        let (alert, state) = (Alert::of(definition, registry), pushed.states.get(&definition.id));
        let is_firing = |alert: &Alert| state.as_ref().is_some_and(|state| state.firings_of(alert).firing.is_some());
        let (firing, problem) = match &alert {
            Ok(alert) => {
                let last = evaluated_windows(alert, timezone, now).pop();
                let kept = |window: &Window| !alert.events.is_below(floor, window.start);
                let condition = alert.rule.condition;
                let lacks_baselines = |window| {
                    let baselines = condition.baselines(alert.rule.over, window);
                    baselines.iter().filter(|window| kept(window)).count() < condition.least_baselines()
                };
                let is_below = last.is_some_and(|(window, _)| !kept(&window) || lacks_baselines(window));
                (is_firing(alert), is_below.then(|| "it needs days whose events are not kept any more".to_owned()))
            }
            Err(error) => (false, Some(error.message().to_owned())),
        };
        AlertAnswer::new(definition, state, firing, problem)
    };
    Ok(alerts.iter().map(shown).collect())
}

/// The alerts of a project, with their last changes and messages. Alerts on revenue and orders are listed only to tokens with `revenue:read`.
#[utoipa::path(
    get, path = "/projects/{project_id}/alerts", tag = "alerts", operation_id = "list_alerts",
    params(ProjectPath),
    responses((status = 200, description = "The alerts, oldest first.", body = AlertsAnswer), NotModified),
)]
pub(crate) async fn list(call: ApiCall, caller: ProjectCaller) -> Result<HttpResponse> {
    let mut alerts = definitions::all(&call, &caller, KIND)?;
    if caller.check_money().is_err() {
        alerts.retain(|alert| AlertRule::of(&alert.fields).is_some_and(|rule| !rule.figure.is_money()));
    }
    let alerts = shown(&call.state, &caller, alerts).await?;
    etag::json(&call.request, &AlertsAnswer { alerts, truncated: false })
}

/// Makes an alert. It is evaluated at once, and then whenever an event is recorded. A project has at most 100, an organization 1000.
#[utoipa::path(
    post, path = "/projects/{project_id}/alerts", tag = "alerts", operation_id = "create_alert",
    params(ProjectPath), request_body = AlertBody,
    responses((status = 201, description = "The alert.", body = AlertAnswer), ConflictErrors),
)]
pub(crate) async fn create(ApiCall { state, request, payload }: ApiCall, caller: ProjectCaller) -> Result<HttpResponse> {
    let body: AlertBody = json::read_within(&state, &request, payload, EVENT_LIMIT_BYTES).await?;
    let (name, fields) = body.into_fields();
    let name = name.ok_or_else(|| ApiError::missing("name"))?;
    checked(&fields, &state, &caller)?;
    if !fields.contains_key("channels") {
        return Err(ApiError::missing("channels"));
    }
    let alert = definitions::create(&state, &request, &caller, KIND, (name, as_json_fields(fields))).await?;
    Ok(HttpResponse::Created().json(AlertAnswer::new(&alert, None, false, None)))
}

/// Changes an alert. It is evaluated again within moments.
#[utoipa::path(
    patch, path = "/projects/{project_id}/alerts/{alert_id}", tag = "alerts", operation_id = "update_alert",
    params(ProjectPath, AlertPath), request_body = AlertBody,
    responses((status = 200, description = "The alert as it is now.", body = AlertAnswer), ConflictErrors),
)]
pub(crate) async fn change(ApiCall { state, request, payload }: ApiCall, caller: ProjectCaller) -> Result<HttpResponse> {
    let id = definitions::id_of(&request, KIND, "alert_id")?;
    let body: AlertBody = json::read_within(&state, &request, payload, EVENT_LIMIT_BYTES).await?;
    let (name, patch) = body.into_fields();
    let current = state.engine.registry().definition((caller.config.policy.organization, Some(caller.project)), &id)?;
    let mut fields = current.fields.clone();
    fields.extend(patch.clone());
    // A name, a mute and channels can change, too, while the goal is gone.
    let money = AlertRule::of(&fields).filter(|rule| rule.figure.is_money()).map(|_| caller.check_money());
    money.transpose()?;
    let has = |names: &[&str]| names.iter().any(|name| patch.contains_key(*name));
    match AlertRule::of(&fields).filter(|_| !has(&RULE_FIELDS)) {
        Some(rule) if has(&["channels"]) => check_channels(&rule, caller.config.policy.organization, state.engine.registry())?,
        Some(_) => {}
        None => drop(checked(&fields, &state, &caller)?),
    }
    let alert = definitions::change(&state, &request, &caller, id, (name, as_json_fields(patch))).await?;
    let mut answers = shown(&state, &caller, vec![alert]).await?;
    Ok(HttpResponse::Ok().json(answers.pop()))
}

/// Removes an alert, and what it knows. A message that is being sent may still arrive.
#[utoipa::path(
    delete, path = "/projects/{project_id}/alerts/{alert_id}", tag = "alerts", operation_id = "delete_alert",
    params(ProjectPath, AlertPath),
    responses((status = 204, description = "The alert is removed.")),
)]
pub(crate) async fn remove(call: ApiCall, caller: ProjectCaller) -> Result<HttpResponse> {
    let id = definitions::id_of(&call.request, KIND, "alert_id")?;
    let pushed = management::feature::<Pushed>(&call.state)?;
    let removed = definitions::remove(call, &caller, KIND, "alert_id").await?;
    let state = blocking::run(move || pushed.states.remove(&id)).await?;
    if let Err(error) = state {
        tracing::warn!(%error, "the state of a removed alert is still there; it goes with its project");
    }
    Ok(removed)
}
