//! `POST /projects/{project_id}/analytics/journeys`

use std::collections::BTreeMap;

use headcount_api::endpoint::*;
use headcount_api::extract::filters::{self, FilterShape};
use headcount_api::extract::people::{self, PeopleShape, SentCondition, named_by_people};
use headcount_api::extract::share_rules::named_by_filters;
use headcount_api::openapi::schemas::named_by_default;
use headcount_domain::figures::{
    JourneyEnd, JourneyLink, JourneyNode, JourneyPath, JourneyValue, Journeys, JourneysQuestion, MAX_DEPTH, MAX_PATH_GROUPS,
    PathGroup,
};
use headcount_domain::filter::{MAX_PATTERN_BYTES, PathPattern};
use headcount_domain::intake::policy::Policy;
use headcount_domain::{Clause, Window};
use serde_json::value::RawValue;
use utoipa::openapi::Schema;
use utoipa::openapi::schema::{AdditionalProperties, ObjectBuilder, Type};

use crate::revenue::{UnconvertedMoney, unconverted};

const DEFAULT_DEPTH: usize = 5;
const DEFAULT_ROWS: usize = 10;
const MAX_ROWS: usize = 50;
const MAX_GROUP_NAME_CHARS: usize = 200;

json_body! {
    /// Which ways are asked for. Events are chosen by the window of their sessions and the filters.
    #[schema(example = json!({
        "by": "path", "from": "/pricing", "depth": 4, "groups": [{"name": "Blog", "pattern": "/blog/**"}],
        "start_date": "2024-03-01", "end_date": "2024-03-31"
    }))]
    pub(crate) struct JourneysBody {
        /// The values that a way consists of: the paths of pageviews, the names of events, or the paths of pageviews and the names of other events.
        #[schema(value_type = Option<JourneyValueName>)]
        by: JourneyValue = name(JourneyValue::default()),
        /// Ways begin at the first value that matches this pattern. Other sessions are left out.
        #[schema(value_type = Option<String>, min_length = 1, max_length = 256)]
        from: Option<PathPattern> = with(read_pattern),
        /// Ways end at the last value that matches this pattern, and are read backwards. Not together with `from`.
        #[schema(value_type = Option<String>, min_length = 1, max_length = 256)]
        to: Option<PathPattern> = with(read_pattern),
        /// The most values of a way.
        #[schema(value_type = Option<u32>, minimum = 2, maximum = 10, default = 5)]
        depth: usize = count((2..=MAX_DEPTH, DEFAULT_DEPTH)),
        /// Paths that count as one value, at most 50 groups. The first group that matches renames a path.
        #[schema(value_type = Option<Vec<PathGroupShape>>, max_items = 50)]
        groups: Vec<PathGroup> = with(read_groups),
        /// The most values of each step that are shown apart.
        #[schema(value_type = Option<u32>, minimum = 1, maximum = 50, default = 10)]
        rows: usize = count((1..=MAX_ROWS, DEFAULT_ROWS)),
        /// The first day on which sessions begin: `YYYY-MM-DD`, or an RFC 3339 instant of it. Default: 30 days before today.
        start_date: Option<String> = optional("a string"),
        /// The last day. Default: today.
        end_date: Option<String> = optional("a string"),
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

headcount_api::chooses_events!(JourneysBody);

impl SharedQuestion for JourneysBody {
    fn named_fields(&self) -> Vec<NamedField> {
        let Self { by: _, from: _, to: _, depth: _, groups: _, rows: _, start_date: _, end_date: _, filters, segment: _, people } =
            self;
        named_by_filters(filters).into_iter().chain(named_by_people(people)).collect()
    }
}

/// The schema of the name of the values of journeys.
#[derive(Debug)]
pub(crate) struct JourneyValueName;

own_schema!(JourneyValueName, named_by_default::<JourneyValue>(JourneyValue::default().as_str()).into());

/// The schema of a group of paths.
#[derive(Debug)]
pub(crate) struct PathGroupShape;

own_schema!(PathGroupShape, {
    let text = |description: &str, most: usize| {
        let text = ObjectBuilder::new().schema_type(Type::String).description(Some(description));
        text.min_length(Some(1)).max_length(Some(most))
    };
    ObjectBuilder::new()
        .property("name", text("The value in the answer.", MAX_GROUP_NAME_CHARS))
        .required("name")
        .property(
            "pattern",
            text("The paths: `*` stands for any run of characters without `/`, `**` for any run.", MAX_PATTERN_BYTES),
        )
        .required("pattern")
        .additional_properties(Some(AdditionalProperties::<Schema>::FreeForm(false)))
        .into()
});

fn read_pattern(fields: &Fields<'_>, name: &str) -> Result<Option<PathPattern>> {
    fields.parsed(name, &format!("a pattern of 1 to {MAX_PATTERN_BYTES} bytes"), PathPattern::parse)
}

fn read_groups(fields: &Fields<'_>, name: &str) -> Result<Vec<PathGroup>> {
    let expected = format!("a list of at most {MAX_PATH_GROUPS} groups");
    let wrong = || ApiError::parameter(name, format!("`{name}` must be {expected}"));
    let groups: Vec<&RawValue> = fields.optional(name, &expected)?.unwrap_or_default();
    if groups.len() > MAX_PATH_GROUPS {
        return Err(wrong());
    }
    let one = |(index, item): (usize, &RawValue)| {
        let place = format!("{name}[{index}]");
        read_group(&Fields::read_item(item, &place, &["name", "pattern"])?).map_err(|error| error.within(&place))
    };
    groups.into_iter().enumerate().map(one).collect()
}

fn read_group(fields: &Fields<'_>) -> Result<PathGroup> {
    let name: String = fields.required("name", "a string")?;
    if !(1..=MAX_GROUP_NAME_CHARS).contains(&name.chars().count()) {
        return Err(ApiError::parameter("name", format!("`name` must have 1 to {MAX_GROUP_NAME_CHARS} characters")));
    }
    let pattern = read_pattern(fields, "pattern")?.ok_or_else(|| ApiError::missing("pattern"))?;
    Ok(PathGroup { name, pattern })
}

impl JourneysBody {
    /// Returns where ways begin or end.
    fn end(&self) -> Result<Option<JourneyEnd>> {
        if self.by == JourneyValue::EventName && !self.groups.is_empty() {
            let message = "`groups` are of paths, and `by` is event_name";
            return Err(ApiError::new(ErrorCode::UnsupportedCombination, message).with_param("groups"));
        }
        match (&self.from, &self.to) {
            (Some(_), Some(_)) => {
                let message = "ways have `from` or `to`, not both";
                Err(ApiError::new(ErrorCode::UnsupportedCombination, message).with_param("to"))
            }
            (Some(pattern), None) => Ok(Some(JourneyEnd::From(pattern.clone()))),
            (None, Some(pattern)) => Ok(Some(JourneyEnd::To(pattern.clone()))),
            (None, None) => Ok(None),
        }
    }
}

answer! {
    /// The ways that sessions take. Money is there if the token may see it.
    pub(crate) struct JourneysAnswer from |journeys: Journeys, window: Window, policy: &Policy, has_money: bool| {
        /// The sessions that began in the window and have a way.
        sessions: u64,
        /// The steps, at most `depth`.
        steps: Vec<JourneyStep> = journeys.steps.into_iter().map(|nodes| JourneyStep::new(nodes, has_money)).collect(),
        /// The links between neighbouring steps, by step; the largest first.
        links: Vec<JourneyLinkRow> = journeys.links.into_iter().map(JourneyLinkRow::from).collect(),
        /// Whether there are more links than these 2,000.
        truncated: bool = journeys.truncated,
        /// The 20 commonest ways as a whole.
        top: Vec<JourneyWay> = journeys.top.into_iter().map(|path| JourneyWay::new(path, has_money)).collect(),
        /// Money of these sessions that the figures leave out because its currency had no rate, by currency.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(required = false, value_type = BTreeMap<String, UnconvertedMoney>)]
        unconverted: Option<BTreeMap<String, UnconvertedMoney>> = has_money.then(|| unconverted(&journeys.unconverted)),
        /// The currency of all amounts: the project's.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(required = false, value_type = String)]
        currency: Option<String> = has_money.then(|| policy.currency.to_string()),
        /// The first day.
        start_date: String = window.start.to_string(),
        /// The last day.
        end_date: String = window.end.to_string(),
        /// The timezone of the days.
        timezone: String = policy.timezone.name().to_owned(),
    }
}

/// A step of the ways.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct JourneyStep {
    /// Its values: the largest first, and all that are not shown apart as the last one.
    nodes: Vec<JourneyNodeRow>,
}

impl JourneyStep {
    fn new(nodes: Vec<JourneyNode>, has_money: bool) -> Self {
        Self { nodes: nodes.into_iter().map(|node| JourneyNodeRow::new(node, has_money)).collect() }
    }
}

answer! {
    /// A value at a step.
    pub(crate) struct JourneyNodeRow from |node: JourneyNode, has_money: bool| {
        /// The value; null stands for all values that are not shown apart.
        #[schema(required)]
        value: Option<String>,
        /// The sessions.
        sessions: u64,
        /// Their distinct users.
        users: u64,
        /// The sessions whose way ends here. A way that `depth` cuts off does not end at its last step.
        exits: u64,
        /// Orders less refunds from here until the next value.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(required = false, value_type = Decimal)]
        revenue: Option<Decimal> = has_money.then_some(Decimal(node.revenue)),
        /// How many values a null value stands for; else 0.
        other: u64,
    }
}

answer! {
    /// Two neighbours.
    pub(crate) struct JourneyLinkRow from |link: JourneyLink| {
        /// The number of the step that the link leads to, from 2.
        step: usize = link.step + 1,
        /// The value at the step before; null stands for all that are not shown apart.
        #[schema(required)]
        from: Option<String>,
        /// The value at the step.
        #[schema(required)]
        to: Option<String>,
        /// The sessions.
        sessions: u64,
        /// Their distinct users.
        users: u64,
    }
}

answer! {
    /// A way as a whole.
    pub(crate) struct JourneyWay from |path: JourneyPath, has_money: bool| {
        /// Its values.
        path: Vec<String> = path.values,
        /// The sessions.
        sessions: u64,
        /// Their distinct users.
        users: u64,
        /// Orders less refunds of these sessions.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(required = false, value_type = Decimal)]
        revenue: Option<Decimal> = has_money.then_some(Decimal(path.revenue)),
    }
}

/// The ways that sessions take: the values of their events, in order.
#[utoipa::path(
    post, path = "/projects/{project_id}/analytics/journeys", tag = "analytics", operation_id = "journeys",
    params(ProjectPath), request_body = JourneysBody,
    responses(
        (status = 200, description = "The figures.", body = JourneysAnswer, example = json!({
            "sessions": 3,
            "steps": [
                {"nodes": [{"value": "/", "sessions": 3, "users": 2, "exits": 1, "revenue": 0, "other": 0}]},
                {"nodes": [{"value": "/pricing", "sessions": 2, "users": 2, "exits": 2, "revenue": 99.5, "other": 0}]}
            ],
            "links": [{"step": 2, "from": "/", "to": "/pricing", "sessions": 2, "users": 2}], "truncated": false,
            "top": [
                {"path": ["/", "/pricing"], "sessions": 2, "users": 2, "revenue": 99.5},
                {"path": ["/"], "sessions": 1, "users": 1, "revenue": 0}
            ],
            "unconverted": {}, "currency": "EUR", "start_date": "2024-03-01", "end_date": "2024-03-31", "timezone": "Europe/Zurich"
        })),
        NotModified,
    ),
)]
pub(crate) async fn journeys(ApiCall { state, request, payload }: ApiCall, asker: Asker) -> Result<HttpResponse> {
    let mut question = ProjectQuestion::<JourneysBody>::read_body(&state, &request, payload, asker).await?;
    let has_money = question.subject.check_money().is_ok();
    let asked = &mut question.parameters;
    let (end, groups) = (asked.end()?, std::mem::take(&mut asked.groups));
    let predicate = question.predicate(None)?.unwrap_or_default();
    question.calendar.set_variant(has_money.into());
    let JourneysBody { by, depth, rows, start_date, end_date, .. } = &question.parameters;
    let policy = &question.subject.config.policy;
    let reply = async |window| {
        let asked = JourneysQuestion {
            window,
            predicate: predicate.clone(),
            by: *by,
            end: end.clone(),
            depth: *depth,
            groups: groups.clone(),
            rows: *rows,
        };
        let depends = asked.depends();
        let journeys = state.engine.scans.journeys(question.subject.project, asked);
        question.reply(depends, journeys, |journeys| JourneysAnswer::new(journeys, window, policy, has_money)).await
    };
    question.in_event_window((start_date.as_deref(), end_date.as_deref()), reply).await
}
