//! Takes partitions over and gives them up, and follows changes of other machines.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant as Stopwatch};

use headcount_archive::source::FileSource;
use headcount_common::secrets::SecretsError;
use headcount_control::RegistryError;
use headcount_domain::fault::Fault;
use headcount_domain::ids::ProjectId;
use headcount_domain::intake::event::Position;

use super::handle::Engine;
use crate::fault;
use crate::history::SealedEvents;
use crate::living_files::LivingFiles;
use crate::saved_state::CopiedState;
use crate::shard::AskError;
use crate::shard::{Condition, Shard};

/// How long applying and saving a released partition may take.
const SAVE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long to retry asking the shard to give a partition up.
const GIVE_UP_TIMEOUT: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(10);
/// How long first bases are held back after a takeover: several pauses of a backup that asks for
/// it.
const HELD_AT_FIRST: Duration = Duration::from_secs(15);
/// The longest pause between two checks, for a caller that has waited for long.
const LONGEST_POLL: Duration = Duration::from_millis(320);

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

impl Engine {
    /// Begins to take a partition over: opens its last checkpoint on this machine, or `copied` if
    /// that reflects more, and replays the log up to the position `until`. No other machine may
    /// write to the log meanwhile. [`Engine::adoption`] returns the progress. The files of the copy
    /// must exist until it is done.
    ///
    /// If all nodes share archives, the directory [`Engine::archive_dir`] must have the lists of
    /// the partition's published archive.
    ///
    /// # Errors
    /// Returns an [`AdoptError`]: nothing was begun.
    pub async fn adopt(&self, partition: u16, until: Position, copied: Option<CopiedState>) -> Result<(), AdoptError> {
        // It continues even if its caller is gone, so it must not begin a takeover that has ended
        // by then.
        let (engine, times) = (self.clone(), self.inner.archives.times_given_up(partition));
        let adopted = tokio::task::spawn_blocking(move || {
            engine.inner.archives.begin_work(partition, times, || {
                engine.features().iter().for_each(|feature| feature.takes(partition, until));
                engine.inner.privacy.give_up(partition);
                engine.adopt_archive(partition)
            })
        });
        let adopted = adopted.await;
        adopted.map_err(|_| AskError::NoAnswer)?.ok_or(AskError::NoAnswer)??;
        // Appends in flight from an earlier ownership are in the log up to `until`, or never will
        // be.
        self.inner.unknown.found_out(partition);
        Ok(self.ask_about(partition, move |shard| shard.adopt(partition, until, copied)).await?)
    }

    /// Resumes the background work of a partition that was taken over: features and
    /// privacy requests.
    pub fn resume(&self, partition: u16) {
        self.features().iter().for_each(|feature| feature.took(partition));
        self.inner.privacy.made.notify_one();
    }

    /// Sets the dead letters of a partition, before [`Engine::adopt`].
    pub fn adopt_letters(&self, partition: u16, positions: BTreeSet<Position>) {
        self.inner.dead.adopt(partition, positions);
    }

    /// Returns the directory of a partition's archive on this machine.
    #[must_use]
    pub fn archive_dir(&self, partition: u16) -> PathBuf {
        crate::archiver::archive_dir(self.data_dir(), partition)
    }

    fn adopt_archive(&self, partition: u16) -> Result<(), AdoptError> {
        let opened = SealedEvents::open(&self.archive_dir(partition), Arc::clone(&self.inner.deleted));
        let archive = opened.map_err(fault::of_archive).map_err(AdoptError::Archive)?;
        // Without files, it stays empty, so that states still lose erased identities.
        let source = self.inner.archiver.files().source(partition);
        let source = source.map(|source| Arc::new(LivingFiles::new(source, &self.inner.deleted)) as Arc<dyn FileSource>);
        let archive = Arc::new(archive.with_source(source));
        archive.first_bases.hold(HELD_AT_FIRST);
        self.inner.archives.adopt(partition, Arc::clone(&archive));
        self.inner.archiver.release(partition);
        self.inner.archiver.adopt(partition, archive);
        Ok(())
    }

    /// Returns the progress of a takeover by [`Engine::adopt`].
    #[must_use]
    pub fn adoption(&self, partition: u16) -> Adoption {
        let mut not_working = self.inner.admission.health.not_working().into_iter();
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
    pub async fn release(&self, partition: u16) -> Result<(), AskError> {
        let began = Stopwatch::now();
        // Events that are not saved, or not known to be, are in the log.
        while !matches!(self.ask_about(partition, move |shard| shard.is_saved(partition)).await, Ok(true))
            && began.elapsed() < SAVE_TIMEOUT
        {
            tokio::time::sleep(POLL).await;
        }
        let engine = self.clone();
        let ended = tokio::task::spawn_blocking(move || {
            engine.inner.archives.end_work(partition, || {
                engine.features().iter().for_each(|feature| feature.gave_up(partition));
                engine.inner.privacy.give_up(partition);
                engine.inner.archiver.release(partition);
            });
        });
        let ended = ended.await;
        let given_up = self.have_given_up(partition).await;
        self.inner.archives.release(partition);
        self.inner.dead.give_up(partition);
        ended.map_err(|_| AskError::NoAnswer).and(given_up)
    }

    /// Makes the shard give a partition up. A shard that keeps it too long would keep data that
    /// other machines erase.
    async fn have_given_up(&self, partition: u16) -> Result<(), AskError> {
        let began = Stopwatch::now();
        loop {
            match self.ask_about(partition, move |shard| shard.give_up(partition)).await {
                Err(_) if began.elapsed() < GIVE_UP_TIMEOUT => tokio::time::sleep(LONGEST_POLL).await,
                given_up => return given_up,
            }
        }
    }

    /// Ends archive work that an earlier ownership has left for a partition, because its lists are
    /// about to be replaced. [`Engine::adopt`] begins the work again.
    ///
    /// # Errors
    /// [`AskError::NoAnswer`]: the engine is shutting down.
    pub async fn end_archive_work(&self, partition: u16) -> Result<(), AskError> {
        let engine = self.clone();
        let end = move || engine.inner.archives.end_work(partition, || engine.inner.archiver.release(partition));
        tokio::task::spawn_blocking(end).await.map_err(|_| AskError::NoAnswer)
    }

    /// Returns whether all events of a project up to a position are applied.
    ///
    /// # Errors
    /// Returns an [`AskError`]: the answer is unknown.
    pub async fn has_applied(&self, project: ProjectId, position: Position) -> Result<bool, AskError> {
        self.ask_shard(project, move |shard| Ok(shard.has_applied(project, position))).await
    }

    /// Waits until all events of a project up to a position are applied, for at most `patience`.
    /// Returns whether they are. It asks less often the longer it waits.
    ///
    /// # Errors
    /// Returns an [`AskError`]: the answer is unknown.
    pub async fn wait_until_applied(&self, project: ProjectId, position: Position, patience: Duration) -> Result<bool, AskError> {
        let (began, mut pause) = (Stopwatch::now(), POLL);
        loop {
            if self.has_applied(project, position).await? {
                return Ok(true);
            }
            let left = patience.saturating_sub(began.elapsed());
            if left.is_zero() {
                return Ok(false);
            }
            tokio::time::sleep(pause.min(left)).await;
            pause = (pause * 2).min(LONGEST_POLL);
        }
    }

    /// Applies the changes of the control data by other machines up to now, with their consequences
    /// for the partitions on this machine. Returns the position of the last record.
    ///
    /// Blocking; asks the brokers.
    ///
    /// # Errors
    /// Returns a [`RegistryError`]: the control log can't be read.
    pub fn follow(&self) -> Result<u64, RegistryError> {
        self.registry().catch_up()?;
        self.follow_deletions()?;
        self.follow_erasures()?;
        let applied = self.registry().applied()?;
        // A change of this machine may have applied changes of other machines.
        if self.inner.followed.swap(applied, Ordering::AcqRel) != applied {
            self.apply_changes_soon(self.inner.quotas.replace_own(self.registry().own_quotas()));
            // A former home may have recorded an erasure without its request.
            self.inner.privacy.made.notify_one();
            self.features().iter().for_each(|feature| feature.control_changed());
        }
        Ok(applied)
    }

    /// Returns the visitor salt of a day (in days since 1970-01-01), if this engine knows it. Nodes
    /// agree on salts, and make none themselves.
    #[must_use]
    pub fn visitor_salt(&self, day: i64) -> Option<[u8; 16]> {
        self.secrets().known_salt(day)
    }

    /// Stores the visitor salt of a day on which the nodes agreed. Until a node has the salt of the
    /// day, it refuses events of visitors without ids.
    ///
    /// # Errors
    /// Returns a [`SecretsError`]: the salt can't be made durable.
    pub fn set_visitor_salt(&self, day: i64, salt: [u8; 16]) -> Result<(), SecretsError> {
        self.secrets().set_salt(day, salt)
    }

    pub(super) async fn ask_about<R: Send + 'static>(
        &self,
        partition: u16,
        request: impl FnOnce(&mut Shard) -> R + Send + 'static,
    ) -> Result<R, AskError> {
        self.questions.shards.send_to(partition, move |shard| Ok(request(shard)))?.wait().await
    }
}
