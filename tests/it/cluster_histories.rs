//! Random histories through three nodes: each event goes to a random one, and each question to a
//! random one, while nodes are killed, stopped, halted and started again, so that their partitions
//! move. Compared with the naive model to the last cell.
//!
//! `GET …/intake` is asked for what was recorded: killed nodes take their last counts of other
//! events with them. Nodes that keep files, and erasures, are in `cluster_erased_histories.rs`.
//!
//! `HEADCOUNT_TRIALS` says how many histories, `HEADCOUNT_FIRST_SEED` from which seed on.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use chrono::NaiveDate;
use headcount_common::partition_of;
use headcount_histories::{BatchReply, Coverage, History, Rng, Served, Step, Subject, TrackReply, model_of, run};
use headcount_model::subject::{Method, Request};
use headcount_model::{Json, Question, Rates};
use serde_json::json;

use crate::client::{Answer, Call};
use crate::histories::{history, number};
use crate::moving_nodes::{Kind, MovingNodes, moves_of, while_nodes_move};
use crate::tenant::{body_of, call_of, now_ms};

/// How many histories, unless `HEADCOUNT_TRIALS` says otherwise.
const TRIALS: u64 = 6;
/// How many run at once.
const AT_ONCE: usize = 24;
/// In how many places each waits until a node moves.
const MOVES: usize = 2;
/// How many of a hundred single events are sent a second time after they were answered.
const SENT_TWICE: usize = 15;
/// How long a client waits for the answer to a question or an event before it asks another node:
/// longer than answers take, and shorter than a node is halted.
const CLIENT_PATIENCE: Duration = Duration::from_secs(6);
/// The same for a change, which must not be made after a later one, and so is waited for.
const CHANGE_PATIENCE: Duration = Duration::from_secs(90);
/// How long the owner of a project may take to raise its floor, if it changes meanwhile.
const FLOOR_PATIENCE: Duration = Duration::from_secs(90);

/// An organization, whose requests go to random nodes.
pub(crate) struct Scattered<'a> {
    pub(crate) nodes: &'a MovingNodes,
    token: String,
    rng: Rng,
    /// Whether the last request was sent again, and may have had its effect the first time.
    is_resent: bool,
}

impl<'a> Scattered<'a> {
    pub(crate) fn new(nodes: &'a MovingNodes, seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let call = Call::post("/organizations").bearer(nodes.root_token()).json(&json!({"name": format!("history {seed}")}));
        // If it is made twice, nobody uses the first one.
        let (made, _) = nodes.send(&call, CHANGE_PATIENCE, &mut rng);
        assert_eq!(made.status, 201, "{}", made.text());
        Self { nodes, token: made.field("api_token"), rng, is_resent: false }
    }

    /// Sends a change of the organization that has the same effect if it is made twice, or a
    /// question.
    pub(crate) fn send(&mut self, call: Call) -> Answer {
        self.nodes.send(&call.bearer(&self.token), CHANGE_PATIENCE, &mut self.rng).0
    }
}

impl headcount_model::subject::Subject for Scattered<'_> {
    fn now_ms(&mut self) -> i64 {
        now_ms()
    }

    fn request(&mut self, request: &Request) -> (u16, Json) {
        let is_change = request.method == Method::Patch || request.path == "/projects";
        let patience = if is_change { CHANGE_PATIENCE } else { CLIENT_PATIENCE };
        // A project that is made twice is one without events.
        let (answer, is_resent) = self.nodes.send(&call_of(request, &self.token), patience, &mut self.rng);
        self.is_resent = is_resent;
        (answer.status, body_of(&answer))
    }

    fn restart(&mut self) {
        self.nodes.wait_for_move();
    }
}

/// The subject of a history.
pub(crate) struct OnNodes<'a>(pub(crate) Served<Scattered<'a>>);

impl Subject for OnNodes<'_> {
    fn now_ms(&mut self) -> i64 {
        self.0.now_ms()
    }

    fn setup(&mut self, history: &History) {
        self.0.setup(history);
    }

    fn track(&mut self, project: &str, body: &str) -> TrackReply {
        let reply = self.0.track(project, body);
        if self.0.server.rng.chance(SENT_TWICE) {
            let is_resent = self.0.server.is_resent;
            assert_eq!(self.0.track(project, body), as_duplicate(&reply), "the second answer to {body}, for {project}");
            self.0.server.is_resent = is_resent;
        }
        reply
    }

    fn batch(&mut self, project: &str, bodies: &[String]) -> BatchReply {
        self.0.batch(project, bodies)
    }

    fn is_resent(&self) -> bool {
        self.0.server.is_resent
    }

    fn rates(&mut self, rates: &Rates) {
        self.0.rates(rates);
    }

    fn settings(&mut self, project: &str, body: &Json) {
        self.0.settings(project, body);
    }

    fn restart(&mut self) {
        self.0.restart();
    }

    /// Waits for the owner, which raises the floor when it knows the retention.
    fn raise_floor(&mut self, project: &str, day: NaiveDate) {
        let mut shown = self.0.retain_from(project, day);
        let began = Instant::now();
        while shown.field("retention_floor").text() < Some(&day.to_string()) {
            assert!(
                began.elapsed() < FLOOR_PATIENCE,
                "the floor {day} of {project} is not raised: {shown}\n{}",
                self.0.server.nodes.end_of_logs()
            );
            std::thread::sleep(Duration::from_millis(50));
            let (id, _) = self.0.project(project).expect("the project");
            let path = format!("/projects/{id}");
            let request = Request { body: None, ..Request::owner(Method::Get, &path, "") };
            shown = headcount_model::subject::Subject::request(&mut self.0.server, &request).1;
        }
    }

    fn ask(&mut self, question: &Question) -> (u16, Json) {
        self.0.ask(question)
    }
}

/// What is answered when the same event comes again.
fn as_duplicate(reply: &TrackReply) -> TrackReply {
    let mut again = reply.clone();
    if let TrackReply::Accepted { status, .. } = &mut again
        && status == "recorded"
    {
        *status = "duplicate".to_owned();
    }
    again
}

/// The history of a seed, in the middle of which nodes move. Its events can be sent again.
pub(crate) fn moving_history(seed: u64) -> History {
    let history = history(seed).with_external_ids();
    let mut steps = history.steps.clone();
    steps.retain(|step| *step != Step::Restart);
    let mut rng = Rng::new(!seed);
    for _ in 0..MOVES {
        let at = steps.len() / 5 + rng.below(steps.len() / 2 + 1);
        steps.insert(at, Step::Restart);
    }
    history.with_steps(steps)
}

/// What a history that equals the model was.
struct Outcome {
    coverage: Coverage,
    /// When it began and ended.
    span_ms: (i64, i64),
    partitions: BTreeSet<u16>,
}

fn trial(nodes: &MovingNodes, seed: u64) -> Result<Outcome, String> {
    let history = moving_history(seed);
    let began_ms = now_ms();
    let mut subject = OnNodes(Served::new(Scattered::new(nodes, seed)));
    let coverage = run(&history, &mut subject, model_of(&history))
        .map_err(|failure| format!("seed {seed}: {failure}\n{history}\n{}", nodes.end_of_logs()))?;
    let of_project = |name: &str| partition_of(subject.0.project(name).expect("the project").0.parse().expect("its id"));
    let partitions = history.projects.iter().map(|project| of_project(&project.name)).collect();
    Ok(Outcome { coverage, span_ms: (began_ms, now_ms()), partitions })
}

#[test]
fn every_answer_of_any_node_equals_the_model_while_owners_move() {
    compare(false);
}

/// The next version of an owner, or the one before, makes its state anew.
#[test]
fn every_answer_of_nodes_of_two_versions_equals_the_model_while_owners_move() {
    compare(true);
}

fn compare(is_mixed: bool) {
    let kind = if is_mixed { Kind::OfTwoVersions } else { Kind::Alike };
    let Some((nodes, started)) = MovingNodes::start(kind) else { return };
    let (first, trials) = (number("HEADCOUNT_FIRST_SEED", 0), number("HEADCOUNT_TRIALS", TRIALS));
    let began = Instant::now();
    let seeds: Vec<u64> = (first..first + trials).collect();
    let outcomes = while_nodes_move((&nodes, started), AT_ONCE, &seeds, trial);
    report(&nodes, outcomes, trials, began.elapsed());
}

/// Prints what happened, and asserts that nothing differed and that owners moved.
fn report(nodes: &MovingNodes, outcomes: Vec<Result<Outcome, String>>, trials: u64, took: Duration) {
    let moves = nodes.moves();
    let mut coverage = Coverage::default();
    let (mut equal, mut moved, mut failures) = (0, 0, Vec::new());
    for outcome in outcomes {
        match outcome {
            Ok(Outcome { coverage: seen, span_ms, partitions }) => {
                coverage.merge(&seen);
                equal += 1;
                moved += u64::from(moves_of(&moves, &partitions, span_ms) > 0);
            }
            Err(failure) => failures.push(failure),
        }
    }
    println!("{coverage}{nodes}");
    println!(
        "{equal} histories equal the model, in {} s; {} times a partition had another owner than before, during {moved} histories one of their own",
        took.as_secs(),
        moves.len()
    );
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    assert_eq!(equal, trials);
    assert!(moved * 2 >= trials, "owners moved during {moved} histories only");
}
