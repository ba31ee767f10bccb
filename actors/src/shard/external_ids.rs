//! What a scan of the log asks about external ids.

use headcount_domain::fault::Fault;
use headcount_domain::ids::ProjectId;
use headcount_domain::intake::event::Position;
use headcount_storage::external_ids::ExternalIdsView;

use super::shard::Shard;
use crate::fault;

impl Shard {
    /// The external ids of a project's partition that are on disk or on their way there.
    pub(crate) fn known_ids(&mut self, project: ProjectId) -> Result<ExternalIdsView, Fault> {
        let view = self.partition_for(project)?.index().map(|known| known.view());
        self.watch(project, view)
    }

    /// The first positions that have these external ids.
    pub(crate) fn first_positions(&mut self, project: ProjectId, ids: &[u128]) -> Result<Vec<Option<Position>>, Fault> {
        let known = self.partition_for(project)?.index();
        let first = known.and_then(|known| ids.iter().map(|id| known.get(*id).map_err(fault::of_index)).collect());
        self.watch(project, first)
    }
}
