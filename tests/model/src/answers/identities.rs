//! `GET /identities/…`

use super::params::Params;
use super::revenue::Till;
use super::{Asked, Wrong, ranked};
use crate::decimal::{Decimal, MICROS, Micros, ratio};
use crate::facts::{Facts, Identity, Session};
use crate::json::Json;
use crate::text::email;
use crate::time::shown;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Returns the identifier of an identity in answers.
pub(super) fn id(identity: &Identity) -> Json {
    Json::Id(format!("{identity:?}"))
}

/// Returns the identities with an e-mail address or a `user_id`.
pub(crate) fn find(facts: &Facts<'_>, by: &str, value: &str) -> BTreeSet<Identity> {
    let all: BTreeSet<Identity> = facts.identities.iter().flatten().cloned().collect();
    match by {
        "user_id" => all.into_iter().filter(|identity| *identity == Identity::User(value.to_owned())).collect(),
        _ => {
            let wanted = email(value).unwrap_or_default();
            all.into_iter().filter(|identity| facts.emails(identity).1.contains(&wanted)).collect()
        }
    }
}

/// Returns the identity that a question is about: if several share an e-mail address, the one seen
/// last.
fn named(asked: &Asked<'_>, params: &mut Params) -> Result<Identity, Wrong> {
    let found = match (params.text("email")?, params.text("user_id")?) {
        (Some(email), None) => find(&asked.facts, "email", &email),
        (None, Some(user)) => find(&asked.facts, "user_id", &user),
        _ => {
            return Err(Wrong::Invalid { code: None, param: None });
        }
    };
    let last_seen = |identity: &Identity| events_of(asked, identity).into_iter().next_back();
    let seen_last = found.into_iter().max_by_key(|identity| last_seen(identity).map(|index| asked.facts.moment(index)));
    seen_last.ok_or(Wrong::NotFound)
}

/// Returns all events of an identity, in order of time.
pub(super) fn events_of(asked: &Asked<'_>, identity: &Identity) -> Vec<usize> {
    let mut events: Vec<_> =
        asked.facts.all().filter(|&index| asked.facts.identities[index].as_ref() == Some(identity)).collect();
    events.sort_by_key(|&index| asked.facts.moment(index));
    events
}

pub(super) fn profile(asked: &Asked<'_>, mut params: Params) -> Result<Json, Wrong> {
    let window = params.window(asked)?;
    let identity = named(asked, &mut params);
    params.done()?;
    let identity = identity?;

    let facts = &asked.facts;
    let ever = events_of(asked, &identity);
    let seen = |index: Option<&usize>| index.map_or(Json::Null, |&index| shown(facts.events[index].at_ms));
    let events: Vec<_> = ever.iter().copied().filter(|&index| asked.is_kept_in(index, window)).collect();
    let mut till = Till::default();
    for &index in &events {
        till.add_in_organization(&facts.events[index]);
    }
    let active_days: BTreeSet<_> = events.iter().map(|&index| asked.day(index)).collect();
    let begins_in_it = |session: &&Session| session.identity == identity && asked.is_kept_in(session.entry(), window);
    let sessions: Vec<_> = facts.sessions.iter().filter(begins_in_it).collect();
    let bounces = sessions.iter().filter(|session| session.events.len() == 1).count();
    let durations: Vec<Micros> = sessions.iter().map(|session| duration(facts, session)).collect();
    Ok(Json::object([
        ("identity_id", id(&identity)),
        ("events", Json::from(events.len())),
        ("pageviews", Json::from(events.iter().filter(|&&index| facts.events[index].is_pageview()).count())),
        ("sessions", Json::from(sessions.len())),
        ("duration_avg_sec", Json::from(ratio(durations.iter().sum(), durations.len()))),
        ("duration_p90_sec", Json::from(Decimal::of_micros(p90(durations)))),
        ("bounce_rate", Json::from(ratio(bounces as Micros * MICROS, sessions.len()))),
        ("active_days", Json::from(active_days.len())),
        ("first_seen", seen(ever.first())),
        ("last_seen", seen(ever.last())),
        ("revenue", till.revenue_json()),
        ("complete_from", asked.complete_from(window)),
    ]))
}

/// Returns a session's duration in millionths of a second.
fn duration(facts: &Facts<'_>, session: &Session) -> Micros {
    Micros::from(facts.events[session.last()].at_ms - facts.events[session.entry()].at_ms) * 1000
}

/// Returns the nearest-rank 90th percentile: the smallest value that is not below 90 % of all
/// values.
fn p90(mut durations: Vec<Micros>) -> Micros {
    durations.sort_unstable();
    let rank = (durations.len() * 9).div_ceil(10);
    rank.checked_sub(1).map_or(0, |at| durations[at])
}

pub(super) fn referrers(asked: &Asked<'_>, params: Params) -> Result<Json, Wrong> {
    counts(asked, params, "referrers", "referrer", |asked, index| asked.facts.events[index].referrer.clone())
}

pub(super) fn top_pages(asked: &Asked<'_>, params: Params) -> Result<Json, Wrong> {
    counts(asked, params, "pages", "url", |asked, index| {
        let event = &asked.facts.events[index];
        event.url.as_ref().filter(|_| event.is_pageview()).map(|url| url.page.clone())
    })
}

/// Lists who is identified (by a `user_id` or an e-mail address) and was active in the range.
pub(super) fn top(asked: &Asked<'_>, mut params: Params) -> Result<Json, Wrong> {
    let range = params.range(asked)?;
    let limit = params.count("limit", 1..=100, 20)?;
    let sort = params.word("sort", &["events", "revenue", "last_seen"])?;
    params.done()?;

    let facts = &asked.facts;
    let all: BTreeSet<&Identity> = facts.all().filter_map(|index| facts.identities[index].as_ref()).collect();
    let mut rows = Vec::new();
    for identity in all {
        let user_id = if let Identity::User(user) = identity { Some(user.clone()) } else { None };
        let email = facts.emails(identity).0;
        let Some(name) = email.clone().or_else(|| user_id.clone()) else { continue };
        let ever = events_of(asked, identity);
        let active: Vec<usize> = ever.iter().copied().filter(|&index| asked.is_kept_in(index, range)).collect();
        let Some(last_ms) = ever.last().map(|&index| facts.events[index].at_ms).filter(|_| !active.is_empty()) else { continue };
        let mut till = Till::default();
        active.iter().for_each(|&index| till.add_in_organization(&facts.events[index]));
        let figure = match sort {
            "events" => active.len() as Micros,
            "revenue" => till.revenue,
            _ => last_ms.into(),
        };
        let row = Json::object([
            ("identity_id", id(identity)),
            ("resolved_identifier", Json::from(name.as_str())),
            ("user_id", Json::from(user_id)),
            ("email", Json::from(email)),
            ("events", Json::from(active.len())),
            ("revenue", till.revenue_json()),
            ("last_seen", shown(last_ms)),
        ]);
        rows.push((figure, (name, Reverse(last_ms), identity), row));
    }
    let rows = ranked(rows, |(figure, ..)| *figure, |(_, name, _)| name.clone());
    Ok(Json::object([
        ("identities", Json::list(rows.iter().take(limit).map(|(.., row)| row.clone()))),
        ("currency", Json::from(asked.model.organization.currency.as_str())),
        ("truncated", Json::from(rows.len() > limit)),
        ("complete_from", asked.complete_from(range)),
    ]))
}

/// Counts the events of an identity in a window by a property.
fn counts(
    asked: &Asked<'_>,
    mut params: Params,
    list: &str,
    name: &str,
    of: impl Fn(&Asked<'_>, usize) -> Option<String>,
) -> Result<Json, Wrong> {
    let window = params.window(asked)?;
    let limit = params.count("limit", 1..=50, 10)?;
    let identity = named(asked, &mut params);
    params.done()?;
    let identity = identity?;

    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for index in events_of(asked, &identity) {
        if let Some(value) = of(asked, index).filter(|_| asked.is_kept_in(index, window)) {
            *counts.entry(value).or_default() += 1;
        }
    }
    let rows = ranked(counts.into_iter().collect(), |(_, count)| *count, |(value, _)| value.clone());
    let row =
        |(value, count): &(String, usize)| Json::object([(name, Json::from(value.as_str())), ("count", Json::from(*count))]);
    Ok(Json::object([
        ("identity_id", id(&identity)),
        (list, Json::list(rows.iter().take(limit).map(row))),
        ("truncated", Json::from(rows.len() > limit)),
        ("complete_from", asked.complete_from(window)),
    ]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_rank() {
        assert_eq!(p90(vec![]), 0);
        assert_eq!(p90(vec![7]), 7);
        assert_eq!(p90((1..=10).collect()), 9);
        assert_eq!(p90((1..=11).collect()), 10);
    }
}
