//! `GET /groups/…`: organization-wide queries.

use super::companies::{Activity, latest_name, rank_name};
use super::params::Params;
use super::{Asked, Wrong, ranked};
use crate::event::is_group_type;
use crate::json::Json;
use std::collections::BTreeSet;

/// Reads a group type that these operations support: any but `company`.
fn group_type(params: &mut Params) -> Result<String, Wrong> {
    let given = params.text("group_type")?.filter(|kind| is_group_type(kind) && kind != "company");
    given.ok_or_else(|| Wrong::param("group_type"))
}

fn name(asked: &Asked<'_>, kind: &str, key: &str) -> Option<String> {
    latest_name(asked, |index| asked.facts.events[index].is_in(kind, key))
}

fn row(asked: &Asked<'_>, kind: &str, key: &str, name: Option<String>, activity: &Activity) -> Json {
    Json::object([
        ("group_type", Json::from(kind)),
        ("group_key", Json::from(key)),
        ("name", Json::from(name)),
        ("events", Json::from(activity.events.len())),
        ("users", Json::from(activity.users(asked))),
        ("last_seen", activity.last_seen()),
    ])
}

pub(super) fn metrics(asked: &Asked<'_>, mut params: Params) -> Result<Json, Wrong> {
    let range = params.range(asked)?;
    let kind = group_type(&mut params)?;
    let key = params.text("group_key")?.filter(|key| key.chars().count() <= 512);
    params.done()?;
    let key = key.ok_or_else(|| Wrong::param("group_key"))?;

    let activity = Activity::of(asked, range, |index| asked.facts.events[index].is_in(&kind, &key));
    if activity.seen.is_none() {
        return Err(Wrong::NotFound);
    }
    let mut row = row(asked, &kind, &key, name(asked, &kind, &key), &activity);
    if let Json::Object(fields) = &mut row {
        fields.insert("complete_from".to_owned(), asked.complete_from(range));
    }
    Ok(row)
}

pub(super) fn top(asked: &Asked<'_>, mut params: Params) -> Result<Json, Wrong> {
    let range = params.range(asked)?;
    let kind = group_type(&mut params)?;
    let limit = params.count("limit", 1..=100, 20)?;
    params.done()?;

    let groups = asked.facts.all().filter_map(|index| asked.facts.events[index].group.clone());
    let keys: BTreeSet<String> = groups.filter(|(of, _)| *of == kind).map(|(_, key)| key).collect();
    let rows = keys.into_iter().map(|key| {
        let activity = Activity::of(asked, range, |index| asked.facts.events[index].is_in(&kind, &key));
        (name(asked, &kind, &key), key, activity)
    });
    let rows: Vec<_> = rows.filter(|(_, _, activity)| !activity.events.is_empty()).collect();
    let rows = ranked(rows, |(_, _, activity)| activity.events.len(), |(name, key, _)| rank_name(name, key));
    let shown = rows.iter().take(limit);
    let shown = shown.map(|(name, key, activity)| row(asked, &kind, key, name.clone(), activity));
    Ok(Json::object([
        ("groups", Json::list(shown)),
        ("truncated", Json::from(rows.len() > limit)),
        ("complete_from", asked.complete_from(range)),
    ]))
}
