//! Segments and goals that questions name. Readers of shares may name them too, whatever fields
//! these have: the readers choose none of the fields. They see only definitions whose fields they
//! may name.

use std::sync::Arc;

use headcount_control::{Definition, DefinitionId, DefinitionKind, DefinitionPlace, Registry};
use headcount_domain::filter::PeopleCondition;
use headcount_domain::intake::fields::{BuiltIn, Field};
use headcount_domain::{Clause, Filter, Predicate};

use crate::extract::filters;
use crate::extract::people::{self, SentCondition, named_by_people};
use crate::extract::question::ProjectQuestion;
use crate::extract::share_rules::{NamedField, SharedQuestion, named_by_filters};
use crate::extract::steps::{self, SentStep, StepEvents, named_by_steps, page_clauses};
use crate::respond::error::{ApiError, Result};

/// Returns the filters of a definition, which may concern sessions.
fn filters_of(definition: &Definition) -> Result<Vec<Clause>> {
    let Some(json) = definition.fields.get("filters") else { return Ok(Vec::new()) };
    filters::read_clauses(json, "filters", Filter::in_sessions)
}

impl SharedQuestion for Definition {
    fn named_fields(&self) -> Vec<NamedField> {
        // What can't be read may name anybody.
        named_by(self).unwrap_or_else(|_| vec![("fields".to_owned(), Field::BuiltIn(BuiltIn::UserId))])
    }
}

fn named_by(definition: &Definition) -> Result<Vec<NamedField>> {
    let json = |name: &str| definition.fields.get(name).map(String::as_str).filter(|json| *json != "null");
    let mut named = named_by_filters(&filters_of(definition)?);
    if let Some(sent) = json("people") {
        named.extend(named_by_people(&people::parse(sent, "people")?));
    }
    if let Some(sent) = json("steps") {
        named.extend(named_by_steps(&steps::parse(sent, "steps")?));
    }
    if let Some(name) = json("breakdown") {
        let unread = |error: &dyn std::fmt::Display| ApiError::parameter("breakdown", error.to_string());
        let name: String = serde_json::from_str(name).map_err(|error| unread(&error))?;
        let field = Field::parse_in_sessions(&name).map_err(|error| unread(&error))?;
        named.push(("breakdown".to_owned(), field));
    }
    Ok(named)
}

/// Returns the name of the events that fit a goal, if they have one, and filters of them.
fn events_of(goal: &Definition) -> Result<(Option<String>, Vec<Clause>)> {
    let text = |name: &str| goal.fields.get(name).and_then(|json| serde_json::from_str::<Option<String>>(json).ok()?);
    let mut clauses = filters_of(goal)?;
    let event_name = text("event_name");
    if let Some(page) = goal.fields.get("page").filter(|_| event_name.is_none()) {
        clauses.extend(page_clauses(page)?);
    }
    Ok((event_name, clauses))
}

/// Returns the predicate of the events that fit a goal.
///
/// # Errors
/// None: definitions were checked when they were made.
pub fn predicate_of(goal: &Definition) -> Result<Predicate> {
    let (event_name, clauses) = events_of(goal)?;
    Ok(Predicate::new(event_name.as_deref(), clauses)?)
}

/// Returns a definition that a question names.
///
/// # Errors
/// 404 without such a definition of the kind.
pub fn named_definition(registry: &Registry, place: DefinitionPlace, id: &str, kind: DefinitionKind) -> Result<Arc<Definition>> {
    let not_found = || ApiError::not_found(kind.as_str()).with_param(kind.as_str());
    let id: DefinitionId = id.parse().map_err(|_| not_found())?;
    let found = registry.definition(place, &id);
    found.ok().filter(|definition| definition.id.kind() == kind).ok_or_else(not_found)
}

/// Finds the definition of a kind by its id.
pub type FindDefinition<'f> = dyn FnMut(&str, DefinitionKind) -> Result<Arc<Definition>> + 'f;

/// What chooses the events of a question, besides their name.
#[derive(Debug, Default)]
pub struct EventChoice {
    /// The filters.
    pub filters: Vec<Clause>,
    /// The id of a segment.
    pub segment: Option<String>,
    /// The conditions on people.
    pub people: Vec<SentCondition>,
}

impl EventChoice {
    /// Returns the predicate of chosen events, or `None` if they are all.
    ///
    /// # Errors
    /// 404 without such a segment or goal.
    pub fn predicate(self, event_name: Option<&str>, find: &mut FindDefinition<'_>) -> Result<Option<Predicate>> {
        let Self { mut filters, segment, people: sent } = self;
        let mut people = Vec::new();
        for (place, condition) in sent.into_iter().enumerate() {
            let param = condition.param_of_goal(place);
            people.push(resolved(condition, &param, find)?);
        }
        if let Some(id) = segment {
            let segment = find(&id, DefinitionKind::Segment)?;
            filters.extend(filters_of(&segment)?);
            for condition in segment.fields.get("people").map_or(Ok(Vec::new()), |json| people::parse(json, "people"))? {
                people.push(resolved(condition, "segment", find)?);
            }
        }
        if event_name.is_none() && filters.is_empty() && people.is_empty() {
            return Ok(None);
        }
        Ok(Some(Predicate::new(event_name, filters)?.with_people(people)?))
    }
}

/// Looks up the goal of a condition, which `param` names.
fn resolved(condition: SentCondition, param: &str, find: &mut FindDefinition<'_>) -> Result<PeopleCondition> {
    let goal = condition.goal.as_deref().map(|id| events_of(&*find(id, DefinitionKind::Goal)?)).transpose();
    condition.resolved(goal.map_err(|error| error.with_param(param))?)
}

/// The parameters of a question about chosen events.
pub trait ChoosesEvents {
    /// Takes the fields that choose them, besides their name.
    fn take_choice(&mut self) -> EventChoice;
}

/// Implements [`ChoosesEvents`] for bodies with the fields `filters`, `segment` and `people`.
#[macro_export]
macro_rules! chooses_events {
    ($body:ty) => {
        impl $crate::extract::definitions::ChoosesEvents for $body {
            fn take_choice(&mut self) -> $crate::extract::definitions::EventChoice {
                let Self { filters, segment, people, .. } = self;
                let (filters, people) = (std::mem::take(filters), std::mem::take(people));
                $crate::extract::definitions::EventChoice { filters, segment: segment.take(), people }
            }
        }
    };
}

impl<B: ChoosesEvents> ProjectQuestion<'_, B> {
    /// Returns the predicate of chosen events, or `None` if they are all.
    ///
    /// # Errors
    /// 404 without such a segment or goal.
    pub fn predicate(&mut self, event_name: Option<&str>) -> Result<Option<Predicate>> {
        self.parameters.take_choice().predicate(event_name, &mut |id, kind| self.definition(id, kind))
    }
}

impl<B> ProjectQuestion<'_, B> {
    /// Returns the predicate of the goal that the question names.
    ///
    /// # Errors
    /// 404 without such a goal.
    pub fn goal(&mut self, goal: Option<&str>) -> Result<Option<Predicate>> {
        let Some(id) = goal else { return Ok(None) };
        predicate_of(&*self.definition(id, DefinitionKind::Goal)?).map(Some)
    }

    /// Returns the names and the predicates of steps.
    ///
    /// # Errors
    /// 404 without such a goal.
    pub fn steps(&mut self, steps: Vec<SentStep>) -> Result<(Vec<String>, Vec<Predicate>)> {
        let one = |(place, SentStep { name, events, filters }): (usize, SentStep)| match &events {
            StepEvents::Named(text) | StepEvents::Page(text) => {
                Ok((name.unwrap_or_else(|| text.clone()), events.predicate(filters)?))
            }
            StepEvents::Goal(id) => {
                let param = format!("steps[{place}].goal");
                let goal = self.definition(id, DefinitionKind::Goal).map_err(|error| error.with_param(param))?;
                let (event_name, mut clauses) = events_of(&goal)?;
                clauses.extend(filters);
                let predicate = Predicate::new(event_name.as_deref(), clauses)?;
                Ok((name.unwrap_or_else(|| goal.name.clone()), predicate))
            }
        };
        let steps: Vec<_> = steps.into_iter().enumerate().map(one).collect::<Result<_>>()?;
        Ok(steps.into_iter().unzip())
    }

    /// Returns all goals of the project, oldest first. [`predicate_of`] is what fits each.
    ///
    /// # Errors
    /// 404 if the project was deleted meanwhile.
    pub fn goals(&mut self) -> Result<Vec<Arc<Definition>>> {
        let organization = self.subject.config.policy.organization;
        let goals = self.state.engine.registry().definitions((organization, Some(self.subject.project)), DefinitionKind::Goal)?;
        self.depend_on(&goals);
        Ok(goals)
    }

    /// Returns a definition of the project.
    fn definition(&mut self, id: &str, kind: DefinitionKind) -> Result<Arc<Definition>> {
        let place = (self.subject.config.policy.organization, Some(self.subject.project));
        let definition = named_definition(self.state.engine.registry(), place, id, kind)?;
        self.depend_on(&[Arc::clone(&definition)]);
        Ok(definition)
    }

    /// Makes the tag of the answer depend on definitions: they count as a part of the body.
    fn depend_on(&mut self, definitions: &[Arc<Definition>]) {
        let mut body = self.body.to_vec();
        for definition in definitions {
            body.push(b'\n');
            body.extend(serde_json::to_vec(&**definition).unwrap_or_default());
        }
        self.body = body.into();
        self.definitions.extend(definitions.iter().cloned());
    }
}
