//! `GET /projects/{project_id}/analytics/fields`

use headcount_api::endpoint::*;
use headcount_domain::Depends;
use headcount_domain::aggregate::{MetadataField, MetadataFields};

use super::raw_events::parameters::SentDates;

query_parameters! {
    /// The days, and the length of the list.
    pub(crate) struct FieldsParameters {
        /// Default: 30 days before today.
        dates: SentDates,
        /// The most fields to return.
        limit: Limit<1_000, 1_000>,
    }
}

answer! {
    /// The fields in the metadata of events.
    pub(crate) struct FieldsAnswer from |found: MetadataFields| {
        /// Those of the most events first.
        fields: Vec<FieldRow> = shown(found.rows),
        /// Whether there are more.
        truncated: bool,
    }
}

answer! {
    /// A field in the metadata of events.
    pub(crate) struct FieldRow from |row: MetadataField| {
        /// Its name in filters: `metadata.` and its path.
        field: String = format!("metadata.{}", row.path),
        /// The types of its values: those of `boolean`, `number` and `text` that occur, in this order.
        types: Vec<String> = row.types.iter().map(ToString::to_string).collect(),
        /// How many events have it.
        events: u64,
    }
}

/// The fields in the metadata of a window's events, which filters and groups can name.
#[utoipa::path(
    get, path = "/projects/{project_id}/analytics/fields", tag = "analytics", operation_id = "fields",
    params(ProjectPath, FieldsParameters),
    responses(
        (status = 200, description = "The fields.", body = FieldsAnswer, example = json!({
            "fields": [
                {"field": "metadata.plan", "types": ["text"], "events": 1280},
                {"field": "metadata.cart.items", "types": ["number", "text"], "events": 77},
            ],
            "truncated": false,
        })),
        NotModified, UnavailableErrors,
    ),
)]
pub(crate) async fn fields(ApiCall { state, request, .. }: ApiCall, caller: ProjectCaller) -> Result<HttpResponse> {
    let question = ProjectQuestion::<FieldsParameters>::read(&state, &request, caller)?;
    let FieldsParameters { dates, limit } = &question.parameters;
    let reply = async |window| {
        let fields = state.engine.scans.metadata_fields(question.subject.project, window, limit.rows());
        question.reply(Depends::on_events(window), fields, FieldsAnswer::from).await
    };
    question.in_event_window((dates.start.as_deref(), dates.end.as_deref()), reply).await
}
