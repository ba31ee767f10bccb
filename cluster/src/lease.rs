//! Leases: who owns a partition, and until when.
//!
//! A lease is a key of a bucket, changed by compare-and-set only. Its holder renews it, and acts as the owner until [`Timing::held`] after it *sent* its last
//! renewal that was confirmed. Another node takes it once it has seen one revision unchanged for [`Timing::taken_after`], which is longer. Both measure with their own
//! clock, which also runs while the machine sleeps, if not while a hypervisor halts it; no two clocks are compared. An outdated answer of a broker only makes a compare-and-set
//! fail. The bucket must be kept: in a new one, epochs begin anew, and the log refuses those that it had.
//!
//! A lease alone keeps no former owner from writing: its epoch does, which begins with a message in the log ([`crate::log`]).

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

/// How long leases last.
#[derive(Debug, Clone, Copy)]
pub struct Timing {
    /// How long a holder acts as the owner after it sent its last confirmed renewal.
    pub held: Duration,
    /// How long another node must have seen one revision before it takes the lease; longer than `held`, by as much as clocks may differ in that time.
    pub taken_after: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self { held: Duration::from_secs(10), taken_after: Duration::from_secs(12) }
    }
}

/// Who takes leases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// The id of the node, which its data directory has. A process with that id has locked the directory, so that there is one at most.
    pub node: String,
    /// The boot id of its machine. Of two processes of a node with the same boot id, the earlier one has ended.
    pub boot: String,
}

/// The value of a lease's key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Record {
    node: String,
    boot: String,
    /// Tells one taking of the lease from another one.
    nonce: u64,
    /// Whether its holder gave it up.
    released: bool,
    /// What events are folded into by the program of the holder ([`Levels`]).
    #[serde(default = "first_fold")]
    fold: u32,
    /// Why nobody may take it until somebody has looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stopped: Option<String>,
    /// A number that somebody gave it by having it be taken again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    resumed: Option<u64>,
    /// The nodes that took the lease and could not serve, since they last did.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    failed: BTreeMap<String, Failures>,
}

/// How a node fared that took a lease and could not serve.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failures {
    /// How often that happened, since it last served.
    pub times: u32,
    /// Whether it is to try again.
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

/// Returns why nobody may take the lease with this value, if so.
pub(crate) fn stop_of(key: &str, value: &[u8]) -> Result<Option<String>, LeaseError> {
    Ok(record_of(key, value)?.stopped)
}

fn record_of(key: &str, value: &[u8]) -> Result<Record, LeaseError> {
    serde_json::from_slice(value).map_err(|error| LeaseError::Unreadable { key: key.to_owned(), reason: error.to_string() })
}

/// Why a lease could not be taken, renewed or released.
#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    /// Another node has taken it.
    #[error("another node has taken the lease {0}")]
    Lost(String),
    /// The value is not one of a lease.
    #[error("the lease {key} can't be read: {reason}")]
    Unreadable {
        /// The key.
        key: String,
        /// Why.
        reason: String,
    },
    /// The brokers do not answer; a change may or may not have been made.
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
    /// That of those who take leases.
    fold: u32,
}

impl Leases {
    /// Creates a bucket, on `replicas` brokers.
    ///
    /// # Errors
    /// [`LeaseError::Unavailable`].
    pub async fn create(connection: &Connection, bucket: &str, replicas: usize, timing: Timing) -> Result<Self, LeaseError> {
        let bucket = Config { bucket: bucket.to_owned(), ..Config::default() };
        Self::of(KvCells::created(connection, replicas, bucket), timing).await
    }

    /// Uses a bucket that exists.
    ///
    /// # Errors
    /// [`LeaseError::Unavailable`].
    pub async fn open(connection: &Connection, bucket: &str, timing: Timing) -> Result<Self, LeaseError> {
        Self::of(KvCells::existing(connection, bucket), timing).await
    }

    async fn of(cells: KvCells, timing: Timing) -> Result<Self, LeaseError> {
        cells.open().await?;
        Ok(Self { cells: cells.within(ANSWER_TIMEOUT), timing, fold: Levels::own().fold })
    }

    /// Has leases be taken by a program with these levels.
    #[must_use]
    pub fn at(self, levels: &Levels) -> Self {
        Self { fold: levels.fold, ..self }
    }

    /// Deletes the bucket.
    ///
    /// # Errors
    /// [`LeaseError::Unavailable`].
    pub async fn delete(connection: &Connection, bucket: &str) -> Result<(), LeaseError> {
        connection.context.delete_key_value(bucket).await.map(drop).map_err(unavailable)
    }

    /// Returns a candidate for the lease `key`, which has seen nothing yet.
    #[must_use]
    pub fn candidate(&self, key: &str, holder: Holder) -> Candidate {
        Candidate { leases: self.clone(), key: key.to_owned(), holder, seen: None }
    }

    /// Has a lease be taken again that was stopped. Returns why it was; `None` if it was not.
    ///
    /// # Errors
    /// [`LeaseError`].
    pub async fn resume(&self, key: &str) -> Result<Option<String>, LeaseError> {
        let Some((record, revision)) = self.read(key).await? else { return Ok(None) };
        let Some(reason) = record.stopped else { return Ok(None) };
        let resumed = Record { stopped: None, resumed: Some(fastrand::u64(1..)), ..record };
        match self.change(key, &resumed, revision).await? {
            Some(_) => Ok(Some(reason)),
            None => Err(unavailable("the lease was changed meanwhile")),
        }
    }

    /// Returns the value of a key and its revision; `None` if there is none.
    async fn read(&self, key: &str) -> Result<Option<(Record, u64)>, LeaseError> {
        let Some(Cell { value, revision }) = self.cells.read(key).await? else { return Ok(None) };
        Ok(Some((record_of(key, &value)?, revision)))
    }

    /// Changes a key whose revision is `revision`, 0 if there is none. Returns the new revision; `None` if it was another one.
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
    /// The last revision that it saw, and when it saw it first.
    seen: Option<(u64, Duration)>,
}

impl Candidate {
    /// Takes the lease if it is free, as [`Candidate::look`] says. `None`: it is held. This process must not have it.
    ///
    /// # Errors
    /// [`LeaseError::Unreadable`] and [`LeaseError::Unavailable`].
    pub async fn take(&mut self) -> Result<Option<Lease>, LeaseError> {
        let sighting = self.look().await?;
        self.take_seen(&sighting).await
    }

    /// Looks who has the lease, and whether it is free: if nobody has it, its holder gave it up, an earlier process of this node had it, or its holder has not renewed it
    /// for long enough, as far as calls of this function have seen.
    ///
    /// # Errors
    /// [`LeaseError::Unreadable`] and [`LeaseError::Unavailable`].
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

    /// Takes the lease as it was seen. `None`: it was not free, or has changed.
    ///
    /// # Errors
    /// [`LeaseError::Unavailable`].
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

    /// Returns when the lease becomes free, unless it is renewed until then. `None`: it is not known to be held.
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
    /// The node that has it, or had it last.
    pub holder: Option<String>,
    /// Whether it can be taken.
    pub is_free: bool,
    /// Whether it is free for this node only: it had it last, and has not given it up.
    pub is_own: bool,
    /// Why nobody may take it, if so.
    pub stopped: Option<String>,
    /// What events are folded into by the program of the node that has it, or had it last; 0 if nobody had it.
    pub fold: u32,
    /// The nodes that took it and could not serve, since they last did.
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
    epoch: u64,
    revision: u64,
    until: Duration,
    /// Whether no change is under way whose outcome is not known.
    is_certain: bool,
}

impl Lease {
    /// Returns the epoch, which is greater than that of all former holders.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Returns a number that is another one after each [`Leases::resume`]; 0 before the first one.
    #[must_use]
    pub fn resumed(&self) -> u64 {
        self.record.resumed.unwrap_or(0)
    }

    /// Whether the holder may act as the owner.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        boot_time() < self.until
    }

    /// Returns the moment of [`boot_time`] until which the holder may act as the owner.
    #[must_use]
    pub fn until(&self) -> Duration {
        #[cfg(feature = "fault-injection")]
        if crate::fault_injection::Mistake::LeaseIgnored.is_made() {
            return boot_time() + Duration::from_secs(3600);
        }
        self.until
    }

    /// Prolongs the lease. Call it five times per [`Timing::held`], also after [`LeaseError::Unavailable`].
    ///
    /// # Errors
    /// [`LeaseError::Lost`]: it is no longer valid, whatever its time. [`LeaseError::Unavailable`]: it is valid until its time is over.
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
    /// [`LeaseError::Unavailable`]: others have to wait until its time is over. [`LeaseError::Lost`].
    pub async fn release(mut self) -> Result<(), LeaseError> {
        self.until = Duration::ZERO;
        self.change(true, None).await
    }

    /// Returns the nodes that took the lease and could not serve, since they last did.
    #[must_use]
    pub fn failed(&self) -> &BTreeMap<String, Failures> {
        &self.record.failed
    }

    /// Forgets, with the next renewal, that the holder could not serve: now it does.
    pub fn serves(&mut self) {
        self.record.failed.remove(&self.record.node);
    }

    /// Gives the lease up, because the holder can't serve, so that another node can take it at once.
    ///
    /// # Errors
    /// As [`Self::release`].
    pub async fn fail(mut self) -> Result<(), LeaseError> {
        let failures = self.record.failed.entry(self.record.node.clone()).or_default();
        *failures = Failures { times: failures.times.saturating_add(1), tries_again: false };
        self.release().await
    }

    /// Gives the lease up, so that `node` can take it at once, even if it could not serve before.
    ///
    /// # Errors
    /// As [`Self::release`].
    pub async fn release_to(mut self, node: &str) -> Result<(), LeaseError> {
        if let Some(failures) = self.record.failed.get_mut(node) {
            failures.tries_again = true;
        }
        self.release().await
    }

    /// Gives the lease up, so that nobody takes it until [`Leases::resume`].
    ///
    /// # Errors
    /// As [`Self::release`].
    pub async fn stop(mut self, reason: String) -> Result<(), LeaseError> {
        self.until = Duration::ZERO;
        self.change(true, Some(reason)).await
    }

    /// Changes the record to the same one, or to one that is released. Tries again if the record was changed by an earlier call that had no answer.
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

    /// Reads the revision, which is that of an earlier call without an answer, or the last known one.
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
