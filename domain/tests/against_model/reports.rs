//! Reports of whole days and traffic, as the HTTP interface shows them. Below a floor they are what
//! these days showed when it rose.

use headcount_domain::cells::count_of;
use headcount_domain::figures::{ComparedWindows, EventFigures, Report, ReportQuery, Series};
use headcount_domain::queries::{Listed, TrafficQuery, TrafficRow};
use headcount_domain::time::{BucketStart, Buckets, Interval};
use headcount_domain::{Day, Instant, Timezone, Window, ratio_of_counts};
use headcount_histories::{History, Rng, Size, Subject, compare};
use headcount_model::{Ids, Json, Question};

use super::past::model;
use super::shown::{number, text, unconverted};
use super::{Folded, Held, NOW_MS, has_floors, trials};

/// Whether a report is of hours, or of some events only: it has to read them.
pub(super) fn reads_events(question: &Question) -> bool {
    let field = |name: &str| question.body.as_ref().map_or(&Json::Null, |body| body.field(name));
    let is_of_some = *field("event_name") != Json::Null || *field("filters") != Json::Null;
    question.path.ends_with("/report") && (is_of_some || field("interval").text() == Some("hour"))
}

fn figures(figures: &EventFigures) -> Vec<(String, Json)> {
    [
        ("unique_users", number(figures.unique_users)),
        ("sessions", number(figures.sessions)),
        ("pageviews", number(figures.pageviews)),
        ("events", number(figures.events)),
        ("bounce_rate", number(figures.bounce_rate())),
        ("duration_avg_sec", number(figures.duration_avg_sec())),
        ("revenue", number(figures.revenue)),
        ("orders", number(figures.orders)),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}

/// Where and when days are, and the length of the buckets.
#[derive(Clone, Copy)]
struct Calendar {
    timezone: Timezone,
    interval: Interval,
    now: Instant,
}

fn series(series: &Series, window: Window, calendar: Calendar) -> Vec<(String, Json)> {
    let listed = Buckets::new(window, calendar.interval, calendar.timezone).list();
    assert_eq!(listed.len(), series.buckets.len(), "{window:?}");
    let buckets = listed.iter().zip(&series.buckets).map(|(bucket, of_bucket)| {
        let BucketStart::Day(day) = bucket.start else { panic!("hours need events") };
        let mut fields = figures(of_bucket);
        fields.push(("bucket".to_owned(), text(&day)));
        fields.push(("complete".to_owned(), Json::from(bucket.is_complete(calendar.now))));
        Json::Object(fields.into_iter().collect())
    });
    vec![
        ("series".to_owned(), Json::list(buckets.collect::<Vec<_>>())),
        ("totals".to_owned(), Json::Object(figures(&series.totals).into_iter().collect())),
        ("start_date".to_owned(), text(&window.start)),
        ("end_date".to_owned(), text(&window.end)),
    ]
}

/// The answer of a project to a question for a report.
pub(super) fn report(held: &mut Held, windows: ComparedWindows, interval: Interval, now: Instant) -> Json {
    let Report { current, previous, unconverted: money } = held.ask(&ReportQuery { windows, interval }).unwrap();
    let calendar = Calendar { timezone: held.policy.timezone, interval, now };
    let mut fields = series(&current, windows.window, calendar);
    let shown = |(before, window): (&Series, Window)| Json::Object(series(before, window, calendar).into_iter().collect());
    let previous = previous.as_ref().zip(windows.previous).map_or(Json::Null, shown);
    fields.push(("previous".to_owned(), previous));
    fields.push(("unconverted".to_owned(), unconverted(&money)));
    fields.push(("currency".to_owned(), Json::from(held.policy.currency.as_str())));
    fields.push(("interval".to_owned(), text(&interval)));
    fields.push(("timezone".to_owned(), Json::from(held.policy.timezone.name())));
    Json::Object(fields.into_iter().collect())
}

/// The answer of a project to a question for its traffic.
pub(super) fn traffic(held: &mut Held, window: Window, limit: usize) -> Json {
    let traffic = held.ask(&TrafficQuery { window, limit }).unwrap();
    let row = |row: &TrafficRow| {
        let (sessions, bounces) = (count_of(row.sessions), count_of(row.bounces));
        let rate = number(ratio_of_counts(bounces, sessions));
        let (sessions, bounces) = (number(sessions), number(bounces));
        Json::object([("value", text(&row.name)), ("sessions", sessions), ("bounces", bounces), ("bounce_rate", rate)])
    };
    let rows = |list: &Listed<TrafficRow>| Json::list(list.rows.iter().map(row).collect::<Vec<_>>());
    let lists = [&traffic.by_channel, &traffic.by_source, &traffic.by_medium, &traffic.by_campaign];
    Json::object([
        ("sessions", number(traffic.sessions)),
        ("bounces", number(traffic.bounces)),
        ("bounce_rate", number(traffic.bounce_rate)),
        ("by_channel", rows(lists[0])),
        ("by_source", rows(lists[1])),
        ("by_medium", rows(lists[2])),
        ("by_campaign", rows(lists[3])),
        ("truncated", Json::from(lists.iter().any(|list| list.truncated))),
        ("start_date", text(&window.start)),
        ("end_date", text(&window.end)),
        ("timezone", Json::from(held.policy.timezone.name())),
    ])
}

/// Two of the days of a history, in order.
fn window(history: &History, rng: &mut Rng) -> Window {
    let mut day = || Day::parse(&rng.pick(&history.days).to_string()).unwrap();
    let (one, other) = (day(), day());
    let window = Window { start: one.min(other), end: one.max(other) };
    if window.is_allowed() { window } else { Window { start: window.end, ..window } }
}

fn question(project: &str, windows: ComparedWindows, interval: Interval) -> Question {
    let dates = |window: Window| [("start_date", text(&window.start)), ("end_date", text(&window.end))];
    let mut fields = dates(windows.window).to_vec();
    fields.push(("interval", text(&interval)));
    fields.extend(windows.previous.map(|previous| ("compare", Json::object(dates(previous)))));
    let fields = fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    Question::post(&format!("/projects/{{{project}}}/analytics/report"), Json::Object(fields))
}

#[test]
fn figures_of_whole_days() {
    let (mut below, mut above) = (0, 0);
    for seed in 0..trials(60) {
        let history = History::from_seed(seed, NOW_MS, Size { events: 150, questions: 0 });
        let history = if has_floors(seed) { history.with_floors() } else { history };
        let mut folded = Folded::of(&history);
        if seed % 2 == 0 {
            folded.restart();
        }
        let (model, mut rng) = (model(&history), Rng::new(seed));
        for project in &history.projects {
            for number in 0..24 {
                let interval = [Interval::Day, Interval::Week, Interval::Month][number % 3];
                let previous = (number % 4 == 3).then(|| window(&history, &mut rng));
                let windows = ComparedWindows { window: window(&history, &mut rng), previous };
                let asked = question(&project.name, windows, interval);
                let held = folded.projects.get_mut(&project.name).unwrap().get_mut().unwrap();
                let got = report(held, windows, interval, Instant(NOW_MS));
                let outcome = compare(model.answer(NOW_MS, &asked), (200, got), &mut Ids::default());
                assert!(outcome.is_ok(), "seed {seed}: {asked:?}\n{outcome:#?}\n{history}");
                match held.state.floor() {
                    Some(floor) if windows.start() < floor => below += 1,
                    _ => above += 1,
                }
            }
        }
    }
    println!("{below} reports begin below a floor, {above} don't");
    assert!(below > 0 && above > 0);
}
