//! Questions to one node while it may no longer be the owner: it counts what was acknowledged
//! before the question, or refuses.

use std::cell::{Cell, RefCell};
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use headcount_histories::Rng;
use tokio::task::JoinHandle;

use super::campaign::Campaign;
use super::load;
use crate::error::{Result, harness, violation};
use crate::events::private_day;
use crate::http::{Connection, Request};
use crate::ledger::EventState;
use crate::load::Shared;

/// How often a question is asked, whether those before were answered or not.
const EVERY: Duration = Duration::from_millis(100);
/// Number of acknowledged events that are compared at most.
const MAX_COMPARED: usize = 500;

/// Questions that are asked until [`Readers::finish`].
#[derive(Debug)]
pub struct Readers {
    asking: Rc<Asking>,
    task: JoinHandle<()>,
}

#[derive(Debug)]
struct Asking {
    shared: Rc<Shared>,
    address: SocketAddr,
    node: usize,
    stop: Cell<bool>,
    under_way: Cell<usize>,
    read: RefCell<Read>,
}

/// What became of the questions.
#[derive(Debug, Clone, Copy, Default)]
pub struct Read {
    /// Questions that were answered.
    pub answered: usize,
    /// Questions that were refused, with 503.
    pub refused: usize,
    /// When the last one was answered.
    pub last_answered: Option<Instant>,
}

impl Readers {
    /// Starts to ask a node.
    #[must_use]
    pub fn start(campaign: &mut Campaign, node: usize) -> Self {
        let asking = Rc::new(Asking {
            shared: Rc::clone(&campaign.shared),
            address: campaign.cluster.address(node),
            node,
            stop: Cell::new(false),
            under_way: Cell::new(0),
            read: RefCell::default(),
        });
        let task = tokio::task::spawn_local(ask_repeatedly(Rc::clone(&asking), Rng::new(campaign.rng.bits())));
        Self { asking, task }
    }

    /// Stops asking, and waits for the answers.
    pub async fn finish(self) -> Read {
        self.asking.stop.set(true);
        let _ = self.task.await;
        while self.asking.under_way.get() > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        *self.asking.read.borrow()
    }
}

async fn ask_repeatedly(asking: Rc<Asking>, mut rng: Rng) {
    while !asking.stop.get() {
        let day = rng.below(load::clients(&asking.shared));
        asking.under_way.set(asking.under_way.get() + 1);
        let one = Rc::clone(&asking);
        tokio::task::spawn_local(async move {
            // A broken connection is no answer.
            let _ = one.ask(day).await;
            one.under_way.set(one.under_way.get() - 1);
        });
        tokio::time::sleep(EVERY).await;
    }
}

impl Asking {
    /// Asks for the private day of a client.
    async fn ask(&self, day: usize) -> io::Result<()> {
        let tenant = &self.shared.tenant;
        let project = day % tenant.projects.len();
        let least = self.shared.ledger.borrow().acknowledged_on_private_day(project, day) as u64;
        let date = private_day(day);
        let path = format!("/projects/{}/revenue/metrics?start_date={date}&end_date={date}", tenant.projects[project].id);
        let mut connection = Connection::open(self.address).await?;
        let response = connection.send(&Request::get(&path, &tenant.token)).await?;
        let mut read = self.read.borrow_mut();
        match response.status {
            200 => {
                read.answered += 1;
                read.last_answered = Some(Instant::now());
                if response.integer("orders").is_none_or(|orders| orders < least) {
                    let what = format!(
                        "node {} is stale: {least} orders had been acknowledged, it answered {}",
                        self.node, response.body
                    );
                    self.shared.findings.add(what);
                }
            }
            // 408: it did not read the question in time.
            408 | 503 => read.refused += 1,
            status => self.shared.findings.add(format!("node {} answered {path} with {status}: {}", self.node, response.body)),
        }
        Ok(())
    }
}

/// Sends acknowledged events again; they must be duplicates, with the positions that were
/// acknowledged. Returns their number.
///
/// # Errors
/// A violation.
pub async fn compare_positions(campaign: &mut Campaign, events: &[usize]) -> Result<usize> {
    let shared = Rc::clone(&campaign.shared);
    let mut compared = 0;
    for number in events.iter().take(MAX_COMPARED) {
        let (state, plan) = (shared.ledger.borrow().state(*number), shared.ledger.borrow().plan(*number));
        let EventState::Acknowledged(Some(position)) = state else { continue };
        let body = shared.ledger.borrow().body(*number);
        let mut connection = Connection::open(campaign.cluster.address(compared % 3)).await?;
        let request = Request::events("/i", &shared.tenant.projects[plan.project].key, &body);
        let response = connection.send(&request).await?;
        if response.status == 503 {
            return Err(harness(format!("event e{number} could not be sent again: {}", response.body)));
        }
        if response.json().field("status").text() != Some("duplicate") || response.integer("position") != Some(position) {
            return Err(violation(format!("event e{number} was acknowledged at {position}; sent again: {}", response.body)));
        }
        compared += 1;
    }
    Ok(compared)
}
