//! One cycle: load, a fault, and the comparison of all nodes with the ledger and the model.

use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};

use headcount_histories::Rng;

use super::faults::{self, Fault};
use super::figures::{Cycle, Figures};
use super::load::Load;
use super::nodes::Cluster;
use super::site::{NODES, Site};
use crate::arguments::Common;
use crate::error::{Result, violation};
use crate::ledger::EventState;
use crate::load::Shared;
use crate::oracle::Oracle;
use crate::resend::{self, Resent};

/// How long all nodes may take to acknowledge events of all projects again.
const SERVED_WITHIN: Duration = Duration::from_secs(120);
/// How long the load goes on after everything is served again.
const AFTERWARDS: Duration = Duration::from_secs(2);
const TICK: Duration = Duration::from_millis(20);

/// A cluster under test.
#[derive(Debug)]
pub struct Campaign {
    /// Its brokers and nodes.
    pub cluster: Cluster,
    /// Tenant, ledger and findings.
    pub shared: Rc<Shared>,
    /// Source of all randomness.
    pub rng: Rng,
    oracle: Oracle,
}

impl Campaign {
    /// Makes a cluster with an organization.
    ///
    /// # Errors
    /// Something does not start.
    pub async fn start(common: &Common, nats: &Path, dir: &Path, site: &Site, mut rng: Rng) -> Result<Self> {
        let began = Instant::now();
        let (mut cluster, tenant) = Cluster::start(common, nats, dir, site, &mut rng).await?;
        let oracle = Oracle::new(&tenant);
        let shared = Shared::new(tenant, common.seed());
        cluster.find_partitions(&shared).await?;
        println!(
            "three brokers and three nodes are ready after {:.1} s; the partitions of the projects: {:?}",
            began.elapsed().as_secs_f64(),
            cluster.partitions
        );
        Ok(Self { cluster, shared, rng, oracle })
    }

    /// Injects one fault under load, and then compares every node with the model.
    ///
    /// # Errors
    /// A violation.
    pub async fn cycle(&mut self, fault: Fault, number: usize, figures: &mut Figures) -> Result<()> {
        let before = self.shared.ledger.borrow().len();
        let load = Load::start(&self.shared, self.cluster.addresses(), &mut self.rng);
        let began = Instant::now();
        self.wait_until_served(&load, began, &self.projects(), &[0, 1, 2]).await?;
        let injected = faults::inject(self, &load, fault, number).await;
        if injected.is_ok() {
            tokio::time::sleep(AFTERWARDS).await;
        }
        let counts = load.finish().await;
        let measured = injected?;
        self.shared.findings.check()?;
        self.cluster.check_alive()?;
        let (resent, answers) = self.compare().await?;
        let events = self.shared.ledger.borrow().len() - before;
        let cycle = Cycle { measured, counts, events };
        println!("{fault} {number:>2}: {cycle}; {resent}; {answers} answers of each node equal the model's", resent = of(resent));
        figures.add(fault, cycle);
        Ok(())
    }

    /// Returns the indexes of all projects.
    #[must_use]
    pub fn projects(&self) -> Vec<usize> {
        (0..self.shared.tenant.projects.len()).collect()
    }

    /// Waits until each of `nodes` has acknowledged an event of each of `projects` that was sent
    /// after `fault`; returns how long that took.
    ///
    /// # Errors
    /// A violation if it takes too long, or what was answered meanwhile is wrong.
    pub async fn wait_until_served(
        &mut self,
        load: &Load,
        fault: Instant,
        projects: &[usize],
        nodes: &[usize],
    ) -> Result<Duration> {
        loop {
            if let Some(served) = load.field.timeline.served_after(fault, projects, nodes) {
                return Ok(served);
            }
            self.shared.findings.check()?;
            self.cluster.check_alive()?;
            if fault.elapsed() > SERVED_WITHIN {
                let missing =
                    |project: usize, node: usize| load.field.timeline.served_after(fault, &[project], &[node]).is_none();
                let pairs = projects.iter().flat_map(|project| nodes.iter().map(|node| (*project, *node)));
                let missing: Vec<_> = pairs.filter(|(project, node)| missing(*project, *node)).collect();
                return Err(violation(format!(
                    "not served {SERVED_WITHIN:?} after the fault: (project, node) {missing:?} of the partitions {:?}",
                    self.cluster.partitions
                )));
            }
            tokio::time::sleep(TICK).await;
        }
    }

    /// Sends again what was not acknowledged, and compares every node with the model.
    async fn compare(&mut self) -> Result<(Resent, usize)> {
        self.cluster.brokers.wait_until_ready().await?;
        self.cluster.wait_until_ready().await?;
        let pending = self.shared.ledger.borrow().pending();
        let is_refused = |number: &usize| self.shared.ledger.borrow().state(*number) == EventState::Refused;
        let (refused, unanswered): (Vec<usize>, Vec<usize>) = pending.into_iter().partition(is_refused);
        let never_recorded = self.resend(&refused).await?;
        if never_recorded.duplicates > 0 {
            let known = never_recorded.duplicates;
            return Err(violation(format!("{known} events were answered with 503, but were recorded")));
        }
        let mut resent = self.resend(&unanswered).await?;
        resent.recorded += never_recorded.recorded;
        self.shared.findings.check()?;
        self.oracle.feed(&self.shared.ledger.borrow())?;
        let answers = self.oracle.check(&self.cluster.addresses(), &self.shared.tenant, &mut self.rng).await?;
        Ok((resent, answers))
    }

    async fn resend(&mut self, numbers: &[usize]) -> Result<Resent> {
        let address = self.cluster.address(self.rng.below(NODES));
        let resent = resend::send_again(address, &self.shared.tenant, &self.shared.ledger, numbers).await?;
        resend::mark_acknowledged(&mut self.shared.ledger.borrow_mut(), numbers);
        Ok(resent)
    }
}

fn of(resent: Resent) -> String {
    format!("sent again: {} recorded, {} had been", resent.recorded, resent.duplicates)
}
