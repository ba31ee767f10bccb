//! Properties of histories, and of the model under them.

use super::{
    BatchReply, Coverage, History, Rng, Served, Size, Step, Subject, TrackReply, histories, minimize, model_of, run, scans,
    sender_of,
};
use headcount_model::facts::{explicit_company, reported_email};
use headcount_model::text::{company_of_email, reads_as_domain};
use headcount_model::{Answer, Json, Model, Question, Recorded, ServedModel, Status};
use proptest::prelude::{ProptestConfig, prop_assert, proptest};
use std::collections::{BTreeMap, BTreeSet};

/// 2026-11-20T15:00:00Z
pub(super) const NOW_MS: i64 = 1_795_186_800_000;

pub(super) fn subject() -> Served<ServedModel> {
    Served::new(ServedModel::new(NOW_MS))
}

#[test]
fn a_seed_gives_the_same_history() {
    let history = |seed| History::from_seed(seed, NOW_MS, Size::default());
    assert_eq!(history(7), history(7));
    assert_ne!(history(7).steps, history(8).steps);
}

#[test]
fn a_server_of_the_model_answers_as_the_model_and_every_rule_is_exercised() {
    let mut coverage = Coverage::default();
    for seed in 0..100 {
        let history = History::from_seed(seed, NOW_MS, Size { events: 60, questions: 20 });
        let history = if seed.is_multiple_of(3) { history.with_floors() } else { history };
        match run(&history, &mut subject(), model_of(&history)) {
            Ok(covered) => coverage.merge(&covered),
            Err(failure) => panic!("{failure}\n{history}"),
        }
    }
    println!("{coverage}");
    for rule in RULES {
        assert!(coverage.of(rule) >= 5, "too seldom: {rule}\n{coverage}");
    }
}

#[test]
fn client_hints_tell_what_user_agents_do_not() {
    let mut coverage = Coverage::default();
    for seed in 0..40 {
        let history = History::from_seed(seed, NOW_MS, Size { events: 60, questions: 0 }).with_hints();
        match run(&history, &mut subject(), model_of(&history)) {
            Ok(covered) => coverage.merge(&covered),
            Err(failure) => panic!("{failure}\n{history}"),
        }
    }
    for rule in ["browsers by hints", "versions by hints", "Windows 11", "tablets"] {
        assert!(coverage.of(rule) >= 20, "too seldom: {rule}\n{coverage}");
    }
}

const RULES: [&str; 62] = [
    "floors",
    "devices whose first link lies below the floor, and another one above it",
    "events dropped: retention",
    "events recorded",
    "events dropped: consent",
    "duplicates",
    "external_ids in several projects",
    "timestamps clamped",
    "timestamps absent",
    "near a change of the clocks",
    "within 1 ms of midnight",
    "late: before an event recorded earlier",
    "same millisecond as another of the identity",
    "gap of 29:59",
    "gap of 30:00",
    "gap of 30:01",
    "sessions of several events",
    "attached within a session",
    "attached at the instant of the entry",
    "attached after a session",
    "attached 30:00 after a session",
    "sessions whose source comes after the entry",
    "sessions whose page comes after the entry",
    "sessions with several touches",
    "in no session",
    "cookieless visitors' events",
    "sign-ins",
    "links after the fact",
    "second links ignored",
    "e-mails of companies",
    "e-mails of free mail",
    "companies explicit",
    "companies by the identity",
    "companies other organization-wide than in the project",
    "domains reported late",
    "domains reported of a domain",
    "second domains ignored",
    "orders",
    "refunds",
    "values of 0",
    "money converted",
    "money unconverted in the project",
    "money unconverted in the organization",
    "money uncounted: servers only",
    "without consent",
    "without consent, with money",
    "without consent, with a company",
    "rates replaced",
    "settings changed",
    "own sites and tills as referrers",
    "ignored referrers",
    "clicks on ads",
    "shared links",
    "brands in utm_source",
    "restarts",
    "batches",
    "asked identities profile: 200",
    "asked identities profile: 404",
    "asked companies lookup: 200",
    "asked companies metrics: 200",
    "asked companies top-users: 200",
    "asked groups metrics: 200",
];

/// A subject with one defect, for which the failing history must be minimized.
struct Off(Served<ServedModel>);

impl Subject for Off {
    fn now_ms(&mut self) -> i64 {
        self.0.now_ms()
    }
    fn setup(&mut self, history: &History) {
        self.0.setup(history);
    }
    fn track(&mut self, project: &str, body: &str) -> TrackReply {
        // It records refunds as orders.
        self.0.track(project, &body.replace(r#""value": -"#, r#""value": "#))
    }
    fn batch(&mut self, project: &str, bodies: &[String]) -> BatchReply {
        self.0.batch(project, bodies)
    }
    fn rates(&mut self, rates: &headcount_model::Rates) {
        self.0.rates(rates);
    }
    fn settings(&mut self, project: &str, body: &Json) {
        self.0.settings(project, body);
    }
    fn restart(&mut self) {
        self.0.restart();
    }
    fn raise_floor(&mut self, project: &str, day: chrono::NaiveDate) {
        self.0.raise_floor(project, day);
    }
    fn ask(&mut self, question: &Question) -> (u16, Json) {
        self.0.ask(question)
    }
}

#[test]
fn a_wrong_subject_is_caught_and_its_history_made_short() {
    let fails = |history: &History| run(history, &mut Off(subject()), model_of(history)).is_err();
    let histories = (0..50).map(|seed| History::from_seed(seed, NOW_MS, Size::default()));
    let failing: Vec<_> = histories.filter(fails).collect();
    assert!(failing.len() > 20, "{} of 50", failing.len());
    for history in failing.iter().take(3) {
        let short = minimize(history, fails);
        assert_eq!(short.steps.len(), 2, "{short}");
    }
}

/// A subject that gets every event twice, and shows the second reply.
struct Twice(Served<ServedModel>);

impl Subject for Twice {
    fn now_ms(&mut self) -> i64 {
        self.0.now_ms()
    }
    fn setup(&mut self, history: &History) {
        self.0.setup(history);
    }
    fn track(&mut self, project: &str, body: &str) -> TrackReply {
        drop(self.0.track(project, body));
        self.0.track(project, body)
    }
    fn batch(&mut self, project: &str, bodies: &[String]) -> BatchReply {
        drop(self.0.batch(project, bodies));
        self.0.batch(project, bodies)
    }
    fn is_resent(&self) -> bool {
        true
    }
    fn rates(&mut self, rates: &headcount_model::Rates) {
        self.0.rates(rates);
    }
    fn settings(&mut self, project: &str, body: &Json) {
        self.0.settings(project, body);
    }
    fn restart(&mut self) {
        self.0.restart();
    }
    fn raise_floor(&mut self, project: &str, day: chrono::NaiveDate) {
        self.0.raise_floor(project, day);
    }
    fn ask(&mut self, question: &Question) -> (u16, Json) {
        self.0.ask(question)
    }
}

#[test]
fn events_with_external_ids_can_be_sent_again() {
    let mut is_caught_without = false;
    for seed in 0..40 {
        let history = History::from_seed(seed, NOW_MS, Size { events: 60, questions: 20 });
        let with_ids = history.with_external_ids();
        for ((_, before), (_, after)) in events_of(&history).iter().zip(events_of(&with_ids)) {
            let (before, after) = (Json::parse(before).unwrap(), Json::parse(&after).unwrap());
            let (Json::Object(mut before), Json::Object(mut after)) = (before, after) else { panic!("{history}") };
            let id = after.remove("external_id").filter(|id| id.filled().is_some()).expect("an id");
            let former = before.remove("external_id").filter(|former| former.filled().is_some());
            assert_eq!((former.unwrap_or(id.clone()), before), (id, after));
        }
        let outcome = run(&with_ids, &mut Twice(subject()), model_of(&with_ids));
        assert!(outcome.is_ok(), "{outcome:?} of {with_ids}");
        is_caught_without |= run(&history, &mut Twice(subject()), model_of(&history)).is_err();
    }
    assert!(is_caught_without);
}

fn events_of(history: &History) -> Vec<(String, String)> {
    let events = history.steps.iter().flat_map(|step| match step {
        Step::Track { project, body } => vec![(project.clone(), body.clone())],
        Step::Batch { project, bodies } => bodies.iter().map(|body| (project.clone(), body.clone())).collect(),
        _ => vec![],
    });
    events.collect()
}

fn model_with(history: &History, events: &[(String, String)]) -> Model {
    let mut model = model_of(history);
    for (project, body) in events {
        let taken = model.record(project, body, NOW_MS, &sender_of(body));
        assert!(matches!(taken, Ok(Recorded { status: Status::Recorded, .. })), "{body}");
    }
    model
}

/// Removes events that contradict an earlier one where the first recorded decides (keys, links,
/// companies and domains), and keeps one event per instant.
fn undisputed(history: &History) -> Vec<(String, String)> {
    let (mut instants, mut links, mut domains) = (BTreeSet::new(), BTreeMap::new(), BTreeMap::new());
    let mut events = events_of(history);
    events.retain(|(project, body)| {
        let mut alone = model_of(history);
        let taken = alone.record(project, body, NOW_MS, &sender_of(body));
        if !matches!(taken, Ok(Recorded { status: Status::Recorded, .. })) {
            return false;
        }
        let event = &alone.events()[0];
        let agrees = |reported: &mut BTreeMap<_, _>, key: Option<String>, value: Option<String>| match key.zip(value) {
            Some((key, value)) => *reported.entry((project.clone(), key)).or_insert_with(|| value.clone()) == value,
            None => true,
        };
        let reported = event.metadata.field("domain").text().and_then(reads_as_domain);
        let key = explicit_company(event).filter(|_| event.name == "group");
        event.external_id.is_none()
            && instants.insert(event.at_ms)
            && agrees(&mut links, event.anonymous_id.clone(), event.user_id.clone())
            && agrees(&mut domains, key, reported)
    });
    while let Some(disputed) = disputed_company(&model_with(history, &events)) {
        events.remove(disputed);
    }
    events
}

/// Finds an event that reports another company for an identity than an earlier one did.
fn disputed_company(model: &Model) -> Option<usize> {
    let facts = model.facts();
    let mut companies = BTreeMap::new();
    facts.all().find(|&index| {
        let event = &facts.events[index];
        let of_email = || reported_email(event).as_deref().and_then(company_of_email);
        let reported = explicit_company(event).or_else(of_email);
        facts.identities[index].clone().zip(reported).is_some_and(|(identity, reported)| {
            *companies.entry((&event.project, identity)).or_insert_with(|| reported.clone()) != reported
        })
    })
}

fn answers_after(history: &History, events: &[(String, String)]) -> Vec<Answer> {
    let model = model_with(history, events);
    // Pages that follow positions list events in the order of arrival.
    let by_position = |question: &&Question| question.query.iter().any(|(name, _)| name == "after_position");
    let questions = history.steps.iter().filter_map(|step| match step {
        Step::Ask(question) => Some(question).filter(|question| !by_position(question)),
        _ => None,
    });
    let scans = scans(history, &mut Rng::new(history.seed), 20);
    questions.chain(&scans).map(|question| model.answer(NOW_MS, question)).collect()
}

#[test]
fn order_of_arrival_changes_no_answer() {
    let mut coverage = Coverage::default();
    for seed in 0..40 {
        let history = History::from_seed(seed, NOW_MS, Size { events: 80, questions: 10 });
        let mut events = undisputed(&history);
        coverage.look_at(&model_with(&history, &events));
        let expected = answers_after(&history, &events);
        for shuffle in 0..2 {
            Rng::new(shuffle).shuffle(&mut events);
            assert_eq!(answers_after(&history, &events), expected, "{events:#?} of {history}");
        }
    }
    for rule in ["links after the fact", "companies by the identity", "domains reported late", "sessions of several events"] {
        assert!(coverage.of(rule) >= 5, "too seldom: {rule}\n{coverage}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_part_of_a_history_can_be_run(history in histories(NOW_MS, Size { events: 30, questions: 10 })) {
        prop_assert!(run(&history, &mut subject(), model_of(&history)).is_ok());
    }
}
