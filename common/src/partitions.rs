//! The fixed partitions of all projects.

use headcount_domain::{OrganizationId, ProjectId};

/// Number of partitions. Fixed: the partition of a project must never change.
pub const PARTITIONS: u16 = 64;

/// Returns the partition of a project: a stable hash of its id.
pub fn partition_of(project: ProjectId) -> u16 {
    let hash = xxhash_rust::xxh3::xxh3_64(&project.0.to_be_bytes());
    u16::try_from(hash % u64::from(PARTITIONS)).unwrap_or(0)
}

/// Returns the partition whose owner does the work of an organization that only one machine may do:
/// its privacy requests.
pub fn home_of(organization: OrganizationId) -> u16 {
    u16::try_from(organization.0 % u64::from(PARTITIONS)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_partition_of_a_project_is_stable() {
        // Different values would lose the state of every project.
        assert_eq!([1, 2, u64::MAX].map(|id| partition_of(ProjectId(id))), [51, 28, 19]);
    }
}
