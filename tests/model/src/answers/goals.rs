//! `POST /projects/{project_id}/analytics/goals`. The question has the goals of the project.

use super::fields::Chosen;
use super::figures::{beside, chosen_of, compared, object};
use super::params::Params;
use super::revenue::Till;
use super::{Asked, Wrong};
use crate::decimal::{MICROS, Micros, ratio};
use crate::facts::Identity;
use crate::json::Json;
use crate::time::Window;
use std::collections::BTreeSet;

/// The distinct identities of some events.
fn identities(asked: &Asked<'_>, events: &[usize]) -> BTreeSet<Identity> {
    events.iter().filter_map(|&index| asked.facts.identities[index].clone()).collect()
}

pub(super) fn goals(asked: &Asked<'_>, project: &str, mut params: Params) -> Result<Json, Wrong> {
    let window = params.event_window(asked, project)?;
    let previous = compared(&mut params, asked, project, window, false)?;
    let chosen = Chosen::of(&mut params)?;
    let goals = params.take("goals").unwrap_or(Json::List(Vec::new()));
    params.done()?;

    let converting = |goal: &Json, window: Window| -> Vec<usize> {
        let goal = Chosen::of_goal(goal);
        chosen_of(asked, project, window, &chosen).into_iter().filter(|index| goal.holds(asked, *index)).collect()
    };
    let figures = |goal: &Json, window: Window| {
        let events = converting(goal, window);
        let (converters, users) = (identities(asked, &events), identities(asked, &chosen_of(asked, project, window, &chosen)));
        let mut till = Till::default();
        events.iter().for_each(|&index| till.add_in_project(&asked.facts.events[index]));
        vec![
            ("conversions", Json::from(events.len())),
            ("converters", Json::from(converters.len())),
            ("rate", Json::from(ratio(converters.len() as Micros * MICROS, users.len()))),
            ("revenue", till.revenue_json()),
        ]
    };
    let users = |window: Window| Json::from(identities(asked, &chosen_of(asked, project, window, &chosen)).len());
    let row = |goal: &Json| {
        let name = goal.field("name").text().expect("a name");
        let mut fields = figures(goal, window);
        fields.push(("goal_id", Json::Id(format!("goal {project} {name}"))));
        fields.push(("name", Json::from(name)));
        fields.push(("previous", previous.map_or(Json::Null, |window| object(figures(goal, window)))));
        object(fields)
    };
    let before = |window: Window| {
        let (first, last) = (window.first.to_string(), window.last.to_string());
        object(vec![("unique_users", users(window)), ("start_date", Json::from(first)), ("end_date", Json::from(last))])
    };
    let mut converted: Vec<usize> = goals.items().iter().flat_map(|goal| converting(goal, window)).collect();
    converted.sort_unstable();
    converted.dedup();
    let mut answer = vec![
        ("goals", Json::list(goals.items().iter().map(row))),
        ("unique_users", users(window)),
        ("previous", previous.map_or(Json::Null, before)),
    ];
    answer.extend(beside(asked, project, window, &converted));
    Ok(object(answer))
}
