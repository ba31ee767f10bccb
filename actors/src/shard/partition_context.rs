//! The context that all partitions of an engine share.

use std::path::PathBuf;
use std::sync::Arc;

use dashmap::DashMap;
use headcount_common::partition_of;
use headcount_domain::{DayVersions, KeyHasher, ProjectId};
use headcount_storage::external_ids::ExternalIdsOptions;
use headcount_storage::store::Store;

use super::checkpoint_progress::CheckpointProgress;
use super::floors::Floors;
use super::health::PartitionHealth;
use super::quota_table::QuotaTable;
use crate::dead_letters::DeadLetters;
use crate::deleted_projects::DeletedProjects;
use crate::erasures::Erasures;
use crate::live::Feeds;
use crate::opening_progress::Progress;
use crate::verifier::{DamageNote, Unchecked};

/// The versions of each loaded project, from which `ETag`s are made. Written by the shards, read by
/// all threads.
pub(crate) type Versions = DashMap<ProjectId, DayVersions>;

/// The context that all partitions of an engine share.
#[derive(Clone)]
pub(crate) struct PartitionContext {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) hasher: KeyHasher,
    pub(crate) versions: Arc<Versions>,
    pub(crate) floors: Arc<Floors>,
    /// The directory of the index of external ids, and the options that belong to the store.
    pub(crate) index: (PathBuf, ExternalIdsOptions),
    pub(crate) health: Arc<PartitionHealth>,
    pub(crate) limits: Arc<QuotaTable>,
    pub(crate) progress: Arc<Progress>,
    pub(crate) checkpoints: Arc<CheckpointProgress>,
    pub(crate) unchecked: Arc<Unchecked>,
    pub(crate) damage: Arc<DamageNote>,
    pub(crate) dead: Arc<DeadLetters>,
    pub(crate) deleted: Arc<DeletedProjects>,
    pub(crate) erasures: Arc<Erasures>,
    pub(crate) feeds: Arc<Feeds>,
}

impl PartitionContext {
    /// The directory of a partition's index of external ids.
    pub(super) fn index_dir(&self, number: u16) -> PathBuf {
        self.index.0.join(number.to_string())
    }

    /// Forgets the projects of a partition that another machine takes over.
    pub(super) fn give_up(&self, number: u16) {
        self.versions.retain(|project, _| partition_of(*project) != number);
        self.floors.give_up(number);
        self.limits.forget_reached(|project| partition_of(project) == number);
        self.checkpoints.give_up(number);
        self.health.set_working(number);
    }
}
