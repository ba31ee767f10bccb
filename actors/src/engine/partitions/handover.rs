//! Takes partitions over and gives them up.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant as Stopwatch};

use headcount_archive::FileSource;
use headcount_common::partition_of;
use headcount_domain::{Fault, Position};

use super::Partitions;
use crate::fault;
use crate::history::SealedEvents;
use crate::intake_counts::logged;
use crate::living_files::LivingFiles;
use crate::saved_state::CopiedState;
use crate::shard::AskError;
use crate::shard::Condition;

/// How long applying and saving a released partition may take.
const SAVE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long to retry asking the shard to give a partition up.
const GIVE_UP_TIMEOUT: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(10);
/// How long first bases are held back after a takeover: several pauses of a backup that asks for
/// it.
const HELD_AT_FIRST: Duration = Duration::from_secs(15);
/// The pause before a shard that could not be asked is asked again.
const ASK_AGAIN: Duration = Duration::from_millis(320);

/// The state of a partition during its takeover.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Adoption {
    /// It is being replayed.
    UnderWay,
    /// The partition answers as soon as [`Owners`](headcount_common::Owners) have it on this
    /// machine.
    Done,
    /// Its state can't be opened for now. The engine retries until the partition is given up.
    Failed(String),
}

/// The reason why a partition can't be taken over for now.
#[derive(Debug, thiserror::Error)]
pub enum AdoptError {
    /// Its shard can't be asked.
    #[error(transparent)]
    Ask(#[from] AskError),
    /// Its archive can't be opened.
    #[error("{0}")]
    Archive(Fault),
}

impl Partitions {
    /// Begins to take a partition over: opens its last checkpoint on this machine, or `copied` if
    /// that reflects more, and replays the log up to the position `until`, without its dead
    /// `letters`. No other machine may write to the log meanwhile. [`Partitions::adoption`] returns
    /// the progress. The files of the copy must exist until it is done.
    ///
    /// If all nodes share archives, the directory [`Partitions::archive_dir`] must have the lists
    /// of the partition's published archive.
    ///
    /// # Errors
    /// Returns an [`AdoptError`]: nothing was begun.
    pub async fn adopt(
        self: &Arc<Self>,
        partition: u16,
        (until, letters): (Position, BTreeSet<Position>),
        copied: Option<CopiedState>,
    ) -> Result<(), AdoptError> {
        self.dead.adopt(partition, letters);
        // It continues even if its caller is gone, so it must not begin a takeover that has ended
        // by then.
        let (taken, times) = (Arc::clone(self), self.archives.times_given_up(partition));
        let adopted = tokio::task::spawn_blocking(move || {
            taken.archives.begin_work(partition, times, || {
                taken.features().iter().for_each(|feature| feature.takes(partition, until));
                taken.adopt_archive(partition)
            })
        });
        let adopted = adopted.await;
        adopted.map_err(|_| AskError::NoAnswer)?.ok_or(AskError::NoAnswer)??;
        // Appends in flight from an earlier ownership are in the log up to `until`, or never will
        // be.
        self.unknown.found_out(partition);
        Ok(self.ask_about(partition, move |shard| shard.adopt(partition, until, copied)).await?)
    }

    /// Lets the counts of dropped events follow a partition to this machine, its owner of `epoch`,
    /// before it serves the partition. Failures are logged, and retried every ten seconds.
    pub async fn take_counts(&self, partition: u16, epoch: u64) {
        let (counts, now) = (Arc::clone(&self.ingest.counts), self.ingest.questions.clock().now());
        let known = self.ingest.clock_guard.now();
        let _ = tokio::task::spawn_blocking(move || logged(counts.take(partition, epoch, now, known))).await;
    }

    /// Writes the last counts of dropped events of a partition, before another machine may take it.
    /// After a failure, the next owner says that counts may be missing.
    pub async fn give_counts(&self, partition: u16) {
        let counts = Arc::clone(&self.ingest.counts);
        let _ = tokio::task::spawn_blocking(move || logged(counts.give(partition))).await;
    }

    /// Resumes the work of features on a partition that was taken over. Raises the floors of its
    /// projects: their retention may have changed while it had no owner.
    pub fn resume(&self, partition: u16) {
        self.ingest.apply_changes_soon(Vec::new(), move |project| partition_of(project) == partition);
        self.features().iter().for_each(|feature| feature.took(partition));
    }

    /// Returns the directory of a partition's archive on this machine.
    #[must_use]
    pub fn archive_dir(&self, partition: u16) -> PathBuf {
        crate::archiver::archive_dir(&self.data_dir, partition)
    }

    fn adopt_archive(&self, partition: u16) -> Result<(), AdoptError> {
        let opened = SealedEvents::open(&self.archive_dir(partition), Arc::clone(&self.deleted));
        let archive = opened.map_err(fault::of_archive).map_err(AdoptError::Archive)?;
        // Without files, it stays empty, so that states still lose erased identities.
        let source = self.archiver.files().source(partition);
        let source = source.map(|source| Arc::new(LivingFiles::new(source, &self.deleted)) as Arc<dyn FileSource>);
        let archive = Arc::new(archive.with_source(source));
        archive.first_bases.hold(HELD_AT_FIRST);
        self.archives.adopt(partition, Arc::clone(&archive));
        self.archiver.release(partition);
        self.archiver.adopt(partition, archive);
        Ok(())
    }

    /// Returns the progress of a takeover by [`Partitions::adopt`].
    #[must_use]
    pub fn adoption(&self, partition: u16) -> Adoption {
        let mut not_working = self.ingest.admission.health.not_working().into_iter();
        match not_working.find(|(number, ..)| *number == partition) {
            None => Adoption::Done,
            Some((_, Condition::Failed, why)) => Adoption::Failed(why),
            Some(_) => Adoption::UnderWay,
        }
    }

    /// Gives a partition up that takes no more events: applies the rest of its log and saves it,
    /// for at most ten seconds. [`Owners`](headcount_common::Owners) must no longer have it on this
    /// machine, and none of its events may be in flight to the log.
    ///
    /// # Errors
    /// Returns [`AskError::Busy`] or [`AskError::NoAnswer`]: its shard could not be asked for half
    /// a minute, and may still have the partition. No other part of the engine has it.
    pub async fn release(self: &Arc<Self>, partition: u16) -> Result<(), AskError> {
        let began = Stopwatch::now();
        // Events that are not saved, or not known to be, are in the log.
        while !matches!(self.ask_about(partition, move |shard| shard.is_saved(partition)).await, Ok(true))
            && began.elapsed() < SAVE_TIMEOUT
        {
            tokio::time::sleep(POLL).await;
        }
        let given = Arc::clone(self);
        let ended = tokio::task::spawn_blocking(move || {
            given.archives.end_work(partition, || {
                given.features().iter().for_each(|feature| feature.gave_up(partition));
                given.archiver.release(partition);
            });
        });
        let ended = ended.await;
        let given_up = self.have_given_up(partition).await;
        self.archives.release(partition);
        self.dead.give_up(partition);
        ended.map_err(|_| AskError::NoAnswer).and(given_up)
    }

    /// Makes the shard give a partition up. A shard that keeps it too long would keep data that
    /// other machines erase.
    async fn have_given_up(&self, partition: u16) -> Result<(), AskError> {
        let began = Stopwatch::now();
        loop {
            match self.ask_about(partition, move |shard| shard.give_up(partition)).await {
                Err(_) if began.elapsed() < GIVE_UP_TIMEOUT => tokio::time::sleep(ASK_AGAIN).await,
                given_up => return given_up,
            }
        }
    }

    /// Ends archive work that an earlier ownership has left for a partition, because its lists are
    /// about to be replaced. [`Partitions::adopt`] begins the work again.
    ///
    /// # Errors
    /// [`AskError::NoAnswer`]: the engine is shutting down.
    pub async fn end_archive_work(self: &Arc<Self>, partition: u16) -> Result<(), AskError> {
        let ended = Arc::clone(self);
        let end = move || ended.archives.end_work(partition, || ended.archiver.release(partition));
        tokio::task::spawn_blocking(end).await.map_err(|_| AskError::NoAnswer)
    }
}
