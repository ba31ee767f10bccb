//! Figures about a node of a cluster, for `/metrics`.

use std::sync::OnceLock;
use std::time::Duration;

use headcount_domain::intake::event::Position;

/// Figures about a node of a cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeVitals {
    /// Whether it answers requests: it knows what others have changed, and a majority of brokers confirms it.
    pub is_live: bool,
    /// Whether it hands its partitions over, and takes none.
    pub drains: bool,
    /// The partitions that it has the leases of, in order.
    pub held: Vec<HeldPartition>,
    /// The partitions that no node may take, because the brokers lost what they had confirmed.
    pub stopped: Vec<u16>,
    /// How often it has taken a partition over since the start, so that it was served.
    pub takeovers: u64,
    /// How often that failed.
    pub takeovers_failed: u64,
    /// How long those that did not fail took together.
    pub takeover_time: Duration,
    /// How long the longest of them took.
    pub longest_takeover: Duration,
    /// How often messages were sent to the brokers again.
    pub append_retries: u64,
}

/// A partition whose lease a node has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldPartition {
    /// Its number.
    pub partition: u16,
    /// The epoch of the lease.
    pub epoch: u64,
    /// How long the lease lasts unless it is renewed.
    pub lease_left: Duration,
    /// Whether the partition is served; if not, it is being taken over.
    pub is_served: bool,
    /// The last position that an event can have that brokers have confirmed to this node; 0 if there is none.
    pub position: Position,
    /// For how long an append waits for the brokers; zero if there is none.
    pub append_waits: Duration,
}

/// Whom to ask for figures.
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
