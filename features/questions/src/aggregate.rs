//! `POST /projects/{project_id}/analytics/aggregate`

use headcount_api::endpoint::*;
use headcount_api::extract::filters::{self, FilterShape};
use headcount_api::extract::people::{self, PeopleShape, SentCondition, named_by_people};
use headcount_api::extract::share_rules::named_by_filters;
use headcount_domain::aggregate::{Aggregate, AggregateRow, Grouping, MAX_GROUPS};
use headcount_domain::intake::fields::{BuiltIn, Field, MetadataPath, Scalar};
use headcount_domain::{Clause, Depends, Timezone, Window};
use serde::Serializer;
use serde_json::value::RawValue;
use utoipa::openapi::Object;
use utoipa::openapi::schema::{ObjectBuilder, OneOfBuilder, Type};

/// The number of groups if none is given.
pub(crate) const DEFAULT_GROUPS: usize = 100;

json_body! {
    /// What is grouped. Exactly one of `group_by` and `metadata_field` is given.
    #[schema(example = json!({
        "start_date": "2024-03-01", "end_date": "2024-03-31", "metadata_field": "plan", "sum_metadata_field": "seats",
        "event_name": "upgraded", "filters": [{"field": "acquisition_channel", "operator": "is", "value": "Organic Search"}],
        "limit": 20
    }))]
    pub(crate) struct AggregateQuestion {
        /// The first day: `YYYY-MM-DD`, or an RFC 3339 instant of it.
        start_date: String = required("a string"),
        /// The last day. Default: today.
        end_date: Option<String> = optional("a string"),
        /// Group by this built-in field.
        #[schema(value_type = Option<BuiltInName>)]
        group_by: Option<BuiltIn> = with(Fields::optional_name),
        /// Group by the metadata at this path, without the prefix `metadata.`: `plan`, `plan.name`.
        #[schema(value_type = Option<PathName>)]
        metadata_field: Option<MetadataPath> = with(read_path),
        /// Sum the numbers of the metadata at this path; not with `group_by` `entry_url` or `acquisition_channel`.
        #[schema(value_type = Option<PathName>)]
        sum_metadata_field: Option<MetadataPath> = with(read_path),
        /// Only events of this name.
        event_name: Option<String> = optional("a string"),
        /// Only events for which all of these hold; at most 20.
        #[schema(value_type = Option<Vec<FilterShape>>)]
        filters: Vec<Clause> = with(filters::read),
        /// Only events of this segment: its id.
        segment: Option<String> = optional("a string"),
        /// Only events of people for whom all of these hold; at most 5.
        #[schema(value_type = Option<Vec<PeopleShape>>)]
        people: Vec<SentCondition> = with(people::read),
        /// The most groups to return.
        #[schema(value_type = Option<u32>, minimum = 1, maximum = 1000, default = 100)]
        limit: usize = count((1..=MAX_GROUPS, DEFAULT_GROUPS)),
    }
}

headcount_api::chooses_events!(AggregateQuestion);

impl SharedQuestion for AggregateQuestion {
    fn named_fields(&self) -> Vec<NamedField> {
        let Self {
            start_date: _,
            end_date: _,
            group_by,
            metadata_field,
            sum_metadata_field,
            event_name: _,
            filters,
            segment: _,
            people,
            limit: _,
        } = self;
        let fields = [
            ("group_by", group_by.map(Field::BuiltIn)),
            ("metadata_field", metadata_field.clone().map(Field::Metadata)),
            ("sum_metadata_field", sum_metadata_field.clone().map(Field::Metadata)),
        ];
        let named = fields.into_iter().filter_map(|(param, field)| Some((param.to_owned(), field?)));
        named.chain(named_by_filters(filters)).chain(named_by_people(people)).collect()
    }
}

/// The schema of the name of a built-in field.
#[derive(Debug)]
pub(crate) struct BuiltInName;

own_schema!(BuiltInName, {
    let names = BuiltIn::ALL.iter().map(|field| field.as_str());
    ObjectBuilder::new().schema_type(Type::String).enum_values(Some(names)).into()
});

/// The schema of a path into the metadata.
#[derive(Debug)]
pub(crate) struct PathName;

own_schema!(PathName, ObjectBuilder::new().schema_type(Type::String).min_length(Some(1)).into());

fn read_path(fields: &Fields<'_>, name: &str) -> Result<Option<MetadataPath>> {
    let Some(text) = fields.optional::<String>(name, "a string")? else { return Ok(None) };
    MetadataPath::parse(&text).map(Some).map_err(|error| ApiError::parameter(name, format!("`{name}` {error}")))
}

/// Returns the property that is grouped by.
fn read_group(group_by: Option<BuiltIn>, metadata_field: Option<MetadataPath>) -> Result<Field> {
    match (group_by, metadata_field) {
        (Some(field), None) => Ok(Field::BuiltIn(field)),
        (None, Some(path)) => Ok(Field::Metadata(path)),
        (None, None) => Err(ApiError::missing_one_of("group_by", "metadata_field")),
        (Some(_), Some(_)) => Err(ApiError::parameter("group_by", "only one of `group_by` and `metadata_field` may be given")),
    }
}

answer! {
    /// Events by the values of a property.
    pub(crate) struct AggregateAnswer from |groups: Aggregate, window: Window, timezone: Timezone| {
        /// The groups: by `total` if sums were asked for, else by `count`, descending. Among equals, null is last.
        rows: Vec<GroupRow> = shown(groups.rows),
        /// The number of all groups, the null group included.
        total_groups: u64,
        /// Whether there are more groups than rows.
        truncated: bool,
        /// The first day.
        start_date: String = window.start.to_string(),
        /// The last day.
        end_date: String = window.end.to_string(),
        /// The timezone of the days.
        timezone: String = timezone.name().to_owned(),
    }
}

answer! {
    /// One group.
    pub(crate) struct GroupRow from |row: AggregateRow| {
        /// The value that its events share: a text for built-in fields, the JSON scalar for metadata. Null: they have none.
        value: GroupValue = GroupValue(row.value),
        /// The number of events.
        count: u64,
        /// The sum of the numbers; only if sums were asked for. Null if it is too large (1e32 or more).
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(value_type = Option<Decimal>, required = false)]
        total: Option<Option<Decimal>> = row.sum.map(|sum| sum.total.map(Decimal)),
        /// The number of events that have a number; only if sums were asked for.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(required = false, value_type = u64)]
        summed: Option<u64> = row.sum.map(|sum| sum.summed),
    }
}

/// A scalar, with its JSON type.
#[derive(Debug)]
pub(crate) struct GroupValue(pub(crate) Scalar<'static>);

impl Serialize for GroupValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Scalar::Null => serializer.serialize_none(),
            Scalar::Bool(value) => serializer.serialize_bool(*value),
            Scalar::Text(text) => serializer.serialize_str(text),
            Scalar::Number(number) => {
                RawValue::from_string(number.to_string()).map_err(serde::ser::Error::custom)?.serialize(serializer)
            }
        }
    }
}

own_schema!(GroupValue, {
    let of = |values: OneOfBuilder, kind| values.item(Object::with_type(kind));
    [Type::String, Type::Number, Type::Boolean, Type::Null].into_iter().fold(OneOfBuilder::new(), of).into()
});

/// Events of a window, counted and summed by the values of one property.
#[utoipa::path(
    post, path = "/projects/{project_id}/analytics/aggregate", tag = "analytics",
    params(ProjectPath), request_body = AggregateQuestion,
    responses(
        (status = 200, description = "The groups.", body = AggregateAnswer, example = json!({
            "rows": [
                {"value": "team", "count": 41, "total": 233.5, "summed": 40},
                {"value": null, "count": 3, "total": 0, "summed": 0}
            ],
            "total_groups": 2, "truncated": false,
            "start_date": "2024-03-01", "end_date": "2024-03-31", "timezone": "Europe/Zurich"
        })),
        NotModified,
    ),
)]
pub(crate) async fn aggregate(ApiCall { state, request, payload }: ApiCall, asker: Asker) -> Result<HttpResponse> {
    let mut question = ProjectQuestion::<AggregateQuestion>::read_body(&state, &request, payload, asker).await?;
    let asked = &mut question.parameters;
    let by = read_group(asked.group_by, asked.metadata_field.take())?;
    let grouping = Grouping::new(by, asked.sum_metadata_field.take())?;
    let event_name = asked.event_name.take();
    let predicate = question.predicate(event_name.as_deref())?.unwrap_or_default();
    let (start, end, limit) =
        (&question.parameters.start_date, question.parameters.end_date.as_deref(), question.parameters.limit);
    let window = question.event_window(Some(start), end).await?;
    let by_session = || predicate.depends_at_least(Depends::on_sessions(window));
    let depends = if grouping.is_by_session() { by_session() } else { predicate.depends(window) };
    let groups = state.engine.scans.aggregate(question.subject.project, window, predicate, grouping, limit);
    let timezone = question.subject.config.policy.timezone;
    let answer = |groups| AggregateAnswer::new(groups, window, timezone);
    question.reply(depends, groups, answer).await
}
