//! The parameters of a question, each asked for once.

use super::{Asked, Question, Wrong};
use crate::json::Json;
use crate::time::{Window, bound};
use chrono::Days;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// A window holds no more days than this.
const MOST_DAYS: i64 = 3_660;

/// What is left of a question's parameters.
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

    /// The value of a parameter; `null` is absent.
    pub(super) fn take(&mut self, name: &str) -> Option<Json> {
        self.0.remove(name).filter(|value| *value != Json::Null)
    }

    /// Whether a parameter is given, and was not asked for yet.
    pub(super) fn has(&self, name: &str) -> bool {
        self.0.get(name).is_some_and(|value| *value != Json::Null)
    }

    /// A text of at least one character.
    pub(super) fn text(&mut self, name: &str) -> Result<Option<String>, Wrong> {
        match self.take(name) {
            None => Ok(None),
            Some(Json::Text(text)) if !text.is_empty() => Ok(Some(text)),
            Some(_) => Err(Wrong::param(name)),
        }
    }

    /// One of a few words.
    pub(super) fn word(&mut self, name: &str, allowed: &[&'static str]) -> Result<&'static str, Wrong> {
        let Some(given) = self.text(name)? else {
            return Ok(allowed[0]);
        };
        allowed.iter().find(|word| **word == given).copied().ok_or_else(|| Wrong::param(name))
    }

    /// A whole number: in a query written out, in a body a JSON number.
    pub(super) fn count(&mut self, name: &str, allowed: RangeInclusive<usize>, default: usize) -> Result<usize, Wrong> {
        let count = match self.take(name) {
            None => return Ok(default),
            Some(Json::Text(text)) => text.parse().ok(),
            Some(Json::Number(number)) => number.whole().and_then(|number| usize::try_from(number).ok()),
            Some(_) => None,
        };
        count.filter(|count| allowed.contains(count)).ok_or_else(|| Wrong::param(name))
    }

    /// `start_date` and `end_date`: from 30 days ago, to today.
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

    /// `range_days`: the last so many days.
    pub(super) fn range(&mut self, asked: &Asked<'_>) -> Result<Window, Wrong> {
        let days = self.count("range_days", 1..=365, 30)?;
        Ok(Window::last_days(asked.today, days as u64))
    }

    /// Refuses what nobody asked for.
    pub(super) fn done(self) -> Result<(), Wrong> {
        match self.0.into_keys().next() {
            None => Ok(()),
            Some(name) => Err(Wrong::Invalid { code: Some("unknown_parameter"), param: Some(name) }),
        }
    }
}
