//! Partitions that move between machines: a shard takes them over from the log, and gives them up.

use headcount_domain::fault::Fault;
use headcount_domain::ids::ProjectId;
use headcount_domain::intake::event::Position;
use headcount_storage::TableFile;

use super::partition::Partition;
use super::shard::Shard;
use crate::saved_state::CopiedState;

impl Shard {
    /// Begins to open a partition as its last checkpoint on this machine left it, or another machine's of which this is a copy, if that reflects more; and to replay it up
    /// to `until`. While that is under way, the partition's health says that it is being rebuilt.
    pub(crate) fn adopt(&mut self, number: u16, until: Position, copied: Option<CopiedState>) {
        // A state that is still there may lack what another machine has recorded since.
        self.give_up(number);
        self.pipeline.adopt(number, until, copied);
    }

    /// The files of the external ids of a partition that are durable.
    pub(crate) fn id_files(&mut self, number: u16) -> Result<Vec<TableFile>, Fault> {
        self.read_partition(number, |partition| Ok(partition.index()?.files()))
    }

    /// Whether a partition that takes no more events is applied and saved, so that nothing is left to do before it is given up. Has a checkpoint begun if not.
    pub(crate) fn is_saved(&mut self, number: u16) -> bool {
        if self.pipeline.fault_of(number).is_some() {
            // What was saved of it is as good as before.
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

    /// Has partitions saved once more whose last checkpoint has no mark, where one is known now: a checkpoint may be far behind what is read. Without a mark, a state can't be compared
    /// with the log, and is made anew where messages were lost once.
    pub(super) fn save_unmarked(&mut self) {
        let unmarked = |(_, partition): &(&u16, &Partition)| {
            partition.is_unmarked && partition.first_not_durable().is_none() && partition.context.health.is_shared()
        };
        let unmarked: Vec<u16> = self.pipeline.partitions.iter().filter(unmarked).map(|(number, _)| *number).collect();
        for number in unmarked {
            let is_known = self.pipeline.mark_of_reflected(number).is_some();
            if is_known && let Some(partition) = self.pipeline.partitions.get_mut(&number) {
                partition.unsaved_from = Some(Position::MAX);
            }
        }
    }

    /// Whether everything of a project up to a position is applied.
    pub(crate) fn has_applied(&self, project: ProjectId, position: Position) -> bool {
        self.pipeline.has_applied(project, position)
    }

    /// Gives a partition up, saved or not. What is not saved is in the log.
    pub(crate) fn give_up(&mut self, number: u16) {
        let cancelled = self.checkpoints.cancel(number);
        self.pipeline.give_up(number, cancelled);
    }

    /// The position up to which everything of a partition is in durable checkpoints. `None`: not known, since it is being rebuilt, or is not here.
    pub(crate) fn durable_until_of(&self, number: u16) -> Option<Position> {
        let (until, partition) = (self.applied_until_of(number)?, self.pipeline.partitions.get(&number)?);
        Some(partition.first_not_durable().map_or(until, |first| until.min(first - 1)))
    }

    /// The position up to which everything of a partition is applied. `None`: not known, since it is being rebuilt, or is not here.
    pub(crate) fn applied_until_of(&self, number: u16) -> Option<Position> {
        let is_whole = self.pipeline.partitions.contains_key(&number) && self.pipeline.fault_of(number).is_none();
        is_whole.then(|| self.pipeline.all_up_to(number))
    }
}
