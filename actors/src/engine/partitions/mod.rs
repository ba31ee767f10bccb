//! What a node of a cluster does with its partitions: it takes them over, gives them up, and
//! follows the changes of other nodes.

mod following;
mod handover;
mod remains;
#[cfg(feature = "cluster")]
mod saved_states;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use headcount_control::Registry;

use crate::archiver::Archiver;
use crate::dead_letters::DeadLetters;
use crate::deleted_projects::DeletedProjects;
use crate::feature::Feature;
use crate::history::PartitionArchives;
use crate::ingest::Ingest;
use crate::shard::{AskError, Shard};
use crate::unknown_appends::UnknownAppends;
use crate::verifier::DamageNote;

pub use handover::{AdoptError, Adoption};
pub use remains::RemainsError;
#[cfg(feature = "cluster")]
pub use saved_states::SavedPositions;

/// The partitions of this machine.
pub struct Partitions {
    pub(super) ingest: Arc<Ingest>,
    pub(super) archives: Arc<PartitionArchives>,
    pub(super) archiver: Arc<Archiver>,
    pub(super) dead: Arc<DeadLetters>,
    pub(super) deleted: Arc<DeletedProjects>,
    pub(super) unknown: Arc<UnknownAppends>,
    pub(super) damage: Arc<DamageNote>,
    /// The last record of the control log, of any writer, whose consequences were applied.
    pub(super) followed: AtomicU64,
    pub(super) data_dir: PathBuf,
}

impl Partitions {
    fn registry(&self) -> &Registry {
        self.ingest.questions.registry()
    }

    fn features(&self) -> &[Arc<dyn Feature>] {
        self.ingest.features.all()
    }

    async fn ask_about<R: Send + 'static>(
        &self,
        partition: u16,
        request: impl FnOnce(&mut Shard) -> R + Send + 'static,
    ) -> Result<R, AskError> {
        self.ingest.questions.shards.send_to(partition, move |shard| Ok(request(shard)))?.wait().await
    }
}
