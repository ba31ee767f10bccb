//! What a scan of the log asks about external ids.

use headcount_domain::fold::{Fault, Position};
use headcount_domain::ids::ProjectId;
use headcount_storage::fingerprints::View;

use super::fault;
use super::partition::{Partition, partition_of};
use super::shard::Shard;

impl Shard {
    /// The external ids of a project's partition that are on disk or on their way there.
    pub(crate) fn known_ids(&mut self, project: ProjectId) -> Result<View, Fault> {
        Ok(self.partition_of(project)?.fingerprints()?.view())
    }

    /// The first positions that have these external ids.
    pub(crate) fn first_positions(&mut self, project: ProjectId, ids: &[u128]) -> Result<Vec<Option<Position>>, Fault> {
        let known = self.partition_of(project)?.fingerprints()?;
        ids.iter().map(|id| known.get(*id).map_err(fault::of_index)).collect()
    }

    fn partition_of(&mut self, project: ProjectId) -> Result<&mut Partition, Fault> {
        let partition = self.partitions.get_mut(&partition_of(project));
        partition.ok_or_else(|| Fault::io("the partition is not available now"))
    }
}
