//! `GET /projects/{project_id}/events`

use super::fields::{Chosen, built_in};
use super::identities::id;
use super::params::Params;
use super::{Asked, Wrong};
use crate::decimal::{Decimal, Micros};
use crate::facts::{explicit_company, reported_email};
use crate::json::Json;
use crate::time::shown;

/// Returns the first page. The model has no positions: `after_position` may only be 0.
pub(super) fn list(asked: &Asked<'_>, project: &str, mut params: Params) -> Result<Json, Wrong> {
    let is_recorded = params.text("after_position")?.is_some();
    let has_window = !is_recorded || params.has("start_date") || params.has("end_date");
    let window = if has_window { Some(params.event_window(asked, project)?) } else { None };
    let chosen = Chosen::of(&mut params)?;
    let limit = params.count("limit", 1..=1_000, 100)?;
    params.done()?;

    let is_in = |&index: &usize| {
        let is_kept = asked.model.floor(project).is_none_or(|floor| asked.day(index) >= floor);
        is_kept && window.is_none_or(|window| window.holds(asked.day(index))) && chosen.holds(asked, index)
    };
    let mut found: Vec<usize> = asked.facts.of_project(project).filter(is_in).collect();
    if !is_recorded {
        found.sort_by_key(|&index| asked.facts.moment(index));
        found.reverse();
    }
    let bound = |day: Option<String>| Json::from(day);
    Ok(Json::object([
        ("events", Json::list(found.iter().take(limit).map(|&index| row(asked, index)))),
        ("start_date", bound(window.map(|window| window.first.to_string()))),
        ("end_date", bound(window.map(|window| window.last.to_string()))),
        ("timezone", Json::from(asked.timezone.name())),
    ]))
}

fn row(asked: &Asked<'_>, index: usize) -> Json {
    let event = &asked.facts.events[index];
    let money = event.money.as_ref();
    let amount = |micros: Option<Micros>| micros.map_or(Json::Null, |micros| Json::from(Decimal::of_micros(micros)));
    let other = |name: &str| Json::from(event.others.get(name).cloned());
    let of_session = |name: &str| built_in(asked, index, name).unwrap_or(Json::Null);
    let identity = asked.facts.identities[index].as_ref();
    let reported = |reported: Option<String>| Json::from(reported.filter(|_| event.consent));
    Json::object([
        ("timestamp", shown(event.at_ms)),
        ("day", Json::from(asked.day(index).to_string())),
        ("name", Json::from(event.name.clone())),
        ("consented", Json::from(event.consent)),
        ("interactive", Json::from(event.interactive)),
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
        ("value_in_project", amount(money.and_then(|money| money.in_project))),
        ("value_in_organization", amount(money.and_then(|money| money.in_organization))),
        ("value_counted", money.map_or(Json::Null, |money| Json::from(money.counted))),
        ("currency", Json::from(money.map(|money| money.currency.clone()))),
        ("email", reported(reported_email(event))),
        ("company", Json::from(explicit_company(event))),
        ("metadata", event.metadata.clone()),
        ("identity_id", identity.map_or(Json::Null, id)),
        ("acquisition_channel", of_session("acquisition_channel")),
        ("entry_url", of_session("entry_url")),
    ])
}
