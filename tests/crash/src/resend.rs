//! Sends again what was not acknowledged, until it is.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use crate::http::{Connection, Reply, Request};
use crate::ledger::{Ledger, State};
use crate::trouble::{Result, violation};
use crate::world::World;

/// How long one batch may be refused.
const PATIENCE: Duration = Duration::from_secs(30);
/// Events of a batch.
const BATCH: usize = 200;
/// Bytes of a batch, but for its last event: well within the limit of a body.
const BATCH_BYTES: usize = 1 << 20;

/// What became of what was sent again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Settled {
    /// Counted only now.
    pub recorded: u64,
    /// Had been counted, though nobody was told.
    pub duplicates: u64,
}

/// Sends `pending` again. After this all events of the ledger are recorded.
///
/// # Errors
/// A violation if the server does not take them.
pub async fn send_again(address: SocketAddr, world: &World, ledger: &RefCell<Ledger>, pending: &[usize]) -> Result<Settled> {
    let mut connection = Connection::open(address).await?;
    let mut settled = Settled::default();
    for (number, project) in world.projects.iter().enumerate() {
        let is_its = |event: &usize| ledger.borrow().plan(*event).project == number;
        let of_project: Vec<usize> = pending.iter().copied().filter(is_its).collect();
        let mut rest = &of_project[..];
        while !rest.is_empty() {
            let count = fitting(&ledger.borrow(), rest);
            let (events, later) = rest.split_at(count);
            rest = later;
            let body = ledger.borrow().batch(events);
            let reply = insist(&mut connection, &Request::events("/i/batch", &project.key, &body)).await?;
            let (recorded, duplicates) = counts(&reply)?;
            if recorded + duplicates != count as u64 {
                return Err(violation(format!("a batch of {count} was answered {}", reply.body)));
            }
            settled.recorded += recorded;
            settled.duplicates += duplicates;
        }
    }
    Ok(settled)
}

/// How many of these events, at least one, make a batch.
fn fitting(ledger: &Ledger, events: &[usize]) -> usize {
    let mut bytes = 0;
    let is_within = |event: &&usize| {
        let fits = bytes < BATCH_BYTES;
        bytes += ledger.body(**event).len();
        fits
    };
    events.iter().take(BATCH).take_while(is_within).count()
}

/// Notes that all of `pending` is acknowledged.
pub fn settle(ledger: &mut Ledger, pending: &[usize]) {
    for event in pending {
        ledger.set(*event, State::Acknowledged(None));
    }
}

/// The counts of a batch's answer.
///
/// # Errors
/// A violation if it is no such answer.
pub fn counts(reply: &Reply) -> Result<(u64, u64)> {
    let counts = reply.whole("recorded").zip(reply.whole("duplicates"));
    counts.ok_or_else(|| violation(format!("a batch was answered {}: {}", reply.status, reply.body)))
}

/// Sends acknowledged events of a project again: each has to be a duplicate.
///
/// # Errors
/// A violation if one is not.
pub async fn are_duplicates(connection: &mut Connection, key: &str, ledger: &RefCell<Ledger>, known: &[usize]) -> Result<()> {
    let body = ledger.borrow().batch(known);
    let reply = connection.send(&Request::events("/i/batch", key, &body)).await?;
    if counts(&reply)? != (0, known.len() as u64) {
        return Err(violation(format!("{} known events are answered {}", known.len(), reply.body)));
    }
    Ok(())
}

async fn insist(connection: &mut Connection, request: &Request<'_>) -> Result<Reply> {
    let began = Instant::now();
    loop {
        let reply = connection.send(request).await.map_err(|error| violation(format!("sending again failed: {error}")))?;
        if reply.status == 202 {
            return Ok(reply);
        }
        if began.elapsed() > PATIENCE {
            return Err(violation(format!("sending again is answered {}: {}", reply.status, reply.body)));
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
