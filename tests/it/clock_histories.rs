//! Random histories over HTTP while the clock jumps: hours, days and years, ahead and back, of a
//! running server and between two starts, with kills, erasures, and confirmations. What the server
//! believes, its floors, and every reply and answer are those of the naive models of both.
//!
//! `HEADCOUNT_CLOCK_TRIALS` says how many histories, `HEADCOUNT_FIRST_SEED` from which seed on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use chrono::NaiveDate;
use headcount_histories::{Differs, History, Rng, Run, Served, Step, Subject as _, above, dated, jumped, model_of};
use headcount_model::known_time::{Believed, KnownTimes};
use headcount_model::time::{UTC, day_of, instant_ms};
use headcount_model::{Json, Question};
use serde_json::{Value, json};

use crate::archive::seal;
use crate::client::Call;
use crate::erased_histories::identities;
use crate::histories::{history, id_of, number};
use crate::server::TestServer;
use crate::tenant::{Tenant, now_ms};
use crate::wrong_clock::WrongClock;

/// How many histories, unless `HEADCOUNT_CLOCK_TRIALS` says otherwise.
const TRIALS: u64 = 4;
const MINUTE_MS: i64 = 60_000;
const HOUR_MS: i64 = 60 * MINUTE_MS;
const DAY_MS: i64 = 24 * HOUR_MS;
/// How far from a day's end, and from what is just believed, the clock is set.
const MARGIN_MS: i64 = 30 * MINUTE_MS;

/// What happened to the histories.
#[derive(Debug, Default)]
struct Tally {
    jumps: usize,
    starts: usize,
    kills: usize,
    confirmed: usize,
    refused: usize,
    doubts: usize,
    held: usize,
    floors: usize,
    erased: usize,
    replies: usize,
    answers: usize,
}

struct Trial<'a> {
    run: Run<'a, Served<Tenant>>,
    tenant: Tenant,
    server: Arc<TestServer>,
    history: History,
    known: KnownTimes,
    since: Instant,
    /// How many days projects keep.
    kept: BTreeMap<String, u32>,
    has_erased: bool,
    rng: Rng,
    tally: &'a mut Tally,
}

impl Trial<'_> {
    fn clock(&self) -> &WrongClock {
        self.server.clock().expect("its clock may be wrong")
    }

    fn shown_ms(&self) -> i64 {
        now_ms() + self.clock().ahead_ms()
    }

    fn steady_ms(&self) -> i64 {
        i64::try_from(self.since.elapsed().as_millis()).unwrap()
    }

    /// How far ahead the clock shall be: not near a day's end, nor near what is just believed.
    fn next_ahead(&mut self) -> i64 {
        let present = self.clock().ahead_ms();
        let mut ahead = jumped(&mut self.rng, present);
        let is_apart = |ahead: i64| {
            let shown = now_ms() + ahead;
            let ends = |timezone| [-MARGIN_MS, MARGIN_MS].map(|by| day_of(shown + by, timezone));
            let same_day = |[one, other]: [NaiveDate; 2]| one == other;
            let from_bounds = |by: i64| (by - (by + DAY_MS / 2).div_euclid(DAY_MS) * DAY_MS).abs() > MARGIN_MS;
            let aheads = self.known.ahead_ms(shown, self.steady_ms());
            let is_far = aheads.into_iter().all(|by| by.abs() < DAY_MS / 2 || from_bounds(by));
            same_day(ends(UTC)) && same_day(ends(self.history.timezone())) && is_far
        };
        while !is_apart(ahead) {
            ahead += 35 * MINUTE_MS;
        }
        ahead
    }

    /// What the server says of its clock, which is possible by what is known.
    fn believed(&mut self) -> Believed {
        let answer = self.server.send(&Call::get("/admin/clock").bearer(&self.server.operator())).ok(200);
        let at = |value: &Value| instant_ms(value.as_str().unwrap()).unwrap();
        let jump = Some(&answer["jump"]).filter(|jump| !jump.is_null()).map(|jump| (at(&jump["from"]), at(&jump["to"])));
        let said = Believed { at_ms: at(&answer["believed"]), is_doubted: answer["doubted"] == true, jump };
        let shown = self.shown_ms();
        assert!(at(&answer["shown"]).abs_diff(shown) < 5_000, "{answer}, not {shown}");
        let (now, shortest) = ((shown, self.steady_ms()), self.kept.values().copied().min());
        if let Err(possible) = self.known.saw(now, &said, shortest) {
            panic!("{said:?} at {shown} with {:?}, and not one of {possible:?}", self.kept);
        }
        said
    }

    /// Sets retentions anew, and compares the floors.
    fn raise_floors(&mut self) {
        let said = self.believed();
        self.tally.doubts += usize::from(said.is_doubted);
        for (project, days) in self.kept.clone() {
            let body = json!({ "retention_days": days });
            let set = self.tenant.patch(&format!("/projects/{}", id_of(&self.tenant, &project)), &body).ok(200);
            let wanted = said.floor(days, self.history.timezone());
            let free = Believed { jump: None, ..said }.floor(days, self.history.timezone());
            self.tally.held += usize::from(wanted != free);
            let before = self.run.model.floor(&project);
            self.run.model.raise_floor(&project, wanted);
            let expected = self.run.model.floor(&project).unwrap();
            self.tally.floors += usize::from(before.is_none_or(|before| before < expected));
            assert_eq!(set["retention_floor"], expected.to_string(), "{project} keeps {days} days, {before:?} before: {said:?}");
        }
    }

    /// The clock jumps, somebody confirms it, or an operator lets the server go on.
    fn disturb(&mut self) {
        match self.rng.below(10) {
            0..4 => {
                let ahead = self.next_ahead();
                self.clock().set_ahead(ahead);
                self.tally.jumps += 1;
            }
            4..6 => {
                let ahead = self.next_ahead();
                self.known.stop(self.steady_ms());
                self.server.stopped(|_| self.clock().set_ahead(ahead));
                self.known.start(self.steady_ms());
                self.tally.starts += 1;
            }
            6..8 => {
                let ahead = self.next_ahead();
                self.server.killed(|| self.clock().set_ahead(ahead));
                self.known.start(self.steady_ms());
                self.tally.kills += 1;
            }
            _ => self.confirm(),
        }
        self.raise_floors();
    }

    fn confirm(&mut self) {
        self.believed();
        let today = day_of(self.shown_ms(), UTC);
        let days = *self.rng.pick(&[0, 0, 0, 1, -1, 2, -3, 3_650]);
        let day = today + chrono::TimeDelta::days(days);
        let call = Call::post("/admin/clock").bearer(&self.server.operator()).json(&json!({"today": day.to_string()}));
        let answer = self.server.send(&call);
        let is_right = self.known.confirm((self.shown_ms(), self.steady_ms()), day);
        assert_eq!(answer.status, if is_right { 200 } else { 400 }, "{day} where it is {today}: {}", answer.text());
        *(if is_right { &mut self.tally.confirmed } else { &mut self.tally.refused }) += 1;
    }

    /// Erases somebody, whom the model forgets.
    fn erase(&mut self) {
        let known = identities(&self.run.model);
        if known.is_empty() {
            return;
        }
        let identity = self.rng.pick(&known).clone();
        crate::erased_histories::erase_and_wait(&self.tenant, &identity);
        self.run.model.erase(&BTreeSet::from([identity]));
        self.tally.erased += 1;
        self.has_erased = true;
    }

    fn today(&self) -> [NaiveDate; 2] {
        [UTC, self.history.timezone()].map(|timezone| day_of(self.shown_ms(), timezone))
    }

    /// Asks, but for what is not known of somebody who was erased from days that are frozen, and
    /// for ids that only an answer tells.
    fn ask(&mut self, question: &Question) -> Result<(), Differs> {
        let is_shown_only = ["/ltv-cohorts", "/top-users"].iter().any(|end| question.path.ends_with(end));
        let asked = match self.has_erased {
            false => Some(question.clone()),
            true if is_shown_only || question.path.contains("{company:") => None,
            true => above(question.clone(), |project| self.run.model.floor(project)),
        };
        let Some(asked) = asked else { return Ok(()) };
        self.tally.answers += 1;
        self.run.step(&Step::Ask(asked))
    }

    fn step(&mut self, step: &Step) -> Result<(), String> {
        let today = self.today();
        let outcome = match step {
            Step::Floor { project, day } => {
                let days = (day_of(self.shown_ms(), self.history.timezone()) - *day).num_days() + 1;
                // Jumps that are believed hold short retentions alone.
                let days = if self.rng.chance(40) { 1 + i64::try_from(self.rng.below(30)).unwrap() } else { days };
                if let Ok(days @ 1..=3_660) = u32::try_from(days) {
                    // A jump may have been forgotten that would hold this one.
                    self.believed();
                    self.kept.insert(project.clone(), days);
                    self.raise_floors();
                }
                Ok(())
            }
            Step::Restart => Ok(()),
            Step::Track { project, body } => {
                let body = self.dated(body);
                self.tally.replies += 1;
                self.run.step(&Step::Track { project: project.clone(), body })
            }
            Step::Batch { project, bodies } => {
                let bodies = bodies.iter().map(|body| self.dated(body)).collect();
                self.tally.replies += 1;
                self.run.step(&Step::Batch { project: project.clone(), bodies })
            }
            Step::Ask(question) => self.ask(question),
            Step::Rates(_) | Step::Settings { .. } => self.run.step(step),
            Step::Clock { .. } => Ok(()),
        };
        if self.today() != today {
            return Ok(());
        }
        outcome.map_err(|(path, expected, got)| format!("{step}\n  at {path}\n  expected {expected}\n  got      {got}"))
    }

    /// The event, at the time that the clock shows now and then. Ahead of a clock, it would count
    /// at its receipt, whose milliseconds nobody knows.
    fn dated(&mut self, body: &str) -> String {
        let shown = self.shown_ms();
        if self.clock().ahead_ms() < 0 || self.rng.chance(30) { dated(&mut self.rng, body, shown) } else { body.to_owned() }
    }
}

/// The history of a seed, without visitors that only salts tell apart: those go by the clock.
fn clocked(seed: u64) -> Option<History> {
    let mut history = Some(history(seed)).filter(|history| !history.live)?;
    if !history.steps.iter().any(|step| matches!(step, Step::Floor { .. })) {
        history = history.with_floors();
    }
    for project in &mut history.projects {
        if let Json::Object(body) = &mut project.body {
            body.insert("cookieless".to_owned(), Json::from(false));
        }
    }
    Some(history)
}

fn trial(history: History, tally: &mut Tally) -> Result<(), String> {
    let server = Arc::new(TestServer::start_by(&[], Some(WrongClock::right())));
    let (since, known) = (Instant::now(), KnownTimes::begin(now_ms(), 0));
    let tenant = Tenant::on(&server);
    let mut served = Served::new(tenant.same());
    served.setup(&history);
    let rng = Rng::new(history.seed ^ 0xc10c);
    let run = Run::new(&mut served, model_of(&history));
    let steps = history.steps.clone();
    let mut trial = Trial { run, tenant, server, history, known, since, kept: BTreeMap::new(), has_erased: false, rng, tally };
    for (number, step) in steps.iter().enumerate() {
        if trial.rng.chance(8) {
            trial.disturb();
        }
        if trial.rng.chance(2) {
            trial.erase();
        }
        if trial.rng.chance(5) {
            seal(&trial.server).expect("it seals");
        }
        trial.step(step).map_err(|failure| format!("step {number}, {} ms ahead, {failure}", trial.clock().ahead_ms()))?;
    }
    let report = trial.server.send(&Call::post("/admin/verify").bearer(&trial.server.operator())).ok(200);
    if report["status"] == "clean" { Ok(()) } else { Err(format!("at the end: {report}")) }
}

#[test]
fn every_answer_equals_the_model_whatever_the_clock_shows() {
    let first = number("HEADCOUNT_FIRST_SEED", 31_000);
    let trials = usize::try_from(number("HEADCOUNT_CLOCK_TRIALS", TRIALS)).unwrap();
    let mut tally = Tally::default();
    let mut failures = Vec::new();
    for history in (first..).filter_map(clocked).take(trials) {
        let seed = history.seed;
        if let Err(failure) = trial(history, &mut tally) {
            println!("seed {seed}: {failure}");
            failures.push(failure);
        }
        assert!(failures.len() < 3, "{}", failures.join("\n\n"));
    }
    println!("{tally:?}");
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    let seen = [tally.jumps, tally.starts + tally.kills, tally.confirmed, tally.floors, tally.answers];
    assert!(seen.iter().all(|count| *count >= trials), "{tally:?}");
    let rare = [tally.doubts, tally.held, tally.erased, tally.refused];
    assert!(trials < 20 || rare.iter().all(|count| *count > 0), "{tally:?}");
}
