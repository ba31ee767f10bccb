//! Verifications of all nodes of a cluster. The node that is asked asks all others, and adds up
//! their reports.
//!
//! A verification takes long, so it is started on another node, and then its result is asked for
//! repeatedly. It ends there when the questions stop.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant as Stopwatch};

use headcount_common::nodes::{AskNodeError, NodeRequest, encode_answer};
use headcount_common::{Owner, PARTITIONS};
use headcount_domain::fault::Fault;
use headcount_domain::ids::OrganizationId;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::foreign_verification::{ForeignVerification, NodeReport, VerifyProgress, VerifyQuestion, VerifyStep};
use super::handle::Engine;
use crate::questions::Node;
use crate::verify::{UnverifiedPartition, VerifyError, VerifyReport};

/// The tag of requests about a verification.
pub(super) const VERIFY: u16 = 1030;
/// How long a node may take to answer such a request.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(15);
/// How long a node waits for the end before it answers that the verification is in progress.
const PATIENCE: Duration = Duration::from_secs(1);
const POLL: Duration = Duration::from_millis(50);
/// How long a node may be unreachable.
const LOST_TIMEOUT: Duration = Duration::from_secs(20);
/// The pause after a node could not be reached.
const PAUSE: Duration = Duration::from_millis(500);
/// The reason for a partition that is in no report.
const NOWHERE: &str = "no node had it, as far as the one knew that was asked";
const MOVED: &str = "it moved to another node meanwhile";

impl Engine {
    /// Verifies the partitions of all machines, as [`Engine::verify`] does for this one. The report
    /// names partitions that could not be verified completely.
    ///
    /// # Errors
    /// Returns the same errors as [`Engine::verify`].
    pub async fn verify_everywhere(&self, quick: bool, stop: &Arc<AtomicBool>) -> Result<VerifyReport, VerifyError> {
        if self.owners().is_alone() {
            return Ok(self.verify_on_thread(quick, stop).await?.report);
        }
        let owners: BTreeMap<u16, Owner> = (0..PARTITIONS).map(|partition| (partition, self.owners().of(partition))).collect();
        let own = self.verify_on_thread(quick, stop);
        let is_over = Arc::<AtomicBool>::default();
        let mut asked = self.ask_for_verification(&owners, quick, (stop, &is_over));
        let own = own.await;
        if matches!(own, Err(VerifyError::Running | VerifyError::Stopped)) {
            is_over.store(true, Ordering::Relaxed);
        }
        let mut sum = VerifySum::default();
        // Waits for all answers, so that no work continues after the return.
        while let Some(answer) = asked.join_next().await {
            let (address, found) = answer.map_err(|_| VerifyError::Stopped)?;
            sum.take(&address, found);
        }
        let address = self.owners().own().unwrap_or("this node").to_owned();
        match own {
            Err(error @ (VerifyError::Running | VerifyError::Stopped)) => return Err(error),
            own => sum.take(&address, own.map_err(|error| error.to_string())),
        }
        if stop.load(Ordering::Relaxed) { Err(VerifyError::Stopped) } else { Ok(sum.report(&owners, &address)) }
    }

    /// Verifies the partitions of this machine on a new thread.
    fn verify_on_thread(
        &self,
        quick: bool,
        stop: &Arc<AtomicBool>,
    ) -> impl Future<Output = Result<NodeReport, VerifyError>> + use<> {
        let (engine, stop, (done, ended)) = (self.clone(), Arc::clone(stop), oneshot::channel());
        let work = move || {
            let found = engine.verify_held(quick, &stop);
            drop(done.send(found.map(|(verified, report)| NodeReport { verified, report })));
        };
        let spawned = std::thread::Builder::new().name("verify".into()).spawn(work);
        async move {
            spawned.map_err(|error| Fault::io(format!("could not start a thread: {error}")))?;
            ended.await.unwrap_or(Err(VerifyError::Stopped))
        }
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

    /// Begins a verification for another node, or returns its progress.
    pub(super) async fn answer_verify(&self, request: &[u8]) -> Result<Vec<u8>, AskNodeError> {
        let VerifyQuestion { run, quick, step } = NodeRequest::<VerifyQuestion>::decode(request)?.question;
        let progress = match step {
            VerifyStep::Begin => self.begin_foreign(run, quick),
            VerifyStep::Look => self.look_at_foreign(run).await,
            VerifyStep::End => {
                self.end_foreign(|foreign| foreign.run == run);
                VerifyProgress::Unknown
            }
        };
        encode_answer(VERIFY, &progress)
    }

    fn begin_foreign(&self, run: u64, quick: bool) -> VerifyProgress {
        let stop = Arc::<AtomicBool>::default();
        {
            let mut foreign = self.inner.verifications.foreign.lock();
            match foreign.as_mut() {
                Some(known) if known.run == run => return VerifyProgress::UnderWay,
                Some(known) if known.ended.is_none() => return VerifyProgress::Failed(VerifyError::Running.to_string()),
                _ => *foreign = Some(ForeignVerification { run, stop: Arc::clone(&stop), asked: Stopwatch::now(), ended: None }),
            }
        }
        let (engine, verification) = (self.clone(), self.verify_on_thread(quick, &stop));
        tokio::spawn(async move {
            let mut verification = std::pin::pin!(verification);
            let found = loop {
                tokio::select! {
                    found = &mut verification => break found,
                    () = tokio::time::sleep(PAUSE) => engine.end_foreign(|foreign| foreign.run == run && foreign.is_forgotten()),
                }
            };
            let ended = found.map_or_else(|error| VerifyProgress::Failed(error.to_string()), VerifyProgress::Done);
            if let Some(foreign) = engine.inner.verifications.foreign.lock().as_mut().filter(|foreign| foreign.run == run) {
                foreign.ended = Some(ended);
            }
            // A result that is not fetched is not kept.
            while !engine.inner.verifications.is_closed() && engine.inner.verifications.is_foreign(run) {
                tokio::time::sleep(PAUSE).await;
                engine.end_foreign(|foreign| foreign.run == run && foreign.is_forgotten());
            }
        });
        VerifyProgress::UnderWay
    }

    async fn look_at_foreign(&self, run: u64) -> VerifyProgress {
        let began = Stopwatch::now();
        loop {
            {
                let mut foreign = self.inner.verifications.foreign.lock();
                let Some(foreign) = foreign.as_mut().filter(|foreign| foreign.run == run) else {
                    return VerifyProgress::Unknown;
                };
                foreign.asked = Stopwatch::now();
                if let Some(ended) = &foreign.ended {
                    return ended.clone();
                }
            }
            if began.elapsed() >= PATIENCE {
                return VerifyProgress::UnderWay;
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// Ends the verification for another node if `is_over`, and forgets it.
    fn end_foreign(&self, is_over: impl FnOnce(&ForeignVerification) -> bool) {
        let mut foreign = self.inner.verifications.foreign.lock();
        if let Some(ended) = foreign.take_if(|foreign| is_over(foreign)) {
            ended.stop.store(true, Ordering::Relaxed);
        }
    }
}

/// Makes a node verify its partitions, and waits for the result.
async fn verify_there(node: &Node, quick: bool, is_stopped: &(dyn Fn() -> bool + Sync)) -> Result<NodeReport, String> {
    let run = random().map_err(|error| error.to_string())?;
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

fn random() -> Result<u64, getrandom::Error> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

/// The results of the nodes.
#[derive(Debug, Default)]
struct VerifySum {
    report: VerifyReport,
    verified: BTreeSet<u16>,
    /// The nodes without a report, and the errors.
    failed: BTreeMap<String, String>,
}

impl VerifySum {
    fn take(&mut self, address: &str, found: Result<NodeReport, String>) {
        match found {
            Ok(NodeReport { verified, report }) => {
                self.verified.extend(verified);
                self.report.add(report.found_by(address));
            }
            Err(reason) => {
                tracing::warn!(node = address, reason, "a node has not verified what it has");
                self.failed.insert(address.to_owned(), reason);
            }
        }
    }

    /// Returns the combined report. A partition is verified if one node has verified it.
    fn report(self, owners: &BTreeMap<u16, Owner>, own: &str) -> VerifyReport {
        let Self { mut report, verified, failed } = self;
        report.not_verified.retain(|partition, _| !verified.contains(partition));
        for (partition, owner) in owners.iter().filter(|(partition, _)| !verified.contains(partition)) {
            let (node, reason) = match owner {
                Owner::Nowhere => (None, NOWHERE),
                Owner::Here => (Some(own.to_owned()), failed.get(own).map_or(MOVED, String::as_str)),
                Owner::There(address) => (Some(address.to_string()), failed.get(&**address).map_or(MOVED, String::as_str)),
            };
            report.not_verified.entry(*partition).or_insert_with(|| UnverifiedPartition { node, reason: reason.to_owned() });
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
        sum.take("http://a", Ok(NodeReport { verified: BTreeSet::from([0, 1]), report: moved }));
        // It had the partition before or after.
        sum.take("http://b", Ok(NodeReport { verified: BTreeSet::from([2]), report: VerifyReport::default() }));
        sum.take("http://c", Err("it is gone".to_owned()));
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
        let report = sum.report(&owners, "http://a");
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
