//! The stages of one thread: from JSON to figures.

use std::hint::black_box;

use headcount_actors::domain::agent;
use headcount_actors::domain::ids::KeyHasher;
use headcount_actors::domain::intake::admission::admit;
use headcount_actors::domain::intake::event::{EVENT_VERSION, Event};
use headcount_actors::domain::intake::submission::Submission;
use headcount_actors::domain::project::Project;
use headcount_actors::domain::records::NoSource;
use headcount_actors::domain::time::{Day, Window};
use headcount_bench::sample::{BROWSER, RECEIVED, admitted, body, body_of};
use headcount_bench::{client, policy};
use headcount_storage::codec;
use headcount_storage::log::{AppendEntry, Log, LogOptions};

use crate::SEGMENT_BYTES;
use crate::marks::measure;

/// How many events a project has before it is measured, and how many are measured.
const WARM_UP: usize = 2_000;
const EVENTS: usize = 1_000;
const QUESTIONS: usize = 100;
const PROJECTS: usize = 50;

/// The key of the hashes, and projects with events.
struct Folding {
    hasher: KeyHasher,
    projects: Vec<Project>,
    position: u64,
}

impl Folding {
    fn new(projects: usize, warm_up: &[Event]) -> Self {
        let projects = (0..projects).map(|_| Project::default()).collect();
        let mut folding = Self { hasher: KeyHasher::new([1; 16]), projects, position: 0 };
        folding.fold(warm_up);
        folding
    }

    /// Folds the events, one after another into each project.
    fn fold(&mut self, events: &[Event]) {
        let count = self.projects.len();
        for (index, event) in events.iter().enumerate() {
            self.position += 1;
            self.projects[index % count].apply(event, self.position, &self.hasher, &NoSource).unwrap();
        }
    }
}

/// Runs them.
pub(crate) fn run() {
    intake();
    append();
    folds();
    questions();
}

fn events(body: impl Fn(usize) -> String) -> Vec<Event> {
    let policy = policy();
    (0..WARM_UP + EVENTS).map(|number| *admitted(&body(number), &policy)).collect()
}

fn intake() {
    let (policy, agent) = (policy(), agent::parse(BROWSER));
    let client = client(&agent);
    let bodies: Vec<String> = (0..EVENTS).map(body).collect();
    measure("parse", EVENTS, || {
        for body in &bodies {
            Submission::read(body.as_bytes(), |submission| _ = black_box(submission)).unwrap();
        }
    });
    measure("parse and admit", EVENTS, || {
        for body in &bodies {
            let admitted = Submission::read(body.as_bytes(), |submission| admit(submission, &policy, &client, RECEIVED));
            drop(black_box(admitted.flatten().unwrap()));
        }
    });
    let events: Vec<Event> = bodies.iter().map(|body| *admitted(body, &policy)).collect();
    measure("encode", EVENTS, || {
        for event in &events {
            drop(black_box(codec::encode(EVENT_VERSION, event).unwrap()));
        }
    });
    let encoded: Vec<Vec<u8>> = events.iter().map(|event| codec::encode(EVENT_VERSION, event).unwrap()).collect();
    measure("decode", EVENTS, || {
        for bytes in &encoded {
            drop(black_box(codec::decode::<Event>(EVENT_VERSION, bytes).unwrap()));
        }
    });
}

/// An event is a block of its own, as under little load.
fn append() {
    let policy = policy();
    let dir = tempfile::tempdir().unwrap();
    let (mut log, _) = Log::open(dir.path(), LogOptions { segment_bytes: SEGMENT_BYTES, ..LogOptions::default() }).unwrap();
    let encoded: Vec<Vec<u8>> =
        (0..EVENTS).map(|number| codec::encode(EVENT_VERSION, &*admitted(&body(number), &policy)).unwrap()).collect();
    measure("append to the log", EVENTS, || {
        for payload in &encoded {
            log.append(&[AppendEntry { partition: 1, count: 1, payload }]).unwrap();
        }
    });
}

fn folds() {
    fold("fold, new people", 1, |number| body_of(number, number, None));
    fold("fold, known people", 1, |number| body_of(number, number % 200, None));
    fold("fold, members of companies", 1, |number| body_of(number, number % 200, Some(("company", number % 20))));
    fold("fold, members of groups", 1, |number| body_of(number, number % 200, Some(("team", number % 20))));
    fold("fold, many projects", PROJECTS, body);
}

fn fold(name: &str, projects: usize, body: impl Fn(usize) -> String) {
    let events = events(body);
    let (warm_up, measured) = events.split_at(WARM_UP);
    let mut folding = Folding::new(projects, warm_up);
    measure(name, EVENTS, || folding.fold(measured));
    black_box(folding.projects);
}

fn questions() {
    let folding = Folding::new(1, &events(body));
    let project = &folding.projects[0];
    let first = Day::from_ymd(2026, 6, 1).unwrap();
    let windows: Vec<Window> = (0..7).map(|day| Window { start: first.plus(day), end: first.plus(day + 29) }).collect();
    let asked = || windows.iter().cycle().take(QUESTIONS);
    measure("question, unique users", QUESTIONS, || asked().for_each(|window| drop(black_box(project.unique_users(*window)))));
    measure("question, revenue", QUESTIONS, || asked().for_each(|window| drop(black_box(project.revenue_metrics(*window)))));
}
