//! The generation of a history from a seed.

mod addresses;
mod body;
pub(crate) mod crowd;
mod hints;
mod passive;
mod walks;

use crate::history::{History, Project, Size, Step};
use crate::questions::{all_companies, closing, questions};
use crate::rng::Rng;
use crate::times::Times;
use body::Bodies;
use crowd::Crowd;
use headcount_model::decimal::Decimal;
use headcount_model::time::shown;
use headcount_model::{Json, OrganizationSetup, Rates};
pub(crate) use hints::add_hints;
pub use hints::sent_headers;
use passive::add_passive;
pub use passive::is_of_server;
use std::collections::BTreeMap;
pub(crate) use walks::add_walks;

const TIMEZONES: [&str; 6] =
    ["UTC", "America/New_York", "Europe/Berlin", "Asia/Kolkata", "Australia/Lord_Howe", "America/Sao_Paulo"];

const PROJECTS: [&str; 8] = ["shop", "blog", "app", "docs", "help", "jobs", "news", "labs"];

/// Tells the random numbers of floors from those of the rest.
const FLOORS: u64 = 0xf100;
/// The same of clocks that jump.
const JUMPS: u64 = 0xc10c;
/// The same of shared devices, so that the other histories stay what they were.
const SHARED_DEVICES: u64 = 0xde71;

/// The same of settings.
const SETTINGS: u64 = 0x5e77;

/// Generates the history of a seed.
pub(crate) fn generate(seed: u64, now_ms: i64, size: Size) -> History {
    let mut rng = Rng::new(seed);
    let timezone = rng.pick(&TIMEZONES).parse().expect("a timezone");
    let currency = (*rng.pick(&["USD", "USD", "EUR"])).to_owned();
    let organization = OrganizationSetup { timezone, currency, fx_rates: rates(&mut rng) };
    let is_crowd = crowd::of_seed(seed);
    let most_projects = if is_crowd { PROJECTS.len() } else { 3 };
    let projects: Vec<_> = PROJECTS[..rng.below(most_projects) + 1].iter().map(|name| project(&mut rng, name)).collect();
    let live = rng.chance(25) && !is_crowd;
    let mut times = Times::new(&mut rng, timezone, now_ms);
    let days = times.days().to_vec();

    let crowd = is_crowd.then(|| Crowd::new(&mut rng));
    let mut bodies = Bodies::new(&mut rng, live, now_ms, Rng::new(seed ^ SHARED_DEVICES).chance(40));
    let count = rng.below(size.events) + 1;
    let mut events: Vec<(String, String)> = (0..count)
        .map(|_| {
            let index = rng.below(projects.len());
            let name = projects[index].name.clone();
            let body = match &crowd {
                Some(crowd) => crowd.next(&mut rng, &mut times),
                None => bodies.next(&mut rng, &mut times, index),
            };
            (name, body)
        })
        .collect();
    disorder(&mut rng, &mut events);

    let mut history = History { seed, organization, projects, live, days, steps: Vec::new() };
    history.steps = batched(&mut rng, events);
    add_passive(&mut history);
    let mut asked: Vec<_> = questions(&history, &mut rng, size.questions).into_iter().map(Step::Ask).collect();
    for _ in 0..rng.below(3) {
        asked.push(Step::Rates(rates(&mut rng)));
    }
    if rng.chance(40) {
        asked.push(Step::Restart);
    }
    if !live {
        // Ids shown early must remain valid.
        asked.push(Step::Ask(all_companies()));
    }
    asked.extend(settings(&mut Rng::new(seed ^ SETTINGS), &history.projects));
    for step in asked {
        let at = rng.below(history.steps.len() + 1);
        history.steps.insert(at, step);
    }
    history.steps.extend(closing(&history).into_iter().map(Step::Ask));
    history
}

/// Adds steps that raise the floors of some projects: to days of the history, mostly early ones, so
/// that most of its events stay.
pub(crate) fn add_floors(history: &mut History) {
    let mut rng = Rng::new(history.seed ^ FLOORS);
    let mut days = history.days.clone();
    days.sort_unstable();
    for _ in 0..=rng.below(4) {
        let at = rng.below(days.len()).min(rng.below(days.len()));
        let day = days[at] + chrono::Days::new(u64::from(rng.chance(30)));
        let project = rng.pick(&history.projects).name.clone();
        let place = rng.below(history.steps.len() + 1);
        history.steps.insert(place, Step::Floor { project, day });
    }
}

/// Adds steps that set the clock. Some events after them happen when it shows.
pub(crate) fn add_jumps(history: &mut History, now_ms: i64) {
    let mut rng = Rng::new(history.seed ^ JUMPS);
    let (mut steps, mut ahead_ms) = (Vec::new(), 0);
    for mut step in std::mem::take(&mut history.steps) {
        if rng.chance(6) {
            ahead_ms = jumped(&mut rng, ahead_ms);
            steps.push(Step::Clock { ahead_ms });
        }
        let bodies = match &mut step {
            Step::Track { body, .. } => std::slice::from_mut(body),
            Step::Batch { bodies, .. } => bodies,
            _ => &mut [],
        };
        for body in bodies {
            if rng.chance(30) {
                *body = dated(&mut rng, body, now_ms + ahead_ms);
            }
        }
        steps.push(step);
    }
    history.steps = steps;
}

/// Where a clock jumps to: hours, days or years from where it is, or to what is right.
#[must_use]
pub fn jumped(rng: &mut Rng, ahead_ms: i64) -> i64 {
    const HOUR_MS: i64 = 3_600_000;
    let days = [2, 6, 20, 45, 3_650, -3, -40, -3_650].map(|days| days * 24 * HOUR_MS);
    let by = *rng.pick(&[&[HOUR_MS, 5 * HOUR_MS, -HOUR_MS][..], &days].concat());
    let most = 8_000 * 24 * HOUR_MS;
    if rng.chance(30) { 0 } else { (ahead_ms + by).clamp(-most, most) }
}

/// An event that happens at most half an hour before `shown_ms`.
#[must_use]
pub fn dated(rng: &mut Rng, body: &str, shown_ms: i64) -> String {
    let Ok(Json::Object(mut fields)) = Json::parse(body) else { return body.to_owned() };
    let ago = i64::try_from(rng.below(180)).expect("a small number") * 10_007;
    fields.insert("timestamp".to_owned(), shown(shown_ms - ago));
    Json::Object(fields).to_string()
}

/// Reorders arrival: as generated, slightly out of order, or in any order.
fn disorder(rng: &mut Rng, events: &mut [(String, String)]) {
    match rng.below(3) {
        0 => rng.shuffle(events),
        1 => {
            for chunk in events.chunks_mut(6) {
                rng.shuffle(chunk);
            }
        }
        _ => {}
    }
}

/// Sends some runs of events of one project as a batch.
fn batched(rng: &mut Rng, events: Vec<(String, String)>) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for (project, body) in events {
        let joins = rng.chance(40);
        match steps.last_mut() {
            Some(Step::Batch { project: of, bodies }) if *of == project && joins => bodies.push(body),
            _ if rng.chance(20) => steps.push(Step::Batch { project, bodies: vec![body] }),
            _ => steps.push(Step::Track { project, body }),
        }
    }
    steps
}

/// Generates rates: never one for CHF; any other may be missing.
fn rates(rng: &mut Rng) -> Rates {
    let all = [("EUR", "1.08"), ("GBP", "1.2705"), ("INR", "0.0119833"), ("JPY", "0.0067")];
    let mut rates = Rates::new();
    for (currency, rate) in all {
        if rng.chance(80) {
            let rate = if rng.chance(20) { "2" } else { rate };
            rates.insert(currency.to_owned(), Decimal::parse(rate).expect("a number"));
        }
    }
    rates
}

/// Generates changes of what projects ignore as referrers.
fn settings(rng: &mut Rng, projects: &[Project]) -> Vec<Step> {
    let count = rng.below(4);
    let change = |_| Step::Settings { project: rng.pick(projects).name.clone(), body: Json::Object(ignored(rng)) };
    (0..count).map(change).collect()
}

/// Generates hosts that are no referrers, in both lists and any spelling.
fn ignored(rng: &mut Rng) -> BTreeMap<String, Json> {
    let mut list = |name: &str, hosts: [&str; 4]| {
        let chosen = hosts.into_iter().filter(|_| rng.chance(30)).map(Json::from);
        (name.to_owned(), Json::list(chosen.collect::<Vec<_>>()))
    };
    let own = list("own_domains", ["blog.example", "Shop.Example.", "www.news.example", "one.github.io"]);
    [own, list("ignored_referrers", ["github.com", "t.co", "com.linkedin.android", "10.0.0.1"])].into()
}

fn project(rng: &mut Rng, name: &str) -> Project {
    let mut body = Json::object([
        ("name", Json::from(name)),
        ("currency", Json::from(*rng.pick(&["USD", "USD", "EUR", "GBP"]))),
        ("signals_policy", Json::from(*rng.pick(&["record", "record", "anonymize", "drop"]))),
    ]);
    if let (true, Json::Object(fields)) = (rng.chance(10), &mut body) {
        fields.insert("server_only_revenue".to_owned(), Json::from(true));
    }
    if let (true, Json::Object(fields)) = (rng.chance(10), &mut body) {
        fields.insert("cookieless".to_owned(), Json::from(false));
    }
    if let (true, Json::Object(fields)) = (rng.chance(30), &mut body) {
        fields.extend(ignored(rng));
    }
    Project { name: name.to_owned(), body }
}
