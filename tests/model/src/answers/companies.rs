//! `GET /companies/…`: organization-wide queries.

use super::params::Params;
use super::revenue::Till;
use super::{Asked, Wrong, identities, ranked};
use crate::facts::{Identity, domain_of};
use crate::json::Json;
use crate::text::reads_as_domain;
use crate::time::{Window, shown};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

const ID: &str = "company:";

/// The name of a company's identifier in expected answers.
#[must_use]
pub(crate) fn id_name(key: &str) -> String {
    format!("{ID}{key}")
}

/// The activity of a company or a group.
pub(super) struct Activity {
    /// The events in the window.
    pub(super) events: Vec<usize>,
    /// The times of the first and the last event ever.
    pub(super) seen: Option<(i64, i64)>,
}

impl Activity {
    pub(super) fn of(asked: &Asked<'_>, window: Window, mine: impl Fn(usize) -> bool) -> Activity {
        let ever: Vec<_> = asked.facts.all().filter(|&index| mine(index)).collect();
        let at = |index: &usize| asked.facts.events[*index].at_ms;
        let seen = ever.iter().map(at).min().zip(ever.iter().map(at).max());
        let events = ever.into_iter().filter(|&index| asked.is_kept_in(index, window)).collect();
        Activity { events, seen }
    }

    pub(super) fn users(&self, asked: &Asked<'_>) -> usize {
        let users = self.events.iter().filter_map(|&index| asked.facts.identities[index].as_ref());
        users.collect::<BTreeSet<_>>().len()
    }

    pub(super) fn first_seen(&self) -> Json {
        self.seen.map_or(Json::Null, |(first, _)| shown(first))
    }

    pub(super) fn last_seen(&self) -> Json {
        self.seen.map_or(Json::Null, |(_, last)| shown(last))
    }

    fn till(&self, asked: &Asked<'_>) -> Till {
        let mut till = Till::default();
        for &index in &self.events {
            till.add_in_organization(&asked.facts.events[index]);
        }
        till
    }
}

/// Returns the latest name that a `group` event reported, among the events about the company.
pub(super) fn latest_name(asked: &Asked<'_>, about: impl Fn(usize) -> bool) -> Option<String> {
    let reported = (0..asked.facts.events.len()).filter(|&index| asked.facts.events[index].name == "group" && about(index));
    let named = reported.filter_map(|index| {
        let name = asked.facts.events[index].metadata.field("name").filled()?;
        Some((asked.facts.moment(index), name.to_owned()))
    });
    named.max().map(|(_, name)| name)
}

pub(super) fn company_name(asked: &Asked<'_>, key: &str) -> Option<String> {
    latest_name(asked, |index| {
        let reported = crate::facts::explicit_company(&asked.facts.events[index]);
        reported.is_some_and(|reported| asked.facts.company_by_key(&reported) == key)
    })
}

fn is_of(asked: &Asked<'_>, index: usize, key: &str) -> bool {
    asked.facts.company(index).as_deref() == Some(key)
}

pub(super) fn lookup(asked: &Asked<'_>, mut params: Params) -> Result<Json, Wrong> {
    let range = params.range(asked)?;
    let given = params.text("domain")?.filter(|domain| domain.chars().count() <= 255);
    params.done()?;
    let given = given.ok_or_else(|| Wrong::param("domain"))?;
    figures(asked, &reads_as_domain(&given).ok_or(Wrong::NotFound)?, range)
}

/// Answers by the company's id, given by its name or by that of a former key.
pub(super) fn metrics(asked: &Asked<'_>, id: &str, mut params: Params) -> Result<Json, Wrong> {
    let range = params.range(asked)?;
    params.done()?;
    figures(asked, &by_id(asked, id)?, range)
}

fn by_id(asked: &Asked<'_>, id: &str) -> Result<String, Wrong> {
    let key = id.strip_prefix(ID).ok_or(Wrong::NotFound)?;
    Ok(asked.facts.company_by_key(key))
}

fn figures(asked: &Asked<'_>, key: &str, range: Window) -> Result<Json, Wrong> {
    let activity = Activity::of(asked, range, |index| is_of(asked, index, key));
    if activity.seen.is_none() {
        return Err(Wrong::NotFound);
    }
    let entries = asked.facts.sessions.iter().map(|session| session.entry());
    let sessions = entries.filter(|&entry| is_of(asked, entry, key) && asked.is_kept_in(entry, range));
    let till = activity.till(asked);
    Ok(Json::object([
        ("company_id", Json::Id(id_name(key))),
        ("name", Json::from(company_name(asked, key))),
        ("domain", Json::from(domain_of(key).map(str::to_owned))),
        ("events", Json::from(activity.events.len())),
        ("users", Json::from(activity.users(asked))),
        ("sessions", Json::from(sessions.count())),
        ("revenue", till.revenue_json()),
        ("orders", Json::from(till.orders)),
        ("currency", Json::from(asked.model.organization.currency.as_str())),
        ("first_seen", activity.first_seen()),
        ("last_seen", activity.last_seen()),
        ("complete_from", asked.complete_from(range)),
    ]))
}

pub(super) fn top(asked: &Asked<'_>, mut params: Params) -> Result<Json, Wrong> {
    let range = params.range(asked)?;
    let limit = params.count("limit", 1..=100, 20)?;
    params.done()?;

    let keys: BTreeSet<String> = asked.facts.all().filter_map(|index| asked.facts.company(index)).collect();
    let rows = keys.into_iter().map(|key| {
        let activity = Activity::of(asked, range, |index| is_of(asked, index, &key));
        (company_name(asked, &key), key, activity)
    });
    let rows: Vec<_> = rows.filter(|(_, _, activity)| !activity.events.is_empty()).collect();
    let rows = ranked(rows, |(_, _, activity)| activity.events.len(), |(name, key, _)| rank_name(name, key));
    let row = |(name, key, activity): &(Option<String>, String, Activity)| {
        Json::object([
            ("company_id", Json::Id(id_name(key))),
            ("name", Json::from(name.clone())),
            ("domain", Json::from(domain_of(key).map(str::to_owned))),
            ("events", Json::from(activity.events.len())),
            ("users", Json::from(activity.users(asked))),
            ("revenue", activity.till(asked).revenue_json()),
            ("last_seen", activity.last_seen()),
        ])
    };
    Ok(Json::object([
        ("companies", Json::list(rows.iter().take(limit).map(row))),
        ("truncated", Json::from(rows.len() > limit)),
        ("complete_from", asked.complete_from(range)),
    ]))
}

/// The sort key for ties: the name, or the key if there is none; then the key.
pub(super) fn rank_name(name: &Option<String>, key: &str) -> (String, String) {
    (name.clone().unwrap_or_else(|| key.to_owned()), key.to_owned())
}

fn user_id(identity: &Identity) -> Option<String> {
    if let Identity::User(user) = identity { Some(user.clone()) } else { None }
}

/// The displayed identifier of an identified user: the e-mail address, or the `user_id`.
fn resolved(asked: &Asked<'_>, identity: &Identity) -> Option<String> {
    asked.facts.emails(identity).0.or_else(|| user_id(identity))
}

pub(super) fn top_users(asked: &Asked<'_>, id: &str, mut params: Params) -> Result<Json, Wrong> {
    let range = params.range(asked)?;
    let limit = params.count("limit", 1..=100, 20)?;
    params.done()?;
    let key = by_id(asked, id)?;

    // For each user, the events in the range and the time of the last event at this company.
    let mut users: BTreeMap<&Identity, (usize, i64)> = BTreeMap::new();
    let mut known = false;
    for index in asked.facts.all().filter(|&index| is_of(asked, index, &key)) {
        known = true;
        if let Some(identity) = &asked.facts.identities[index] {
            let (events, last_ms) = users.entry(identity).or_insert((0, i64::MIN));
            *events += usize::from(asked.is_kept_in(index, range));
            *last_ms = asked.facts.events[index].at_ms.max(*last_ms);
        }
    }
    if !known {
        return Err(Wrong::NotFound);
    }
    let named = users.into_iter().filter(|(_, (events, _))| *events > 0);
    let rows: Vec<_> = named.filter_map(|(user, figures)| Some((resolved(asked, user)?, user, figures))).collect();
    let rows = ranked(
        rows,
        |(_, _, (events, _))| *events,
        |(name, user, (_, last_ms))| (name.clone(), Reverse(*last_ms), (*user).clone()),
    );
    let row = |(name, user, (events, last_ms)): &(String, &Identity, (usize, i64))| {
        Json::object([
            ("resolved_identifier", Json::from(name.as_str())),
            ("identity_id", identities::id(user)),
            ("user_id", Json::from(user_id(user))),
            ("email", Json::from(asked.facts.emails(user).0)),
            ("events", Json::from(*events)),
            ("last_seen", shown(*last_ms)),
        ])
    };
    Ok(Json::object([
        ("users", Json::list(rows.iter().take(limit).map(row))),
        ("truncated", Json::from(rows.len() > limit)),
        ("complete_from", asked.complete_from(range)),
    ]))
}
