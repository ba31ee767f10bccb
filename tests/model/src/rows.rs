//! How the rollups of the engine are compared with the model: by their rows, or by the answers that
//! read them.

use crate::facts::Facts;
use chrono::{Datelike, NaiveDate};
use chrono_tz::Tz;
use std::collections::BTreeMap;
use std::fmt::Debug;

/// The rows of a rollup: sums by key, as `headcount verify` writes keys. A key with a day begins
/// with it.
pub type Rows = BTreeMap<String, i64>;

/// Computes the rows of a rollup of a project from the facts.
pub type RowsOf = fn(&Facts<'_>, Tz, &str) -> Rows;

// Each file in `answers/rollups/` has the name of its rollup, and a function `rows`.
include!(concat!(env!("OUT_DIR"), "/rollups.rs"));

/// The rollups that are compared by answers: to questions whose path ends like this.
const BY_ANSWERS: &[(&str, &str)] = &[
    ("revenue", "/revenue/timeseries"),
    ("first_touch_by_identity", "/revenue/by-attribution"),
    ("last_touch_by_identity", "/revenue/by-attribution"),
    ("first_touch_by_account", "/revenue/by-attribution"),
    ("last_touch_by_account", "/revenue/by-attribution"),
    ("deferred_by_identity", "/revenue/by-attribution"),
    ("deferred_by_account", "/revenue/by-attribution"),
    ("cohorts_by_identity", "/revenue/ltv-cohorts"),
    ("cohorts_by_account", "/revenue/ltv-cohorts"),
    ("traffic", "/analytics/traffic"),
    ("retention_by_week", "/analytics/retention"),
    ("retention_by_month", "/analytics/retention"),
    ("activity", "/analytics/report"),
];

/// How a rollup is compared.
#[derive(Clone, Copy, Debug)]
pub enum Compared {
    /// By its rows, which [`Model::rows`](crate::Model::rows) computes.
    Rows,
    /// By the answers to questions whose path ends like this.
    Answers(&'static str),
}

/// Returns every rollup that the model knows, by name, and how it is compared.
#[must_use]
pub fn compared() -> BTreeMap<&'static str, Compared> {
    let by_answers = BY_ANSWERS.iter().map(|(name, path)| (*name, Compared::Answers(path)));
    by_answers.chain(BY_ROWS.iter().map(|(name, _)| (*name, Compared::Rows))).collect()
}

/// Computes the rows of every rollup that is compared by rows.
pub(crate) fn rows(facts: &Facts<'_>, timezone: Tz, project: &str) -> BTreeMap<&'static str, Rows> {
    BY_ROWS.iter().map(|(name, rows)| (*name, rows(facts, timezone, project))).collect()
}

/// The key of a row: a day, and what follows it.
pub(crate) fn key(day: NaiveDate, rest: impl Debug) -> String {
    let epoch = NaiveDate::default();
    format!("{day} ({}, {rest:?})", day.num_days_from_ce() - epoch.num_days_from_ce())
}

/// Whether the day of a row is one that `is_it`. A row without a day has none.
pub(crate) fn has_day(key: &str, is_it: impl Fn(NaiveDate) -> bool) -> Option<bool> {
    key.get(..10).and_then(|day| day.parse().ok()).map(is_it)
}
