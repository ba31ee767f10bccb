//! The owner of each partition.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use headcount_domain::ProjectId;
use headcount_storage::boot_time::boot_time;
use parking_lot::RwLock;

use crate::node_vitals::{FigureSource, NodeVitals};
use crate::partitions::{PARTITIONS, partition_of};

/// The end of an ownership that no other machine can take.
const ALWAYS: u64 = u64::MAX;
const NEVER: u64 = 0;

/// The error for a partition that another machine owns, or none.
pub const NOT_HERE: &str = "another machine has the figures of this project, or takes them over";

/// The machine that owns a partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Owner {
    /// On this machine.
    Here,
    /// Another machine, which answers HTTP at this address (`http://host:port`, without a trailing
    /// slash).
    There(Arc<str>),
    /// No known machine, for now.
    Nowhere,
}

/// The owner of each partition. Every request reads it. Changes of owners and renewals of leases
/// write it.
#[derive(Debug)]
pub struct Owners {
    partitions: Vec<OwnedPartition>,
    /// The time until which this machine knows the control data of other machines, in milliseconds
    /// of [`boot_time`].
    live_until: AtomicU64,
    /// The address where this machine answers HTTP for other machines.
    own: OnceLock<Arc<str>>,
    figures: FigureSource,
}

#[derive(Debug)]
struct OwnedPartition {
    /// The time until which this machine owns it, in milliseconds of [`boot_time`].
    here_until: AtomicU64,
    /// The address of its owner, if this machine does not own it.
    elsewhere: RwLock<Option<Arc<str>>>,
}

impl Owners {
    /// Returns the owners for a single machine: it owns every partition, forever.
    pub fn alone() -> Self {
        Self::new(ALWAYS)
    }

    /// Returns the owners for a machine that owns no partition yet, and knows no other owners.
    pub fn unknown() -> Self {
        Self::new(NEVER)
    }

    fn new(until: u64) -> Self {
        let partition = |_| OwnedPartition { here_until: AtomicU64::new(until), elsewhere: RwLock::default() };
        Self {
            partitions: (0..PARTITIONS).map(partition).collect(),
            live_until: AtomicU64::new(until),
            own: OnceLock::new(),
            figures: FigureSource::default(),
        }
    }

    /// Records the address where this machine answers HTTP for other machines. Only the first call
    /// counts.
    pub fn note_own(&self, address: Arc<str>) {
        let _known = self.own.set(address);
    }

    /// Returns the address where this machine answers HTTP for other machines, once it has joined
    /// them.
    pub fn own(&self) -> Option<&str> {
        self.own.get().map(|address| &**address)
    }

    /// Sets the source of [`Owners::node_vitals`]. Only the first call counts.
    pub fn report_with(&self, figures: impl Fn() -> NodeVitals + Send + Sync + 'static) {
        self.figures.set(figures);
    }

    /// Returns the figures of this machine as a node of a cluster; `None` outside a cluster, and
    /// before it has joined.
    pub fn node_vitals(&self) -> Option<NodeVitals> {
        self.figures.ask()
    }

    /// Returns the owner of a partition.
    pub fn of(&self, partition: u16) -> Owner {
        match self.partitions.get(usize::from(partition)) {
            _ if self.is_here(partition) => Owner::Here,
            Some(known) => known.elsewhere.read().clone().map_or(Owner::Nowhere, Owner::There),
            None => Owner::Nowhere,
        }
    }

    /// Returns the owner of a project.
    pub fn of_project(&self, project: ProjectId) -> Owner {
        self.of(partition_of(project))
    }

    /// Whether this machine owns a partition now.
    pub fn is_here(&self, partition: u16) -> bool {
        is_before(self.partitions.get(usize::from(partition)).map_or(NEVER, |known| known.here_until.load(Ordering::Acquire)))
    }

    /// Returns the partitions that this machine owns now: at the start of a machine that is alone,
    /// all of them, and of a node, none.
    pub fn here(&self) -> impl Iterator<Item = u16> {
        (0..PARTITIONS).filter(|partition| self.is_here(*partition))
    }

    /// Whether this machine knows the changes of the control data by other machines, such as
    /// permissions and deleted projects. If not, it answers no requests.
    pub fn is_live(&self) -> bool {
        is_before(self.live_until.load(Ordering::Acquire))
    }

    /// Records that this machine knows the changes of other machines until that moment of
    /// [`boot_time`].
    pub fn live(&self, until: Duration) {
        self.live_until.store(millis(until), Ordering::Release);
    }

    /// Records that this machine owns a partition until that moment of [`boot_time`].
    pub fn hold(&self, partition: u16, until: Duration) {
        self.set(partition, millis(until));
    }

    /// Records that this machine does not own a partition any more.
    pub fn give_up(&self, partition: u16) {
        self.set(partition, NEVER);
    }

    fn set(&self, partition: u16, until: u64) {
        if let Some(known) = self.partitions.get(usize::from(partition)) {
            known.here_until.store(until, Ordering::Release);
        }
    }

    /// Records the address of a partition's owner, for when this machine does not own it; `None` if
    /// unknown.
    pub fn note_elsewhere(&self, partition: u16, address: Option<Arc<str>>) {
        if let Some(known) = self.partitions.get(usize::from(partition)) {
            *known.elsewhere.write() = address;
        }
    }
}

/// Whether that moment is in the future.
fn is_before(until: u64) -> bool {
    until == ALWAYS || (until != NEVER && millis(boot_time()) < until)
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(ALWAYS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_is_here_until_its_time_is_over() {
        let owners = Owners::unknown();
        assert_eq!(owners.of(3), Owner::Nowhere);
        owners.note_elsewhere(3, Some("http://b".into()));
        owners.hold(3, boot_time() + Duration::from_secs(600));
        assert_eq!((owners.of(3), owners.of(4)), (Owner::Here, Owner::Nowhere));
        owners.hold(3, boot_time());
        assert_eq!(owners.of(3), Owner::There("http://b".into()));
        owners.hold(3, boot_time() + Duration::from_secs(600));
        owners.give_up(3);
        owners.note_elsewhere(3, None);
        assert_eq!(owners.of(3), Owner::Nowhere);
    }

    #[test]
    fn one_machine_alone_owns_everything() {
        let owners = Owners::alone();
        assert!(owners.is_live() && !Owners::unknown().is_live());
        assert!((0..PARTITIONS).all(|partition| owners.is_here(partition)));
        assert_eq!(owners.of(PARTITIONS), Owner::Nowhere);
    }
}
