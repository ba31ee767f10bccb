//! Partitions that an engine takes over and gives up, and changes of others that it follows.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant as Stopwatch};

use headcount_common::secrets::SecretsError;
use headcount_control::RegistryError;
use headcount_domain::fault::Fault;
use headcount_domain::ids::ProjectId;
use headcount_domain::intake::event::Position;

use super::handle::Engine;
use super::nodes_backup::HELD_AT_FIRST;
use crate::fault;
use crate::history::SealedEvents;
use crate::living_files::LivingFiles;
use crate::saved_state::CopiedState;
use crate::shard::AskError;
use crate::shard::{Condition, Shard};

/// How long a partition that is released may take to be applied and saved.
const SAVE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long its shard is asked to give it up.
const GIVE_UP_TIMEOUT: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(10);
/// The same for who has waited for long.
const LONGEST_POLL: Duration = Duration::from_millis(320);

/// How far a partition is that an engine takes over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Adoption {
    /// It is being replayed.
    UnderWay,
    /// It answers as soon as [`Owners`](crate::Owners) say that it is here.
    Done,
    /// Its state can't be opened for now. It is tried again until it is given up.
    Failed(String),
}

/// Why a partition can't be taken over for now.
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
    /// Begins to take a partition over: opens it as its last checkpoint on this machine left it, or as `copied` has it, if that reflects more, and replays the log up to the
    /// position `until`. Nobody else may write to the log meanwhile. [`Engine::adoption`] says how far it is. The files of the copy must stay until it is done.
    ///
    /// If archives are kept where all members reach them, the directory [`Engine::archive_dir`] has what lists the published archive of the partition.
    ///
    /// # Errors
    /// [`AdoptError`]: nothing was begun.
    pub async fn adopt(&self, partition: u16, until: Position, copied: Option<CopiedState>) -> Result<(), AdoptError> {
        // It goes on if nobody waits for it any more, and must not begin what has been ended by then.
        let (engine, times) = (self.clone(), self.inner.archives.times_given_up(partition));
        let adopted = tokio::task::spawn_blocking(move || {
            engine.inner.archives.begin_work(partition, times, || {
                engine.inner.webhooks.take_over(partition, until);
                engine.inner.privacy.give_up(partition);
                engine.adopt_archive(partition)
            })
        });
        let adopted = adopted.await;
        adopted.map_err(|_| AskError::NoAnswer)?.ok_or(AskError::NoAnswer)??;
        // What was under way when it was here before is in the log up to `until`, or never will be.
        self.inner.unknown.found_out(partition);
        Ok(self.ask_about(partition, move |shard| shard.adopt(partition, until, copied)).await?)
    }

    /// Has what is done beside events go on for a partition that was taken over: webhooks, privacy requests.
    pub fn resume(&self, partition: u16) {
        self.inner.webhooks.wake_partition(partition);
        self.inner.privacy.made.notify_one();
    }

    /// Learns which events of a partition were set aside, before [`Engine::adopt`].
    pub fn adopt_letters(&self, partition: u16, positions: BTreeSet<Position>) {
        self.inner.dead.adopt(partition, positions);
    }

    /// Returns the directory that the archive of a partition has on this machine.
    #[must_use]
    pub fn archive_dir(&self, partition: u16) -> PathBuf {
        crate::archiver::archive_dir(self.data_dir(), partition)
    }

    fn adopt_archive(&self, partition: u16) -> Result<(), AdoptError> {
        let opened = SealedEvents::open(&self.archive_dir(partition), Arc::clone(&self.inner.deleted));
        let archive = opened.map_err(fault::of_archive).map_err(AdoptError::Archive)?;
        let Some(shared) = self.inner.archiver.shared() else {
            // An empty one: states lose erased identities all the same.
            self.inner.archiver.release(partition);
            self.inner.archiver.adopt(partition, Arc::new(archive));
            return Ok(());
        };
        let source = LivingFiles::new(shared.source(partition), &self.inner.deleted);
        let archive = Arc::new(archive.with_source(Some(Arc::new(source))));
        archive.first_bases().hold(HELD_AT_FIRST);
        self.inner.archives.adopt(partition, Arc::clone(&archive));
        self.inner.archiver.release(partition);
        self.inner.archiver.adopt(partition, archive);
        Ok(())
    }

    /// Returns how far a partition is that [`Engine::adopt`] takes over.
    #[must_use]
    pub fn adoption(&self, partition: u16) -> Adoption {
        let mut unwell = self.inner.admission.health.unwell().into_iter();
        match unwell.find(|(number, ..)| *number == partition) {
            None => Adoption::Done,
            Some((_, Condition::Failed, why)) => Adoption::Failed(why),
            Some(_) => Adoption::UnderWay,
        }
    }

    /// Gives a partition up, that takes no more events: applies what is in the log and not applied, and saves it, for at most ten seconds. [`Owners`](crate::Owners) must not
    /// say any more that it is here, and nothing of it may be under way to the log.
    ///
    /// # Errors
    /// [`AskError::Busy`] and [`AskError::NoAnswer`]: its shard may still have it, since it could not be asked for half a minute. Nothing else has.
    pub async fn release(&self, partition: u16) -> Result<(), AskError> {
        let began = Stopwatch::now();
        // What is not saved, or not known to be, is in the log.
        while !matches!(self.ask_about(partition, move |shard| shard.is_saved(partition)).await, Ok(true))
            && began.elapsed() < SAVE_TIMEOUT
        {
            tokio::time::sleep(POLL).await;
        }
        let engine = self.clone();
        let ended = tokio::task::spawn_blocking(move || {
            engine.inner.archives.end_work(partition, || {
                engine.inner.webhooks.give_up(partition);
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

    /// Has the shard give a partition up. One that has it for longer than needed keeps what others erase.
    async fn have_given_up(&self, partition: u16) -> Result<(), AskError> {
        let began = Stopwatch::now();
        loop {
            match self.ask_about(partition, move |shard| shard.give_up(partition)).await {
                Err(_) if began.elapsed() < GIVE_UP_TIMEOUT => tokio::time::sleep(LONGEST_POLL).await,
                given_up => return given_up,
            }
        }
    }

    /// Ends the work on the archive of a partition that is not here, if an earlier time has left it: what lists the archive is about to be replaced. [`Engine::adopt`] begins it again.
    ///
    /// # Errors
    /// [`AskError::NoAnswer`]: the engine is shutting down.
    pub async fn end_archive_work(&self, partition: u16) -> Result<(), AskError> {
        let engine = self.clone();
        let end = move || engine.inner.archives.end_work(partition, || engine.inner.archiver.release(partition));
        tokio::task::spawn_blocking(end).await.map_err(|_| AskError::NoAnswer)
    }

    /// Returns whether everything of a project up to a position is applied.
    ///
    /// # Errors
    /// [`AskError`]: nobody knows.
    pub async fn has_applied(&self, project: ProjectId, position: Position) -> Result<bool, AskError> {
        self.ask_shard(project, move |shard| Ok(shard.has_applied(project, position))).await
    }

    /// Waits until everything of a project up to a position is applied, for at most `patience`. Returns whether it is. It asks less often the longer it waits.
    ///
    /// # Errors
    /// [`AskError`]: nobody knows.
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

    /// Applies what others have changed in the control data up to now, with its consequences for the partitions that are here. Returns the position of the last record.
    ///
    /// Blocking; asks the brokers.
    ///
    /// # Errors
    /// [`RegistryError`]: the control log can't be asked or read.
    pub fn follow(&self) -> Result<u64, RegistryError> {
        self.registry().catch_up()?;
        self.follow_deletions()?;
        self.follow_erasures()?;
        let applied = self.registry().applied()?;
        // A change of this machine's own may have applied others before.
        if self.inner.followed.swap(applied, Ordering::AcqRel) != applied {
            self.apply_changes_soon(self.inner.quotas.replace_own(self.registry().own_quotas()));
            // A former home may have recorded an erasure without its request.
            self.inner.privacy.made.notify_one();
        }
        Ok(applied)
    }

    /// Returns the visitor salt of a day (in days since 1970-01-01), if this engine knows it. Members agree on salts, and make none.
    #[must_use]
    pub fn visitor_salt(&self, day: i64) -> Option<[u8; 16]> {
        self.secrets().known_salt(day)
    }

    /// Uses a visitor salt that members agreed on for a day. Until it has the salt of the day, a member refuses events of visitors without ids.
    ///
    /// # Errors
    /// [`SecretsError`]: it can't be made durable.
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
