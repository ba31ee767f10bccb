//! `POST /projects/{project_id}/analytics/funnel` and `…/funnel/people`

use super::aggregate::name;
use super::chains::{Chain, Funnel};
use super::companies::id_name;
use super::fields::property;
use super::figures::{beside, compared, object};
use super::identities::id;
use super::params::Params;
use super::revenue::Till;
use super::{Asked, Wrong, ranked};
use crate::decimal::{Decimal, MICROS, Micros, ratio};
use crate::facts::{Account, Identity};
use crate::json::Json;
use crate::time::shown;
use std::collections::BTreeMap;

/// How many chains have a step, counted from 1.
fn reached(chains: &[Chain], step: usize) -> usize {
    chains.iter().filter(|chain| chain.len() >= step).count()
}

/// How many chains have each step.
fn entities(chains: &[Chain], steps: usize) -> Json {
    Json::list((1..=steps).map(|step| Json::from(reached(chains, step))))
}

fn share(part: usize, whole: usize) -> Json {
    Json::from(ratio(part as Micros * MICROS, whole))
}

/// The nearest-rank quartile of some times, in seconds.
fn quartile(mut times_ms: Vec<i64>, quarters: usize) -> Json {
    times_ms.sort_unstable();
    let rank = (times_ms.len() * quarters).div_ceil(4);
    rank.checked_sub(1).map_or(Json::Null, |at| Json::from(Decimal::new(times_ms[at].into(), 3)))
}

/// The times between two steps, counted from 1, of the chains that have both.
fn times_ms(asked: &Asked<'_>, chains: &[Chain], from: usize, to: usize) -> Vec<i64> {
    let at = |chain: &Chain, step: usize| asked.facts.events[chain[step - 1]].at_ms;
    chains.iter().filter(|chain| chain.len() >= to).map(|chain| at(chain, to) - at(chain, from)).collect()
}

fn step(asked: &Asked<'_>, chains: &[Chain], (step, name): (usize, &str), steps: usize) -> Json {
    let (first, here, next) = (reached(chains, 1), reached(chains, step), reached(chains, step + 1));
    let mut till = Till::default();
    let events = chains.iter().filter_map(|chain| chain.get(step - 1));
    events.for_each(|&index| till.add_in_project(&asked.facts.events[index]));
    let since_last = |quarters: usize| match step {
        1 => Json::Null,
        _ => quartile(times_ms(asked, chains, step - 1, step), quarters),
    };
    object(vec![
        ("name", Json::from(name)),
        ("entities", Json::from(here)),
        ("rate", share(here, first)),
        ("step_rate", if step == 1 { Json::Null } else { share(here, reached(chains, step - 1)) }),
        ("median_sec", since_last(2)),
        ("p75_sec", since_last(3)),
        ("dropped", Json::from(if step == steps { 0 } else { here - next })),
        ("revenue", till.revenue_json()),
    ])
}

/// The chains by the value of a field of the events that began them.
fn by_value(asked: &Asked<'_>, chains: &[Chain], field: &str) -> Vec<(Json, Vec<Chain>)> {
    let mut groups: BTreeMap<Json, Vec<Chain>> = BTreeMap::new();
    for chain in chains {
        groups.entry(property(asked, chain[0], field).expect("a field of the model")).or_default().push(chain.clone());
    }
    ranked(groups.into_iter().collect(), |(_, chains)| chains.len(), |(value, _)| name(value))
}

pub(super) fn funnel(asked: &Asked<'_>, project: &str, mut params: Params) -> Result<Json, Wrong> {
    let window = params.event_window(asked, project)?;
    let previous = compared(&mut params, asked, project, window, false)?;
    let funnel = Funnel::of(&mut params)?;
    let breakdown = params.text("breakdown")?;
    let limit = params.count("limit", 1..=1_000, 100)?;
    params.done()?;

    let steps = funnel.names().count();
    let chains_of = |window| -> Vec<Chain> { funnel.chains(asked, project, window).into_values().collect() };
    let chains = chains_of(window);
    let rate = |chains: &[Chain]| share(reached(chains, steps), reached(chains, 1));
    let whole = |quarters: usize| quartile(times_ms(asked, &chains, 1, steps), quarters);
    let rows = breakdown.as_ref().map(|field| by_value(asked, &chains, field));
    let row = |(value, chains): &(Json, Vec<Chain>)| {
        object(vec![("value", value.clone()), ("steps", entities(chains, steps)), ("rate", rate(chains))])
    };
    let before = previous.map_or(Json::Null, |window| {
        let chains = chains_of(window);
        object(vec![
            ("steps", entities(&chains, steps)),
            ("completed", Json::from(reached(&chains, steps))),
            ("rate", rate(&chains)),
            ("start_date", Json::from(window.first.to_string())),
            ("end_date", Json::from(window.last.to_string())),
        ])
    });
    let total_rows = rows.as_ref().map_or(0, Vec::len);
    let mut answer = vec![
        ("steps", Json::list((1..).zip(funnel.names()).map(|named| step(asked, &chains, named, steps)))),
        ("completed", Json::from(reached(&chains, steps))),
        ("rate", rate(&chains)),
        ("median_sec", whole(2)),
        ("p75_sec", whole(3)),
        ("breakdown", rows.map_or(Json::Null, |rows| Json::list(rows.iter().take(limit).map(row)))),
        ("total_rows", Json::from(total_rows)),
        ("truncated", Json::from(total_rows > limit)),
        ("previous", before),
    ];
    answer.extend(beside(asked, project, window, &chains.concat()));
    Ok(object(answer))
}

/// The displayed identifier of an identity, as its project knows it; a visitor has none of its own.
fn resolved(asked: &Asked<'_>, project: &str, identity: &Identity) -> Option<String> {
    let own = match identity {
        Identity::User(id) | Identity::Anonymous(_, id) => Some(id.clone()),
        Identity::Visitor(_) => None,
    };
    asked.facts.emails_in(identity, |name| name == project).0.or(own)
}

/// Lists who reached a step, or dropped after it: the first page. Those of one instant are in the
/// order of their names, since the model doesn't know the server's keys.
pub(super) fn people(asked: &Asked<'_>, project: &str, mut params: Params) -> Result<Json, Wrong> {
    let window = params.event_window(asked, project)?;
    let funnel = Funnel::of(&mut params)?;
    let steps = funnel.names().count();
    if !params.has("step") {
        return Err(Wrong::param("step"));
    }
    let step = params.count("step", 1..=steps, 1)?;
    let outcome = params.word("outcome", &["reached", "dropped"])?;
    let limit = params.count("limit", 1..=500, 100)?;
    params.done()?;

    let is_listed = |chain: &Chain| match outcome {
        "reached" => chain.len() >= step,
        _ => chain.len() == step && step < steps,
    };
    let mut rows = Vec::new();
    for (entity, chain) in funnel.chains(asked, project, window).into_iter().filter(|(_, chain)| is_listed(chain)) {
        let at_ms = asked.facts.events[chain[step - 1]].at_ms;
        let mut fields = vec![("at", shown(at_ms))];
        let name = match &entity {
            Account::Company(key) => {
                fields.push(("company_id", Json::Id(id_name(key))));
                None
            }
            Account::Identity(identity) => {
                let name = resolved(asked, project, identity);
                fields.push(("identity_id", id(identity)));
                fields.push(("resolved_identifier", Json::from(name.clone())));
                name
            }
        };
        rows.push((at_ms, name, object(fields)));
    }
    let rows = ranked(rows, |(at_ms, _, _)| *at_ms, |(_, name, _)| name.clone());
    let is_whole = rows.len() <= limit;
    let mut answer = vec![("people", Json::list(rows.into_iter().take(limit).map(|(_, _, row)| row)))];
    // The cursor of more pages is the server's own.
    answer.extend(is_whole.then_some(("next", Json::Null)));
    Ok(object(answer))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_are_nearest_ranks() {
        let shown = |times_ms: &[i64]| [2, 3].map(|quarters| quartile(times_ms.to_vec(), quarters).to_string());
        assert_eq!(shown(&[]), ["null", "null"]);
        assert_eq!(shown(&[1]), ["0.001", "0.001"]);
        assert_eq!(shown(&[1_500, 0]), ["0", "1.5"]);
        assert_eq!(shown(&[4_000, 3_000, 1_000, 2_000]), ["2", "3"]);
        assert_eq!(shown(&[5_000, 4_000, 3_000, 1_000, 2_000]), ["3", "4"]);
    }
}
