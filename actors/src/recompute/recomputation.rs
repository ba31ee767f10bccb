//! Replays history into a temporary store.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

use headcount_domain::{Fault, KeyHasher, ProjectId, Quotas};
use headcount_storage::external_ids::{ExternalIds, ExternalIdsOptions, ExternalIdsView};
use headcount_storage::files::remove_dir_all;
use headcount_storage::format::Incarnation;
use headcount_storage::keyspace::PartitionId;
use headcount_storage::store::{Check, DiskStore, PartitionSnapshot, Store, StoreOptions};

use crate::checkpoint_writer::CheckpointWriter;
use crate::dead_letters::DeadLetters;
use crate::deleted_projects::DeletedProjects;
use crate::erasures::Erasures;
use crate::fault;
use crate::history::History;
use crate::shard::{Applier, CheckpointPolicy, Checkpoints, Evictor, PartitionContext, QuotaTable, Shard, Versions};
use crate::verifier::{DamageNote, Unchecked};

const INDEX: ExternalIdsOptions = ExternalIdsOptions { incarnation: Incarnation::from_number(0) };

/// The sources of a recomputation.
pub(crate) struct Replay<'r> {
    pub(crate) history: Arc<dyn History>,
    pub(crate) hasher: &'r KeyHasher,
    pub(crate) dead: &'r DeadLetters,
    pub(crate) deleted: &'r Arc<DeletedProjects>,
    /// The budget for records.
    pub(crate) record_bytes: usize,
}

/// The recomputed state of some partitions, saved in a temporary store.
pub(crate) struct Recomputation {
    /// The open shard; `None` after it is closed.
    open: Option<(Shard, CheckpointWriter, JoinHandle<()>)>,
    store: Option<Arc<DiskStore>>,
    dir: std::path::PathBuf,
}

impl Recomputation {
    /// Replays the events of the partitions `numbers`.
    pub(crate) fn of(numbers: &[u16], replay: Replay<'_>, dir: &Path) -> Result<Self, Fault> {
        let options = StoreOptions { cache_bytes: 1 << 20, check: Check::Quick };
        let (store, _) = DiskStore::open_or_create(&dir.join("store"), options).map_err(fault::of_store)?;
        let store = Arc::new(store);
        let shared: Arc<dyn Store> = Arc::<DiskStore>::clone(&store);
        let spawned = CheckpointWriter::spawn(shared);
        let (writer, thread) = spawned.map_err(|error| Fault::io(format!("could not start a thread: {error}")))?;
        // An event that panics here must not become a dead letter of the engine.
        let dead = Arc::new(replay.dead.read_only());
        let context = PartitionContext {
            store: Arc::<DiskStore>::clone(&store),
            hasher: replay.hasher.clone(),
            versions: Arc::new(Versions::new()),
            floors: Arc::default(),
            index: (dir.join("fingerprints"), INDEX),
            health: Arc::default(),
            dead: Arc::clone(&dead),
            limits: Arc::new(QuotaTable::new(Quotas::default(), HashMap::new())),
            progress: Arc::default(),
            checkpoints: Arc::default(),
            unchecked: Arc::new(Unchecked::nothing()),
            damage: Arc::new(DamageNote::new(&store)),
            deleted: Arc::clone(replay.deleted),
            erasures: Arc::new(Erasures::none(replay.hasher.clone())),
            feeds: Arc::default(),
        };
        let progress = Arc::clone(&context.checkpoints);
        let checkpoints = Checkpoints::new(writer.clone(), CheckpointPolicy::default(), progress);
        let evictor = Evictor::new(replay.record_bytes, Arc::default());
        let applier = Applier::new(dead, None);
        let shard = Shard::open(numbers, context, replay.history, applier, checkpoints, evictor);
        let opened = shard.and_then(|mut shard| shard.write_checkpoints().map(|()| shard));
        match opened {
            Ok(shard) => Ok(Self { open: Some((shard, writer, thread)), store: Some(store), dir: dir.to_owned() }),
            Err(fault) => {
                writer.stop_retrying();
                drop(writer);
                let _ = thread.join();
                Err(fault)
            }
        }
    }

    /// Continues to the current end of history.
    pub(crate) fn go_on(&mut self) -> Result<(), Fault> {
        let (shard, ..) = self.open.as_mut().ok_or_else(|| Fault::defect("a recomputation is closed"))?;
        shard.catch_up()?;
        shard.write_checkpoints()
    }

    /// The reason why a partition could not be recomputed, if there is one.
    pub(crate) fn fault_of(&self, number: u16) -> Option<Fault> {
        self.open.as_ref().and_then(|(shard, ..)| shard.fault_of(number))
    }

    /// The number of counted events, by project.
    pub(crate) fn events(&self, number: u16) -> BTreeMap<ProjectId, u64> {
        self.open.as_ref().map(|(shard, ..)| shard.folded(number)).unwrap_or_default()
    }

    /// The saved state of a partition.
    pub(crate) fn snapshot(&self, number: u16) -> Result<PartitionSnapshot, Fault> {
        let store = self.store.as_ref().ok_or_else(|| Fault::defect("the temporary store is closed"))?;
        store.snapshot(PartitionId(number)).map_err(fault::of_store)
    }

    /// The saved external ids of a partition, after [`Recomputation::close_shard`].
    pub(crate) fn external_ids(&self, number: u16) -> Result<ExternalIdsView, Fault> {
        let dir = self.dir.join("fingerprints").join(number.to_string());
        Ok(ExternalIds::open(&dir, INDEX).map_err(fault::of_index)?.view())
    }

    /// Frees the memory. The saved state can still be read.
    pub(crate) fn close_shard(&mut self) {
        if let Some((shard, writer, thread)) = self.open.take() {
            writer.stop_retrying();
            drop((shard, writer));
            let _ = thread.join();
        }
    }
}

impl Drop for Recomputation {
    fn drop(&mut self) {
        self.close_shard();
        drop(self.store.take());
        if let Err(error) = remove_dir_all(&self.dir) {
            tracing::debug!(path = %self.dir.display(), %error, "a temporary store is removed later");
        }
    }
}
