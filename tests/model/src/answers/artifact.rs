//! What an export of identities has, recomputed from the events. Events below the floor of their
//! project are in none, and so their sessions and orders; when somebody was first and last seen,
//! and the address that is shown of them, is of all time.

use super::companies::{company_name, id_name, latest_name, rank_name};
use super::identities::{self, events_of, id};
use super::{Asked, ranked};
use crate::acquisition::{DIRECT, channel, origin};
use crate::decimal::{Decimal, Micros};
use crate::facts::{Identity, Session, domain_of, reported_email};
use crate::json::Json;
use crate::model::Model;
use crate::time::{day_of, shown};
use std::collections::{BTreeMap, BTreeSet};

/// Returns the artifact of identities, with events, sessions and orders by project: a model does
/// not know the order of projects.
#[must_use]
pub fn artifact(model: &Model, now_ms: i64, of: &BTreeSet<Identity>) -> Json {
    let timezone = model.organization.timezone;
    let asked = Asked { model, facts: model.facts(), timezone, now_ms, today: day_of(now_ms, timezone) };
    let mut events: Vec<usize> =
        asked.facts.all().filter(|&index| asked.facts.identities[index].as_ref().is_some_and(|it| of.contains(it))).collect();
    events.sort_by_key(|&index| asked.facts.moment(index));
    let last = events.last().and_then(|&index| asked.facts.identities[index].clone());
    events.retain(|&index| is_kept(&asked, index));
    let mut identities: Vec<&Identity> = of.iter().filter(|it| !events_of(&asked, it).is_empty()).collect();
    identities.sort();
    let projects = model.projects.keys().map(|name| (name.clone(), project(&asked, name, &events)));
    Json::object([
        ("identity", last.map_or(Json::Null, |last| identity(&asked, &last))),
        ("identities", Json::list(identities.into_iter().map(|it| identity(&asked, it)))),
        ("projects", Json::Object(projects.collect())),
        ("companies", companies(&asked, &events)),
        ("groups", groups(&asked, &events)),
    ])
}

/// Whether an event is of a day that its project keeps.
fn is_kept(asked: &Asked<'_>, index: usize) -> bool {
    let floor = asked.model.floor(&asked.facts.events[index].project);
    floor.is_none_or(|floor| asked.day(index) >= floor)
}

/// The addresses of an identity: those of its kept events, and the latest of each project.
fn emails(asked: &Asked<'_>, events: &[usize]) -> BTreeSet<String> {
    let reported =
        |&index: &usize| Some((asked.facts.events[index].project.clone(), reported_email(&asked.facts.events[index])?));
    let latest: BTreeMap<String, String> = events.iter().filter_map(reported).collect();
    let kept = events.iter().filter(|&&index| is_kept(asked, index)).filter_map(reported);
    latest.clone().into_iter().chain(kept).map(|(_, email)| email).collect()
}

fn identity(asked: &Asked<'_>, it: &Identity) -> Json {
    let events = events_of(asked, it);
    let (latest, _) = asked.facts.emails(it);
    let emails = emails(asked, &events);
    let (user, own) = match it {
        Identity::User(user) => (Some(user.clone()), Some(user.clone())),
        Identity::Anonymous(_, id) => (None, Some(id.clone())),
        Identity::Visitor(_) => (None, None),
    };
    let mut anonymous = BTreeSet::new();
    let mut traits = BTreeMap::new();
    for &index in events.iter().filter(|&&index| is_kept(asked, index)) {
        let event = &asked.facts.events[index];
        if let Some(id) = event.anonymous_id.as_ref().filter(|id| asked.facts.owner(&event.project, id) == *it) {
            anonymous.insert(id.clone());
        }
        if let (true, Json::Object(reported)) = (event.name == "identify", &event.metadata) {
            traits.extend(reported.clone());
        }
    }
    if let Some(email) = &latest {
        traits.insert("email".to_owned(), Json::from(email.clone()));
    }
    let seen = |index: Option<&usize>| index.map_or(Json::Null, |&index| shown(asked.facts.events[index].at_ms));
    Json::object([
        ("identity_id", id(it)),
        ("resolved_identifier", Json::from(latest.or(own))),
        ("user_id", Json::from(user)),
        ("emails", Json::list(emails.into_iter().map(Json::from))),
        ("anonymous_ids", Json::list(anonymous.into_iter().map(Json::from))),
        ("traits", Json::Object(traits)),
        ("first_seen", seen(events.first())),
        ("last_seen", seen(events.last())),
    ])
}

fn project(asked: &Asked<'_>, name: &str, events: &[usize]) -> Json {
    let events: Vec<usize> = events.iter().copied().filter(|&index| asked.facts.events[index].project == name).collect();
    let kept = |session: &Session| session.events.iter().copied().filter(|index| events.contains(index)).collect::<Vec<_>>();
    let mut sessions: Vec<Vec<usize>> = asked.facts.sessions.iter().map(kept).filter(|kept| !kept.is_empty()).collect();
    sessions.sort_by_key(|kept| asked.facts.moment(kept[0]));
    let is_money = |&&index: &&usize| asked.facts.events[index].money.as_ref().is_some_and(|money| money.value != 0);
    Json::object([
        ("events", Json::list(events.iter().map(|&index| event(asked, index)))),
        ("sessions", Json::list(sessions.iter().map(|kept| visit(asked, kept)))),
        ("orders", Json::list(events.iter().filter(is_money).map(|&index| order(asked, index)))),
    ])
}

fn amount(micros: Option<Micros>) -> Json {
    micros.map_or(Json::Null, |micros| Json::from(Decimal::of_micros(micros)))
}

fn event(asked: &Asked<'_>, index: usize) -> Json {
    let event = &asked.facts.events[index];
    let (money, from) = (event.money.as_ref(), origin(event));
    let other = |name: &str| Json::from(event.others.get(name).cloned());
    Json::object([
        ("identity_id", asked.facts.identities[index].as_ref().map_or(Json::Null, identities::id)),
        ("timestamp", shown(event.at_ms)),
        ("name", Json::from(event.name.clone())),
        ("user_id", Json::from(event.user_id.clone())),
        ("anonymous_id", Json::from(event.anonymous_id.clone())),
        ("external_id", Json::from(event.external_id.clone())),
        ("language", other("language")),
        ("screen", other("screen")),
        ("channel", other("channel")),
        ("consent_source", other("consent_source")),
        ("group_type", Json::from(event.group.as_ref().map(|(kind, _)| kind.clone()))),
        ("group_id", Json::from(event.group.as_ref().map(|(_, id)| id.clone()))),
        ("value", amount(money.map(|money| money.value))),
        ("currency", Json::from(money.map(|money| money.currency.clone()))),
        ("metadata", event.metadata.clone()),
        ("source", Json::from(from.source)),
        ("medium", Json::from(from.medium)),
        ("campaign", Json::from(from.campaign)),
        ("acquisition_channel", Json::from(channel(event))),
        ("company_id", asked.facts.company(index).map_or(Json::Null, |key| Json::Id(id_name(&key)))),
        ("amount", amount(money.and_then(|money| money.in_project))),
        ("counted", money.map_or(Json::Null, |money| Json::from(money.counted))),
        ("interactive", Json::from(event.interactive)),
    ])
}

fn visit(asked: &Asked<'_>, events: &[usize]) -> Json {
    let of = |index: usize| &asked.facts.events[index];
    let (first, last) = (of(events[0]), of(events[events.len() - 1]));
    let brought_by = events.iter().map(|&index| of(index)).find(|event| origin(event).source != DIRECT).unwrap_or(first);
    let (from, page) = (origin(brought_by), |index: &usize| of(*index).url.as_ref().map(|url| url.page.clone()));
    Json::object([
        ("identity_id", asked.facts.identities[events[0]].as_ref().map_or(Json::Null, identities::id)),
        ("started_at", shown(first.at_ms)),
        ("ended_at", shown(last.at_ms)),
        ("duration_sec", amount(Some(Micros::from(last.at_ms - first.at_ms) * 1_000))),
        ("events", Json::from(events.len())),
        ("pageviews", Json::from(events.iter().filter(|&&index| of(index).is_pageview()).count())),
        ("source", Json::from(from.source)),
        ("medium", Json::from(from.medium)),
        ("campaign", Json::from(from.campaign)),
        ("acquisition_channel", Json::from(channel(brought_by))),
        ("entry_url", Json::from(events.iter().find_map(page))),
        ("exit_url", Json::from(events.iter().rev().find_map(page))),
    ])
}

fn order(asked: &Asked<'_>, index: usize) -> Json {
    let event = &asked.facts.events[index];
    let money = event.money.as_ref().expect("an event with money");
    Json::object([
        ("at", shown(event.at_ms)),
        ("kind", Json::from(if money.value > 0 { "order" } else { "refund" })),
        ("value", amount(Some(money.value))),
        ("currency", Json::from(money.currency.clone())),
        ("amount", amount(money.in_project)),
        ("counted", Json::from(money.counted)),
    ])
}

/// Counts events by what they belong to.
fn counted<Key: Ord>(keys: impl Iterator<Item = Key>) -> Vec<(Key, usize)> {
    let mut counts = BTreeMap::new();
    keys.for_each(|key| *counts.entry(key).or_insert(0) += 1);
    counts.into_iter().collect()
}

fn companies(asked: &Asked<'_>, events: &[usize]) -> Json {
    let rows = counted(events.iter().filter_map(|&index| asked.facts.company(index))).into_iter();
    let rows = rows.map(|(key, events)| (company_name(asked, &key), key, events)).collect();
    let rows = ranked(rows, |(_, _, events)| *events, |(name, key, _)| rank_name(name, key));
    Json::list(rows.into_iter().map(|(name, key, events)| {
        Json::object([
            ("company_id", Json::Id(id_name(&key))),
            ("name", Json::from(name)),
            ("domain", Json::from(domain_of(&key).map(str::to_owned))),
            ("events", Json::from(events)),
        ])
    }))
}

fn groups(asked: &Asked<'_>, events: &[usize]) -> Json {
    let groups = events.iter().filter_map(|&index| asked.facts.events[index].group.clone());
    let rows = counted(groups.filter(|(kind, _)| kind != "company")).into_iter();
    let name = |kind: &str, key: &str| latest_name(asked, |index| asked.facts.events[index].is_in(kind, key));
    let rows = rows.map(|((kind, key), events)| (name(&kind, &key), kind, key, events)).collect();
    let rows = ranked(rows, |(_, _, _, events)| *events, |(name, _, key, _)| rank_name(name, key));
    Json::list(rows.into_iter().map(|(name, kind, key, events)| {
        Json::object([
            ("group_type", Json::from(kind)),
            ("group_key", Json::from(key)),
            ("name", Json::from(name)),
            ("events", Json::from(events)),
        ])
    }))
}
