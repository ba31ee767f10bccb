//! Compares the stored state of a partition with the recomputed one.
//!
//! Both are read in the order of their keys, so memory does not grow with them. The same events
//! make the same bytes, so most pairs are equal as bytes. If the rows of a rollup have other bytes,
//! they are loaded and compared row by row: only their division into parts may differ.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use headcount_domain::cells::CellDifference;
use headcount_domain::rollups::Rollups;
use headcount_domain::{Day, Fault, Project, ProjectId};
use headcount_storage::keyspace::{Key, Room};
use headcount_storage::store::{PartitionSnapshot, StoreError, StoredPair};

use super::report::{DifferingCell, VerifyReport};
use crate::checkpoint_writer::{decode_part, decode_project, is_of_partition, is_project_meta};
use crate::fault;

/// The reason why a comparison ended.
pub(super) enum ComparisonError {
    /// The stored state can't be read.
    Stored(Fault),
    /// The recomputed state can't be read.
    Recomputed(Fault),
}

fn stored(error: StoreError) -> ComparisonError {
    ComparisonError::Stored(fault::of_store(error))
}

fn recomputed(error: StoreError) -> ComparisonError {
    ComparisonError::Recomputed(fault::of_store(error))
}

/// The number of bytes of a value to show.
const SHOWN_BYTES: usize = 16;

/// The two states of a partition.
pub(super) struct Comparison<'c> {
    pub(super) stored: &'c PartitionSnapshot,
    pub(super) recomputed: &'c PartitionSnapshot,
    pub(super) report: &'c mut VerifyReport,
    /// Whether a project exists.
    pub(super) exists: &'c dyn Fn(ProjectId) -> bool,
    /// The floors of the projects that have one.
    pub(super) floors: BTreeMap<ProjectId, Day>,
    /// The rows to compare one by one: project, room and tag.
    pub(super) suspicious: BTreeSet<(ProjectId, Room, u8)>,
}

impl Comparison<'_> {
    /// Compares everything.
    pub(super) fn run(mut self) -> Result<(), ComparisonError> {
        self.compare_pairs()?;
        for (project, room, tag) in std::mem::take(&mut self.suspicious) {
            self.compare_rows(project, room, tag)?;
        }
        Ok(())
    }

    fn compare_pairs(&mut self) -> Result<(), ComparisonError> {
        let mut left = self.stored.pairs(&[]).map_err(stored)?;
        let mut right = self.recomputed.pairs(&[]).map_err(recomputed)?;
        let (mut here, mut there) = (left.next().map_err(stored)?, right.next().map_err(recomputed)?);
        // A partition rebuilt while serving is in another part of the store.
        let key = |pair: &StoredPair| pair.0.get(2..).unwrap_or_default().to_vec();
        loop {
            let order = match (&here, &there) {
                (Some(one), Some(other)) => key(one).cmp(&key(other)),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (None, None) => return Ok(()),
            };
            let (one, other) = ((order.is_le()).then(|| here.take()).flatten(), order.is_ge().then(|| there.take()).flatten());
            self.compare_pair(one.as_ref(), other.as_ref())?;
            if order.is_le() {
                here = left.next().map_err(stored)?;
            }
            if order.is_ge() {
                there = right.next().map_err(recomputed)?;
            }
        }
    }

    /// Compares the two values of a key, at least one of which exists.
    fn compare_pair(&mut self, one: Option<&StoredPair>, other: Option<&StoredPair>) -> Result<(), ComparisonError> {
        let Some((key, _)) = one.or(other) else { return Ok(()) };
        let Ok(decoded) = Key::decode(key) else {
            return Err(ComparisonError::Stored(Fault::damaged_store("it has a key that is not one of this version")));
        };
        let (one, other) = (one.map(|(_, value)| value.as_slice()), other.map(|(_, value)| value.as_slice()));
        match decoded {
            // The position of a partition belongs to the checkpoint, not to a project.
            Key::Position { .. } | Key::Meta { .. } => {}
            Key::Record { project, space, .. } if is_of_partition(project, space) => {}
            Key::Cells { project, .. } | Key::Record { project, .. } if !(self.exists)(ProjectId(project)) => {}
            Key::Cells { project, room, tag, .. } => {
                let project = ProjectId(project);
                if one != other {
                    self.suspicious.insert((project, room, tag));
                } else if let Some(value) = one {
                    // Suspicious rows are counted with the rows.
                    let part = decode_part(value).map_err(ComparisonError::Stored)?;
                    self.count(project, part.count() as u64);
                    if let Some(floor) = self.floors.get(&project) {
                        let frozen = Rollups::frozen_rows(tag, &part, *floor) as u64;
                        self.report.projects.entry(project).or_default().frozen += frozen;
                    }
                }
            }
            Key::Record { project, space, id, .. } => {
                let project = ProjectId(project);
                self.count(project, 1);
                if one == other {
                    return Ok(());
                }
                self.report.differs(|| match is_project_meta(space, id) {
                    true => differing_meta(project, one, other),
                    false => differing_record(project, &decoded, id, one, other),
                });
            }
        }
        Ok(())
    }

    fn count(&mut self, project: ProjectId, cells: u64) {
        self.report.projects.entry(project).or_default().cells += cells;
    }

    /// Compares the rows of a rollup one by one.
    fn compare_rows(&mut self, project: ProjectId, room: Room, tag: u8) -> Result<(), ComparisonError> {
        let one = load(self.stored, project, room, tag).map_err(ComparisonError::Stored)?;
        let other = load(self.recomputed, project, room, tag).map_err(ComparisonError::Recomputed)?;
        let report = &mut *self.report;
        let compared = one.compare_cells(&other, &mut |describe| {
            report.differs(|| {
                let CellDifference { rollup, key, stored, recomputed } = describe();
                DifferingCell { node: None, project, rollup: rollup.to_owned(), key, stored, recomputed }
            });
        });
        self.count(project, compared);
        Ok(())
    }
}

/// Loads the rows of one rollup of a project.
fn load(from: &PartitionSnapshot, project: ProjectId, room: Room, tag: u8) -> Result<Project, Fault> {
    let mut into = Project::default();
    let mut pairs = from.pairs(&Key::rows_of(project.0, room, tag)).map_err(fault::of_store)?;
    while let Some((key, value)) = pairs.next().map_err(fault::of_store)? {
        let Ok(Key::Cells { part, .. }) = Key::decode(&key) else { continue };
        if !into.restore_part(tag, part, decode_part(&value)?) {
            return Err(Fault::damaged_store(format!("part {part} of the rows {tag} is not one of its own")));
        }
    }
    Ok(into)
}

fn differing_meta(project: ProjectId, one: Option<&[u8]>, other: Option<&[u8]>) -> DifferingCell {
    let text = |value: Option<&[u8]>| {
        value.map(|value| decode_project(value).map_or_else(|fault| fault.to_string(), |meta| format!("{meta:?}")))
    };
    let (stored, recomputed) = (text(one), text(other));
    DifferingCell { node: None, project, rollup: "project".to_owned(), key: project.to_string(), stored, recomputed }
}

fn differing_record(project: ProjectId, key: &Key, id: u128, one: Option<&[u8]>, other: Option<&[u8]>) -> DifferingCell {
    let from = match (one, other) {
        (Some(one), Some(other)) => one.iter().zip(other).take_while(|(left, right)| left == right).count(),
        _ => 0,
    };
    let text = |value: Option<&[u8]>| value.map(|value| describe(value, from));
    let rollup = key.space_name().unwrap_or("record").to_owned();
    DifferingCell { node: None, project, rollup, key: format!("{id:032x}"), stored: text(one), recomputed: text(other) }
}

/// Describes an encoded record by its length and its first bytes from the first difference on.
fn describe(value: &[u8], from: usize) -> String {
    let shown: String = value.iter().skip(from).take(SHOWN_BYTES).map(|byte| format!("{byte:02x}")).collect();
    format!("{} bytes, from byte {from}: {shown}", value.len())
}
