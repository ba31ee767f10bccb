//! One fault: a server that meets it, and one that goes on after it.

use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant};

use headcount_histories::Rng;

use super::points::Point;
use crate::events::Plan;
use crate::http::{Connection, Credential, Reply, Request};
use crate::ledger::{Ledger, State};
use crate::load::Shared;
use crate::oracle::Oracle;
use crate::rig::Rig;
use crate::server::{Ended, Launch, Log, Server, Started};
use crate::settle;
use crate::trouble::{Result, Trouble, violation};
use crate::world::World;

/// What a server logs of its operations.
pub const TRACE: &str = "--log=info,headcount_storage::files=trace";
const DEBUG: &str = "--log=info,headcount_storage::files=debug";
/// What it logs when one fails on purpose.
const ON_PURPOSE: &str = "fails on purpose";
/// So many projects get events: each is a partition with checkpoints of its own.
const PROJECTS: usize = 2;
/// How often events are sent, and how long checkpoints have after each time: a little longer than a shard's tick.
const ROUNDS: usize = 3;
const ROUND: Duration = Duration::from_millis(1_200);
/// More rounds, for a fault that goes on.
const MORE_ROUNDS: usize = 3;
/// New events of a batch, and known ones among them.
const NEW: usize = 8;
const KNOWN: usize = 2;
/// Known events that are sent to each project at the end.
const DUPLICATES: usize = 40;
/// How long it may take until the server is ready and everything is in a checkpoint.
const RECOVERY: Duration = Duration::from_secs(40);
/// How long a server that breaks connections may take to end.
const ENDING: Duration = Duration::from_secs(3);
/// What a server says that has no store, or one that it can't use.
const REBUILT: &str = "is rebuilt from the log";

/// The data that every attempt begins with.
#[derive(Debug)]
pub struct Base {
    /// How servers are started without a fault.
    pub launch: Launch,
    /// The mistake that those with a fault make besides.
    pub mistake: Option<String>,
    /// What there is on them.
    pub world: World,
    /// The events.
    pub ledger: Ledger,
    /// What all that is random follows from.
    pub seed: u64,
    /// The data directory.
    pub pristine: PathBuf,
}

/// A fault.
#[derive(Debug, Clone)]
pub struct Case {
    /// The first operation that fails.
    pub point: Point,
    /// What it fails with.
    pub errno: &'static str,
    /// How many fail.
    pub failures: u64,
}

/// How the server took it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Came {
    /// It went on by itself.
    Recovered,
    /// It ended with this message.
    Stopped(String),
    /// There were not so many operations.
    NotReached,
}

impl Case {
    /// How it is repeated.
    #[must_use]
    pub fn arguments(&self) -> String {
        let Self { point, errno, failures } = self;
        format!("--at {} --errno {errno} --failures {failures}", point.number)
    }

    fn variable(&self) -> (&'static str, String) {
        let Self { point, errno, failures } = self;
        ("HEADCOUNT_IO_FAULT", format!("at={},errno={errno},failures={failures}", point.number))
    }

    /// Whether a line names the error.
    fn is_named_in(&self, line: &str) -> bool {
        let texts: &[&str] = if self.errno == "EIO" { &["(os error 5)"] } else { &["(os error 28)", "no space left"] };
        texts.iter().any(|text| line.contains(text))
    }
}

impl Base {
    fn rig(&self, data_dir: PathBuf) -> Rig {
        let shared = Shared::new(self.world.clone(), self.seed);
        *shared.ledger.borrow_mut() = self.ledger.clone();
        let launch = Launch { data_dir, ..self.launch.clone() };
        Rig { launch, shared: Rc::clone(&shared), oracle: Oracle::new(&shared.world), rng: Rng::new(self.seed) }
    }

    /// Runs without a fault in `data_dir`, a copy of the data; returns what the server logged.
    ///
    /// # Errors
    /// A violation.
    pub async fn rehearse(&self, data_dir: PathBuf) -> Result<Log> {
        let mut rig = self.rig(data_dir);
        let mut launch = rig.launch.clone();
        launch.flags.push(TRACE.to_owned());
        launch.environment.push(("HEADCOUNT_IO_FAULT", "at=0".to_owned()));
        let mut server = launch.start().await?;
        let log = server.log().clone();
        serve(&mut rig, &mut server, 0).await?;
        server.terminate().await?;
        Ok(log)
    }

    /// Runs with the fault in `data_dir`, a copy of the data, and again without it.
    ///
    /// # Errors
    /// A violation.
    pub async fn attempt(&self, case: &Case, data_dir: PathBuf) -> Result<Came> {
        let mut rig = self.rig(data_dir);
        let came = meet(&mut rig, case, self.mistake.clone()).await?;
        rig.shared.findings.none()?;
        let server = rig.launch.start().await?;
        go_on(&mut rig, &server).await.map_err(|trouble| with_log(trouble, "after it", server.log()))?;
        server.terminate().await?;
        Ok(came)
    }
}

/// Starts a server with the fault, sends it events, and stops it unless it ends by itself.
async fn meet(rig: &mut Rig, case: &Case, mistake: Option<String>) -> Result<Came> {
    let mut launch = Launch { fault: mistake, ..rig.launch.clone() };
    launch.flags.push(DEBUG.to_owned());
    launch.environment.push(case.variable());
    let mut server = match launch.spawn()?.listening_or_ended().await? {
        Started::Listening(server) => server,
        Started::Ended(ended) => return judge(case, &ended),
    };
    if let Err(trouble) = serve(rig, &mut server, case.failures).await {
        return match server.ended_within(ENDING).await? {
            Some(ended) => judge(case, &ended),
            None => Err(with_log(trouble, "with the fault", server.log())),
        };
    }
    judge(case, &server.stop().await?)
}

/// What to make of a server that has ended.
fn judge(case: &Case, ended: &Ended) -> Result<Came> {
    let log = &ended.log;
    let wrong = |what: String| Err(with_log(violation(what), "with the fault", log));
    if log.says("panicked at") || log.says("stack backtrace") {
        return wrong("it panicked".to_owned());
    }
    if log.says(REBUILT) {
        return wrong("it rebuilds, though nothing is damaged".to_owned());
    }
    if ended.status.success() {
        return Ok(if log.says(ON_PURPOSE) { Came::Recovered } else { Came::NotReached });
    }
    let text = log.text();
    let mut lines = text.lines().rev().filter(|line| !line.contains(ON_PURPOSE));
    match lines.find(|line| case.is_named_in(line)) {
        Some(line) => Ok(Came::Stopped(line.to_owned())),
        None => wrong(format!("it ended with {} and does not name the error", ended.status)),
    }
}

/// Sends events, with time for checkpoints and merges, until the fault is over; then the server must be ready, and every
/// answer right. Sends more at the end, for the last checkpoint.
async fn serve(rig: &mut Rig, server: &mut Server, failures: u64) -> Result<()> {
    for round in 0..ROUNDS + MORE_ROUNDS {
        let failed = failed(server);
        if round >= ROUNDS && (failed == 0 || failed >= failures) {
            break;
        }
        send(rig, server).await?;
        tokio::time::sleep(ROUND).await;
    }
    all_saved(server).await?;
    rig.settle(server).await?;
    // A question that meets the fault is refused; one that is answered must be right even then.
    loop {
        let before = failed(server);
        match rig.check(server).await {
            Err(Trouble::Violation(what)) if failed(server) > before && what.contains(" answered 503") => {}
            Err(trouble) => return Err(trouble),
            Ok(_) => break,
        }
    }
    all_saved(server).await?;
    send(rig, server).await
}

/// How many operations failed on purpose.
fn failed(server: &Server) -> u64 {
    server.log().text().matches(ON_PURPOSE).count() as u64
}

/// New events, with known ones among them, to each project; one of them alone, and bulky.
async fn send(rig: &mut Rig, server: &Server) -> Result<()> {
    let shared = Rc::clone(&rig.shared);
    for (number, project) in shared.world.projects.iter().enumerate().take(PROJECTS) {
        // Others for each request: the server may close one after an error.
        let mut connection = Connection::open(server.address).await?;
        let new: Vec<usize> = (0..NEW).map(|_| shared.ledger.borrow_mut().add(Plan::ordinary(number))).collect();
        let some = |_| shared.ledger.borrow().some_acknowledged(&mut rig.rng, number);
        let known: Vec<usize> = (0..KNOWN).filter_map(some).collect();
        let body = shared.ledger.borrow().batch(&[new.clone(), known.clone()].concat());
        let reply = connection.send(&Request::events("/i/batch", &project.key, &body)).await?;
        if reply.status == 202 && settle::counts(&reply)? != (new.len() as u64, known.len() as u64) {
            return Err(violation(format!("a batch of {NEW} new and {} known events was answered {}", known.len(), reply.body)));
        }
        is_allowed(&reply)?;
        let state = if reply.status == 202 { State::Acknowledged(None) } else { State::Refused };
        new.iter().for_each(|event| shared.ledger.borrow_mut().set(*event, state));
        let alone = shared.ledger.borrow_mut().add(Plan { bulk: 1, ..Plan::ordinary(number) });
        let body = shared.ledger.borrow().body(alone);
        let mut connection = Connection::open(server.address).await?;
        let reply = connection.send(&Request::events("/i", &project.key, &body)).await?;
        is_allowed(&reply)?;
        shared.note_single(alone, &reply);
    }
    Ok(())
}

/// Fails unless events are taken, refused for now, or in doubt.
fn is_allowed(reply: &Reply) -> Result<()> {
    match reply.status {
        202 => Ok(()),
        503 if reply.retry_after.is_some() => Ok(()),
        500 if reply.body.contains("outcome_unknown") => Ok(()),
        status => Err(violation(format!("events were answered {status}: {}", reply.body))),
    }
}

/// Waits until the server is ready, and everything is in a checkpoint.
async fn all_saved(server: &mut Server) -> Result<()> {
    let began = Instant::now();
    let get = |path| Request { method: "GET", path, credential: Credential::None, body: None };
    loop {
        let mut connection = Connection::open(server.address).await?;
        let ready = connection.send(&get("/readyz")).await?;
        let figures = connection.send(&get("/metrics")).await?.body;
        let none = |name: &str| figures.lines().any(|line| line == format!("{name} 0"));
        if ready.status == 200
            && ["failing_partitions", "refusing_partitions", "unsaved_seconds"]
                .iter()
                .all(|gauge| none(&format!("headcount_checkpoint_{gauge}")))
        {
            return Ok(());
        }
        if began.elapsed() > RECOVERY {
            let gauges: Vec<&str> = figures.lines().filter(|line| line.starts_with("headcount_checkpoint")).collect();
            return Err(violation(format!(
                "it does not recover within {RECOVERY:?}: /readyz answers {}: {}; {}",
                ready.status,
                ready.body,
                gauges.join(", ")
            )));
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// After the fault: nothing is rebuilt, nothing is lost, what was acknowledged is a duplicate, and is not counted again.
async fn go_on(rig: &mut Rig, server: &Server) -> Result<()> {
    if server.log().says(REBUILT) {
        return Err(violation("it rebuilds, though nothing is damaged"));
    }
    rig.settle(server).await?;
    let shared = Rc::clone(&rig.shared);
    let mut connection = Connection::open(server.address).await?;
    for (number, project) in shared.world.projects.iter().enumerate().take(PROJECTS) {
        let some = |_| shared.ledger.borrow().some_acknowledged(&mut rig.rng, number);
        let known: Vec<usize> = (0..DUPLICATES).filter_map(some).collect();
        settle::are_duplicates(&mut connection, &project.key, &shared.ledger, &known).await?;
    }
    rig.check(server).await?;
    Ok(())
}

/// Sends the events that every attempt begins with, and stops the server, so often that the next checkpoint leads to merges.
///
/// # Errors
/// A violation.
pub async fn prepare(rig: &mut Rig) -> Result<()> {
    for _ in 0..ROUNDS {
        let server = rig.launch.start().await?;
        send(rig, &server).await?;
        rig.settle_and_check(&server).await?;
        server.terminate().await?;
    }
    Ok(())
}

/// What is wrong, with what the server said.
fn with_log(trouble: Trouble, when: &str, log: &Log) -> Trouble {
    match trouble {
        Trouble::Violation(what) => violation(format!("{what}; {when} it said:\n    {}", log.tail())),
        Trouble::Harness(what) => violation(format!("{when} it breaks connections ({what}); it said:\n    {}", log.tail())),
        skipped @ Trouble::Skipped(_) => skipped,
    }
}
