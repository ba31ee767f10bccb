//! Questions about a history.

use crate::chosen::{chosen, chosen_in_sessions, goal, object, of_people};
use crate::generate::crowd;
use crate::history::History;
use crate::paths::{funnel, journeys, people};
use crate::rng::Rng;
use crate::values::{self, COMPANIES, DOMAINS, EMAILS, FIELDS, PATHS, USERS};
use chrono::Days;
use headcount_model::served::company_id;
use headcount_model::{Json, Question};

/// Generates `count` questions: all kinds of windows, every endpoint of the model, and some invalid
/// ones.
#[must_use]
pub fn questions(history: &History, rng: &mut Rng, count: usize) -> Vec<Question> {
    let is_crowd = crowd::is_crowd(history);
    (0..count).map(|_| if is_crowd && rng.chance(70) { crowd::question(rng) } else { question(history, rng) }).collect()
}

/// Generates `count` questions that need the events themselves: aggregates, unique users with
/// filters, fields, goals, funnels, journeys, and the most active identities.
#[must_use]
pub fn scans(history: &History, rng: &mut Rng, count: usize) -> Vec<Question> {
    let scan = |rng: &mut Rng| {
        let project = rng.pick(&history.projects).name.clone();
        let path = |rest: &str| format!("/projects/{{{project}}}/analytics/{rest}");
        match rng.below(if history.live { 14 } else { 20 }) {
            0 | 10 | 11 => unique_users(history, rng, &path("count-unique-users-per-day")),
            1 => traffic(history, rng, &path("traffic")),
            // Durations are differences of instants.
            2..5 if !history.live => report(history, rng, &path("report")),
            2..5 => breakdown(history, rng, &path("breakdown")),
            5..7 => goals(history, rng, &path("goals")),
            7 => limited(dated(history, rng, &path("fields")), rng),
            12 | 13 => journeys(history, rng, &path("journeys")),
            14 => top_identities(rng),
            15..18 => funnel(history, rng, &path("funnel")),
            18 | 19 => people(history, rng, &path("funnel/people")),
            _ => aggregate(history, rng, &path("aggregate")),
        }
    };
    (0..count).map(|_| of_people(scan(rng), rng)).collect()
}

/// Returns the questions at the end of every history: about each project as a whole, and about all
/// companies.
#[must_use]
pub(crate) fn closing(history: &History) -> Vec<Question> {
    let first = history.days[0] - Days::new(2);
    let last = *history.days.iter().max().expect("a day");
    let window = [("start_date", first.to_string()), ("end_date", (last + Days::new(2)).to_string())];
    let mut asked = Vec::new();
    for project in &history.projects {
        let path = |rest: &str| format!("/projects/{{{}}}/{rest}", project.name);
        let get = |rest: &str, level: Option<&str>| {
            let mut question = Question::get(&path(rest), &[]);
            question.query = window.iter().map(|(name, day)| ((*name).to_owned(), day.clone())).collect();
            question.query.extend(level.map(|level| ("level".to_owned(), level.to_owned())));
            question
        };
        let body = Json::object([("start_date", Json::from(first.to_string()))]);
        asked.push(Question::post(&path("analytics/count-unique-users-per-day"), body));
        asked.push(Question::get(&path("intake"), &[("range_days", "365")]));
        asked.push(get("analytics/traffic", None));
        let text = |text: &str| Json::from(text);
        let whole = || window.iter().map(|(name, day)| (*name, Json::from(day.clone())));
        if !history.live {
            let weeks = whole().chain([("interval", text("week")), ("compare", text("previous_period"))]);
            asked.push(Question::post(&path("analytics/report"), object(weeks.collect())));
        }
        let figures = ["unique_users", "sessions", "revenue", "orders", "attribution"];
        for figure in figures.iter().filter(|_| !history.live) {
            let body = whole().chain([("figure", text(figure)), ("limit", Json::from(500))]);
            asked.push(Question::post(&path("explain"), object(body.collect())));
        }
        for dimension in ["source", "exit_url"] {
            let body = whole().chain([("dimension", text(dimension)), ("order_by", text("sessions"))]);
            asked.push(Question::post(&path("analytics/breakdown"), object(body.collect())));
        }
        asked.push(get("revenue/metrics", None));
        asked.push(get("revenue/timeseries", None));
        for interval in ["week", "month"] {
            asked.push(Question::get(&path("analytics/retention"), &[("interval", interval), ("cohorts", "60")]));
        }
        for level in ["account", "identity"] {
            asked.push(get("revenue/by-attribution", Some(level)));
            asked.push(get("revenue/ltv-cohorts", Some(level)));
        }
    }
    if !history.live {
        asked.extend(closing_organization(&window[0].1));
    }
    if crowd::is_crowd(history) {
        asked.extend(crowd::closing());
    }
    asked
}

/// Returns the question for all companies, which shows their ids.
#[must_use]
pub(crate) fn all_companies() -> Question {
    Question::get("/companies/top", &[("range_days", "365"), ("limit", "100")])
}

fn closing_organization(first: &str) -> Vec<Question> {
    let mut asked = vec![all_companies()];
    for sort in ["events", "revenue", "last_seen"] {
        asked.push(Question::get("/identities/top", &[("range_days", "365"), ("limit", "100"), ("sort", sort)]));
    }
    for user in USERS {
        for operation in ["profile", "top-pages"] {
            let path = format!("/identities/{operation}");
            asked.push(Question::get(&path, &[("user_id", user), ("start_date", first)]));
        }
    }
    for key in COMPANIES {
        let id = company_id(key);
        asked.push(Question::get(&format!("/companies/{{{id}}}/metrics"), &[("range_days", "365")]));
        let query = [("range_days", "365"), ("limit", "100")];
        asked.push(Question::get(&format!("/companies/{{{id}}}/top-users"), &query));
    }
    for (kind, key) in [("team", "t1"), ("team", "red one"), ("class", "t1")] {
        let query = [("group_type", kind), ("group_key", key), ("range_days", "365")];
        asked.push(Question::get("/groups/metrics", &query));
    }
    asked
}

fn question(history: &History, rng: &mut Rng) -> Question {
    let project = rng.pick(&history.projects).name.clone();
    let path = |rest: &str| format!("/projects/{{{project}}}/{rest}");
    // Leave out questions that show instants if these can't be compared.
    let kinds = if history.live { 13 } else { 27 };
    match rng.below(kinds) {
        0 | 1 => unique_users(history, rng, &path("analytics/count-unique-users-per-day")),
        2 => dated(history, rng, &path("revenue/metrics")),
        3 => dated(history, rng, &path("revenue/timeseries")),
        4 => attribution(history, rng, &path("revenue/by-attribution")),
        5 => cohorts(rng, &path("revenue/ltv-cohorts")),
        6 | 7 => aggregate(history, rng, &path("analytics/aggregate")),
        8 => traffic(history, rng, &path("analytics/traffic")),
        9 => breakdown(history, rng, &path("analytics/breakdown")),
        10 => of_identity(history, rng, ["/identities/referrers", "/identities/top-pages"]),
        11 => retention(rng, &path("analytics/retention")),
        12 => limited(dated(history, rng, &path("analytics/fields")), rng),
        13 => report(history, rng, &path("analytics/report")),
        14 | 15 => of_identity(history, rng, ["/identities/profile", "/identities/profile"]),
        16 => ranged(rng, "/companies/lookup", &[("domain", &DOMAINS)]),
        17 => ranged(rng, "/companies/top", &[("limit", &["100", "100", "1", "2", "0"])]),
        18 => of_company(rng),
        19 => top_identities(rng),
        20..23 => events(history, rng, &path("events")),
        23..26 => explain(history, rng, &path("explain")),
        _ => of_groups(rng),
    }
}

fn add(question: &mut Question, name: &str, value: &str) {
    question.query.push((name.to_owned(), value.to_owned()));
}

/// Generates a window: none, one bound, single days, all days, instants as bounds, days without
/// events, or reversed bounds.
fn window(history: &History, rng: &mut Rng) -> Vec<(&'static str, String)> {
    let day = *rng.pick(&history.days);
    let other = *rng.pick(&history.days);
    let both = |first: String, last: String| vec![("start_date", first), ("end_date", last)];
    match rng.below(11) {
        0 => vec![],
        1 => vec![("start_date", day.to_string())],
        2 => both((day - Days::new(1)).to_string(), (day + Days::new(1)).to_string()),
        3 => both(format!("{day}T03:30:00Z"), format!("{day}T23:30:00-04:00")),
        4 => both(format!("{day}T00:30:00.5+05:30"), (day + Days::new(1)).to_string()),
        5 => both("2022-05-05".to_owned(), "2022-05-06".to_owned()),
        6 => both((day.max(other) + Days::new(1)).to_string(), day.min(other).to_string()),
        7..9 => both(day.to_string(), day.to_string()),
        _ => both(day.min(other).to_string(), day.max(other).to_string()),
    }
}

fn dated(history: &History, rng: &mut Rng, path: &str) -> Question {
    let mut question = Question::get(path, &[]);
    for (name, bound) in window(history, rng) {
        add(&mut question, name, &bound);
    }
    if rng.chance(2) {
        add(&mut question, "start_dat", "2024-01-01");
    }
    question
}

fn unique_users(history: &History, rng: &mut Rng, path: &str) -> Question {
    let bounds = window(history, rng);
    let mut body: Vec<_> = bounds.into_iter().map(|(name, bound)| (name, Json::from(bound))).collect();
    chosen(rng, &mut body);
    Question::post(path, object(body))
}

fn aggregate(history: &History, rng: &mut Rng, path: &str) -> Question {
    let bounds = window(history, rng);
    let mut body: Vec<_> = bounds.into_iter().map(|(name, bound)| (name, Json::from(bound))).collect();
    chosen(rng, &mut body);
    if rng.chance(70) {
        body.push(("group_by", Json::from(rng.word(&FIELDS))));
    } else {
        body.push(("metadata_field", Json::from(rng.word(&PATHS))));
    }
    if rng.chance(30) {
        body.push(("sum_metadata_field", Json::from(rng.word(&["seats", "seats", "plan", "a.b"]))));
    }
    if rng.chance(20) {
        body.push(("limit", Json::from(rng.below(4))));
    }
    Question::post(path, object(body))
}

fn events(history: &History, rng: &mut Rng, path: &str) -> Question {
    let mut question = dated(history, rng, path);
    let mut body = Vec::new();
    chosen(rng, &mut body);
    for (name, value) in body.into_iter().filter(|(name, _)| !["segment", "people"].contains(name)) {
        let text = value.text().map_or_else(|| value.to_string(), str::to_owned);
        add(&mut question, name, &text);
    }
    if rng.chance(30) {
        add(&mut question, "after_position", "0");
    }
    limit(rng, &mut question, &["1", "2", "7", "1000", "0", "1001"]);
    question
}

pub(crate) const SESSION_FIELDS: [&str; 7] =
    ["source", "medium", "campaign", "exit_url", "exit_url", "entry_url", "acquisition_channel"];

/// Generates what a window is compared with.
pub(crate) fn compare(history: &History, rng: &mut Rng, body: &mut Vec<(&'static str, Json)>) {
    match rng.below(10) {
        0..3 => body.push(("compare", Json::from("previous_period"))),
        3 => body.push(("compare", Json::from("previous_year"))),
        4..6 => {
            let dates = window(history, rng).into_iter().map(|(name, bound)| (name, Json::from(bound)));
            body.push(("compare", object(dates.collect())));
        }
        6 => body.push(("compare", Json::from("yesterday"))),
        _ => {}
    }
}

/// A window of a question about sessions: any, or a few days with the change of the clocks among
/// them.
pub(crate) fn days_of_sessions(history: &History, rng: &mut Rng) -> Vec<(&'static str, Json)> {
    let bounds = if rng.chance(30) {
        let day = *rng.pick(&history.days);
        let (before, after) = (rng.below(4) as u64, rng.below(10) as u64);
        vec![("start_date", (day - Days::new(before)).to_string()), ("end_date", (day + Days::new(after)).to_string())]
    } else {
        window(history, rng)
    };
    bounds.into_iter().map(|(name, bound)| (name, Json::from(bound))).collect()
}

fn report(history: &History, rng: &mut Rng, path: &str) -> Question {
    let mut body = days_of_sessions(history, rng);
    if rng.chance(85) {
        body.push(("interval", Json::from(rng.word(&["hour", "hour", "day", "week", "month", "year"]))));
    }
    compare(history, rng, &mut body);
    chosen_in_sessions(rng, &mut body);
    goal(rng, &mut body);
    Question::post(path, object(body))
}

/// Generates a question for the goals of a project, which it names all: as they are, or without
/// filters.
fn goals(history: &History, rng: &mut Rng, path: &str) -> Question {
    let mut body = days_of_sessions(history, rng);
    compare(history, rng, &mut body);
    chosen_in_sessions(rng, &mut body);
    body.retain(|(name, _)| *name != "event_name");
    // Goals without filters depend on no session. About half of the questions have such.
    let of_events = body.len().is_multiple_of(2);
    let goal = |mut goal: Json| {
        if let Json::Object(fields) = &mut goal
            && of_events
        {
            fields.remove("filters");
        }
        goal
    };
    body.push(("goals", Json::list(values::goals().map(goal))));
    Question::post(path, object(body))
}

fn breakdown(history: &History, rng: &mut Rng, path: &str) -> Question {
    let mut body = days_of_sessions(history, rng);
    let dimension = match rng.below(3) {
        0 => rng.word(&FIELDS).to_owned(),
        1 => rng.word(&SESSION_FIELDS).to_owned(),
        _ => format!("metadata.{}", rng.word(&PATHS)),
    };
    body.push(("dimension", Json::from(dimension)));
    if rng.chance(60) {
        let orders = ["unique_users", "sessions", "pageviews", "events", "revenue", "orders", "bounces"];
        body.push(("order_by", Json::from(rng.word(&orders))));
    }
    if rng.chance(20) {
        body.push(("search", Json::from(rng.word(&["", "A", "shop", "5", "RUE", "oδ", "(DIR"]))));
    }
    if rng.chance(30) {
        body.push(("limit", Json::from(rng.below(4))));
    }
    compare(history, rng, &mut body);
    chosen_in_sessions(rng, &mut body);
    goal(rng, &mut body);
    Question::post(path, object(body))
}

fn explain(history: &History, rng: &mut Rng, path: &str) -> Question {
    let mut question = explained(history, rng, path);
    if let Some(Json::Object(body)) = &mut question.body
        && rng.chance(40)
    {
        body.insert("limit".to_owned(), Json::from(*rng.pick(&[1, 2, 3, 7, 500, 0, 501])));
    }
    question
}

/// The values of touches.
const TOUCHES: [(&str, &str); 9] = [
    ("source", "(direct)"),
    ("source", "google"),
    ("source", "newsletter"),
    ("source", "partner"),
    ("medium", "(none)"),
    ("medium", "email"),
    ("medium", "cpc"),
    ("campaign", "(none)"),
    ("campaign", "spring sale"),
];

/// Generates a question for the events that make up a figure, without `limit`.
#[must_use]
pub fn explained(history: &History, rng: &mut Rng, path: &str) -> Question {
    let mut body = days_of_sessions(history, rng);
    if rng.chance(60) {
        // Most of what was recorded.
        let (first, last) = (history.days.iter().min().expect("a day"), history.days.iter().max().expect("a day"));
        body = vec![("start_date", Json::from(first.to_string())), ("end_date", Json::from(last.to_string()))];
    }
    let figures =
        ["unique_users", "sessions", "sessions", "revenue", "orders", "attribution", "attribution", "attribution", "events"];
    let figure = rng.word(&figures);
    body.push(("figure", Json::from(figure)));
    if figure == "attribution" || rng.chance(3) {
        let &(dimension, value) = rng.pick(&TOUCHES);
        for (name, word) in [("model", rng.word(&["first_touch", "last_touch"])), ("level", rng.word(&["account", "identity"]))] {
            if rng.chance(70) {
                body.push((name, Json::from(word)));
            }
        }
        if rng.chance(70) {
            body.push(("value", Json::from(value)));
            body.push(("dimension", Json::from(dimension)));
        }
    }
    if figure != "attribution" || rng.chance(30) {
        chosen_in_sessions(rng, &mut body);
    }
    Question::post(path, object(body))
}

fn traffic(history: &History, rng: &mut Rng, path: &str) -> Question {
    let mut question = dated(history, rng, path);
    limit(rng, &mut question, &["1", "2", "3", "1000", "0", "1001"]);
    question
}

fn attribution(history: &History, rng: &mut Rng, path: &str) -> Question {
    let mut question = dated(history, rng, path);
    if rng.chance(70) {
        add(&mut question, "model", rng.word(&["first_touch", "last_touch"]));
    }
    if rng.chance(70) {
        add(&mut question, "level", rng.word(&["account", "identity", "account", "identity", "user"]));
    }
    if rng.chance(50) {
        add(&mut question, "dimension", rng.word(&["source", "medium", "campaign"]));
    }
    limit(rng, &mut question, &["1", "2", "100", "101"]);
    question
}

fn limit(rng: &mut Rng, question: &mut Question, limits: &[&str]) {
    if rng.chance(20) {
        let limit = rng.word(limits);
        add(question, "limit", limit);
    }
}

fn top_identities(rng: &mut Rng) -> Question {
    let limits: &[&str] = &["100", "100", "100", "1", "2", "0"];
    let sorts: &[&str] = &["events", "events", "revenue", "last_seen", "name"];
    ranged(rng, "/identities/top", &[("limit", limits), ("sort", sorts)])
}

fn limited(mut question: Question, rng: &mut Rng) -> Question {
    limit(rng, &mut question, &["1", "2", "1000", "0", "1001"]);
    question
}

fn cohorts(rng: &mut Rng, path: &str) -> Question {
    let mut question = Question::get(path, &[]);
    if rng.chance(60) {
        add(&mut question, "level", rng.word(&["account", "identity"]));
    }
    limit(rng, &mut question, &["1", "2", "60", "61"]);
    question
}

fn retention(rng: &mut Rng, path: &str) -> Question {
    let mut question = Question::get(path, &[]);
    if rng.chance(70) {
        add(&mut question, "interval", rng.word(&["week", "month", "month", "year"]));
    }
    if rng.chance(80) {
        add(&mut question, "cohorts", rng.word(&["1", "2", "60", "60", "60", "0", "61"]));
    }
    question
}

fn of_identity(history: &History, rng: &mut Rng, paths: [&str; 2]) -> Question {
    let path = rng.word(&paths);
    let mut question = dated(history, rng, path);
    match rng.below(20) {
        0 => {}
        1 => {
            add(&mut question, "user_id", "ada");
            add(&mut question, "email", "ada@acme.com");
        }
        2..8 => add(&mut question, "email", rng.word(&EMAILS)),
        _ => add(&mut question, "user_id", rng.word(&USERS)),
    }
    if path != "/identities/profile" {
        limit(rng, &mut question, &["1", "2", "50", "51"]);
    }
    question
}

/// Generates a question with `range_days` and one value for each of some parameters.
fn ranged(rng: &mut Rng, path: &str, fields: &[(&str, &[&str])]) -> Question {
    let mut question = Question::get(path, &[]);
    for (name, values) in fields {
        add(&mut question, name, rng.word(values));
    }
    if rng.chance(60) {
        add(&mut question, "range_days", rng.word(&["1", "2", "7", "30", "31", "365", "366"]));
    }
    question
}

fn of_company(rng: &mut Rng) -> Question {
    let id = company_id(rng.word(&COMPANIES));
    if rng.chance(40) {
        return ranged(rng, &format!("/companies/{{{id}}}/metrics"), &[]);
    }
    ranged(rng, &format!("/companies/{{{id}}}/top-users"), &[("limit", &["100", "100", "1", "2"])])
}

fn of_groups(rng: &mut Rng) -> Question {
    let kinds: &[&str] = &["team", "team", "team", "class", "company", "Team"];
    if rng.chance(50) {
        return ranged(rng, "/groups/top", &[("group_type", kinds), ("limit", &["100", "1"])]);
    }
    ranged(rng, "/groups/metrics", &[("group_type", kinds), ("group_key", &["t1", "t2", "red one", "t9"])])
}
