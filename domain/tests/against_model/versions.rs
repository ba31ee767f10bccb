//! Versions of days: no answer changes without its version, and an event leaves the versions alone
//! that it can't concern.

use headcount_domain::figures::{ComparedWindows, ReportQuery};
use headcount_domain::queries::{
    AttributionQuery, CohortsQuery, Dimension, EntityLevel, Query, RetentionQuery, RevenueMetricsQuery, RevenueSeriesQuery,
    TouchModel, TrafficQuery, UniqueUsersQuery,
};
use headcount_domain::time::{CohortInterval, Interval};
use headcount_domain::{Day, Depends, Event, FigureKind, Instant, Timezone, Window};
use headcount_histories::{History, Rng, Size, Step, Subject, model_of, sender_of};
use headcount_model::{Json, Model, Question};

use super::{Folded, Held, NOW_MS, limits_of, trials};

/// Asks, and shows the answer.
type Ask = dyn Fn(&mut Held, &Model) -> String;

/// A question about a project, and how to ask it.
struct Probe {
    depends: Depends,
    ask: Box<Ask>,
}

impl Probe {
    fn of<Q: Query + Copy>(query: Q) -> Self
    where
        Q::Partial: std::fmt::Debug,
    {
        Self { depends: query.depends(), ask: Box::new(move |held, _| format!("{:?}", held.ask(&query).unwrap())) }
    }

    /// A question that is answered from the events themselves. The model answers it.
    fn of_events(window: Window, project: &str, operation: &str, fields: &[(&str, Json)]) -> Self {
        let mut body =
            vec![("start_date", Json::from(window.start.to_string())), ("end_date", Json::from(window.end.to_string()))];
        body.extend(fields.iter().cloned());
        let body = Json::Object(body.into_iter().map(|(name, value)| (name.to_owned(), value)).collect());
        let question = Question::post(&format!("/projects/{{{project}}}/analytics/{operation}"), body);
        let ask = move |_: &mut Held, model: &Model| format!("{:?}", model.answer(NOW_MS, &question));
        Self { depends: Depends::on_events(window), ask: Box::new(ask) }
    }

    fn window(&self) -> Option<Window> {
        match self.depends {
            Depends::Days(_, window) => Some(window),
            Depends::AllDays(_) | Depends::Everything | Depends::TwoWindows(..) => None,
        }
    }
}

/// Some windows of a history: single days, and pairs of its days.
fn windows(history: &History, rng: &mut Rng, count: usize) -> Vec<Window> {
    let day = |rng: &mut Rng| Day::parse(&rng.pick(&history.days).to_string()).unwrap();
    let window = |place: usize| {
        let (one, other) = (day(rng), day(rng));
        let end = if place.is_multiple_of(2) { one } else { one.max(other) };
        Window { start: one.min(end).min(if place.is_multiple_of(2) { one } else { other }), end }
    };
    (0..count).map(window).collect()
}

fn of_rollups(windows: &[Window]) -> Vec<Probe> {
    let mut probes = Vec::new();
    for window in windows.iter().copied() {
        probes.push(Probe::of(UniqueUsersQuery { window }));
        probes.push(Probe::of(RevenueMetricsQuery { window }));
        probes.push(Probe::of(RevenueSeriesQuery { window }));
        probes.push(Probe::of(TrafficQuery { window, limit: 100 }));
        let windows = ComparedWindows { window, previous: None };
        probes.push(Probe::of(ReportQuery { windows, interval: Interval::Day }));
        for (model, level) in [
            (TouchModel::FirstTouch, EntityLevel::Identity),
            (TouchModel::FirstTouch, EntityLevel::Account),
            (TouchModel::LastTouch, EntityLevel::Identity),
            (TouchModel::LastTouch, EntityLevel::Account),
        ] {
            probes.push(Probe::of(AttributionQuery { model, level, dimension: Dimension::Source, window, limit: 100 }));
        }
    }
    for level in [EntityLevel::Identity, EntityLevel::Account] {
        probes.push(Probe::of(CohortsQuery { level, limit: 60 }));
    }
    for interval in [CohortInterval::Week, CohortInterval::Month] {
        let today = Timezone::UTC.day_of(Instant(NOW_MS));
        probes.push(Probe::of(RetentionQuery { interval, cohorts: CohortInterval::FOLLOWED, today }));
    }
    probes
}

fn of_scans(windows: &[Window], project: &str) -> Vec<Probe> {
    let filter = |json: &str| [("filters", Json::parse(json).unwrap())];
    let mut probes = Vec::new();
    for window in windows.iter().copied() {
        let users = |fields: &[(&str, Json)]| Probe::of_events(window, project, "count-unique-users-per-day", fields);
        probes.push(users(&filter(r#"[{"field": "acquisition_channel", "operator": "is", "value": "Direct"}]"#)));
        probes.push(users(&filter(r#"[{"field": "name", "operator": "is_not", "value": "order"}]"#)));
        for field in ["entry_url", "name"] {
            probes.push(Probe::of_events(window, project, "aggregate", &[("group_by", Json::from(field))]));
        }
    }
    probes
}

/// Questions about whole sessions, which may go on after the window.
fn of_visits(windows: &[Window], project: &str) -> Vec<Probe> {
    let mut probes = Vec::new();
    for window in windows.iter().copied() {
        let mut push = |operation: &str, fields: &[(&str, Json)]| {
            let probe = Probe::of_events(window, project, operation, fields);
            probes.push(Probe { depends: ComparedWindows { window, previous: None }.depends(), ..probe });
        };
        push("traffic", &[]);
        push("report", &[]);
        for field in ["exit_url", "entry_url", "name"] {
            push("breakdown", &[("dimension", Json::from(field))]);
        }
    }
    probes
}

/// The events of a history, one by one.
fn sent(history: &History) -> Vec<(&str, &str)> {
    let mut sent = Vec::new();
    for step in &history.steps {
        match step {
            Step::Track { project, body } => sent.push((&**project, &**body)),
            Step::Batch { project, bodies } => sent.extend(bodies.iter().map(|body| (&**project, &**body))),
            Step::Rates(_) | Step::Settings { .. } | Step::Restart | Step::Floor { .. } | Step::Clock { .. } | Step::Ask(_) => {}
        }
    }
    sent
}

/// How often versions and answers changed.
#[derive(Debug, Default)]
struct Changes {
    events: usize,
    answers: usize,
    versions: usize,
}

/// Whether an event can concern a window that ends before its day. The session that it continues
/// may have begun the day before.
fn reaches_back(event: &Event, is_late: bool, figures: &[FigureKind]) -> bool {
    let links = event.who.user_id.is_some() && event.who.anonymous_id.is_some();
    let companies = event.company.is_some() || event.email_company.is_some() || event.company_domain.is_some();
    let touches = event.details.acquisition.as_ref().is_some_and(|acquisition| !acquisition.is_direct());
    // A late event can also take a session's touch away, as its new entry.
    links || companies || (touches || is_late) && figures.contains(&FigureKind::Attribution)
}

fn assert_left_alone(probe: &Probe, event: &Event, is_first: bool, is_late: bool, what: &str) {
    let (Some(window), Depends::Days(figures, _)) = (probe.window(), probe.depends) else { return };
    assert!(window.end.0 >= event.day.0 - 1 || reaches_back(event, is_late, figures), "an event after the window: {what}");
    let is_outside = event.day < window.start || event.day > window.end;
    assert!(!(is_first && is_outside), "the first event of somebody: {what}");
}

/// The versions of `probes` once the project was started again from its last checkpoint.
fn restarted(held: &mut Held, probes: &[Probe]) -> Vec<u64> {
    held.start();
    probes.iter().map(|probe| held.state.versions.of(&probe.depends)).collect()
}

fn trial(seed: u64, size: Size, probes_of: impl Fn(&[Window], &str) -> Vec<Probe>) -> Changes {
    let history = History::from_seed(seed, NOW_MS, size);
    // Every other history completes each checkpoint, so that a start finds saved versions and not
    // only events to fold again.
    let checkpoint_step = if seed % 2 == 1 { usize::MAX } else { 1 };
    let mut folded = Folded { limits: limits_of(seed), checkpoint_step, ..Folded::default() };
    folded.setup(&history);
    folded.crashes = None;
    let windows = windows(&history, &mut Rng::new(seed), 6);
    let (mut model, mut changes) = (model_of(&history), Changes::default());
    let mut known: Vec<_> = history
        .projects
        .iter()
        .map(|project| {
            let probes = probes_of(&windows, &project.name);
            let before = vec![(0, String::new()); probes.len()];
            (&*project.name, probes, before)
        })
        .collect();
    for (number, (project, body)) in sent(&history).into_iter().enumerate() {
        let recorded_before = folded.projects[project].lock().unwrap().log.len();
        let _ = model.record(project, body, NOW_MS, &sender_of(body));
        folded.send(project, body);
        let held = folded.projects.get_mut(project).unwrap().get_mut().unwrap();
        let (_, probes, before) = known.iter_mut().find(|(name, ..)| *name == project).unwrap();
        let event = held.log.get(recorded_before).map(|(event, _)| event.clone());
        let is_first = event.as_ref().is_some_and(|event| {
            let id = event.who.id();
            let same = |(other, _): &(Event, u64)| other.who.id() == id;
            let alone = event.who.anonymous_id.is_none() && event.company.is_none() && event.email_company.is_none();
            alone && held.log.iter().filter(|other| same(other)).count() == 1
        });
        let is_late = event.as_ref().is_some_and(|event| held.log.iter().any(|(other, _)| other.time > event.time));
        changes.events += usize::from(event.is_some());
        for (probe, before) in probes.iter().zip(before.iter_mut()) {
            let after = (held.state.versions.of(&probe.depends), (probe.ask)(held, &model));
            let what = || format!("seed {seed}, event {number}, {project} {body}\n{:?}\n{before:?}\n{after:?}", probe.depends);
            let (version_changed, answer_changed) = (after.0 != before.0, after.1 != before.1 && !before.1.is_empty());
            assert!(version_changed || !answer_changed, "an answer changed: {}", what());
            assert!(after.0 >= before.0, "a version fell: {}", what());
            match &event {
                Some(event) if version_changed => assert_left_alone(probe, event, is_first, is_late, &what()),
                Some(_) => {}
                None => assert!(!version_changed, "nothing was recorded: {}", what()),
            }
            changes.versions += usize::from(version_changed);
            changes.answers += usize::from(answer_changed);
            *before = after;
        }
        if number % 11 == 3 {
            let versions: Vec<u64> = before.iter().map(|(version, _)| *version).collect();
            assert_eq!(restarted(held, probes), versions, "seed {seed}, after a stop at event {number}");
        }
    }
    changes
}

fn run(count: u64, size: Size, probes_of: impl Fn(&[Window], &str) -> Vec<Probe>) -> Changes {
    let mut all = Changes::default();
    for seed in 0..count {
        let Changes { events, answers, versions } = trial(seed, size, &probes_of);
        all.events += events;
        all.answers += answers;
        all.versions += versions;
    }
    println!("{all:?}");
    all
}

#[test]
fn no_answer_changes_without_its_version() {
    let all = run(trials(60), Size { events: 100, questions: 0 }, |windows, _| of_rollups(windows));
    assert!(all.answers > 0 && all.versions < 2 * all.answers, "versions change about as often as answers: {all:?}");
}

#[test]
fn no_scan_changes_without_its_version() {
    let all = run(trials(20), Size { events: 80, questions: 0 }, of_scans);
    assert!(all.answers > 0, "{all:?}");
}

#[test]
fn no_question_about_sessions_changes_without_its_version() {
    let all = run(trials(20), Size { events: 80, questions: 0 }, of_visits);
    assert!(all.answers > 0, "{all:?}");
}

const MINUTE_MS: i64 = 60_000;
const DAY_MS: i64 = 24 * 60 * MINUTE_MS;

/// A project without events.
fn empty_project() -> (Folded, String) {
    let history = History::from_seed(0, NOW_MS, Size { events: 1, questions: 0 });
    let mut folded = Folded::default();
    folded.setup(&history);
    folded.crashes = None;
    (folded, history.projects[0].name.clone())
}

/// Records an event with these ids. Returns its day.
fn record(folded: &mut Folded, project: &str, ids: &str, at_ms: i64) -> Day {
    folded.send(project, &format!(r#"{{"name": "read", {ids}, "timestamp": {at_ms}}}"#));
    folded.projects[project].lock().unwrap().log.last().unwrap().0.day
}

/// The version of what is computed from the events of a day.
fn version(folded: &Folded, project: &str, day: Day) -> u64 {
    let window = Window { start: day, end: day };
    folded.projects[project].lock().unwrap().state.versions.of(&Depends::on_events(window))
}

#[test]
fn no_linked_day_changes_without_its_version() {
    let (mut folded, project) = empty_project();
    let before = NOW_MS - 10 * DAY_MS;
    let day = record(&mut folded, &project, r#""anonymous_id": "a""#, before);
    // In another session: joined sessions are touched in any case.
    assert_eq!(record(&mut folded, &project, r#""user_id": "u""#, before + 40 * MINUTE_MS), day);
    let seen = version(&folded, &project, day);
    record(&mut folded, &project, r#""anonymous_id": "a", "user_id": "u""#, NOW_MS);
    assert_ne!(version(&folded, &project, day), seen, "two users of a day are one");
}

#[test]
fn no_day_of_a_session_changes_without_its_version() {
    let (mut folded, project) = empty_project();
    let begin = NOW_MS - 10 * DAY_MS;
    let days: Vec<Day> =
        (0..147).map(|number| record(&mut folded, &project, r#""user_id": "u""#, begin + number * 20 * MINUTE_MS)).collect();
    let last = *days.last().unwrap();
    assert!(last.0 > days[0].0 + 1, "the session lasts for more than two days");
    let seen = version(&folded, &project, last);
    record(&mut folded, &project, r#""user_id": "u""#, begin - 10 * MINUTE_MS);
    assert_ne!(version(&folded, &project, last), seen, "events of the third day have another entry");
}

#[test]
fn no_attached_event_changes_without_its_version() {
    let (mut folded, project) = empty_project();
    let day_at = |folded: &mut Folded, at_ms| record(folded, &project, r#""user_id": "other""#, at_ms);
    let begin = (NOW_MS / DAY_MS - 10) * DAY_MS;
    let first = day_at(&mut folded, begin);
    let midnight = (1..).map(|number| begin + number * 15 * MINUTE_MS).find(|&at| day_at(&mut folded, at) != first).unwrap();
    let attached = r#""user_id": "u", "non_interaction": true"#;
    let next = record(&mut folded, &project, attached, midnight + 10 * MINUTE_MS);
    let seen = version(&folded, &project, next);
    let day = record(&mut folded, &project, r#""user_id": "u""#, midnight - 10 * MINUTE_MS);
    assert_ne!(day, next, "the session is of the day before");
    assert_ne!(version(&folded, &project, next), seen, "the event after midnight has an entry");
}
