//! Sends unacknowledged events again until they are acknowledged.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use crate::error::{Result, violation};
use crate::http::{Connection, Request, Response};
use crate::ledger::{EventState, Ledger};
use crate::tenant::Tenant;

/// Maximum time for which a batch may be refused.
const PATIENCE: Duration = Duration::from_secs(30);
/// Maximum number of events in a batch.
const BATCH: usize = 200;
/// Maximum size of a batch without its last event: well within the limit of a body.
const BATCH_BYTES: usize = 1 << 20;

/// Results of sending events again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Resent {
    /// Events recorded now.
    pub recorded: u64,
    /// Events that had been recorded without an acknowledgement.
    pub duplicates: u64,
}

/// Sends `pending` again, after which all events of the ledger are recorded.
///
/// # Errors
/// A violation if the server does not accept them.
pub async fn send_again(address: SocketAddr, tenant: &Tenant, ledger: &RefCell<Ledger>, pending: &[usize]) -> Result<Resent> {
    let mut connection = Connection::open(address).await?;
    let mut resent = Resent::default();
    for (number, project) in tenant.projects.iter().enumerate() {
        let belongs = |event: &usize| ledger.borrow().plan(*event).project == number;
        let of_project: Vec<usize> = pending.iter().copied().filter(belongs).collect();
        let mut rest = &of_project[..];
        while !rest.is_empty() {
            let count = batch_len(&ledger.borrow(), rest);
            let (events, later) = rest.split_at(count);
            rest = later;
            let body = ledger.borrow().batch(events);
            let response =
                send_until_accepted(address, &mut connection, &Request::events("/i/batch", &project.key, &body)).await?;
            let (recorded, duplicates) = counts(&response)?;
            if recorded + duplicates != count as u64 {
                return Err(violation(format!("the response to a batch of {count} was {}", response.body)));
            }
            resent.recorded += recorded;
            resent.duplicates += duplicates;
        }
    }
    Ok(resent)
}

/// Returns how many of these events, at least one, fit into a batch.
fn batch_len(ledger: &Ledger, events: &[usize]) -> usize {
    let mut bytes = 0;
    let is_within = |event: &&usize| {
        let fits = bytes < BATCH_BYTES;
        bytes += ledger.body(**event).len();
        fits
    };
    events.iter().take(BATCH).take_while(is_within).count()
}

/// Marks all of `pending` as acknowledged.
pub fn mark_acknowledged(ledger: &mut Ledger, pending: &[usize]) {
    for event in pending {
        ledger.set(*event, EventState::Acknowledged(None));
    }
}

/// Returns the numbers of recorded and duplicate events from the response to a batch.
///
/// # Errors
/// A violation if the response has none.
pub fn counts(response: &Response) -> Result<(u64, u64)> {
    let counts = response.integer("recorded").zip(response.integer("duplicates"));
    counts.ok_or_else(|| violation(format!("the response to a batch was {}: {}", response.status, response.body)))
}

/// Sends acknowledged events of a project again, and expects duplicates.
///
/// # Errors
/// A violation if one is not a duplicate.
pub async fn expect_duplicates(connection: &mut Connection, key: &str, ledger: &RefCell<Ledger>, known: &[usize]) -> Result<()> {
    let body = ledger.borrow().batch(known);
    let response = connection.send(&Request::events("/i/batch", key, &body)).await?;
    if counts(&response)? != (0, known.len() as u64) {
        return Err(violation(format!("the response to {} known events was {}", known.len(), response.body)));
    }
    Ok(())
}

async fn send_until_accepted(address: SocketAddr, connection: &mut Connection, request: &Request<'_>) -> Result<Response> {
    let began = Instant::now();
    loop {
        let response = connection.send(request).await.map_err(|error| violation(format!("sending again failed: {error}")))?;
        if response.status == 202 {
            return Ok(response);
        }
        if began.elapsed() > PATIENCE {
            return Err(violation(format!("events sent again were answered {}: {}", response.status, response.body)));
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
        // The server closes a connection whose body it refused to read.
        *connection = Connection::open(address).await?;
    }
}
