//! Removes what this machine has of deleted projects whose partitions it does not have (ADR 57). The owner of a partition removes what all machines reach, and what it
//! has itself: `archiver/deletions.rs`.

use std::collections::BTreeSet;

use headcount_archive::archive::Archive;
use headcount_domain::fault::Fault;
use headcount_domain::ids::ProjectId;

use super::derived::derived_dirs;
use super::handle::Engine;
use super::shard_client::AskError;
use crate::admission_gate::Holder;
use crate::archiver::remove_small_files;
use crate::fault;

/// Why what is left of deleted projects is not removed yet.
#[derive(Debug, thiserror::Error)]
pub enum RemainsError {
    /// The partition's shard can't be asked.
    #[error(transparent)]
    Ask(#[from] AskError),
    /// The files can't be removed.
    #[error("{0}")]
    Files(Fault),
    /// The partition is here, so that its owner removes it.
    #[error("the partition is not given up yet")]
    Here,
}

impl Engine {
    /// Removes what this machine's disk has of deleted projects of a partition that is not here, if there is something: a checkpoint of the whole partition, since that
    /// would bring them back, and their own files. The partition must not be taken over meanwhile.
    ///
    /// # Errors
    /// [`RemainsError`]: some may be left.
    pub async fn remove_remains(&self, partition: u16) -> Result<(), RemainsError> {
        self.remove_remains_of(partition, self.inner.deleted.remaining_of(partition)).await
    }

    /// As [`Engine::remove_remains`], before the partition is taken over. What belongs to deletions that are under way stays: whoever has the partition goes on with them,
    /// as with all that may be left here.
    ///
    /// # Errors
    /// [`RemainsError`]: the partition must not be taken over.
    pub async fn remove_ended_remains(&self, partition: u16) -> Result<(), RemainsError> {
        let mut projects = self.inner.deleted.remaining_of(partition);
        if !projects.is_empty() {
            let under_way = self.registry().deletions();
            projects.retain(|project| !under_way.contains(project));
        }
        self.remove_remains_of(partition, projects).await
    }

    async fn remove_remains_of(&self, partition: u16, mut projects: BTreeSet<ProjectId>) -> Result<(), RemainsError> {
        // Its events that were admitted before the deletion must stay events of a deleted project, whoever gets the partition meanwhile.
        projects.retain(|project| !self.inner.admission.gate.has(Holder::Project(*project)));
        if projects.is_empty() {
            return Ok(());
        }
        let engine = self.clone();
        self.discard_and(partition, move || engine.remove_files_of(partition, &projects)).await
    }

    /// Removes the state of a partition that is not here, and does something else before the partition can be taken over.
    pub(super) async fn discard_and(
        &self,
        partition: u16,
        then: impl FnOnce() -> Result<(), Fault> + Send + 'static,
    ) -> Result<(), RemainsError> {
        let discard = self.ask_about(partition, move |shard| shard.discard(partition)).await?;
        let mut discard = discard.ok_or(RemainsError::Here)?;
        let removed = tokio::task::spawn_blocking(move || (discard.run().and_then(|()| then()), discard));
        let (removed, discard) = removed.await.map_err(|_| AskError::NoAnswer)?;
        if removed.is_err() {
            self.ask_about(partition, move |shard| shard.take_back(discard)).await?;
        }
        removed.map_err(RemainsError::Files)
    }

    fn remove_files_of(&self, partition: u16, projects: &BTreeSet<ProjectId>) -> Result<(), Fault> {
        let derived = derived_dirs(self.data_dir());
        for project in projects {
            Archive::remove(&self.archive_dir(partition), *project).map_err(fault::of_archive)?;
            remove_small_files(&self.inner.dead, self.data_dir(), &derived, *project)?;
        }
        let noted = self.inner.deleted.removed_here(projects);
        noted.map_err(|error| Fault::io(format!("that nothing of deleted projects is here could not be noted: {error}")))?;
        tracing::info!(partition, projects = projects.len(), "what this machine had of deleted projects is removed");
        Ok(())
    }
}
