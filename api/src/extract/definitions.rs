//! Segments that questions name.

use actix_web::web::Bytes;
use headcount_control::{Definition, DefinitionId, DefinitionKind};
use headcount_domain::Clause;

use crate::extract::filters::{self, NewFilter};
use crate::extract::question::ProjectQuestion;
use crate::extract::share_rules::check_filters;
use crate::respond::error::{ApiError, Result};

/// Returns the filters of a definition, made by `new`. An error names `parameter`, by which the
/// question names the definition.
fn filters_of(definition: &Definition, parameter: &str, new: NewFilter) -> Result<Vec<Clause>> {
    let Some(json) = definition.fields.get("filters") else { return Ok(Vec::new()) };
    filters::read_clauses(json, "filters", new).map_err(|error| error.within(parameter))
}

impl<B> ProjectQuestion<'_, B> {
    /// Adds the filters of the segment that the question names, and returns their JSON. `new` makes
    /// them, as the filters of the question are made.
    ///
    /// # Errors
    /// 404 without such a segment; 400 if the question doesn't know a field; 403 if the reader of a
    /// share may not name a field.
    pub fn add_segment(&mut self, segment: Option<&str>, filters: &mut Vec<Clause>, new: NewFilter) -> Result<Option<String>> {
        let Some(id) = segment else { return Ok(None) };
        let segment = self.definition(id, DefinitionKind::Segment)?;
        let clauses = filters_of(&segment, "segment", new)?;
        if self.subject.caller.share.is_some() {
            check_filters(&clauses, "segment")?;
        }
        filters.extend(clauses);
        Ok(segment.fields.get("filters").cloned())
    }

    /// Returns a definition of the project. From then on the tag of the answer depends on it.
    fn definition(&mut self, id: &str, kind: DefinitionKind) -> Result<Definition> {
        let id: DefinitionId = id.parse().map_err(|_| ApiError::not_found(kind.as_str()).with_param(kind.as_str()))?;
        if id.kind() != kind {
            return Err(ApiError::not_found(kind.as_str()).with_param(kind.as_str()));
        }
        let organization = self.subject.config.policy.organization;
        let found = self.state.engine.registry().definition(organization, self.subject.project, &id);
        let definition = Definition::clone(&*found.map_err(|error| ApiError::from(error).with_param(kind.as_str()))?);
        let fields = definition.fields.iter().flat_map(|(name, json)| [name.as_bytes(), json.as_bytes()]);
        self.body = Bytes::from([&self.body[..]].into_iter().chain(fields).collect::<Vec<_>>().join(&b'\0'));
        Ok(definition)
    }
}
