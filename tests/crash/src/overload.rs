//! `overload`: ten times as many bytes of bodies as the server admits, all at once and slowly.
//!
//! What is too much is answered 503 with `Retry-After`; what is answered 202 is counted; the memory of the process stays near what it
//! is under a usual load; and afterwards all is as before.

use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use crate::arguments::Common;
use crate::events::{MAX_BULK, Plan};
use crate::http::{Connection, Request};
use crate::ledger::State;
use crate::load::{Load, Pace, Shared};
use crate::rig::{Rig, WorkDir};
use crate::server::Server;
use crate::settle;
use crate::trouble::{Result, violation};

/// The limit, as small as it can be set.
const ADMISSION_BYTES: usize = 8 << 20;
/// So many times the limit at once.
const TIMES: usize = 10;
/// How much more memory than usual is in order.
const MORE_BYTES: u64 = 100 << 20;
/// In how many pieces a body is sent, and the pause between them.
const PIECES: usize = 8;
const PAUSE: Duration = Duration::from_millis(400);
/// Events of a large batch: nearly as many bytes as one may have.
const BATCH: usize = 70;

/// How the bodies are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Single events; their length is announced.
    Singles,
    /// Single events in chunks: nobody knows how long they will be.
    Chunked,
    /// Large batches.
    Batches,
}

/// Runs the campaign.
///
/// # Errors
/// A violation, or the harness fails.
pub async fn run(common: &Common) -> Result<()> {
    let mut work = WorkDir::make(common)?;
    let limit = format!("--admission-bytes={ADMISSION_BYTES}");
    let mut rig = Rig::make(common, work.path().join("data"), &[&limit]).await?;
    let result = rounds(&mut rig, common.cycles.unwrap_or(2)).await;
    if result.is_err() {
        work.keep();
    }
    result
}

async fn rounds(rig: &mut Rig, count: usize) -> Result<()> {
    let server = rig.launch.start().await?;
    usual_load(rig, &server, 0).await?;
    let usual = watch(&server, usual_load(rig, &server, 1)).await?;
    println!("usual: {} MB in use under load", usual >> 20);
    let mut worst = usual;
    for round in 0..count {
        for kind in [Kind::Singles, Kind::Chunked, Kind::Batches] {
            let peak = watch(&server, overload(rig, &server, kind)).await?;
            println!("    at most {} MB in use", peak >> 20);
            worst = worst.max(peak);
        }
        usual_load(rig, &server, 2 + round).await?;
        let checked = rig.settle_and_check(&server).await?;
        println!(
            "round {}: {} sent again; {} answers equal the model's, of {} events",
            round + 1,
            checked.settled.recorded + checked.settled.duplicates,
            checked.answers,
            rig.shared.ledger.borrow().len(),
        );
    }
    server.terminate().await?;
    if worst > usual + MORE_BYTES {
        return Err(violation(format!("{} MB in use, where {} MB are usual", worst >> 20, usual >> 20)));
    }
    println!("overload: {count} rounds, at most {} MB more than usual, nothing acknowledged missing", (worst - usual) >> 20);
    Ok(())
}

/// A usual load, of which nothing may be refused.
async fn usual_load(rig: &mut Rig, server: &Server, cycle: usize) -> Result<()> {
    let load = Load::start(&rig.shared, server.address, Pace::steady(cycle), &mut rig.rng);
    tokio::time::sleep(Duration::from_secs(2)).await;
    let tally = load.finish().await;
    rig.shared.findings.none()?;
    match tally.by_status.iter().find(|(status, _)| !matches!(status, 200 | 202)) {
        None => Ok(()),
        Some((status, count)) => Err(violation(format!("{count} answers {status} under a usual load"))),
    }
}

/// The most memory in use while something is done.
async fn watch(server: &Server, done: impl Future<Output = Result<()>>) -> Result<u64> {
    let peak = Cell::new(0);
    let look = async {
        while let Ok(bytes) = server.resident_bytes() {
            peak.set(peak.get().max(bytes));
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::select! {
        result = done => result.map(|()| peak.get()),
        () = look => Err(violation(format!("the server ended by itself; it said:\n    {}", server.log().tail()))),
    }
}

/// What became of the bodies of one overload.
#[derive(Debug, Default)]
struct Outcome {
    taken: Cell<usize>,
    refused: Cell<usize>,
}

async fn overload(rig: &mut Rig, server: &Server, kind: Kind) -> Result<()> {
    let (mut bodies, mut bytes) = (Vec::new(), 0);
    while bytes < TIMES * ADMISSION_BYTES {
        let project = rig.rng.below(rig.shared.world.projects.len());
        let plan = Plan { bulk: MAX_BULK, ..Plan::ordinary(project) };
        let count = if kind == Kind::Batches { BATCH } else { 1 };
        let events: Vec<usize> = (0..count).map(|_| rig.shared.ledger.borrow_mut().add(plan)).collect();
        let ledger = rig.shared.ledger.borrow();
        let body = if kind == Kind::Batches { ledger.batch(&events) } else { ledger.body(events[0]) };
        bytes += body.len();
        bodies.push((project, events, body));
    }
    let (count, outcome) = (bodies.len(), Rc::new(Outcome::default()));
    let address = server.address;
    let task = |(project, events, body)| {
        tokio::task::spawn_local(send(Rc::clone(&rig.shared), Rc::clone(&outcome), address, kind, project, events, body))
    };
    let tasks: Vec<_> = bodies.into_iter().map(task).collect();
    for task in tasks {
        if let Err(error) = task.await {
            rig.shared.findings.add(format!("a connection's task failed: {error}"));
        }
    }
    rig.shared.findings.none()?;
    let (taken, refused) = (outcome.taken.get(), outcome.refused.get());
    println!("{kind:?}: {count} bodies, {} MiB at once: {taken} taken, {refused} refused with 503 and Retry-After", bytes >> 20);
    if taken == 0 || refused < count / 2 {
        return Err(violation(format!("{taken} were taken and {refused} refused, of {TIMES} times the limit")));
    }
    Ok(())
}

async fn send(
    shared: Rc<Shared>,
    outcome: Rc<Outcome>,
    address: SocketAddr,
    kind: Kind,
    project: usize,
    events: Vec<usize>,
    body: String,
) {
    let path = if kind == Kind::Batches { "/i/batch" } else { "/track" };
    let request = Request::events(path, &shared.world.projects[project].key, &body);
    let head = request.head((kind != Kind::Chunked).then_some(body.len())).into_bytes();
    let mut pieces = vec![head];
    pieces.extend(body.as_bytes().chunks(body.len().div_ceil(PIECES)).map(|piece| match kind {
        Kind::Chunked => [format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat(),
        _ => piece.to_vec(),
    }));
    if kind == Kind::Chunked {
        pieces.push(b"0\r\n\r\n".to_vec());
    }
    let reply = match Connection::open(address).await {
        Ok(mut connection) => connection.send_slowly(&pieces, PAUSE).await,
        Err(error) => Err(error),
    };
    let reply = match reply {
        Ok(reply) => reply,
        Err(error) => return shared.findings.add(format!("{kind:?}: a body has no answer at all: {error}")),
    };
    shared.count(&reply);
    let state = if reply.status == 202 { State::Acknowledged(None) } else { State::Refused };
    events.iter().for_each(|number| shared.ledger.borrow_mut().set(*number, state));
    match reply.status {
        202 if kind == Kind::Batches && settle::counts(&reply) != Ok((events.len() as u64, 0)) => {
            shared.findings.add(format!("a batch of {} new events was answered {}", events.len(), reply.body));
        }
        202 => outcome.taken.set(outcome.taken.get() + 1),
        503 if reply.retry_after.is_some() => outcome.refused.set(outcome.refused.get() + 1),
        status => shared.findings.add(format!("{kind:?}: a body was answered {status}: {}", reply.body)),
    }
}
