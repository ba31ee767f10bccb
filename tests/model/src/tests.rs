//! Small histories with answers computed by hand, in addition to the cases.

use crate::decimal::Decimal;
use crate::event::{ProjectSetup, Rates, Refused, Sender};
use crate::json::Json;
use crate::model::{Model, OrganizationSetup, Recorded, Status};
use crate::{Question, time};

fn rates(given: &[(&str, &str)]) -> Rates {
    let rate = |rate: &str| Decimal::parse(rate).unwrap();
    given.iter().map(|&(currency, worth)| (currency.to_owned(), rate(worth))).collect()
}

fn now_ms() -> i64 {
    time::instant_ms("2026-11-20T15:00:00Z").unwrap()
}

/// Creates an organization in dollars with the project `shop` in euros and `blog` in dollars; a
/// euro is worth 1.25 dollars.
fn model() -> Model {
    let fx_rates = rates(&[("EUR", "1.25")]);
    let mut model = Model::new(OrganizationSetup { timezone: chrono_tz::UTC, currency: "USD".to_owned(), fx_rates });
    model.add_project("shop", ProjectSetup { currency: "EUR".to_owned(), ..ProjectSetup::default() });
    model.add_project("blog", ProjectSetup::default());
    model
}

fn track(model: &mut Model, project: &str, time: &str, fields: &str) {
    let body = format!(r#"{{"name": "order", "timestamp": "2026-11-19T{time}Z", {fields}}}"#);
    let taken = model.record(project, &body, now_ms(), &Sender::browser()).unwrap();
    assert_eq!(taken.status, Status::Recorded);
}

fn get(model: &Model, path: &str, query: &[(&str, &str)]) -> Json {
    let answer = model.answer(now_ms(), &Question::get(path, query));
    assert_eq!(answer.status, 200, "{}", answer.body);
    answer.body
}

/// Formats some fields of an answer as text.
fn fields(answer: &Json, names: &[&str]) -> String {
    let shown: Vec<_> = names.iter().map(|name| answer.field(name).to_string()).collect();
    shown.join(" ")
}

#[test]
fn money_converts_through_dollars_and_is_pinned() {
    let mut model = model();
    track(&mut model, "shop", "10:00:00", r#""user_id": "ada", "value": 10, "currency": "usd""#);
    model.set_rates(Rates::new());
    track(&mut model, "shop", "10:01:00", r#""user_id": "ada", "value": 7, "currency": "USD""#);
    track(&mut model, "shop", "10:02:00", r#""user_id": "ada", "value": 3"#);
    // 10 / 1.25 = 8 euros, and 3 that need no rate; the 7 dollars no longer have one.
    let metrics = get(&model, "/projects/{shop}/revenue/metrics", &[]);
    assert_eq!(fields(&metrics, &["total_revenue", "orders", "aov"]), "11 2 5.5");
    assert_eq!(metrics.field("unconverted").to_string(), r#"{"USD": {"orders": 1, "revenue": 7}}"#);
    // The organization counts in dollars: 10 + 7; the 3 euros came without a rate.
    let profile = get(&model, "/identities/profile", &[("user_id", "ada")]);
    assert_eq!(fields(&profile, &["revenue", "events"]), "17 3");
}

#[test]
fn a_gap_of_thirty_minutes_is_none() {
    let mut model = model();
    for time in ["10:00:00", "10:30:00", "11:00:00.001", "11:10:00"] {
        track(&mut model, "blog", time, r#""user_id": "ada""#);
    }
    // 1,800 s and 599.999 s: the average is 1199.9995, the 90th percentile the longer.
    let profile = get(&model, "/identities/profile", &[("user_id", "ada")]);
    let names = ["sessions", "duration_avg_sec", "duration_p90_sec", "bounce_rate"];
    assert_eq!(fields(&profile, &names), "2 1199.9995 1800 0");
}

#[test]
fn of_disagreeing_projects_the_earliest_telling_holds() {
    let mut model = model();
    let group = |model: &mut Model, project: &str, time: &str, domain: &str| {
        let body = format!(
            r#"{{"name": "group", "timestamp": "2026-11-19T{time}Z", "user_id": "{project}", "group_id": "acct",
                "metadata": {{"domain": "{domain}", "name": "{domain}"}}}}"#
        );
        model.record(project, &body, now_ms(), &Sender::browser()).unwrap();
    };
    group(&mut model, "shop", "12:00:00", "acme.com");
    group(&mut model, "blog", "11:00:00", "globex.io");
    group(&mut model, "blog", "10:00:00", "hooli.dev");
    // Each project's first recorded: acme.com reported at 12, globex.io at 11 (hooli.dev was
    // recorded second).
    let company = get(&model, "/companies/lookup", &[("domain", "globex.io")]);
    assert_eq!(fields(&company, &["events", "users", "name"]), r#"3 2 "acme.com""#);
    let unknown = model.answer(now_ms(), &Question::get("/companies/lookup", &[("domain", "acme.com")]));
    assert_eq!(unknown.status, 404);
}

#[test]
fn a_company_without_consent_is_an_account_and_no_user() {
    let mut model = model();
    track(&mut model, "blog", "10:00:00", r#""user_id": "ada", "value": 5"#);
    track(&mut model, "blog", "10:01:00", r#""user_id": "ben", "value": 4, "pc": "", "group_id": "acme.com""#);
    let metrics = get(&model, "/projects/{blog}/revenue/metrics", &[]);
    assert_eq!(fields(&metrics, &["total_revenue", "arpu", "arpa"]), "9 9 4.5");
    let cohorts = get(&model, "/projects/{blog}/revenue/ltv-cohorts", &[]);
    assert_eq!(cohorts.at("cohorts.0.entities"), Some(&Json::from(2)));
    let company = get(&model, "/companies/lookup", &[("domain", "acme.com")]);
    assert_eq!(fields(&company, &["events", "users", "sessions", "revenue"]), "1 0 0 4");
}

#[test]
fn instants_ahead_are_clamped_and_bad_events_refused() {
    let mut model = model();
    let mut record = |body: &str| model.record("blog", body, now_ms(), &Sender::browser());
    let clamped = record(r#"{"name": "x", "timestamp": "2026-11-20T15:05:00.001Z"}"#).unwrap();
    let exact = record(r#"{"name": "x", "timestamp": "2026-11-20T15:05:00Z"}"#).unwrap();
    assert_eq!((clamped.clamped, exact.clamped), (true, false));
    let refused = |param| Err(Refused { param });
    let repairs = |taken: Result<Recorded, Refused>| taken.unwrap().warnings;
    assert_eq!(repairs(record(r#"{"name": "x", "value": 0.0000001}"#)), Vec::<String>::new());
    assert_eq!(repairs(record(r#"{"name": "x", "value": 1000000000000.000001}"#)), ["value_ignored value"]);
    assert_eq!(repairs(record(r#"{"name": "x", "timestamp": 1714989600}"#)), ["timestamp_in_seconds timestamp"]);
    assert_eq!(record(r#"{"name": "x", "timestamp": 631151999}"#), refused("timestamp"));
    assert_eq!(record(r#"{"name": "x", "timestamp": 631151999999}"#), refused("timestamp"));
    assert_eq!(record(r#"{"user_id": "ada"}"#), refused("name"));
}

/// Of a company, `ann` and `bob` are there at the same time; each session is a sequence of its own.
#[test]
fn sessions_of_colleagues_are_apart() {
    let mut model = model();
    for (user, time) in [("ann", "10:00:00"), ("bob", "10:01:00"), ("bob", "10:02:00"), ("ann", "10:10:00")] {
        track(&mut model, "blog", time, &format!(r#""user_id": "{user}", "group_id": "acme.com""#));
    }
    let funnel = |within: &str, steps: usize| {
        let steps = vec![r#"{"event_name": "order"}"#; steps].join(", ");
        let body = format!(r#"{{"level": "account", "within": {within}, "steps": [{steps}]}}"#);
        let answer = model.answer(now_ms(), &Question::post("/projects/{blog}/analytics/funnel", Json::parse(&body).unwrap()));
        fields(&answer.body, &["completed", "median_sec"])
    };
    // Three in a row are of both; two are first there in bob's session.
    assert_eq!(funnel(r#""session""#, 3), "0 null");
    assert_eq!(funnel(r#"{"minutes": 2}"#, 3), "1 120");
    assert_eq!(funnel(r#""session""#, 2), "1 60");
}
