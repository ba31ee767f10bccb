//! `POST /projects/{project_id}/analytics/report` and `…/breakdown`

use super::aggregate::name;
use super::fields::{Chosen, lower, property};
use super::params::Params;
use super::revenue::{Till, currency, unconverted};
use super::whole_days::WholeDays;
use super::{Asked, Wrong, ranked};
use crate::decimal::{MICROS, Micros, ratio};
use crate::facts::{Identity, Session};
use crate::json::Json;
use crate::time::{Window, bound, day_of, shown};
use chrono::{DateTime, Datelike, Days, Months, NaiveDate, NaiveTime};
use std::collections::{BTreeMap, BTreeSet};

const MINUTE_MS: i64 = 60_000;
const HOUR_MS: i64 = 60 * MINUTE_MS;

/// The figures of some events, and of the sessions that are counted with them.
#[derive(Default)]
pub(super) struct Figures {
    pub(super) users: usize,
    /// The users with an event that fits the goal, if there is one.
    pub(super) converters: Option<usize>,
    pub(super) sessions: usize,
    pub(super) bounces: usize,
    pub(super) duration_ms: i64,
    pub(super) pageviews: usize,
    pub(super) events: usize,
    pub(super) till: Till,
}

impl Figures {
    fn fields(&self) -> Vec<(&'static str, Json)> {
        let mut fields = self.fields_without_goal();
        if let Some(converters) = self.converters {
            fields.push(("converters", Json::from(converters)));
            fields.push(("rate", Json::from(ratio(converters as Micros * MICROS, self.users))));
        }
        fields
    }

    fn fields_without_goal(&self) -> Vec<(&'static str, Json)> {
        vec![
            ("unique_users", Json::from(self.users)),
            ("sessions", Json::from(self.sessions)),
            ("pageviews", Json::from(self.pageviews)),
            ("events", Json::from(self.events)),
            ("revenue", self.till.revenue_json()),
            ("orders", Json::from(self.till.orders)),
        ]
    }

    fn fields_with_ratios(&self) -> Vec<(&'static str, Json)> {
        let mut fields = self.fields();
        fields.push(("bounce_rate", Json::from(ratio(self.bounces as Micros * MICROS, self.sessions))));
        fields.push(("duration_avg_sec", Json::from(ratio(Micros::from(self.duration_ms) * 1_000, self.sessions))));
        fields
    }
}

/// Some events and their sessions, one by one.
#[derive(Default)]
struct Collected {
    users: BTreeSet<Identity>,
    converters: BTreeSet<Identity>,
    figures: Figures,
}

impl Collected {
    fn of(goal: Option<&Chosen>) -> Collected {
        let figures = Figures { converters: goal.map(|_| 0), ..Figures::default() };
        Collected { figures, ..Collected::default() }
    }

    fn add_event(&mut self, asked: &Asked<'_>, index: usize, goal: Option<&Chosen>) {
        let event = &asked.facts.events[index];
        self.users.extend(asked.facts.identities[index].clone());
        self.figures.users = self.users.len();
        if let Some(goal) = goal {
            self.converters.extend(asked.facts.identities[index].clone().filter(|_| goal.holds(asked, index)));
            self.figures.converters = Some(self.converters.len());
        }
        self.figures.pageviews += usize::from(event.is_pageview());
        self.figures.events += 1;
        self.figures.till.add_in_project(event);
    }

    fn add_session(&mut self, asked: &Asked<'_>, session: &Session) {
        self.figures.sessions += 1;
        self.figures.bounces += usize::from(session.events.len() == 1);
        self.figures.duration_ms += asked.facts.events[session.last()].at_ms - asked.facts.events[session.entry()].at_ms;
    }
}

pub(super) fn object(fields: Vec<(&'static str, Json)>) -> Json {
    Json::Object(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

/// The chosen events of a window.
pub(super) fn chosen_of(asked: &Asked<'_>, project: &str, window: Window, chosen: &Chosen) -> Vec<usize> {
    let is_chosen = |index: &usize| window.holds(asked.day(*index)) && chosen.chooses(asked, *index, window);
    asked.facts.of_project(project).filter(is_chosen).collect()
}

/// The sessions that began in a window and hold one of these events.
fn sessions_of<'a>(asked: &'a Asked<'_>, project: &str, window: Window, events: &BTreeSet<usize>) -> Vec<&'a Session> {
    let counts = |session: &&Session| {
        asked.facts.events[session.entry()].project == project
            && window.holds(asked.day(session.entry()))
            && session.holds(|index| events.contains(&index))
    };
    asked.facts.sessions.iter().filter(counts).collect()
}

/// Reads the window that the figures are compared with.
pub(super) fn compared(
    params: &mut Params,
    asked: &Asked<'_>,
    project: &str,
    window: Window,
    is_of_whole_days: bool,
) -> Result<Option<Window>, Wrong> {
    let wrong = || Wrong::param("compare");
    let previous = match params.take("compare") {
        None => return Ok(None),
        Some(Json::Text(text)) if text == "previous_period" => {
            let days = (window.last - window.first).num_days() + 1;
            let days = Days::new(u64::try_from(days).expect("a positive number"));
            Window { first: window.first - days, last: window.last - days }
        }
        Some(Json::Text(text)) if text == "previous_year" => {
            Window { first: window.first - Months::new(12), last: window.last - Months::new(12) }
        }
        Some(dates @ Json::Object(_)) => {
            let day = |name: &str| dates.field(name).text().and_then(|text| bound(text, asked.timezone)).ok_or_else(wrong);
            Window { first: day("start_date")?, last: day("end_date")? }
        }
        Some(_) => return Err(wrong()),
    };
    let is_kept = is_of_whole_days || asked.model.floor(project).is_none_or(|floor| previous.first >= floor);
    let days = (previous.last - previous.first).num_days() + 1;
    if is_kept && (1..=3_660).contains(&days) { Ok(Some(previous)) } else { Err(wrong()) }
}

/// A bucket: its name, and whether it is complete.
type Bucket = (String, bool);

/// The buckets of a window.
struct Divided<'a, 'f> {
    asked: &'a Asked<'f>,
    interval: &'static str,
    window: Window,
    /// The first instant of each day and the one after its last, by minutes; only for hours.
    days: BTreeMap<NaiveDate, (i64, i64)>,
}

impl Divided<'_, '_> {
    fn of<'a, 'f>(asked: &'a Asked<'f>, interval: &'static str, window: Window) -> Divided<'a, 'f> {
        let mut days: BTreeMap<NaiveDate, (i64, i64)> = BTreeMap::new();
        if interval == "hour" {
            // Every minute of the window, in any timezone.
            let start_ms = (window.first - Days::new(2)).and_time(NaiveTime::MIN).and_utc().timestamp_millis();
            let end_ms = (window.last + Days::new(3)).and_time(NaiveTime::MIN).and_utc().timestamp_millis();
            let mut at_ms = start_ms;
            while at_ms < end_ms {
                let ends = days.entry(day_of(at_ms, asked.timezone)).or_insert((at_ms, at_ms));
                ends.1 = at_ms + MINUTE_MS;
                at_ms += MINUTE_MS;
            }
        }
        Divided { asked, interval, window, days }
    }

    /// Returns the first day of the bucket of a day.
    fn first_day(&self, day: NaiveDate) -> NaiveDate {
        match self.interval {
            "week" => day - Days::new(u64::from(day.weekday().num_days_from_monday())),
            "month" => day - Days::new(u64::from(day.day0())),
            _ => day,
        }
    }

    /// Returns the bucket of an event.
    fn bucket(&self, index: usize) -> String {
        let (day, at_ms) = (self.asked.day(index), self.asked.facts.events[index].at_ms);
        if self.interval != "hour" {
            return self.first_day(day).to_string();
        }
        let (start_ms, _) = self.days[&day];
        instant(start_ms + (at_ms - start_ms) / HOUR_MS * HOUR_MS)
    }

    fn buckets(&self) -> Vec<Bucket> {
        let mut buckets: Vec<Bucket> = Vec::new();
        for day in self.window.days() {
            if self.interval == "hour" {
                let Some(&(start_ms, end_ms)) = self.days.get(&day) else { continue };
                let mut at_ms = start_ms;
                while at_ms < end_ms {
                    buckets.push((instant(at_ms), (at_ms + HOUR_MS).min(end_ms) <= self.asked.now_ms));
                    at_ms += HOUR_MS;
                }
                continue;
            }
            let first = self.first_day(day);
            let last = first.iter_days().take_while(|day| self.first_day(*day) == first).last().expect("a day");
            let is_complete = self.window.holds(first) && self.window.holds(last) && last < self.asked.today;
            if buckets.last().is_none_or(|(name, _)| *name != first.to_string()) {
                buckets.push((first.to_string(), is_complete));
            }
        }
        buckets
    }
}

fn instant(at_ms: i64) -> String {
    assert!(DateTime::from_timestamp_millis(at_ms).is_some());
    shown(at_ms).text().expect("a text").to_owned()
}

/// Returns `totals` and `series` of a window.
fn by_time(
    asked: &Asked<'_>,
    project: &str,
    window: Window,
    interval: &'static str,
    (chosen, goal): (&Chosen, Option<&Chosen>),
    is_of_whole_days: bool,
) -> Vec<(&'static str, Json)> {
    let divided = Divided::of(asked, interval, window);
    let events = chosen_of(asked, project, window, chosen);
    let mut totals = Collected::of(goal);
    let mut buckets: BTreeMap<String, Collected> = BTreeMap::new();
    for &index in &events {
        totals.add_event(asked, index, goal);
        buckets.entry(divided.bucket(index)).or_insert_with(|| Collected::of(goal)).add_event(asked, index, goal);
    }
    for session in sessions_of(asked, project, window, &events.into_iter().collect()) {
        totals.add_session(asked, session);
        let bucket = buckets.entry(divided.bucket(session.entry())).or_insert_with(|| Collected::of(goal));
        bucket.add_session(asked, session);
    }
    let mut buckets: BTreeMap<String, Figures> = buckets.into_iter().map(|(name, bucket)| (name, bucket.figures)).collect();
    let mut totals = totals.figures;
    if is_of_whole_days {
        (totals, buckets) = frozen_and_live(asked, project, &divided);
    }
    let series = divided.buckets().into_iter().map(|(name, is_complete)| {
        let mut fields = buckets.remove(&name).unwrap_or_else(|| Collected::of(goal).figures).fields_with_ratios();
        fields.push(("bucket", Json::from(name)));
        fields.push(("complete", Json::from(is_complete)));
        object(fields)
    });
    let series = Json::list(series.collect::<Vec<_>>());
    assert!(buckets.is_empty(), "every event is in a bucket: {:?}", buckets.keys());
    vec![("totals", object(totals.fields_with_ratios())), ("series", series)]
}

/// Returns the figures of all events of a window and of its buckets, by what each day knows.
fn frozen_and_live(asked: &Asked<'_>, project: &str, divided: &Divided<'_, '_>) -> (Figures, BTreeMap<String, Figures>) {
    let mut buckets: BTreeMap<String, Vec<NaiveDate>> = BTreeMap::new();
    for day in divided.window.days() {
        buckets.entry(divided.first_day(day).to_string()).or_default().push(day);
    }
    let known = WholeDays::of(asked, project);
    let of = |days: &[NaiveDate]| known.figures(Window { first: days[0], last: days[days.len() - 1] });
    let all: Vec<NaiveDate> = divided.window.days().collect();
    (of(&all), buckets.into_iter().map(|(name, days)| (name, of(&days))).collect())
}

pub(super) fn report(asked: &Asked<'_>, project: &str, mut params: Params) -> Result<Json, Wrong> {
    let is_plain = params.choose_all();
    let is_of_whole_days = is_plain && !params.is_text("interval", "hour");
    let window = if is_of_whole_days { params.window(asked)? } else { params.event_window(asked, project)? };
    let interval = match params.has("interval") {
        true => params.word("interval", &["hour", "day", "week", "month"])?,
        false => "day",
    };
    let previous = compared(&mut params, asked, project, window, is_of_whole_days)?;
    let chosen = Chosen::of(&mut params)?;
    let goal = params.take("goal").map(|goal| Chosen::of_goal(&goal));
    let asked_for = (&chosen, goal.as_ref());
    params.done()?;
    // Only a floor makes a difference.
    let is_of_whole_days = is_of_whole_days && asked.model.floor(project).is_some();
    let is_long = |window: &Window| (window.last - window.first).num_days() >= 14;
    if interval == "hour" && (is_long(&window) || previous.as_ref().is_some_and(is_long)) {
        return Err(Wrong::param("interval"));
    }

    let mut answer = by_time(asked, project, window, interval, asked_for, is_of_whole_days);
    let previous = previous.map(|window| {
        let mut shown = by_time(asked, project, window, interval, asked_for, is_of_whole_days);
        shown.push(("start_date", Json::from(window.first.to_string())));
        shown.push(("end_date", Json::from(window.last.to_string())));
        object(shown)
    });
    answer.push(("previous", previous.unwrap_or(Json::Null)));
    answer.extend(beside(asked, project, window, &chosen_of(asked, project, window, &chosen)));
    answer.push(("interval", Json::from(interval)));
    Ok(object(answer))
}

/// What answers have beside their figures.
pub(super) fn beside(asked: &Asked<'_>, project: &str, window: Window, events: &[usize]) -> Vec<(&'static str, Json)> {
    vec![
        ("unconverted", unconverted(events.iter().map(|&index| &asked.facts.events[index]))),
        ("currency", currency(asked, project)),
        ("start_date", Json::from(window.first.to_string())),
        ("end_date", Json::from(window.last.to_string())),
        ("timezone", Json::from(asked.timezone.name())),
    ]
}

/// Returns the figures of each value.
fn by_value(
    asked: &Asked<'_>,
    project: &str,
    window: Window,
    dimension: &str,
    (chosen, goal): (&Chosen, Option<&Chosen>),
) -> BTreeMap<Json, Figures> {
    let mut groups: BTreeMap<Json, Vec<usize>> = BTreeMap::new();
    for index in chosen_of(asked, project, window, chosen) {
        groups.entry(property(asked, index, dimension).expect("a field of the model")).or_default().push(index);
    }
    let figures = |events: Vec<usize>| {
        let mut figures = Collected::of(goal);
        events.iter().for_each(|&index| figures.add_event(asked, index, goal));
        for session in sessions_of(asked, project, window, &events.into_iter().collect()) {
            figures.add_session(asked, session);
        }
        figures.figures
    };
    groups.into_iter().map(|(value, events)| (value, figures(events))).collect()
}

pub(super) fn breakdown(asked: &Asked<'_>, project: &str, mut params: Params) -> Result<Json, Wrong> {
    let window = params.event_window(asked, project)?;
    let previous = compared(&mut params, asked, project, window, false)?;
    let chosen = Chosen::of(&mut params)?;
    let goal = params.take("goal").map(|goal| Chosen::of_goal(&goal));
    let dimension = params.text("dimension")?.ok_or_else(|| Wrong::param("dimension"))?;
    let order = params.word("order_by", &["unique_users", "sessions", "pageviews", "events", "revenue", "orders"])?;
    let limit = params.count("limit", 1..=1_000, 100)?;
    let search = params.take("search").and_then(|search| search.text().map(lower)).unwrap_or_default();
    params.done()?;

    let before = previous.map(|window| by_value(asked, project, window, &dimension, (&chosen, goal.as_ref())));
    let rows = by_value(asked, project, window, &dimension, (&chosen, goal.as_ref()));
    let is_found = |value: &Json| search.is_empty() || (*value != Json::Null && lower(&name(value).1).contains(&search));
    let figure = |(_, figures): &(Json, Figures)| match order {
        "unique_users" => figures.users as Micros,
        "sessions" => figures.sessions as Micros,
        "pageviews" => figures.pageviews as Micros,
        "events" => figures.events as Micros,
        "revenue" => figures.till.revenue,
        _ => figures.till.orders as Micros,
    };
    let rows: Vec<_> = rows.into_iter().filter(|(value, _)| is_found(value)).collect();
    let rows = ranked(rows, figure, |(value, _)| name(value));
    let row = |(value, figures): &(Json, Figures)| {
        let none = Collected::of(goal.as_ref()).figures;
        let before = before.as_ref().map(|before| object(before.get(value).unwrap_or(&none).fields()));
        let mut fields = figures.fields();
        fields.push(("value", value.clone()));
        fields.push(("previous", before.unwrap_or(Json::Null)));
        object(fields)
    };
    let dates = |window: Window| {
        let (first, last) = (window.first.to_string(), window.last.to_string());
        object(vec![("start_date", Json::from(first)), ("end_date", Json::from(last))])
    };
    let mut answer = vec![
        ("rows", Json::list(rows.iter().take(limit).map(row))),
        ("total_rows", Json::from(rows.len())),
        ("truncated", Json::from(rows.len() > limit)),
        ("previous", previous.map_or(Json::Null, dates)),
        ("dimension", Json::from(dimension)),
    ];
    answer.extend(beside(asked, project, window, &chosen_of(asked, project, window, &chosen)));
    Ok(object(answer))
}
