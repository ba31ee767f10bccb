//! Removes this machine's data of deleted projects and erased identities, for partitions of other
//! machines (ADR 13, ADR 27).
//!
//! The owner of a partition removes the shared data and its own: `archiver/deletions.rs`,
//! `archiver/shared_erasures.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use headcount_archive::Archive;
use headcount_domain::{Fault, ProjectId};
use headcount_storage::aside;

use super::Partitions;
use crate::admission_gate::Holder;
use crate::archiver::remove_small_files;
use crate::engine::derived::derived_dirs;
use crate::fault;
use crate::shard::AskError;
use crate::unfinished_erasures::erased_keys_of;

/// The reason why the data of deleted projects are not removed yet.
#[derive(Debug, thiserror::Error)]
pub enum RemainsError {
    /// The partition's shard can't be asked.
    #[error(transparent)]
    Ask(#[from] AskError),
    /// The files can't be removed.
    #[error("{0}")]
    Files(Fault),
    /// This machine owns the partition, and the owner removes the data.
    #[error("the partition is not given up yet")]
    Here,
}

/// The data of one partition that this machine may have and must remove.
#[derive(Debug, Default)]
struct Remaining {
    /// Deleted projects.
    deleted: BTreeSet<ProjectId>,
    /// Projects with an erased identity, in the format of
    /// [`DeletedProjects::erased_here`](crate::deleted_projects::DeletedProjects::erased_here).
    erased: BTreeMap<ProjectId, u64>,
}

impl Partitions {
    /// Removes this machine's data of deleted projects and erased identities in a partition of
    /// another machine, if there are any: the checkpoint of the whole partition, which would bring
    /// them back, and the projects' own files. The partition must not be taken over meanwhile.
    ///
    /// # Errors
    /// Returns a [`RemainsError`]: some data may be left.
    pub async fn remove_remains(self: &Arc<Self>, partition: u16) -> Result<(), RemainsError> {
        let deleted = self.deleted.remaining_of(partition);
        let erased = self.deleted.with_erased_of(partition);
        self.remove_remains_of(partition, Remaining { deleted, erased }).await
    }

    /// Like [`Partitions::remove_remains`], before the partition is taken over. Data of deletions
    /// and erasures in progress stay: the owner of the partition continues with them, including
    /// the data left here. States with an identity in erasure are folded again when they are
    /// opened.
    ///
    /// # Errors
    /// Returns a [`RemainsError`]: the partition must not be taken over.
    pub async fn remove_ended_remains(self: &Arc<Self>, partition: u16) -> Result<(), RemainsError> {
        let mut deleted = self.deleted.remaining_of(partition);
        if !deleted.is_empty() {
            let under_way = self.registry().deletions();
            deleted.retain(|project| !under_way.contains(project));
        }
        let mut erased = self.deleted.with_erased_of(partition);
        self.ingest.questions.erasures.spoil(erased.keys().copied());
        erased.retain(|project, _| self.ingest.questions.erasures.keys(*project).is_none());
        self.remove_remains_of(partition, Remaining { deleted, erased }).await
    }

    async fn remove_remains_of(self: &Arc<Self>, partition: u16, mut remaining: Remaining) -> Result<(), RemainsError> {
        // Events admitted before the deletion must stay events of a deleted project, whichever
        // machine gets the partition meanwhile.
        remaining.deleted.retain(|project| !self.ingest.admission.gate.has(Holder::Project(*project)));
        if remaining.deleted.is_empty() && remaining.erased.is_empty() {
            return Ok(());
        }
        let removed = Arc::clone(self);
        self.discard_and(partition, move || removed.remove_files_of(partition, &remaining)).await
    }

    /// Removes the state of a partition of another machine, and then does something else before the
    /// partition can be taken over.
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

    fn remove_files_of(&self, partition: u16, Remaining { deleted, erased }: &Remaining) -> Result<(), Fault> {
        let derived = derived_dirs(&self.data_dir);
        for project in deleted.iter().chain(erased.keys()) {
            Archive::remove(&self.archive_dir(partition), *project).map_err(fault::of_archive)?;
        }
        for project in deleted {
            remove_small_files(&self.dead, &self.data_dir, &derived, *project)?;
        }
        self.remove_erased_letters(erased)?;
        let noted = self.deleted.removed_here(deleted).and_then(|()| self.deleted.erased_here(erased));
        let clean =
            noted.map_err(|error| Fault::io(format!("that nothing of what is removed is here could not be noted: {error}")))?;
        self.ingest.questions.erasures.cleaned(&clean);
        let (deleted, erased) = (deleted.len(), erased.len());
        tracing::info!(partition, deleted, erased, "what this machine had of deleted projects and erased identities is removed");
        Ok(())
    }

    /// Removes the dead letters of erased identities, including those whose erasure has ended.
    fn remove_erased_letters(&self, erased: &BTreeMap<ProjectId, u64>) -> Result<(), Fault> {
        let failed = |error: std::io::Error| Fault::io(format!("events that were set aside could not be removed: {error}"));
        if erased.is_empty() {
            return Ok(());
        }
        let all = erased_keys_of(&self.registry().erasures(), |project| erased.contains_key(&project));
        for (project, keys) in all {
            let is_erased = |position, event: &mut _| keys.erase(position, event, self.ingest.questions.hasher());
            self.dead.erase(project, &is_erased).map_err(failed)?;
        }
        for derived in derived_dirs(&self.data_dir) {
            aside::remove_old(&derived, 0).map_err(failed)?;
        }
        Ok(())
    }
}
