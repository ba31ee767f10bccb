//! Leases: a lease says which node owns a partition, and until when.
//!
//! A lease is a key of a bucket, changed only by compare-and-set. Its holder renews it, and acts as
//! the owner until [`Timing::held`] after it *sent* its last confirmed renewal. Another node takes
//! the lease after it has seen the same revision for [`Timing::taken_after`], which is longer. Each
//! node measures with its own clock, and no two clocks are compared. The clock runs while the
//! machine sleeps, but not while a hypervisor suspends it. If a broker gives an outdated answer, a
//! compare-and-set fails, and nothing else happens. The bucket must be kept: in a new bucket,
//! epochs would start again, and the log would refuse them as former epochs.
//!
//! A lease alone does not stop a former owner from writing. The epoch does: each one begins with a
//! message in the log ([`crate::log`]).

use std::collections::BTreeMap;
use std::time::Duration;

use async_nats::jetstream::kv::Config;
use headcount_storage::boot_time::boot_time;
use serde::{Deserialize, Serialize};

use crate::cells::{Cell, KvCells, Unanswered};
use crate::connection::Connection;
use crate::levels::Levels;

/// How long brokers may take to answer: a small part of the time that leases are held.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);

/// The durations of leases.
#[derive(Debug, Clone, Copy)]
pub struct Timing {
    /// How long a holder acts as the owner after it sent its last confirmed renewal.
    pub held: Duration,
    /// How long another node must see the same revision before it takes the lease. Longer than
    /// `held`, by as much as two clocks may drift apart in that time.
    pub taken_after: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self { held: Duration::from_secs(10), taken_after: Duration::from_secs(12) }
    }
}

/// A process that takes leases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// The id of the node, from its data directory. At most one process has this id, because it has
    /// locked the directory.
    pub node: String,
    /// The boot id of the machine. If two processes of a node have the same boot id, the earlier
    /// one has ended.
    pub boot: String,
}

/// The value of a lease's key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Record {
    node: String,
    boot: String,
    /// A random number for each time that the lease is taken.
    nonce: u64,
    /// Whether the holder gave the lease up.
    released: bool,
    /// The fold version of the holder's program ([`Levels`]).
    #[serde(default = "first_fold")]
    fold: u32,
    /// The reason why no node may take the lease until an operator has checked the partition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stopped: Option<String>,
    /// A new number each time that an operator resumed the partition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    resumed: Option<u64>,
    /// The nodes that took the lease and could not serve the partition, since it was last served.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    failed: BTreeMap<String, Failures>,
}

/// The failures of a node that took a lease and could not serve the partition.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failures {
    /// The number of failures since the partition was last served.
    pub times: u32,
    /// Whether the node is to try again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tries_again: bool,
}

fn first_fold() -> u32 {
    Levels::FIRST.fold
}

/// Returns the node that holds the lease with this value; `None` if it was given up.
pub(crate) fn holder_of(key: &str, value: &[u8]) -> Result<Option<String>, LeaseError> {
    let Record { node, released, .. } = record_of(key, value)?;
    Ok((!released).then_some(node))
}

/// Returns the reason why no node may take the lease with this value, if it is stopped.
pub(crate) fn stop_of(key: &str, value: &[u8]) -> Result<Option<String>, LeaseError> {
    Ok(record_of(key, value)?.stopped)
}

fn record_of(key: &str, value: &[u8]) -> Result<Record, LeaseError> {
    serde_json::from_slice(value).map_err(|error| LeaseError::Unreadable { key: key.to_owned(), reason: error.to_string() })
}

/// The reason why a lease could not be taken, renewed or released.
#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    /// Another node has taken it.
    #[error("another node has taken the lease {0}")]
    Lost(String),
    /// The value is not the value of a lease.
    #[error("the lease {key} can't be read: {reason}")]
    Unreadable {
        /// The key.
        key: String,
        /// The error.
        reason: String,
    },
    /// The brokers don't answer. A change may or may not have been made.
    #[error("the brokers can't answer: {0}")]
    Unavailable(String),
}

/// Returns the key of a partition's lease.
pub(crate) fn key_of(partition: u16) -> String {
    format!("lease.{partition:03}")
}

/// The bucket with all leases.
#[derive(Debug, Clone)]
pub struct Leases {
    cells: KvCells,
    timing: Timing,
    /// The fold version of the program that takes leases.
    fold: u32,
}

impl Leases {
    /// Creates a bucket, on `replicas` brokers.
    ///
    /// # Errors
    /// Returns [`LeaseError::Unavailable`].
    pub async fn create(connection: &Connection, bucket: &str, replicas: usize, timing: Timing) -> Result<Self, LeaseError> {
        let bucket = Config { bucket: bucket.to_owned(), ..Config::default() };
        Self::of(KvCells::created(connection, replicas, bucket), timing).await
    }

    /// Uses a bucket that exists.
    ///
    /// # Errors
    /// Returns [`LeaseError::Unavailable`].
    pub async fn open(connection: &Connection, bucket: &str, timing: Timing) -> Result<Self, LeaseError> {
        Self::of(KvCells::existing(connection, bucket), timing).await
    }

    async fn of(cells: KvCells, timing: Timing) -> Result<Self, LeaseError> {
        cells.open().await?;
        Ok(Self { cells: cells.within(ANSWER_TIMEOUT), timing, fold: Levels::own().fold })
    }

    /// Takes leases for a program with these levels.
    #[must_use]
    pub fn at(self, levels: &Levels) -> Self {
        Self { fold: levels.fold, ..self }
    }

    /// Deletes the bucket.
    ///
    /// # Errors
    /// Returns [`LeaseError::Unavailable`].
    pub async fn delete(connection: &Connection, bucket: &str) -> Result<(), LeaseError> {
        connection.context.delete_key_value(bucket).await.map(drop).map_err(unavailable)
    }

    /// Returns a candidate for the lease `key`. It has not looked at the lease yet.
    pub fn candidate(&self, key: &str, holder: Holder) -> Candidate {
        Candidate { leases: self.clone(), key: key.to_owned(), holder, seen: None }
    }

    /// Lets nodes take a stopped lease again. Returns the reason why it was stopped; `None` if it
    /// was not.
    ///
    /// # Errors
    /// Returns a [`LeaseError`].
    pub async fn resume(&self, key: &str) -> Result<Option<String>, LeaseError> {
        let Some((record, revision)) = self.read(key).await? else { return Ok(None) };
        let Some(reason) = record.stopped else { return Ok(None) };
        let resumed = Record { stopped: None, resumed: Some(fastrand::u64(1..)), ..record };
        match self.change(key, &resumed, revision).await? {
            Some(_) => Ok(Some(reason)),
            None => Err(unavailable("the lease was changed meanwhile")),
        }
    }

    /// Returns the value of a key and its revision; `None` if the key doesn't exist.
    async fn read(&self, key: &str) -> Result<Option<(Record, u64)>, LeaseError> {
        let Some(Cell { value, revision }) = self.cells.read(key).await? else { return Ok(None) };
        Ok(Some((record_of(key, &value)?, revision)))
    }

    /// Changes a key whose revision is `revision`, or 0 if the key doesn't exist. Returns the new
    /// revision; `None` if the revision was another one.
    async fn change(&self, key: &str, record: &Record, revision: u64) -> Result<Option<u64>, LeaseError> {
        let value = serde_json::to_vec(record).map_err(unavailable)?;
        Ok(self.cells.change(key, value, revision).await?)
    }
}

/// A node that wants a lease.
#[derive(Debug)]
pub struct Candidate {
    leases: Leases,
    key: String,
    holder: Holder,
    /// The last revision that it saw, and when it first saw it.
    seen: Option<(u64, Duration)>,
}

impl Candidate {
    /// Takes the lease if it is free, as [`Candidate::look`] finds out. Returns `None` if it is
    /// held. This process must not hold it.
    ///
    /// # Errors
    /// Returns [`LeaseError::Unreadable`] or [`LeaseError::Unavailable`].
    pub async fn take(&mut self) -> Result<Option<Lease>, LeaseError> {
        let sighting = self.look().await?;
        self.take_seen(&sighting).await
    }

    /// Finds out which node has the lease, and whether it is free. A lease is free if no node has
    /// it, its holder gave it up, an earlier process of this node had it, or calls of this function
    /// have seen no renewal for long enough.
    ///
    /// # Errors
    /// Returns [`LeaseError::Unreadable`] or [`LeaseError::Unavailable`].
    pub async fn look(&mut self) -> Result<Sighting, LeaseError> {
        let found = self.leases.read(&self.key).await?;
        let Some((record, revision)) = found else {
            return Ok(Sighting {
                holder: None,
                is_free: true,
                is_own: false,
                stopped: None,
                fold: 0,
                resumed: None,
                failed: BTreeMap::new(),
                revision: 0,
            });
        };
        let is_free = record.stopped.is_none() && self.is_free(&record, revision, boot_time());
        let is_own = record.stopped.is_none() && !record.released && self.is_own(&record);
        let Record { node, stopped, fold, resumed, failed, .. } = record;
        Ok(Sighting { holder: Some(node), is_free, is_own, stopped, fold, resumed, failed, revision })
    }

    /// Takes the lease as it was seen. Returns `None` if it was not free, or has changed.
    ///
    /// # Errors
    /// Returns [`LeaseError::Unavailable`].
    pub(crate) async fn take_seen(&self, sighting: &Sighting) -> Result<Option<Lease>, LeaseError> {
        if !sighting.is_free {
            return Ok(None);
        }
        let until = boot_time() + self.leases.timing.held;
        let Holder { node, boot } = self.holder.clone();
        let (fold, resumed, failed) = (self.leases.fold, sighting.resumed, sighting.failed.clone());
        let record = Record { node, boot, nonce: fastrand::u64(..), released: false, fold, stopped: None, resumed, failed };
        let Some(epoch) = self.leases.change(&self.key, &record, sighting.revision).await? else { return Ok(None) };
        Ok(Some(Lease {
            leases: self.leases.clone(),
            key: self.key.clone(),
            record,
            epoch,
            revision: epoch,
            until,
            is_certain: true,
        }))
    }

    /// Returns the time until the lease becomes free, unless it is renewed before. `None` if the
    /// candidate has seen no holder.
    pub(crate) fn free_in(&self) -> Option<Duration> {
        let (_, since) = self.seen?;
        (since + self.leases.timing.taken_after).checked_sub(boot_time())
    }

    fn is_free(&mut self, record: &Record, revision: u64, now: Duration) -> bool {
        let since = match self.seen {
            Some((seen, since)) if seen == revision => since,
            _ => now,
        };
        self.seen = Some((revision, since));
        record.released || self.is_own(record) || now - since >= self.leases.timing.taken_after
    }

    fn is_own(&self, record: &Record) -> bool {
        record.node == self.holder.node && record.boot == self.holder.boot
    }
}

/// A lease as a candidate saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sighting {
    /// The node that has it, or was the last to have it.
    pub holder: Option<String>,
    /// Whether it can be taken.
    pub is_free: bool,
    /// Whether only this node may take it: the node was the last to have it, and has not given it
    /// up.
    pub is_own: bool,
    /// The reason why no node may take it, if it is stopped.
    pub stopped: Option<String>,
    /// The fold version of the node that has it, or was the last to have it; 0 if no node ever had
    /// it.
    pub fold: u32,
    /// The nodes that took it and could not serve the partition, since it was last served.
    pub failed: BTreeMap<String, Failures>,
    resumed: Option<u64>,
    revision: u64,
}

/// A lease that is held.
#[derive(Debug)]
pub struct Lease {
    leases: Leases,
    key: String,
    record: Record,
    /// The epoch, which is greater than the epochs of all former holders.
    pub epoch: u64,
    revision: u64,
    until: Duration,
    /// Whether the outcomes of all changes are known.
    is_certain: bool,
}

impl Lease {
    /// Returns a number that changes with each [`Leases::resume`]; 0 before the first one.
    pub fn resumed(&self) -> u64 {
        self.record.resumed.unwrap_or(0)
    }

    /// Whether the holder may act as the owner.
    pub fn is_valid(&self) -> bool {
        boot_time() < self.until
    }

    /// Returns the moment of [`boot_time`] until which the holder may act as the owner.
    pub fn until(&self) -> Duration {
        #[cfg(feature = "fault-injection")]
        if crate::fault_injection::Mistake::LeaseIgnored.is_made() {
            return boot_time() + Duration::from_secs(3600);
        }
        self.until
    }

    /// Renews the lease. Call it five times per [`Timing::held`], even after
    /// [`LeaseError::Unavailable`].
    ///
    /// # Errors
    /// [`LeaseError::Lost`]: the lease is no longer valid, even if its time is not over.
    /// [`LeaseError::Unavailable`]: the lease is valid until its time is over.
    pub async fn renew(&mut self) -> Result<(), LeaseError> {
        let sent = boot_time();
        let renewed = self.change(false, None).await;
        #[cfg(feature = "fault-injection")]
        let renewed = if crate::fault_injection::Mistake::LeaseIgnored.is_made() { Ok(()) } else { renewed };
        match &renewed {
            Ok(()) => self.until = sent + self.leases.timing.held,
            Err(LeaseError::Lost(_)) => self.until = Duration::ZERO,
            Err(_) => {}
        }
        renewed
    }

    /// Gives the lease up, so that another node can take it at once.
    ///
    /// # Errors
    /// [`LeaseError::Unavailable`]: other nodes have to wait until its time is over.
    /// [`LeaseError::Lost`].
    pub async fn release(mut self) -> Result<(), LeaseError> {
        self.until = Duration::ZERO;
        self.change(true, None).await
    }

    /// Returns the nodes that took the lease and could not serve the partition, since it was last
    /// served.
    pub fn failed(&self) -> &BTreeMap<String, Failures> {
        &self.record.failed
    }

    /// Clears the holder's failures with the next renewal, because it now serves the partition.
    pub fn serves(&mut self) {
        self.record.failed.remove(&self.record.node);
    }

    /// Gives the lease up because the holder can't serve the partition. Another node can take it at
    /// once.
    ///
    /// # Errors
    /// Returns the same errors as [`Self::release`].
    pub async fn fail(mut self) -> Result<(), LeaseError> {
        let failures = self.record.failed.entry(self.record.node.clone()).or_default();
        *failures = Failures { times: failures.times.saturating_add(1), tries_again: false };
        self.release().await
    }

    /// Gives the lease up, so that `node` can take it at once, even if it could not serve before.
    ///
    /// # Errors
    /// Returns the same errors as [`Self::release`].
    pub async fn release_to(mut self, node: &str) -> Result<(), LeaseError> {
        if let Some(failures) = self.record.failed.get_mut(node) {
            failures.tries_again = true;
        }
        self.release().await
    }

    /// Gives the lease up, and stops it: no node can take it until [`Leases::resume`].
    ///
    /// # Errors
    /// Returns the same errors as [`Self::release`].
    pub async fn stop(mut self, reason: String) -> Result<(), LeaseError> {
        self.until = Duration::ZERO;
        self.change(true, Some(reason)).await
    }

    /// Writes the record again, or a released one. Retries if an earlier call without an answer has
    /// changed the record.
    async fn change(&mut self, released: bool, stopped: Option<String>) -> Result<(), LeaseError> {
        let record = Record { released, stopped, ..self.record.clone() };
        for _ in 0..2 {
            if !self.is_certain {
                self.read().await?;
            }
            self.is_certain = false;
            if let Some(revision) = self.leases.change(&self.key, &record, self.revision).await? {
                (self.revision, self.is_certain) = (revision, true);
                return Ok(());
            }
        }
        Err(unavailable("the lease was changed meanwhile"))
    }

    /// Reads the revision. It must be the last known one, or come from an earlier call without an
    /// answer.
    async fn read(&mut self) -> Result<(), LeaseError> {
        match self.leases.read(&self.key).await? {
            Some((_, revision)) if revision < self.revision => Err(unavailable("an answer is out of date")),
            None => Err(unavailable("an answer is out of date")),
            Some((record, revision)) if record.nonce == self.record.nonce && !record.released => {
                self.revision = revision;
                Ok(())
            }
            Some(_) => Err(LeaseError::Lost(self.key.clone())),
        }
    }
}

impl From<Unanswered> for LeaseError {
    fn from(Unanswered(why): Unanswered) -> Self {
        Self::Unavailable(why)
    }
}

fn unavailable(error: impl std::fmt::Display) -> LeaseError {
    LeaseError::Unavailable(error.to_string())
}
