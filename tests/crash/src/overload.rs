//! `overload`: sends ten times the admission limit in concurrent, slow bodies.
//!
//! The server must refuse the excess with 503 and `Retry-After`, count what it acknowledges with
//! 202, keep its memory near that under normal load, and work as before afterwards.

use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use crate::arguments::Common;
use crate::error::{Result, violation};
use crate::events::{MAX_BULK, Plan};
use crate::http::{Connection, Request};
use crate::ledger::EventState;
use crate::load::{Load, Pace, Shared};
use crate::resend;
use crate::rig::{Rig, WorkDir};
use crate::server::Server;

/// The admission limit: the smallest that the server accepts.
const ADMISSION_BYTES: usize = 8 << 20;
/// Bytes sent at once, as a multiple of the limit.
const TIMES: usize = 10;
/// Allowed memory beyond that under normal load.
const MORE_BYTES: u64 = 100 << 20;
/// Number of pieces of a body, and the pause between them.
const PIECES: usize = 8;
const PAUSE: Duration = Duration::from_millis(400);
/// Events of a large batch, whose body is slightly below the limit.
const BATCH: usize = 70;

/// Kind of request bodies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BodyKind {
    /// Single events with `Content-Length`.
    Singles,
    /// Single events with chunked transfer encoding, whose length is unknown in advance.
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
    normal_load(rig, &server, 0).await?;
    let normal = peak_memory(&server, normal_load(rig, &server, 1)).await?;
    println!("normal load: {} MB in use", normal >> 20);
    let mut worst = normal;
    for round in 0..count {
        for kind in [BodyKind::Singles, BodyKind::Chunked, BodyKind::Batches] {
            let peak = peak_memory(&server, overload(rig, &server, kind)).await?;
            println!("    at most {} MB in use", peak >> 20);
            worst = worst.max(peak);
        }
        normal_load(rig, &server, 2 + round).await?;
        let checked = rig.resend_and_check(&server).await?;
        println!(
            "round {}: {} sent again; {} answers equal the model's, of {} events",
            round + 1,
            checked.resent.recorded + checked.resent.duplicates,
            checked.answers,
            rig.shared.ledger.borrow().len(),
        );
    }
    server.terminate().await?;
    if worst > normal + MORE_BYTES {
        return Err(violation(format!("{} MB in use, compared with {} MB under normal load", worst >> 20, normal >> 20)));
    }
    println!(
        "overload: {count} rounds, at most {} MB more than under normal load, nothing acknowledged missing",
        (worst - normal) >> 20
    );
    Ok(())
}

/// Generates a normal load. The server may refuse none of it.
async fn normal_load(rig: &mut Rig, server: &Server, cycle: usize) -> Result<()> {
    let load = Load::start(&rig.shared, server.address, Pace::steady(cycle), &mut rig.rng);
    tokio::time::sleep(Duration::from_secs(2)).await;
    let tally = load.finish().await;
    rig.shared.findings.check()?;
    match tally.by_status.iter().find(|(status, _)| !matches!(status, 200 | 202)) {
        None => Ok(()),
        Some((status, count)) => Err(violation(format!("{count} responses with status {status} under normal load"))),
    }
}

/// Returns the peak memory use while `done` runs.
async fn peak_memory(server: &Server, done: impl Future<Output = Result<()>>) -> Result<u64> {
    let peak = Cell::new(0);
    let look = async {
        while let Ok(bytes) = server.resident_bytes() {
            peak.set(peak.get().max(bytes));
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::select! {
        result = done => result.map(|()| peak.get()),
        () = look => Err(violation(format!("the server exited unexpectedly; its log:\n    {}", server.log().tail()))),
    }
}

/// Numbers of accepted and refused bodies.
#[derive(Debug, Default)]
struct ResponseCounts {
    accepted: Cell<usize>,
    refused: Cell<usize>,
}

async fn overload(rig: &mut Rig, server: &Server, kind: BodyKind) -> Result<()> {
    let (mut bodies, mut bytes) = (Vec::new(), 0);
    while bytes < TIMES * ADMISSION_BYTES {
        let project = rig.rng.below(rig.shared.tenant.projects.len());
        let plan = Plan { bulk: MAX_BULK, ..Plan::ordinary(project) };
        let count = if kind == BodyKind::Batches { BATCH } else { 1 };
        let events: Vec<usize> = (0..count).map(|_| rig.shared.ledger.borrow_mut().add(plan)).collect();
        let ledger = rig.shared.ledger.borrow();
        let body = if kind == BodyKind::Batches { ledger.batch(&events) } else { ledger.body(events[0]) };
        bytes += body.len();
        bodies.push((project, events, body));
    }
    let (count, counts) = (bodies.len(), Rc::new(ResponseCounts::default()));
    let address = server.address;
    let task = |(project, events, body)| {
        tokio::task::spawn_local(send(Rc::clone(&rig.shared), Rc::clone(&counts), address, kind, project, events, body))
    };
    let tasks: Vec<_> = bodies.into_iter().map(task).collect();
    for task in tasks {
        if let Err(error) = task.await {
            rig.shared.findings.add(format!("the task of a connection failed: {error}"));
        }
    }
    rig.shared.findings.check()?;
    let (accepted, refused) = (counts.accepted.get(), counts.refused.get());
    println!(
        "{kind:?}: {count} bodies, {} MiB at once: {accepted} accepted, {refused} refused with 503 and Retry-After",
        bytes >> 20
    );
    if accepted == 0 || refused < count / 2 {
        return Err(violation(format!("of bodies of {TIMES} times the limit, {accepted} were accepted and {refused} refused")));
    }
    Ok(())
}

async fn send(
    shared: Rc<Shared>,
    counts: Rc<ResponseCounts>,
    address: SocketAddr,
    kind: BodyKind,
    project: usize,
    events: Vec<usize>,
    body: String,
) {
    let path = if kind == BodyKind::Batches { "/i/batch" } else { "/track" };
    let request = Request::events(path, &shared.tenant.projects[project].key, &body);
    let head = request.head((kind != BodyKind::Chunked).then_some(body.len())).into_bytes();
    let mut pieces = vec![head];
    pieces.extend(body.as_bytes().chunks(body.len().div_ceil(PIECES)).map(|piece| match kind {
        BodyKind::Chunked => [format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat(),
        _ => piece.to_vec(),
    }));
    if kind == BodyKind::Chunked {
        pieces.push(b"0\r\n\r\n".to_vec());
    }
    let response = match Connection::open(address).await {
        Ok(mut connection) => connection.send_slowly(&pieces, PAUSE).await,
        Err(error) => Err(error),
    };
    let response = match response {
        Ok(response) => response,
        Err(error) => return shared.findings.add(format!("{kind:?}: no response to a body: {error}")),
    };
    shared.count(&response);
    let state = if response.status == 202 { EventState::Acknowledged(None) } else { EventState::Refused };
    events.iter().for_each(|number| shared.ledger.borrow_mut().set(*number, state));
    match response.status {
        202 if kind == BodyKind::Batches && resend::counts(&response) != Ok((events.len() as u64, 0)) => {
            shared.findings.add(format!("the response to a batch of {} new events was {}", events.len(), response.body));
        }
        202 => counts.accepted.set(counts.accepted.get() + 1),
        503 if response.retry_after.is_some() => counts.refused.set(counts.refused.get() + 1),
        status => shared.findings.add(format!("{kind:?}: the response to a body was {status}: {}", response.body)),
    }
}
