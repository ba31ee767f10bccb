//! The fields of the definitions of a project, and their ids in paths.

use headcount_api::definitions::quoted;
use headcount_api::endpoint::*;
use headcount_api::extract::filters;
use headcount_api::extract::path::path_parameters;
use headcount_domain::Filter;

path_parameters! {
    SegmentPath "segment_id" "^segment_[0-9A-Za-z]{16}$" "The segment's id.";
    GoalPath "goal_id" "^goal_[0-9A-Za-z]{16}$" "The goal's id.";
    FunnelPath "funnel_id" "^funnel_[0-9A-Za-z]{16}$" "The funnel's id.";
    AnnotationPath "annotation_id" "^annotation_[0-9A-Za-z]{16}$" "The annotation's id.";
}

/// Reads the JSON of the name of an event.
pub(crate) fn event_name_json(fields: &Fields<'_>, name: &str) -> Result<Option<String>> {
    let Some(text) = fields.optional::<String>(name, "a string")? else { return Ok(None) };
    filters::predicate(Some(&text), Vec::new())?;
    Ok(Some(quoted(&text)))
}

/// Reads the JSON of a pattern of paths.
pub(crate) fn page_json(fields: &Fields<'_>, name: &str) -> Result<Option<String>> {
    let Some(text) = fields.optional::<String>(name, "a string")? else { return Ok(None) };
    let json = quoted(&text);
    Filter::new("path", "matches", Some(&json)).map_err(|error| ApiError::from(error).with_param(name))?;
    Ok(Some(json))
}
