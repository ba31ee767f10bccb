//! Verifications of a running engine: it verifies its own partitions, asks all other nodes with
//! partitions, and adds up the reports.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant as Stopwatch};

use headcount_common::nodes::AskNodeError;
use headcount_common::{Owner, PARTITIONS};
use headcount_domain::OrganizationId;
use tokio::task::JoinSet;

use super::handle::Engine;
use super::requested_verification::{VERIFY, VerifyQuestion, VerifyStep};
use super::verifications::{NodeReport, VerifyProgress};
use crate::questions::Node;
use crate::verify::{UnverifiedPartition, VerifyError, VerifyReport};

/// How long a node may take to answer a request about a verification.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(15);
/// How long a node may be unreachable.
const LOST_TIMEOUT: Duration = Duration::from_secs(20);
/// The pause after a node could not be reached.
const PAUSE: Duration = Duration::from_millis(500);
/// The reason for a partition that is in no report.
const NOWHERE: &str = "no node had it, as far as the one knew that was asked";
const MOVED: &str = "it moved to another node meanwhile";

impl Engine {
    /// Recomputes the state of each project from its recorded events and compares it with the
    /// stored state, after saving the events recorded before the call. Recording continues
    /// meanwhile. `quick` checks only files. It ends early when `stop` is set.
    ///
    /// Each machine verifies its partitions, on threads of the lowest priority. It takes as long as
    /// replaying all events. The report names partitions that could not be verified completely.
    ///
    /// # Errors
    /// Returns [`VerifyError::Running`] while another verification is in progress; others if the
    /// data could not be checked.
    pub async fn verify(&self, quick: bool, stop: &Arc<AtomicBool>) -> Result<VerifyReport, VerifyError> {
        let owners: BTreeMap<u16, Owner> = (0..PARTITIONS).map(|partition| (partition, self.owners().of(partition))).collect();
        let own = self.verify_here(quick, stop);
        let is_over = Arc::<AtomicBool>::default();
        let mut asked = self.ask_for_verification(&owners, quick, (stop, &is_over));
        let own = match own.await {
            Err(error) if asked.is_empty() || matches!(error, VerifyError::Running | VerifyError::Stopped) => {
                is_over.store(true, Ordering::Relaxed);
                Err(error)
            }
            own => Ok(own.map_err(|error| error.to_string())),
        };
        let mut sum = VerifySum::default();
        // Waits for all answers, so that no work continues after the return.
        while let Some(answer) = asked.join_next().await {
            let (address, found) = answer.map_err(|_| VerifyError::Stopped)?;
            sum.take(Some(&address), found);
        }
        let address = self.owners().own();
        sum.take(address, own?);
        if stop.load(Ordering::Relaxed) { Err(VerifyError::Stopped) } else { Ok(sum.report(&owners, address)) }
    }

    /// Makes the other nodes with partitions verify them.
    fn ask_for_verification(
        &self,
        owners: &BTreeMap<u16, Owner>,
        quick: bool,
        (stop, is_over): (&Arc<AtomicBool>, &Arc<AtomicBool>),
    ) -> JoinSet<(Arc<str>, Result<NodeReport, String>)> {
        let there = |owner: &Owner| if let Owner::There(address) = owner { Some(Arc::clone(address)) } else { None };
        let nodes: BTreeSet<Arc<str>> = owners.values().filter_map(there).collect();
        let mut asked = JoinSet::new();
        for address in nodes {
            let node = self.node(&address, OrganizationId(0));
            let (stop, is_over) = (Arc::clone(stop), Arc::clone(is_over));
            asked.spawn(async move {
                let is_stopped = || stop.load(Ordering::Relaxed) || is_over.load(Ordering::Relaxed);
                let found = match node {
                    Ok(node) => verify_there(&node, quick, &is_stopped).await,
                    Err(error) => Err(error.to_string()),
                };
                (address, found)
            });
        }
        asked
    }
}

/// Makes a node verify its partitions, and waits for the result.
async fn verify_there(node: &Node, quick: bool, is_stopped: &(dyn Fn() -> bool + Sync)) -> Result<NodeReport, String> {
    let run = getrandom::u64().map_err(|error| error.to_string())?;
    let ask = |step| {
        let question = VerifyQuestion { run, quick, step };
        async move { node.ask::<_, VerifyProgress>(VERIFY, Vec::new(), &question, ANSWER_TIMEOUT).await }
    };
    let (mut step, mut reached) = (VerifyStep::Begin, Stopwatch::now());
    let found = loop {
        if is_stopped() {
            break Err(VerifyError::Stopped.to_string());
        }
        match ask(step).await {
            Ok(VerifyProgress::UnderWay) => (step, reached) = (VerifyStep::Look, Stopwatch::now()),
            Ok(VerifyProgress::Done(report)) => break Ok(report),
            Ok(VerifyProgress::Failed(reason)) => return Err(reason),
            Ok(VerifyProgress::Unknown) => {
                return Err("the node knows nothing of the verification: it was started again".to_owned());
            }
            Err(AskNodeError::Unreachable(_)) if reached.elapsed() < LOST_TIMEOUT => tokio::time::sleep(PAUSE).await,
            Err(error) => break Err(error.to_string()),
        }
    };
    // Without that, the node ends it after a while.
    if let Err(error) = ask(VerifyStep::End).await {
        tracing::debug!(%error, "a node does not know yet that a verification is over");
    }
    found
}

/// The results of the nodes, by their addresses. A machine without others has none.
#[derive(Debug, Default)]
struct VerifySum {
    report: VerifyReport,
    verified: BTreeSet<u16>,
    /// The nodes without a report, and the errors.
    failed: BTreeMap<Option<String>, String>,
}

impl VerifySum {
    fn take(&mut self, address: Option<&str>, found: Result<NodeReport, String>) {
        match found {
            Ok(NodeReport { verified, report }) => {
                self.verified.extend(verified);
                self.report.add(report.found_by(address));
            }
            Err(reason) => {
                tracing::warn!(node = address, reason, "a node has not verified what it has");
                self.failed.insert(address.map(str::to_owned), reason);
            }
        }
    }

    /// Returns the combined report. A partition is verified if one node has verified it.
    fn report(self, owners: &BTreeMap<u16, Owner>, own: Option<&str>) -> VerifyReport {
        let Self { mut report, verified, failed } = self;
        report.not_verified.retain(|partition, _| !verified.contains(partition));
        for (partition, owner) in owners.iter().filter(|(partition, _)| !verified.contains(partition)) {
            let node = match owner {
                Owner::Nowhere => None,
                Owner::Here => own.map(str::to_owned),
                Owner::There(address) => Some(address.to_string()),
            };
            let reason = if *owner == Owner::Nowhere { NOWHERE } else { failed.get(&node).map_or(MOVED, String::as_str) };
            let reason = reason.to_owned();
            report.not_verified.entry(*partition).or_insert_with(|| UnverifiedPartition { node, reason });
        }
        report
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_that_no_report_has_is_not_verified() {
        let mut sum = VerifySum::default();
        let mut moved = VerifyReport::default();
        moved.is_not_verified(2, "it moved");
        moved.is_not_verified(3, "it moved");
        sum.take(Some("http://a"), Ok(NodeReport { verified: BTreeSet::from([0, 1]), report: moved }));
        // It had the partition before or after.
        sum.take(Some("http://b"), Ok(NodeReport { verified: BTreeSet::from([2]), report: VerifyReport::default() }));
        sum.take(Some("http://c"), Err("it is gone".to_owned()));
        let there = |address: &str| Owner::There(address.into());
        let owners = BTreeMap::from([
            (0, Owner::Here),
            (1, there("http://b")),
            (2, Owner::Here),
            (3, Owner::Here),
            (4, there("http://b")),
            (5, there("http://c")),
            (6, Owner::Nowhere),
        ]);
        let report = sum.report(&owners, Some("http://a"));
        let found = |partition: u16, node: Option<&str>, reason: &str| {
            (partition, UnverifiedPartition { node: node.map(str::to_owned), reason: reason.to_owned() })
        };
        let expected = [
            found(3, Some("http://a"), "it moved"),
            found(4, Some("http://b"), MOVED),
            found(5, Some("http://c"), "it is gone"),
            found(6, None, NOWHERE),
        ];
        assert_eq!(report.not_verified, BTreeMap::from(expected));
    }
}
