//! Compares the index of external ids of a partition with the recomputed one, in the order of the
//! fingerprints.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use headcount_common::partition_of;
use headcount_domain::ids::external_ids_of;
use headcount_domain::{Position, ProjectId};
use headcount_storage::external_ids::{ExternalIdsError, ExternalIdsView};

use super::comparison::ComparisonError;
use super::report::{DifferingCell, VerifyReport};
use crate::dead_letters::DeadLetters;
use crate::fault;
use crate::recompute::Bound;

fn stored(error: ExternalIdsError) -> ComparisonError {
    ComparisonError::Stored(fault::of_index(error))
}

fn recomputed(error: ExternalIdsError) -> ComparisonError {
    ComparisonError::Recomputed(fault::of_index(error))
}

/// The two indexes of a partition.
pub(super) struct IndexComparison<'c> {
    pub(super) stored: &'c ExternalIdsView,
    pub(super) recomputed: &'c ExternalIdsView,
    pub(super) report: &'c mut VerifyReport,
    /// The position of the recomputed state. The stored index may be ahead of it.
    pub(super) bound: &'c Bound,
    /// The dead letters. An event that panicked while it was applied may have left its external id.
    pub(super) dead: &'c DeadLetters,
    /// The projects of the partition that exist, by the first bytes of their fingerprints.
    pub(super) projects: BTreeMap<[u8; 6], ComparedProject>,
}

/// A project whose external ids are compared.
pub(super) struct ComparedProject {
    project: ProjectId,
    /// Whether history may lack events whose external ids stay.
    has_floor: bool,
}

impl ComparedProject {
    /// Returns the entry of a project for [`IndexComparison::projects`].
    pub(super) fn entry(project: ProjectId, has_floor: bool) -> ([u8; 6], Self) {
        (external_ids_of(project), Self { project, has_floor })
    }
}

impl IndexComparison<'_> {
    /// Compares all entries.
    pub(super) fn run(mut self) -> Result<(), ComparisonError> {
        let (mut left, mut right) = (self.stored.entries().map_err(stored)?, self.recomputed.entries().map_err(recomputed)?);
        let (mut here, mut there) = (left.next().map_err(stored)?, right.next().map_err(recomputed)?);
        loop {
            let (fingerprint, order) = match (here, there) {
                (Some((one, _)), Some((other, _))) => (one.min(other), one.cmp(&other)),
                (Some((one, _)), None) => (one, Ordering::Less),
                (None, Some((other, _))) => (other, Ordering::Greater),
                (None, None) => return Ok(()),
            };
            let (one, other) = (here.filter(|_| order.is_le()), there.filter(|_| order.is_ge()));
            self.compare(fingerprint, one.map(|(_, position)| position), other.map(|(_, position)| position));
            if order.is_le() {
                here = left.next().map_err(stored)?;
            }
            if order.is_ge() {
                there = right.next().map_err(recomputed)?;
            }
        }
    }

    /// Compares the first positions of a fingerprint.
    fn compare(&mut self, fingerprint: u128, stored: Option<Position>, recomputed: Option<Position>) {
        let [a, b, c, d, e, f, ..] = fingerprint.to_be_bytes();
        // Remaining data of a deleted project are not compared.
        let Some(ComparedProject { project, has_floor }) = self.projects.get(&[a, b, c, d, e, f]) else { return };
        if let (Some(stored), None) = (stored, recomputed)
            && (*has_floor || !self.bound.has(*project, stored) || self.dead.contains(partition_of(*project), stored))
        {
            return;
        }
        self.report.projects.entry(*project).or_default().cells += 1;
        if stored != recomputed {
            let (stored, recomputed) = (stored.map(|at| at.to_string()), recomputed.map(|at| at.to_string()));
            let (project, key) = (*project, format!("{fingerprint:032x}"));
            self.report.differs(|| DifferingCell {
                node: None,
                project,
                rollup: "external_ids".to_owned(),
                key,
                stored,
                recomputed,
            });
        }
    }
}
