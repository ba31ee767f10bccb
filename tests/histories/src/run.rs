//! Runs a history on a subject and on the model, and compares every reply and every answer.

use crate::coverage::Coverage;
use crate::generate::{is_of_server, sent_headers};
use crate::history::{History, Step};
use crate::ties::{by_name, has_no_order};
use chrono::NaiveDate;
use headcount_model::served::{ignored, project_setup};
use headcount_model::time::day_of;
use headcount_model::{Answer, Ids, Json, Model, Question, Rates, Recorded, Refused, Sender, Status, same};
use std::collections::BTreeMap;
use std::fmt;

/// The reply to one event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TrackReply {
    /// The event was accepted.
    Accepted {
        /// `recorded`, `duplicate` or `dropped`.
        status: String,
        /// The reason for dropping it.
        reason: Option<String>,
        /// Whether its timestamp was too far ahead.
        clamped: bool,
        /// The event's id.
        id: Option<String>,
        /// The codes and fields of what was repaired, in any order.
        warnings: Vec<String>,
    },
    /// The event was refused.
    Refused {
        /// The invalid field.
        param: Option<String>,
    },
}

/// The reply to a batch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BatchReply {
    /// The number of recorded events.
    pub recorded: usize,
    /// The number of duplicates.
    pub duplicates: usize,
    /// The number of dropped events.
    pub dropped: usize,
    /// The indices of the refused events, and their invalid fields.
    pub errors: Vec<(usize, Option<String>)>,
}

/// A system under test, which should answer like the model.
pub trait Subject {
    /// Returns the subject's clock, in milliseconds since the epoch.
    fn now_ms(&mut self) -> i64;
    /// Creates the organization and its projects in an empty subject.
    fn setup(&mut self, history: &History);
    /// Sends an event from a typical browser with a public key of the project, or [as a
    /// server](crate::is_of_server).
    fn track(&mut self, project: &str, body: &str) -> TrackReply;
    /// Sends several events at once.
    fn batch(&mut self, project: &str, bodies: &[String]) -> BatchReply;
    /// Whether the last event, or batch, was sent again because nobody knew whether it was
    /// recorded. What it recorded the first time is a duplicate then.
    fn is_resent(&self) -> bool {
        false
    }
    /// Replaces the table of rates.
    fn rates(&mut self, rates: &Rates);
    /// Changes settings of a project, by the body of `PATCH /projects/{id}`.
    fn settings(&mut self, project: &str, body: &Json);
    /// Restarts the subject.
    fn restart(&mut self);
    /// Raises the floor of a project.
    fn raise_floor(&mut self, project: &str, day: NaiveDate);
    /// Sets the clock, by how far it is ahead of the one that the history began with. Few subjects
    /// have such a clock.
    fn set_clock(&mut self, ahead_ms: i64) {
        panic!("this subject's clock can't be {ahead_ms} ms ahead");
    }
    /// Asks a question, and returns the status and the body. In the path, `{shop}` stands for the
    /// id of the project `shop`; ids of companies are those that the subject has shown.
    fn ask(&mut self, question: &Question) -> (u16, Json);
}

/// Returns who sends an event.
#[must_use]
pub fn sender_of(body: &str) -> Sender {
    if is_of_server(body) { Sender::server() } else { Sender::with(&sent_headers(body)) }
}

/// A difference between the subject and the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The index of the step.
    pub step: usize,
    /// The step.
    pub what: String,
    /// The place in the answer.
    pub path: String,
    /// The model's value.
    pub expected: String,
    /// The subject's value.
    pub got: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Failure { step, what, path, expected, got } = self;
        write!(f, "step {step}, {what}\n  at {path}\n  expected {expected}\n  got      {got}")
    }
}

/// Creates the model of a history's organization, without events.
#[must_use]
pub fn model_of(history: &History) -> Model {
    let mut model = Model::new(history.organization.clone());
    for project in &history.projects {
        model.add_project(&project.name, project_setup(&project.body));
    }
    model
}

/// Runs a history on a subject and on a model side by side. If the day changes during the run,
/// answers relative to today can't be compared: the run then ends early, and the coverage records
/// it.
///
/// # Errors The first difference.
pub fn run(history: &History, subject: &mut dyn Subject, model: Model) -> Result<Coverage, Failure> {
    subject.setup(history);
    let mut begun_ms = subject.now_ms();
    let mut run = Run::new(subject, model);
    for (number, step) in history.steps.iter().enumerate() {
        let outcome = run.step(step);
        if matches!(step, Step::Clock { .. }) {
            begun_ms = run.subject.now_ms();
        }
        if is_another_day(history, begun_ms, run.subject.now_ms()) {
            run.coverage.count("runs cut short by midnight");
            break;
        }
        outcome.map_err(|(path, expected, got)| Failure { step: number, what: step.to_string(), path, expected, got })?;
    }
    run.coverage.look_at(&run.model);
    Ok(run.coverage)
}

fn is_another_day(history: &History, begun_ms: i64, now_ms: i64) -> bool {
    let changed = |timezone| day_of(begun_ms, timezone) != day_of(now_ms, timezone);
    changed(history.timezone()) || changed(chrono_tz::UTC)
}

/// A place, the model's value and the subject's value.
pub type Differs = (String, String, String);

/// A subject and a model that take the same steps.
pub struct Run<'a, S: Subject + ?Sized> {
    /// The subject.
    pub subject: &'a mut S,
    /// The model.
    pub model: Model,
    ids: Ids,
    /// The subject's ids of events, by the model's indices.
    events: BTreeMap<usize, String>,
    coverage: Coverage,
}

impl<'a, S: Subject + ?Sized> Run<'a, S> {
    /// Begins with a subject that is set up, and a model of the same.
    pub fn new(subject: &'a mut S, model: Model) -> Self {
        Run { subject, model, ids: Ids::default(), events: BTreeMap::new(), coverage: Coverage::default() }
    }

    /// Has both take a step.
    ///
    /// # Errors The first difference.
    pub fn step(&mut self, step: &Step) -> Result<(), Differs> {
        match step {
            Step::Track { project, body } => self.track(project, body),
            Step::Batch { project, bodies } => self.batch(project, bodies),
            Step::Ask(question) => self.ask(question),
            Step::Rates(rates) => {
                self.coverage.count("rates replaced");
                self.subject.rates(rates);
                self.model.set_rates(rates.clone());
                Ok(())
            }
            Step::Settings { project, body } => {
                self.coverage.count("settings changed");
                self.subject.settings(project, body);
                self.model.ignore_referrers(project, ignored(body));
                Ok(())
            }
            Step::Floor { project, day } => {
                self.coverage.count("floors");
                self.subject.raise_floor(project, *day);
                self.model.raise_floor(project, *day);
                Ok(())
            }
            Step::Clock { ahead_ms } => {
                self.coverage.count("clocks set");
                self.subject.set_clock(*ahead_ms);
                Ok(())
            }
            Step::Restart => {
                self.coverage.count("restarts");
                self.subject.restart();
                Ok(())
            }
        }
    }

    fn record(&mut self, project: &str, body: &str) -> Result<Recorded, Refused> {
        let now_ms = self.subject.now_ms();
        let expected = self.model.record(project, body, now_ms, &sender_of(body));
        self.coverage.replied(body, &expected);
        expected
    }

    fn track(&mut self, project: &str, body: &str) -> Result<(), Differs> {
        let expected = self.record(project, body);
        let got = self.subject.track(project, body);
        let shown = format!("{got:?}");
        let differs = |path: &str, expected: String| Err((path.to_owned(), expected, shown.clone()));
        match (expected, got) {
            (Err(refused), TrackReply::Refused { param }) => {
                let wanted = Some(refused.param.to_owned());
                if param == wanted { Ok(()) } else { differs("param", format!("{wanted:?}")) }
            }
            (Ok(recorded), TrackReply::Accepted { status, reason, clamped, id, mut warnings }) => {
                let (wanted, why) = spelled(recorded.status);
                let is_first = wanted == "recorded" && self.subject.is_resent();
                let status = if is_first && status == "duplicate" { wanted.to_owned() } else { status };
                if status != wanted || reason.as_deref() != why {
                    return differs("status", format!("{wanted} {why:?}"));
                }
                if clamped != recorded.clamped && wanted == "recorded" {
                    return differs("clamped", recorded.clamped.to_string());
                }
                warnings.sort_unstable();
                if warnings != recorded.warnings {
                    return differs("warnings", format!("{:?}", recorded.warnings));
                }
                match self.is_its_id(&recorded, id) {
                    true => Ok(()),
                    false => differs("id", "the id of the first, and of no other".to_owned()),
                }
            }
            (expected, _) => differs("", format!("{expected:?}")),
        }
    }

    /// Whether a new event has a new id, and a duplicate that of the first.
    fn is_its_id(&mut self, recorded: &Recorded, id: Option<String>) -> bool {
        let Some(id) = id else { return matches!(recorded.status, Status::Dropped(_)) };
        match (recorded.status, recorded.index) {
            (Status::Recorded, Some(index)) => {
                let is_new = self.events.values().all(|other| *other != id);
                self.events.insert(index, id);
                is_new
            }
            // The ids of events in a batch are never shown.
            (Status::Duplicate(Some(first)), _) => *self.events.entry(first).or_insert_with(|| id.clone()) == id,
            _ => true,
        }
    }

    fn batch(&mut self, project: &str, bodies: &[String]) -> Result<(), Differs> {
        let mut expected = BatchReply::default();
        for (index, body) in bodies.iter().enumerate() {
            match self.record(project, body).map(|recorded| recorded.status) {
                Ok(Status::Recorded) => expected.recorded += 1,
                Ok(Status::Duplicate(_)) => expected.duplicates += 1,
                Ok(Status::Dropped(_)) => expected.dropped += 1,
                Err(refused) => expected.errors.push((index, Some(refused.param.to_owned()))),
            }
        }
        self.coverage.count("batches");
        let mut got = self.subject.batch(project, bodies);
        if self.subject.is_resent() && got.recorded < expected.recorded {
            // Some were recorded the first time: how many there are of both is right.
            let first = (expected.recorded - got.recorded).min(got.duplicates);
            got.recorded += first;
            got.duplicates -= first;
        }
        if got == expected { Ok(()) } else { Err((String::new(), format!("{expected:?}"), format!("{got:?}"))) }
    }

    fn ask(&mut self, question: &Question) -> Result<(), Differs> {
        let Some(asked) = self.with_ids(question) else {
            self.coverage.count("questions left out: no id known yet");
            return Ok(());
        };
        let expected = self.model.answer(self.subject.now_ms(), question);
        let (status, mut got) = self.subject.ask(&asked);
        self.coverage.asked(question, &expected);
        let now_ms = self.subject.now_ms();
        if status == expected.status && has_no_order(question, &expected, |whole| self.model.answer(now_ms, whole)) {
            self.coverage.count("lists without an order");
            return Ok(());
        }
        by_name(question, &mut got);
        self.coverage.add("cells compared", cells(&expected.body));
        compare(expected, (status, got), &mut self.ids)
    }

    /// Resolves the ids of companies in a question; `None` if the subject has not shown one of
    /// them.
    fn with_ids(&self, question: &Question) -> Option<Question> {
        let Some((before, rest)) = question.path.split_once("{company:") else { return Some(question.clone()) };
        let (key, after) = rest.split_once('}')?;
        let id = self.ids.text(&headcount_model::served::company_id(key))?;
        Some(Question { path: format!("{before}{id}{after}"), ..question.clone() })
    }
}

/// Counts the values in an answer.
fn cells(answer: &Json) -> usize {
    match answer {
        Json::Object(fields) => fields.values().map(cells).sum(),
        Json::List(items) => items.iter().map(cells).sum(),
        _ => 1,
    }
}

/// Compares an answer with the model's.
///
/// # Errors The first difference: its place, the model's value and the subject's value.
pub fn compare(expected: Answer, got: (u16, Json), ids: &mut Ids) -> Result<(), Differs> {
    let (status, got) = got;
    if status != expected.status {
        let shown = format!("{} {}", expected.status, expected.body);
        return Err(("status".to_owned(), shown, format!("{status} {got}")));
    }
    if status == 400 {
        // The contract does not specify which of several errors is reported.
        let (expected, got) = (expected.body.field("error").field("type"), got.field("error").field("type"));
        let differs = ("error.type".to_owned(), expected.to_string(), got.to_string());
        return if expected == got { Ok(()) } else { Err(differs) };
    }
    let expected = expected.body;
    same(&expected, &got, ids).map_err(|difference| {
        let whole = |shown: String, body: &Json| format!("{shown} in {body}");
        let shown = whole(difference.expected, &expected);
        (difference.path, shown, whole(difference.got, &got))
    })
}

fn spelled(status: Status) -> (&'static str, Option<&'static str>) {
    match status {
        Status::Recorded => ("recorded", None),
        Status::Duplicate(_) => ("duplicate", None),
        Status::Dropped(reason) => ("dropped", Some(reason)),
    }
}
