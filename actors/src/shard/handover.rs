//! Partitions that move between machines: a shard takes them over from the log, and gives them up.

#[cfg(feature = "cluster")]
use headcount_domain::fault::Fault;
use headcount_domain::{Position, ProjectId};

use super::partition::Partition;
use super::shard::Shard;
use crate::saved_state::CopiedState;

impl Shard {
    /// Begins to open a partition and to replay it up to `until`. It begins with its last
    /// checkpoint on this machine, or with the copy of another machine's if that reflects more.
    /// Meanwhile the partition's health is that of a rebuild.
    pub(crate) fn adopt(&mut self, number: u16, until: Position, copied: Option<CopiedState>) {
        // A remaining state may lack events that another machine has recorded since.
        self.give_up(number);
        self.pipeline.adopt(number, until, copied);
    }

    /// Returns the files of the durable external ids of a partition.
    #[cfg(feature = "cluster")]
    pub(crate) fn id_files(&mut self, number: u16) -> Result<Vec<headcount_storage::TableFile>, Fault> {
        self.read_partition(number, |partition| Ok(partition.index()?.files()))
    }

    /// Whether a partition that takes no more events is applied and saved, and can be given up. If
    /// not, begins a checkpoint.
    pub(crate) fn is_saved(&mut self, number: u16) -> bool {
        if self.pipeline.fault_of(number).is_some() {
            // Its saved state is as good as before.
            return true;
        }
        self.save_unmarked();
        let Some(partition) = self.pipeline.partitions.get(&number) else { return true };
        let is_saved = partition.first_not_durable().is_none() && !self.pipeline.has_work_of(number);
        if !is_saved {
            self.want_checkpoints();
        }
        is_saved
    }

    /// Saves partitions again whose last checkpoint has no mark, if a mark is known now: a
    /// checkpoint may be far behind the reader. A state without a mark can't be compared with the
    /// log, and is built again where messages were once lost.
    pub(super) fn save_unmarked(&mut self) {
        let unmarked =
            |(_, partition): &(&u16, &Partition)| partition.checkpoint.is_unmarked && partition.first_not_durable().is_none();
        let unmarked: Vec<u16> = self.pipeline.partitions.iter().filter(unmarked).map(|(number, _)| *number).collect();
        for number in unmarked {
            let is_known = self.pipeline.mark_of_reflected(number).is_some();
            if is_known && let Some(partition) = self.pipeline.partitions.get_mut(&number) {
                partition.checkpoint.unsaved_from = Some(Position::MAX);
            }
        }
    }

    /// Whether all events of a project up to a position are applied.
    pub(crate) fn has_applied(&self, project: ProjectId, position: Position) -> bool {
        self.pipeline.has_applied(project, position)
    }

    /// Gives a partition up, even if it is not saved. The log has the unsaved events.
    pub(crate) fn give_up(&mut self, number: u16) {
        let cancelled = self.checkpoints.cancel(number);
        self.pipeline.give_up(number, cancelled);
    }

    /// The position up to which all events of a partition are in durable checkpoints; `None` if
    /// unknown, because it is being rebuilt, or is not here.
    pub(crate) fn durable_until_of(&self, number: u16) -> Option<Position> {
        let (until, partition) = (self.applied_until_of(number)?, self.pipeline.partitions.get(&number)?);
        Some(partition.first_not_durable().map_or(until, |first| until.min(first - 1)))
    }

    /// The position up to which all events of a partition are applied; `None` if unknown, because
    /// it is being rebuilt, or is not here.
    pub(crate) fn applied_until_of(&self, number: u16) -> Option<Position> {
        let is_whole = self.pipeline.partitions.contains_key(&number) && self.pipeline.fault_of(number).is_none();
        is_whole.then(|| self.pipeline.all_up_to(number))
    }
}
