//! Figures about a node of a cluster, for `/metrics`.

use std::sync::OnceLock;
use std::time::Duration;

use headcount_domain::Position;

/// Figures about a node of a cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeVitals {
    /// Whether it answers requests: it has applied the changes of other nodes, and a majority of
    /// brokers confirms its signs of life.
    pub is_live: bool,
    /// Whether it drains: it hands its partitions over, and takes none.
    pub drains: bool,
    /// The partitions whose leases it holds, in order.
    pub held: Vec<HeldPartition>,
    /// The partitions that no node may take, because the brokers lost confirmed messages.
    pub stopped: Vec<u16>,
    /// The number of successful takeovers of partitions since the start.
    pub takeovers: u64,
    /// The number of failed takeovers.
    pub takeovers_failed: u64,
    /// The total time of the successful takeovers.
    pub takeover_time: Duration,
    /// The time of the longest successful takeover.
    pub longest_takeover: Duration,
    /// The number of messages sent to the brokers again.
    pub append_retries: u64,
}

/// A partition whose lease a node holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldPartition {
    /// The number of the partition.
    pub partition: u16,
    /// The epoch of the lease.
    pub epoch: u64,
    /// How long the lease lasts unless it is renewed.
    pub lease_left: Duration,
    /// Whether the partition is served. If not, it is being taken over.
    pub is_served: bool,
    /// The last position that a confirmed event of this node can have; 0 if no message was
    /// confirmed.
    pub position: Position,
    /// How long an append has waited for the brokers; zero if none waits.
    pub append_waits: Duration,
}

/// The source of the figures.
#[derive(Default)]
pub(crate) struct FigureSource(OnceLock<Box<dyn Fn() -> NodeVitals + Send + Sync>>);

impl FigureSource {
    pub(crate) fn set(&self, figures: impl Fn() -> NodeVitals + Send + Sync + 'static) {
        let _is_first = self.0.set(Box::new(figures)).is_ok();
    }

    pub(crate) fn ask(&self) -> Option<NodeVitals> {
        self.0.get().map(|figures| figures())
    }
}

impl std::fmt::Debug for FigureSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FigureSource").finish_non_exhaustive()
    }
}
