//! The parameters of a question, each read once.

use super::{Asked, Question, Wrong};
use crate::json::Json;
use crate::time::{Window, bound};
use chrono::Days;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// The maximum number of days in a window.
const MOST_DAYS: i64 = 3_660;

/// The maximum number of bytes in a pattern of paths.
const MOST_OF_PATTERN: usize = 256;

/// The parameters of a question that were not read yet.
#[derive(Debug)]
pub(super) struct Params(BTreeMap<String, Json>);

impl Params {
    pub(super) fn of(question: &Question) -> Params {
        let mut fields: BTreeMap<_, _> =
            question.query.iter().map(|(name, value)| (name.clone(), Json::from(value.as_str()))).collect();
        if let Some(Json::Object(body)) = &question.body {
            fields.extend(body.clone());
        }
        Params(fields)
    }

    /// Takes the value of a parameter; `null` counts as absent.
    pub(super) fn take(&mut self, name: &str) -> Option<Json> {
        self.0.remove(name).filter(|value| *value != Json::Null)
    }

    /// Whether a parameter is present and was not read yet.
    pub(super) fn has(&self, name: &str) -> bool {
        self.0.get(name).is_some_and(|value| *value != Json::Null)
    }

    /// Whether nothing that was not read yet chooses events.
    pub(super) fn choose_all(&self) -> bool {
        let of_segment = |name| self.0.get("segment").is_some_and(|segment| !segment.field(name).items().is_empty());
        let is_chosen = ["event_name", "filters", "people", "goal"].into_iter().any(|name| self.has(name));
        !is_chosen && !of_segment("filters") && !of_segment("people")
    }

    /// Whether a parameter that was not read yet is this text.
    pub(super) fn is_text(&self, name: &str, text: &str) -> bool {
        self.0.get(name).and_then(Json::text) == Some(text)
    }

    /// Reads non-empty text.
    pub(super) fn text(&mut self, name: &str) -> Result<Option<String>, Wrong> {
        match self.take(name) {
            None => Ok(None),
            Some(Json::Text(text)) if !text.is_empty() => Ok(Some(text)),
            Some(_) => Err(Wrong::param(name)),
        }
    }

    /// Reads one of the allowed words.
    pub(super) fn word(&mut self, name: &str, allowed: &[&'static str]) -> Result<&'static str, Wrong> {
        let Some(given) = self.text(name)? else {
            return Ok(allowed[0]);
        };
        allowed.iter().find(|word| **word == given).copied().ok_or_else(|| Wrong::param(name))
    }

    /// Reads a whole number, written in digits in a query or as a JSON number in a body.
    pub(super) fn count(&mut self, name: &str, allowed: RangeInclusive<usize>, default: usize) -> Result<usize, Wrong> {
        let count = match self.take(name) {
            None => return Ok(default),
            Some(Json::Text(text)) => text.parse().ok(),
            Some(Json::Number(number)) => number.whole().and_then(|number| usize::try_from(number).ok()),
            Some(_) => None,
        };
        count.filter(|count| allowed.contains(count)).ok_or_else(|| Wrong::param(name))
    }

    /// Reads `start_date` and `end_date`, which default to 30 days ago and today.
    pub(super) fn window(&mut self, asked: &Asked<'_>) -> Result<Window, Wrong> {
        let mut day = |name: &str, default| match self.text(name)? {
            None => Ok(default),
            Some(text) => bound(&text, asked.timezone).ok_or_else(|| Wrong::param(name)),
        };
        let first = day("start_date", asked.today - Days::new(30))?;
        let last = day("end_date", asked.today)?;
        let days = (last - first).num_days() + 1;
        if (1..=MOST_DAYS).contains(&days) {
            return Ok(Window { first, last });
        }
        Err(Wrong::Invalid { code: None, param: None })
    }

    /// Reads the window of a question that needs events: of those below the floor it is refused; a
    /// default start moves up.
    pub(super) fn event_window(&mut self, asked: &Asked<'_>, project: &str) -> Result<Window, Wrong> {
        let is_explicit = self.has("start_date");
        let window = self.window(asked)?;
        let Some(floor) = asked.model.floor(project).filter(|floor| *floor > window.first) else { return Ok(window) };
        if !is_explicit && floor <= window.last {
            return Ok(Window { first: floor, ..window });
        }
        let param = if is_explicit { "start_date" } else { "end_date" };
        Err(Wrong::Invalid { code: Some("before_retention"), param: Some(param.to_owned()) })
    }

    /// Reads `range_days`: the last days up to today.
    pub(super) fn range(&mut self, asked: &Asked<'_>) -> Result<Window, Wrong> {
        let days = self.count("range_days", 1..=365, 30)?;
        Ok(Window::last_days(asked.today, days as u64))
    }

    /// Rejects the parameters that other questions take.
    pub(super) fn refuse(&self, names: &[&str]) -> Result<(), Wrong> {
        let refused = names.iter().find(|name| self.0.contains_key(**name));
        refused.map_or(Ok(()), |name| Err(Wrong::unknown(name)))
    }

    /// Reads a pattern of paths.
    pub(super) fn pattern(&mut self, name: &str) -> Result<Option<String>, Wrong> {
        let pattern = self.text(name)?;
        if pattern.as_ref().is_some_and(|pattern| pattern.len() > MOST_OF_PATTERN) {
            return Err(Wrong::param(name));
        }
        Ok(pattern)
    }

    /// The parameters of an object in the question; `param` names it.
    pub(super) fn of_part(json: &Json, param: &str) -> Result<Params, Wrong> {
        match json {
            Json::Object(fields) => Ok(Params(fields.clone())),
            _ => Err(Wrong::param(param)),
        }
    }

    /// Rejects parameters that were not read.
    pub(super) fn done(self) -> Result<(), Wrong> {
        match self.0.into_keys().next() {
            None => Ok(()),
            Some(name) => Err(Wrong::unknown(&name)),
        }
    }
}
