//! The verification of the partitions that have an archive in common: all partitions of a machine
//! without others, or a single one of a cluster's node.
//!
//! A partition may be given up meanwhile, and the data read then may be anything. So results count
//! only if the partition was on this machine all the time.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use headcount_common::{SharedArchiveError, partition_of};

use super::error::VerifyError;
use super::file_checks::check_archive;
use super::run::{VerifiedRange, VerifyRun};
use crate::fault;
use crate::history::{SealedEvents, Wanted};
use crate::recompute::Scratch;

/// The reason for a partition that has moved.
const MOVED: &str = "it is on another node now, or was meanwhile";
const UNREADABLE: &str = "it is being rebuilt, or what is damaged can't be compared";
/// Partitions are recomputed together, in one pass over the log, while their stored states have at
/// most this size.
const GROUP_BYTES: u64 = 64 << 20;

impl VerifyRun<'_, '_> {
    /// Verifies a range. If one of several partitions can't be verified, none is.
    pub(super) fn verify_range(&mut self, range: &VerifiedRange, scratch: Option<&Scratch>) -> Result<(), VerifyError> {
        let (mark, partitions) = (self.report.mark(), &range.partitions);
        self.since = mark;
        let worked = if (range.is_held)() { self.check_range(range, scratch) } else { Ok(()) };
        self.check_stop()?;
        // Checked after everything was read: a partition that left and came back has changed.
        if !(range.is_held)() {
            self.report.take_back(mark, partitions);
            self.unreadable.retain(|number| !partitions.contains(number));
            partitions.clone().for_each(|number| self.report.is_not_verified(number, MOVED));
            return Ok(());
        }
        if partitions.len() > 1 {
            return worked;
        }
        let number = partitions.start;
        let is_unreadable = self.unreadable.remove(&number);
        match worked {
            Ok(()) if is_unreadable => self.report.is_not_verified(number, UNREADABLE),
            Ok(()) => {}
            Err(error @ (VerifyError::Failed(_) | VerifyError::Rebuilding(_))) => self.report.is_not_verified(number, error),
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn check_range(&mut self, range: &VerifiedRange, scratch: Option<&Scratch>) -> Result<(), VerifyError> {
        let archive = self.sources.archives.of(range.partitions.start);
        self.check_events(range, &archive)?;
        range.partitions.clone().try_for_each(|number| self.check_index_files(number, range))?;
        scratch.map_or(Ok(()), |scratch| self.recompute_range(range, &archive, scratch))
    }

    /// Checks the archive of a range, on this machine and at its shared place, and its log.
    fn check_events(&mut self, range: &VerifiedRange, archive: &SealedEvents) -> Result<(), VerifyError> {
        let (sources, is_stopped) = (self.sources, self.sources.stop_check(range));
        let folder = archive.root.strip_prefix(&sources.data_dir).unwrap_or(&archive.root).display().to_string();
        check_archive(archive, &folder, &mut self.report, &*is_stopped)?;
        for number in range.partitions.clone() {
            let Some(shared) = &sources.shared else { break };
            match shared.damaged_objects(number, &*is_stopped) {
                Ok(damaged) => damaged.into_iter().for_each(|object| self.report.is_damaged(object.address, object.reason)),
                // The caller finds out the reason.
                Err(SharedArchiveError::Stopped) => return Ok(()),
                Err(error) => return Err(fault::of_shared_archive(&error).into()),
            }
        }
        match sources.logged.check_files() {
            Ok(true) => return Ok(()),
            Err(error) if self.report.take_log_damage(&error) => return Ok(()),
            Err(error) => return Err(fault::of_log(error).into()),
            Ok(false) => {}
        }
        let after = archive.catalog().logged_after();
        let wanted: Vec<Wanted> = range.partitions.clone().map(|number| Wanted::partition(number, after)).collect();
        let read = sources.history.read(&wanted, &mut |_| match is_stopped() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        });
        read.map_err(fault::of_history).or_else(|fault| self.unreadable_history(range.partitions.clone(), range, fault))
    }

    /// Recomputes the states of a range in groups, and compares them.
    fn recompute_range(&mut self, range: &VerifiedRange, archive: &SealedEvents, scratch: &Scratch) -> Result<(), VerifyError> {
        // The recomputation starts from the current bases. The stored state is not behind them.
        let _bases = self.sources.history.bases();
        let known = self.known_partitions(archive);
        let (mut group, mut bytes) = (Vec::new(), 0);
        for number in range.partitions.clone() {
            self.check_stop()?;
            let Some(held) = self.hold(number)? else { continue };
            if held.is_empty() && !known.contains(&number) {
                continue;
            }
            if bytes + held.bytes() > GROUP_BYTES && !group.is_empty() {
                self.recompute(std::mem::take(&mut group), range, scratch)?;
                bytes = 0;
            }
            bytes += held.bytes();
            group.push(held);
        }
        if group.is_empty() { Ok(()) } else { self.recompute(group, range, scratch) }
    }

    /// The partitions that have projects.
    fn known_partitions(&self, archive: &SealedEvents) -> BTreeSet<u16> {
        let catalog = archive.catalog();
        let sealed = catalog.projects().map(|(project, _)| project);
        self.sources.projects.iter().copied().chain(sealed).map(partition_of).collect()
    }
}
