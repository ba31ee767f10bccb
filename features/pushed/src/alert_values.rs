//! The values of alerts: figures of a window, asked for together.

use std::collections::BTreeMap;

use headcount_actors::{AskError, EngineParts};
use headcount_domain::figures::{ComparedWindows, EventFigures, GoalsQuestion, ReportQuery, ReportQuestion};
use headcount_domain::time::Interval;
use headcount_domain::{Amount, Day, Predicate, ProjectId, Window};

use crate::alert::{AlertEvents, AlertFigure, AlertRule};

/// The values of some figures in a window, in their order; `None` if a question failed.
struct Values {
    values: Vec<Option<Amount>>,
    /// Why the last question that failed did.
    failure: Option<AskError>,
}

/// A question whose answer has the values of some figures.
struct Question {
    /// The predicate of chosen events; `None`: the rollups answer.
    predicate: Option<Predicate>,
    /// The goals; without any, a report answers.
    goals: Vec<Predicate>,
    /// Whether the goals need sessions: without them, an answer is advanced by the new events alone.
    needs_session: bool,
    /// The places of the figures, each with the place of its goal.
    places: Vec<(usize, usize)>,
}

/// Returns the events that a figure chooses, and the goal whose figures have it. Events that filters
/// choose are a goal among all events, so that one pass counts them for all alerts.
fn chosen(figure: AlertFigure, events: &AlertEvents) -> (Option<Predicate>, Option<Predicate>) {
    match (&events.predicate, &events.goal) {
        (None, _) => (None, None),
        (Some(predicate), _) if !figure.is_in_goals() => (Some(predicate.clone()), None),
        (Some(predicate), None) if predicate.people().is_empty() => (Some(Predicate::default()), Some(predicate.clone())),
        (Some(predicate), goal) => (Some(predicate.clone()), Some(goal.clone().unwrap_or_default())),
    }
}

/// Groups figures by the question that answers them.
fn questions(asked: &[(AlertFigure, &AlertEvents)]) -> Vec<Question> {
    let mut questions: Vec<Question> = Vec::new();
    for (place, (figure, events)) in asked.iter().enumerate() {
        let (predicate, goal) = chosen(*figure, events);
        let needs_session = predicate.iter().chain(&goal).any(Predicate::needs_session);
        let is_same = |known: &Question| {
            known.predicate == predicate && known.needs_session == needs_session && known.goals.is_empty() == goal.is_none()
        };
        let known = questions.iter().position(is_same).unwrap_or_else(|| {
            questions.push(Question { predicate, goals: Vec::new(), needs_session, places: Vec::new() });
            questions.len() - 1
        });
        let Question { goals, places, .. } = &mut questions[known];
        let of_goal = goal.map_or(0, |goal| {
            goals.iter().position(|known| *known == goal).unwrap_or_else(|| {
                goals.push(goal);
                goals.len() - 1
            })
        });
        places.push((place, of_goal));
    }
    questions
}

/// Returns the figures of a question, for each of its goals or once.
async fn ask(
    parts: &EngineParts,
    project: ProjectId,
    (predicate, goals): (Option<Predicate>, Vec<Predicate>),
    window: Window,
) -> Result<Vec<EventFigures>, AskError> {
    let (windows, interval) = (ComparedWindows { window, previous: None }, Interval::Day);
    let report = match predicate {
        Some(predicate) if !goals.is_empty() => {
            let current = parts.scans.goals(project, GoalsQuestion { windows, predicate, goals }).await?.current;
            let figures = current.goals.iter().map(|goal| EventFigures {
                unique_users: current.unique_users,
                converters: goal.converters,
                events: goal.conversions,
                revenue: goal.revenue,
                ..EventFigures::default()
            });
            return Ok(figures.collect());
        }
        Some(predicate) => parts.scans.report(project, ReportQuestion { windows, interval, predicate, goal: None }).await?,
        None => parts.ask(project, ReportQuery { windows, interval }).await?,
    };
    Ok(vec![report.current.totals])
}

/// Returns the figures of alerts in a window, as `report` and `goals` do.
async fn values(parts: &EngineParts, project: ProjectId, asked: &[(AlertFigure, &AlertEvents)], window: Window) -> Values {
    let (mut values, mut failure) = (vec![None; asked.len()], None);
    for Question { predicate, goals, places, .. } in questions(asked) {
        match ask(parts, project, (predicate, goals), window).await {
            Ok(figures) => {
                for (place, goal) in places {
                    let (figure, events) = asked[place];
                    values[place] = figures.get(goal).map(|figures| {
                        // The users of chosen events that are a goal here.
                        let is_goal_here = events.predicate.is_some() && events.goal.is_none() && figure.is_in_goals();
                        let unique_users = if is_goal_here { figures.converters } else { figures.unique_users };
                        figure.of(&EventFigures { unique_users, ..*figures })
                    });
                }
            }
            // The others are still asked.
            Err(error) => failure = Some(error),
        }
    }
    Values { values, failure }
}

/// A window in which the figure of an alert is read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) rule: &'a AlertRule,
    pub(crate) events: &'a AlertEvents,
    pub(crate) window: Window,
}

/// A figure, and the figure that its change is against, if there is one.
pub(crate) type Read = (Amount, Option<Amount>);

/// Reads figures, each window's together, in the order that they are asked in. A figure is `None` if
/// its question failed, for the reason that is returned.
pub(crate) async fn read(
    parts: &EngineParts,
    project: ProjectId,
    asked: &[Asked<'_>],
    (today, floor): (Day, Option<Day>),
) -> (Vec<Option<Read>>, Option<AskError>) {
    let mut by_window: BTreeMap<(Day, Day), Vec<usize>> = BTreeMap::new();
    for (place, Asked { rule, events, window }) in asked.iter().enumerate() {
        by_window.entry((window.start, window.end)).or_default().push(place);
        // A baseline whose events are not kept any more is none.
        let mut baselines = rule.condition.baselines(rule.over, *window);
        baselines.retain(|baseline| !events.is_below(floor, baseline.start));
        baselines.iter().for_each(|baseline| by_window.entry((baseline.start, baseline.end)).or_default().push(place));
    }
    let (all, mut failure) = (AlertEvents::default(), None);
    // `None`: the window has no data.
    let mut figures: BTreeMap<(usize, (Day, Day)), Option<Amount>> = BTreeMap::new();
    for ((start, end), places) in &by_window {
        let mut of_window: Vec<_> = places.iter().map(|place| (asked[*place].rule.figure, asked[*place].events)).collect();
        let counts_all = places.iter().any(|place| asked[*place].rule.condition.is_against_weekdays());
        of_window.extend(counts_all.then_some((AlertFigure::Events, &all)));
        let answer = values(parts, project, &of_window, Window { start: *start, end: *end }.until(today)).await;
        failure = answer.failure.or(failure);
        let count = if counts_all { answer.values.last().copied().flatten() } else { Some(Amount::from_units(1)) };
        for (place, value) in places.iter().zip(answer.values) {
            let Some((value, count)) = value.zip(count) else { continue };
            let needs_data = asked[*place].rule.condition.is_against_weekdays() && asked[*place].window.start > *start;
            figures.insert((*place, (*start, *end)), Some(value).filter(|_| !needs_data || count > Amount::ZERO));
        }
    }
    let read = asked.iter().enumerate().map(|(place, Asked { rule, events, window })| {
        let figure = |window: &Window| figures.get(&(place, (window.start, window.end))).copied();
        let mut baselines = rule.condition.baselines(rule.over, *window);
        baselines.retain(|baseline| !events.is_below(floor, baseline.start));
        // A question that failed says nothing about data.
        let baselines: Option<Vec<_>> = baselines.iter().map(figure).collect();
        Some((figure(window)??, rule.condition.baseline(baselines?.into_iter().flatten().collect())))
    });
    (read.collect(), failure)
}
