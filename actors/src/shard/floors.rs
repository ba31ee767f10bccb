//! The floors of projects.

use std::collections::BTreeSet;
use std::ops::Range;

use dashmap::DashMap;
use headcount_common::partition_of;
use headcount_domain::{Day, ProjectId};
use parking_lot::Mutex;

/// The floor of each loaded project that has one. Written by the shards, read by all threads.
#[derive(Debug, Default)]
pub(crate) struct Floors {
    by_project: DashMap<ProjectId, Day>,
    /// The projects whose floors were loaded or rose, sorted by partition, until their archive
    /// takes them.
    raised: Mutex<BTreeSet<(u16, ProjectId)>>,
}

impl Floors {
    /// The floor of a project.
    pub(crate) fn get(&self, project: ProjectId) -> Option<Day> {
        self.by_project.get(&project).map(|floor| *floor)
    }

    /// Records the floor of a project. It need not be in a durable checkpoint.
    pub(crate) fn set(&self, project: ProjectId, floor: Day) {
        if self.by_project.insert(project, floor) != Some(floor) {
            self.raised.lock().insert((partition_of(project), project));
        }
    }

    /// Returns the projects of some partitions whose floors were loaded or rose since the last
    /// call.
    pub(crate) fn take_raised(&self, partitions: Range<u16>) -> Vec<ProjectId> {
        let first = |partition| (partition, ProjectId(0));
        let mut raised = self.raised.lock();
        let taken: Vec<_> = raised.range(first(partitions.start)..first(partitions.end)).copied().collect();
        for of_partition in &taken {
            raised.remove(of_partition);
        }
        taken.into_iter().map(|(_, project)| project).collect()
    }

    /// Forgets a project.
    pub(super) fn remove(&self, project: ProjectId) {
        self.by_project.remove(&project);
        self.raised.lock().remove(&(partition_of(project), project));
    }

    /// Forgets the projects of a partition.
    pub(super) fn give_up(&self, number: u16) {
        self.by_project.retain(|project, _| partition_of(*project) != number);
        self.raised.lock().retain(|(partition, _)| *partition != number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_raised_floor_is_taken_once_by_its_partition() {
        let (floors, project) = (Floors::default(), ProjectId(7));
        let [day, later] = ["2024-03-01", "2024-03-02"].map(|day| Day::parse(day).unwrap());
        let own = partition_of(project)..partition_of(project) + 1;
        let take = || floors.take_raised(own.clone());
        floors.set(project, day);
        assert_eq!(floors.take_raised(0..own.start), []);
        assert_eq!(floors.take_raised(own.end..u16::MAX), []);
        assert_eq!((take(), take()), (vec![project], vec![]));
        floors.set(project, day);
        assert_eq!(take(), [], "it is the same");
        floors.set(project, later);
        assert_eq!((floors.get(project), take()), (Some(later), vec![project]));
        for forget in [&|| floors.remove(project), &|| floors.give_up(own.start)] as [&dyn Fn(); 2] {
            floors.set(project, day);
            forget();
            assert_eq!((floors.get(project), take()), (None, vec![]));
        }
    }
}
