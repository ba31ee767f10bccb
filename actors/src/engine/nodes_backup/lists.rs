//! The owner's answers about the files of a project.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use headcount_archive::{BaseEntry, ListedFile};

use super::pages::no_answer;
use super::questions::{SealedList, SealedListQuestion};
use crate::engine::handle::Engine;
use crate::shard::AskError;

/// How long an answer waits until all events are sealed. Sealing continues after that.
const SEALED_WITHIN: Duration = Duration::from_secs(20);

impl Engine {
    /// Answers a question about the files of a project on this machine, after sealing all events of
    /// its partition.
    pub(super) async fn sealed_list(&self, question: SealedListQuestion) -> Result<SealedList, AskError> {
        match self.find_sealed_list(question.clone(), false).await? {
            SealedList::NotYet => {}
            found => return Ok(found),
        }
        let (archiver, partition) = (Arc::clone(&self.partitions.archiver), question.partition);
        let sealing = tokio::task::spawn_blocking(move || archiver.seal_partition(partition));
        match tokio::time::timeout(SEALED_WITHIN, sealing).await {
            Ok(Ok(Ok(_sealed))) => self.find_sealed_list(question, true).await,
            Ok(Ok(Err(fault))) => {
                tracing::info!(partition, %fault, "a partition could not be sealed for a backup yet");
                Ok(SealedList::NotYet)
            }
            // Sealing continues, or the engine is shutting down.
            Ok(Err(_)) | Err(_) => Ok(SealedList::NotYet),
        }
    }

    async fn find_sealed_list(&self, question: SealedListQuestion, is_just_sealed: bool) -> Result<SealedList, AskError> {
        self.read_for_backup(question.applied, move |engine, _| engine.sealed_list_now(&question, is_just_sealed)).await
    }

    fn sealed_list_now(&self, question: &SealedListQuestion, is_just_sealed: bool) -> Result<SealedList, AskError> {
        let SealedListQuestion { partition, project, until, .. } = *question;
        let shared = self.partitions.archiver.shared().ok_or_else(|| no_answer("nothing is sealed without files"))?;
        let archive = self.partitions.archives.of(partition);
        let catalog = archive.catalog();
        let sealed_until = catalog.sealed_until_of(|one| one == project);
        // The end of a log is after its last event, but sealing ends at the last event.
        if catalog.waiting().contains_key(&project) || (sealed_until < until && !is_just_sealed) {
            return Ok(SealedList::NotYet);
        }
        let Some(last) = catalog.last_of(project) else { return Ok(SealedList::Nothing { until: sealed_until }) };
        let list = archive.list(project, last).map_err(no_answer)?;
        let manifest = list.manifest();
        // The list may be ahead of the catalog.
        let (sealed_until, last) = (sealed_until.max(manifest.sealed_until()), last.max(manifest.sealed_until()));
        // A base reaches as far as the saved state, which may be ahead of the sealed events.
        let is_sealed = manifest.base().map(BaseEntry::position).is_none_or(|position| position <= sealed_until);
        let published: BTreeSet<ListedFile> = shared.published_files(partition, project).into_iter().collect();
        if !is_sealed || !manifest.listed().all(|file| published.contains(&file)) {
            return Ok(SealedList::NotYet);
        }
        Ok(SealedList::Files { until: sealed_until, last, list: manifest.to_bytes().map_err(no_answer)? })
    }
}
