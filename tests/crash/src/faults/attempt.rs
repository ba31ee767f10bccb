//! One fault: a server with the fault, and a server without it on the same data.

use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant};

use headcount_histories::Rng;

use super::points::Point;
use crate::error::{CampaignError, Result, violation};
use crate::events::Plan;
use crate::http::{Connection, Credential, Request, Response};
use crate::ledger::{EventState, Ledger};
use crate::load::Shared;
use crate::oracle::Oracle;
use crate::resend;
use crate::rig::Rig;
use crate::server::{Exited, Launch, Log, Server, Started};
use crate::tenant::Tenant;

/// Flag that makes a server trace its file operations.
pub const TRACE: &str = "--log=info,file_operations=trace";
const DEBUG: &str = "--log=info,file_operations=debug";
/// Log text of an injected failure.
const INJECTED: &str = "fails on purpose";
/// Number of projects that get events. Each belongs to another partition, with its own checkpoints.
const PROJECTS: usize = 2;
/// Number of rounds of events, and the time for checkpoints after each: slightly longer than the
/// tick of a shard.
const ROUNDS: usize = 3;
const ROUND: Duration = Duration::from_millis(1_200);
/// Additional rounds while the fault persists.
const MORE_ROUNDS: usize = 3;
/// Numbers of new and known events in a batch.
const NEW: usize = 8;
const KNOWN: usize = 2;
/// Number of known events sent to each project at the end.
const DUPLICATES: usize = 40;
/// Maximum time until the server is ready and everything is in a checkpoint.
const RECOVERY: Duration = Duration::from_secs(40);
/// Maximum time until a server that breaks connections exits.
const EXIT_TIMEOUT: Duration = Duration::from_secs(3);
/// Log text of a server that has no usable store.
const REBUILT: &str = "is rebuilt from the log";

/// Initial data of all attempts.
#[derive(Debug)]
pub struct Baseline {
    /// How to start servers without a fault.
    pub launch: Launch,
    /// Planted mistake of the servers with a fault.
    pub mistake: Option<String>,
    /// The organization.
    pub tenant: Tenant,
    /// The events sent.
    pub ledger: Ledger,
    /// Seed of all randomness.
    pub seed: u64,
    /// Path of the data directory.
    pub pristine: PathBuf,
}

/// A fault to inject.
#[derive(Debug, Clone)]
pub struct FaultCase {
    /// The first operation that fails.
    pub point: Point,
    /// Error code.
    pub errno: &'static str,
    /// Number of consecutive failures.
    pub failures: u64,
}

/// Reaction of the server to a fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reaction {
    /// It resumed by itself.
    Recovered,
    /// It exited with this message.
    Stopped(String),
    /// It performed fewer operations.
    NotReached,
}

impl FaultCase {
    /// Returns the arguments that repeat this fault.
    #[must_use]
    pub fn arguments(&self) -> String {
        let Self { point, errno, failures } = self;
        format!("--at {} --errno {errno} --failures {failures}", point.number)
    }

    fn variable(&self) -> (&'static str, String) {
        let Self { point, errno, failures } = self;
        ("HEADCOUNT_IO_FAULT", format!("at={},errno={errno},failures={failures}", point.number))
    }

    /// Returns whether a line names the error.
    fn is_named_in(&self, line: &str) -> bool {
        let texts: &[&str] = if self.errno == "EIO" { &["(os error 5)"] } else { &["(os error 28)", "no space left"] };
        texts.iter().any(|text| line.contains(text))
    }
}

impl Baseline {
    fn rig(&self, data_dir: PathBuf) -> Rig {
        let shared = Shared::new(self.tenant.clone(), self.seed);
        *shared.ledger.borrow_mut() = self.ledger.clone();
        let launch = Launch { data_dir, ..self.launch.clone() };
        Rig { launch, shared: Rc::clone(&shared), oracle: Oracle::new(&shared.tenant), rng: Rng::new(self.seed) }
    }

    /// Runs without a fault in `data_dir`, a copy of the data; returns the log of the server.
    ///
    /// # Errors
    /// A violation.
    pub async fn trace_operations(&self, data_dir: PathBuf) -> Result<Log> {
        let mut rig = self.rig(data_dir);
        let mut launch = rig.launch.clone();
        launch.flags.push(TRACE.to_owned());
        launch.environment.push(("HEADCOUNT_IO_FAULT", "at=0".to_owned()));
        let mut server = launch.start().await?;
        let log = server.log().clone();
        drive(&mut rig, &mut server, 0).await?;
        server.terminate().await?;
        Ok(log)
    }

    /// Runs with the fault in `data_dir`, a copy of the data, and then without it.
    ///
    /// # Errors
    /// A violation.
    pub async fn attempt(&self, case: &FaultCase, data_dir: PathBuf) -> Result<Reaction> {
        let mut rig = self.rig(data_dir);
        let reaction = run_with_fault(&mut rig, case, self.mistake.clone()).await?;
        rig.shared.findings.check()?;
        let server = rig.launch.start().await?;
        verify_recovery(&mut rig, &server).await.map_err(|error| with_log(error, "without the fault", server.log()))?;
        server.terminate().await?;
        Ok(reaction)
    }
}

/// Starts a server with the fault, sends events, and stops it unless it exits by itself.
async fn run_with_fault(rig: &mut Rig, case: &FaultCase, mistake: Option<String>) -> Result<Reaction> {
    let mut launch = Launch { fault: mistake, ..rig.launch.clone() };
    launch.flags.push(DEBUG.to_owned());
    launch.environment.push(case.variable());
    let mut server = match launch.spawn()?.wait_until_listening_or_exit().await? {
        Started::Listening(server) => server,
        Started::Exited(ended) => return classify_exit(case, &ended),
    };
    if let Err(error) = drive(rig, &mut server, case.failures).await {
        return match server.wait_for_exit(EXIT_TIMEOUT).await? {
            Some(ended) => classify_exit(case, &ended),
            None => Err(with_log(error, "with the fault", server.log())),
        };
    }
    classify_exit(case, &server.stop().await?)
}

/// Classifies the reaction of a server that has exited.
fn classify_exit(case: &FaultCase, ended: &Exited) -> Result<Reaction> {
    let log = &ended.log;
    let wrong = |what: String| Err(with_log(violation(what), "with the fault", log));
    if log.contains("panicked at") || log.contains("stack backtrace") {
        return wrong("the server panicked".to_owned());
    }
    if log.contains(REBUILT) {
        return wrong("the server rebuilds although nothing is damaged".to_owned());
    }
    if ended.status.success() {
        return Ok(if log.contains(INJECTED) { Reaction::Recovered } else { Reaction::NotReached });
    }
    let text = log.text();
    let mut lines = text.lines().rev().filter(|line| !line.contains(INJECTED));
    match lines.find(|line| case.is_named_in(line)) {
        Some(line) => Ok(Reaction::Stopped(line.to_owned())),
        None => wrong(format!("the server exited with {} and does not name the error", ended.status)),
    }
}

/// Sends events, with time for checkpoints and merges, until the fault is over. Then the server
/// must become ready, and every answer be right. Finally sends more events, for the last
/// checkpoint.
async fn drive(rig: &mut Rig, server: &mut Server, failures: u64) -> Result<()> {
    for round in 0..ROUNDS + MORE_ROUNDS {
        let failed = failed(server);
        if round >= ROUNDS && (failed == 0 || failed >= failures) {
            break;
        }
        send(rig, server).await?;
        tokio::time::sleep(ROUND).await;
    }
    wait_until_checkpointed(server).await?;
    rig.resend_pending(server).await?;
    // A query may be refused because of the fault, but an answer must be right.
    loop {
        let before = failed(server);
        match rig.check(server).await {
            Err(CampaignError::Violation(what)) if failed(server) > before && what.contains(" answered 503") => {}
            Err(error) => return Err(error),
            Ok(_) => break,
        }
    }
    wait_until_checkpointed(server).await?;
    send(rig, server).await
}

/// Returns the number of injected failures so far.
fn failed(server: &Server) -> u64 {
    server.log().text().matches(INJECTED).count() as u64
}

/// Sends a batch of new and known events and a single bulky event to each project.
async fn send(rig: &mut Rig, server: &Server) -> Result<()> {
    let shared = Rc::clone(&rig.shared);
    for (number, project) in shared.tenant.projects.iter().enumerate().take(PROJECTS) {
        // A connection for each request: the server may close it after an error.
        let mut connection = Connection::open(server.address).await?;
        let new: Vec<usize> = (0..NEW).map(|_| shared.ledger.borrow_mut().add(Plan::ordinary(number))).collect();
        let some = |_| shared.ledger.borrow().random_acknowledged(&mut rig.rng, number);
        let known: Vec<usize> = (0..KNOWN).filter_map(some).collect();
        let body = shared.ledger.borrow().batch(&[new.clone(), known.clone()].concat());
        let response = connection.send(&Request::events("/i/batch", &project.key, &body)).await?;
        if response.status == 202 && resend::counts(&response)? != (new.len() as u64, known.len() as u64) {
            return Err(violation(format!(
                "the response to a batch of {NEW} new and {} known events was {}",
                known.len(),
                response.body
            )));
        }
        check_status(&response)?;
        let state = if response.status == 202 { EventState::Acknowledged(None) } else { EventState::Refused };
        new.iter().for_each(|event| shared.ledger.borrow_mut().set(*event, state));
        let single = shared.ledger.borrow_mut().add(Plan { bulk: 1, ..Plan::ordinary(number) });
        let body = shared.ledger.borrow().body(single);
        let mut connection = Connection::open(server.address).await?;
        let response = connection.send(&Request::events("/i", &project.key, &body)).await?;
        check_status(&response)?;
        shared.record_response(single, &response);
    }
    Ok(())
}

/// Fails unless the events were accepted, temporarily refused, or have an unknown outcome.
fn check_status(response: &Response) -> Result<()> {
    match response.status {
        202 => Ok(()),
        503 if response.retry_after.is_some() => Ok(()),
        500 if response.body.contains("outcome_unknown") => Ok(()),
        status => Err(violation(format!("the response to events was {status}: {}", response.body))),
    }
}

/// Waits until the server is ready and everything is in a checkpoint.
async fn wait_until_checkpointed(server: &mut Server) -> Result<()> {
    let began = Instant::now();
    let get = |path| Request { method: "GET", path, credential: Credential::None, body: None };
    loop {
        let mut connection = Connection::open(server.address).await?;
        let ready = connection.send(&get("/readyz")).await?;
        let metrics = connection.send(&get("/metrics")).await?.body;
        let none = |name: &str| metrics.lines().any(|line| line == format!("{name} 0"));
        if ready.status == 200
            && ["failing_partitions", "refusing_partitions", "unsaved_seconds"]
                .iter()
                .all(|gauge| none(&format!("headcount_checkpoint_{gauge}")))
        {
            return Ok(());
        }
        if began.elapsed() > RECOVERY {
            let gauges: Vec<&str> = metrics.lines().filter(|line| line.starts_with("headcount_checkpoint")).collect();
            return Err(violation(format!(
                "the server does not recover within {RECOVERY:?}: /readyz answers {}: {}; {}",
                ready.status,
                ready.body,
                gauges.join(", ")
            )));
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Verifies that the next server rebuilds nothing, has lost nothing, and recognizes acknowledged
/// events as duplicates.
async fn verify_recovery(rig: &mut Rig, server: &Server) -> Result<()> {
    if server.log().contains(REBUILT) {
        return Err(violation("the server rebuilds although nothing is damaged"));
    }
    rig.resend_pending(server).await?;
    let shared = Rc::clone(&rig.shared);
    let mut connection = Connection::open(server.address).await?;
    for (number, project) in shared.tenant.projects.iter().enumerate().take(PROJECTS) {
        let some = |_| shared.ledger.borrow().random_acknowledged(&mut rig.rng, number);
        let known: Vec<usize> = (0..DUPLICATES).filter_map(some).collect();
        resend::expect_duplicates(&mut connection, &project.key, &shared.ledger, &known).await?;
    }
    rig.check(server).await?;
    Ok(())
}

/// Creates the initial data: sends events and stops the server, repeatedly, so that the next
/// checkpoint leads to merges.
///
/// # Errors
/// A violation.
pub async fn prepare(rig: &mut Rig) -> Result<()> {
    for _ in 0..ROUNDS {
        let server = rig.launch.start().await?;
        send(rig, &server).await?;
        rig.resend_and_check(&server).await?;
        server.terminate().await?;
    }
    Ok(())
}

/// Turns an error into a violation with the end of the server's log.
fn with_log(error: CampaignError, when: &str, log: &Log) -> CampaignError {
    match error {
        CampaignError::Violation(what) => violation(format!("{what}; log {when}:\n    {}", log.tail())),
        CampaignError::Harness(what) => {
            violation(format!("the server breaks connections ({what}); log {when}:\n    {}", log.tail()))
        }
        skipped @ CampaignError::Skipped(_) => skipped,
    }
}
