//! The links between ids in a project's saved state.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant as Stopwatch};

use headcount_common::partition_of;
use headcount_domain::{Fault, IdentitySlot, ProjectId, RecordKey};
use headcount_storage::keyspace::PartitionId;
use headcount_storage::store::Store;

use super::ids::MAX_IDS;
use super::questions::{SubjectLinks, SubjectLinksQuestion};
use crate::checkpoint_writer::for_each_identity;
use crate::engine::handle::Engine;
use crate::shard::AskError;

/// How long the state of a partition may take to be saved.
const SAVE_TIMEOUT: Duration = Duration::from_secs(30);

/// Reads the links of a project's ids, until `is_over`.
pub(super) fn saved_links(
    (store, stored_as): (&dyn Store, PartitionId),
    project: ProjectId,
    question: &SubjectLinksQuestion,
    is_over: &dyn Fn() -> bool,
) -> Result<SubjectLinks, Fault> {
    let mut users: HashSet<RecordKey> = question.users.iter().copied().collect();
    let sent: HashSet<RecordKey> = question.others.iter().copied().collect();
    let (mut links, mut known) = (Vec::new(), Vec::new());
    for_each_identity(store, stored_as, project, &mut |key, slot| {
        match slot {
            IdentitySlot::Alias { user, .. } if sent.contains(&key) || users.contains(&user) => {
                users.insert(user);
                links.push((key, user));
            }
            IdentitySlot::Canonical(_) if users.contains(&key) || sent.contains(&key) => known.push(key),
            IdentitySlot::Alias { .. } | IdentitySlot::Canonical(_) => {}
        }
        let is_enough = users.len() + links.len() > MAX_IDS || is_over();
        if is_enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    match users.len() + links.len() {
        0..=MAX_IDS => Ok(SubjectLinks::Found { links, known }),
        _ => Ok(SubjectLinks::TooMany),
    }
}

impl Engine {
    /// Answers a question about links, of a partition that is here, by everything that was applied
    /// before.
    pub(in crate::engine) async fn saved_links(
        &self,
        project: ProjectId,
        question: SubjectLinksQuestion,
    ) -> Result<SubjectLinks, AskError> {
        let engine = self.clone();
        self.scans
            .run_for_export(project, move |cancelled| {
                let began = Stopwatch::now();
                let is_over = || cancelled.load(Ordering::Acquire) || began.elapsed() > SAVE_TIMEOUT;
                engine.save_blocking([partition_of(project)], &is_over)?;
                engine.links_of(project, &question, &|| cancelled.load(Ordering::Acquire))
            })
            .await
    }

    /// Reads the links of a project of this machine that are saved, until `is_over`. Blocks.
    pub(super) fn links_of(
        &self,
        project: ProjectId,
        question: &SubjectLinksQuestion,
        is_over: &dyn Fn() -> bool,
    ) -> Result<SubjectLinks, AskError> {
        let partition = partition_of(project);
        let place = self.questions.shards.ask_partition(partition, move |shard| Ok(shard.store_of(partition)))?;
        let (store, stored_as) = place.ok_or(AskError::NoAnswer)?;
        saved_links((&*store, stored_as), project, question, is_over).map_err(AskError::Lost)
    }
}
