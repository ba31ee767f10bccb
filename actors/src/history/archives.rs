//! The archives of an engine: one for all partitions, or, in a cluster, one for each owned
//! partition.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use headcount_common::PARTITIONS;
use parking_lot::{Mutex, RwLock};

use super::Wanted;
use super::sealed::SealedEvents;

/// The archives of an engine.
#[derive(Debug)]
pub(crate) struct PartitionArchives {
    /// The archive of the partitions without their own.
    pub(crate) common: Arc<SealedEvents>,
    own: RwLock<BTreeMap<u16, Arc<SealedEvents>>>,
    /// The number of times that each partition was given up.
    given_up: Vec<AtomicU64>,
    /// Locked while the work on the archive of a partition begins or ends.
    moving: Vec<Mutex<()>>,
}

impl PartitionArchives {
    /// Begins with one archive for all partitions.
    pub(crate) fn new(common: Arc<SealedEvents>) -> Self {
        let given_up = (0..PARTITIONS).map(|_| AtomicU64::new(0)).collect();
        Self { common, own: RwLock::default(), given_up, moving: (0..PARTITIONS).map(|_| Mutex::default()).collect() }
    }

    /// Uses an archive for one partition from now on.
    pub(crate) fn adopt(&self, partition: u16, archive: Arc<SealedEvents>) {
        self.own.write().insert(partition, archive);
    }

    /// Forgets the archive of one partition.
    pub(crate) fn release(&self, partition: u16) {
        self.own.write().remove(&partition);
    }

    /// Begins the work on the archive of a partition with `begin`. The partition had been given up
    /// `times` when the work was requested. Returns `None` if it was given up again since.
    pub(crate) fn begin_work<R>(&self, partition: u16, times: u64, begin: impl FnOnce() -> R) -> Option<R> {
        let _moving = self.moving.get(usize::from(partition)).map(Mutex::lock);
        (self.times_given_up(partition) == times).then(begin)
    }

    /// Ends the work on the archive of a partition with `end`. Work requested before does not begin
    /// any more.
    pub(crate) fn end_work(&self, partition: u16, end: impl FnOnce()) {
        let _moving = self.moving.get(usize::from(partition)).map(Mutex::lock);
        if let Some(times) = self.given_up.get(usize::from(partition)) {
            times.fetch_add(1, Ordering::AcqRel);
        }
        end();
    }

    /// The number of times that a partition was given up. If it changes, the partition was not here
    /// all the time.
    pub(crate) fn times_given_up(&self, partition: u16) -> u64 {
        self.given_up.get(usize::from(partition)).map_or(0, |times| times.load(Ordering::Acquire))
    }

    /// The archive with the sealed events of a partition.
    pub(crate) fn of(&self, partition: u16) -> Arc<SealedEvents> {
        Arc::clone(self.own.read().get(&partition).unwrap_or(&self.common))
    }

    /// All archives, each with its partition; `None` for the archive of all others.
    pub(super) fn all(&self) -> Vec<(Option<u16>, Arc<SealedEvents>)> {
        let own = self.own.read();
        let own = own.iter().map(|(partition, archive)| (Some(*partition), Arc::clone(archive)));
        own.chain([(None, Arc::clone(&self.common))]).collect()
    }

    /// Divides the wanted events by archive.
    pub(super) fn divide(&self, wanted: &[Wanted]) -> Vec<(Arc<SealedEvents>, Vec<Wanted>)> {
        let own = self.own.read();
        let (mut parts, mut common) = (Vec::new(), Vec::new());
        for one in wanted {
            match own.get(&one.partition) {
                Some(archive) => parts.push((Arc::clone(archive), vec![*one])),
                None => common.push(*one),
            }
        }
        if !common.is_empty() {
            parts.push((Arc::clone(&self.common), common));
        }
        parts
    }
}
