//! `POST /projects/{project_id}/explain`

use super::fields::Chosen;
use super::identities::id;
use super::params::Params;
use super::revenue::currency;
use super::{Asked, Wrong};
use crate::acquisition::{DIRECT, Origin};
use crate::decimal::{Decimal, MICROS, Micros};
use crate::json::Json;
use crate::time::shown;
use std::collections::BTreeSet;

const FIGURES: [&str; 5] = ["unique_users", "sessions", "revenue", "orders", "attribution"];

/// What becomes of a chosen event.
enum Verdict {
    Contributes(Micros, &'static str),
    NotCounted(&'static str),
    Neither,
}

/// The touches that revenue is explained of.
struct Attributed {
    model: &'static str,
    level: &'static str,
    dimension: &'static str,
    value: Option<String>,
}

impl Attributed {
    fn of(params: &mut Params, figure: &str) -> Result<Option<Attributed>, Wrong> {
        if figure == "attribution" {
            return Ok(Some(Attributed {
                model: params.word("model", &["first_touch", "last_touch"])?,
                level: params.word("level", &["account", "identity"])?,
                dimension: params.word("dimension", &["source", "medium", "campaign"])?,
                value: params.take("value").and_then(|value| value.text().map(str::to_owned)),
            }));
        }
        match ["model", "level", "dimension", "value"].into_iter().find(|name| params.has(name)) {
            None => Ok(None),
            Some(name) => Err(Wrong::Invalid { code: Some("unsupported_combination"), param: Some(name.to_owned()) }),
        }
    }

    /// Whether the money of an event is under a touch; `None` if it is not under the value.
    fn has_touch(&self, asked: &Asked<'_>, project: &str, index: usize) -> Option<bool> {
        let touch: Origin = asked.days(project).touch(index, self.level, self.model);
        let is_touch = touch.source != DIRECT;
        let named = match self.dimension {
            "source" => touch.source,
            "medium" => touch.medium,
            _ => touch.campaign,
        };
        self.value.as_ref().is_none_or(|value| *value == named).then_some(is_touch)
    }
}

/// Returns the first page. The model has no cursors.
pub(super) fn explain(asked: &Asked<'_>, project: &str, mut params: Params) -> Result<Json, Wrong> {
    let figure = params.text("figure")?.ok_or_else(|| Wrong::param("figure"))?;
    let figure = FIGURES.into_iter().find(|known| **known == figure).ok_or_else(|| Wrong::param("figure"))?;
    let attributed = Attributed::of(&mut params, figure)?;
    let window = params.event_window(asked, project)?;
    let chosen = Chosen::of(&mut params)?;
    let limit = params.count("limit", 1..=500, 100)?;
    params.done()?;

    let is_chosen = |index: &usize| window.holds(asked.day(*index)) && chosen.chooses(asked, *index, window);
    let mut events: Vec<usize> = asked.facts.of_project(project).filter(is_chosen).collect();
    events.sort_by_key(|&index| asked.facts.moment(index));
    let (mut users, mut sessions) = (BTreeSet::new(), BTreeSet::new());
    let (mut rows, mut not_counted, mut result) = (Vec::new(), Vec::new(), 0);
    for index in events {
        let identity = asked.facts.identities[index].as_ref();
        let verdict = match (figure, identity, &attributed) {
            ("unique_users" | "sessions", None, _) if !asked.facts.events[index].consent => Verdict::NotCounted("no_consent"),
            ("unique_users" | "sessions", None, _) => Verdict::Neither,
            ("unique_users", Some(identity), _) if users.insert(identity.clone()) => {
                Verdict::Contributes(MICROS, "first_of_user")
            }
            ("sessions", ..) => {
                let began = asked.facts.session(index).map(|session| session.entry());
                match began.map(|entry| (sessions.insert(entry), window.holds(asked.day(entry)))) {
                    None => Verdict::NotCounted("no_session"),
                    Some((false, _)) => Verdict::Neither,
                    Some((true, true)) => Verdict::Contributes(MICROS, "first_of_session"),
                    Some((true, false)) => Verdict::NotCounted("began_before"),
                }
            }
            ("unique_users", ..) => Verdict::Neither,
            (_, _, None) => money(asked, index, figure),
            (_, _, Some(attributed)) => match (money(asked, index, figure), attributed.has_touch(asked, project, index)) {
                (Verdict::Contributes(amount, _), Some(true)) => Verdict::Contributes(amount, "touch"),
                (Verdict::Contributes(amount, _), Some(false)) => Verdict::Contributes(amount, "direct"),
                (verdict, Some(_)) => verdict,
                (_, None) => Verdict::Neither,
            },
        };
        match verdict {
            Verdict::Contributes(amount, why) => {
                result += amount;
                rows.push(row(asked, index, why, Some(amount)));
            }
            Verdict::NotCounted(why) => not_counted.push(row(asked, index, why, None)),
            Verdict::Neither => {}
        }
    }
    let is_whole = rows.len() <= limit && not_counted.len() <= limit;
    let mut answer = vec![
        ("result", Json::from(Decimal::of_micros(result))),
        ("rows", Json::list(rows.into_iter().rev().take(limit))),
        ("not_counted", Json::list(not_counted.into_iter().rev().take(limit))),
        ("currency", currency(asked, project)),
        ("start_date", Json::from(window.first.to_string())),
        ("end_date", Json::from(window.last.to_string())),
        ("timezone", Json::from(asked.timezone.name())),
    ];
    // The cursor of more pages is the server's own.
    answer.extend(is_whole.then_some(("next", Json::Null)));
    Ok(Json::Object(answer.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()))
}

/// What the money of an event is to a figure.
fn money(asked: &Asked<'_>, index: usize, figure: &str) -> Verdict {
    let Some(money) = asked.facts.events[index].money.as_ref().filter(|money| money.value != 0) else {
        return Verdict::Neither;
    };
    let is_order = money.value > 0;
    match money.in_project {
        _ if !money.counted => Verdict::NotCounted("server_only"),
        None => Verdict::NotCounted("no_rate"),
        Some(_) if figure == "orders" && is_order => Verdict::Contributes(MICROS, "order"),
        Some(_) if figure == "orders" => Verdict::NotCounted("refund"),
        Some(0) => Verdict::Neither,
        Some(amount) => Verdict::Contributes(amount, if is_order { "order" } else { "refund" }),
    }
}

fn row(asked: &Asked<'_>, index: usize, why: &str, contributes: Option<Micros>) -> Json {
    let event = &asked.facts.events[index];
    let money = event.money.as_ref();
    let mut row = vec![
        ("at", shown(event.at_ms)),
        ("name", Json::from(event.name.clone())),
        ("identity_id", asked.facts.identities[index].as_ref().map_or(Json::Null, id)),
        ("value", money.map_or(Json::Null, |money| Json::from(Decimal::of_micros(money.value)))),
        ("currency", Json::from(money.map(|money| money.currency.clone()))),
        ("why", Json::from(why)),
    ];
    row.extend(contributes.map(|amount| ("contributes", Json::from(Decimal::of_micros(amount)))));
    Json::Object(row.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}
