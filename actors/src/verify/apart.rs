//! The verification of a node's partitions, one after the other.
//!
//! A partition may be given up meanwhile, and the data read then may be anything. So results count
//! only if the partition was on this node all the time.

use headcount_common::{SharedArchive, SharedArchiveError};

use super::error::VerifyError;
use super::file_checks::check_archive;
use super::run::{HeldCheck, VerifyRun};
use crate::fault;
use crate::history::{PartitionArchives, SealedEvents, Wanted};
use crate::recompute::Scratch;

/// The reason for a partition that has moved.
const MOVED: &str = "it is on another node now, or was meanwhile";
const UNREADABLE: &str = "it is being rebuilt, or what is damaged can't be compared";

impl VerifyRun<'_, '_> {
    /// Verifies the partitions.
    pub(super) fn verify_apart(
        &mut self,
        archives: &PartitionArchives,
        shared: Option<&dyn SharedArchive>,
        is_held: &HeldCheck,
        quick: bool,
    ) -> Result<(), VerifyError> {
        let sources = self.sources;
        let scratch = if quick { None } else { Some(Scratch::for_verification(&sources.data_dir)?) };
        if !quick {
            sources.places.save(&sources.partitions)?;
        }
        for number in &sources.partitions {
            let number = *number;
            let archive = archives.of(number);
            self.of_partition(number, is_held, |run| {
                run.check_index_files(number)?;
                run.check_events(number, &archive, shared)?;
                match &scratch {
                    Some(scratch) => run.recompute_partition(number, &archive, scratch),
                    None => Ok(()),
                }
            })?;
        }
        Ok(())
    }

    /// Does a part of the work for a partition. Results count if the partition was here all the
    /// time.
    fn of_partition(
        &mut self,
        number: u16,
        is_held: &HeldCheck,
        work: impl FnOnce(&mut Self) -> Result<(), VerifyError>,
    ) -> Result<(), VerifyError> {
        let mark = self.report.mark();
        self.since = Some(mark);
        let worked = if is_held(number) { work(self) } else { Ok(()) };
        self.since = None;
        let is_unreadable = self.unreadable.remove(&number);
        self.check_stop()?;
        // Checked after everything was read: a partition that left and came back has changed.
        if !is_held(number) {
            self.report.take_back(mark, number);
            self.report.is_not_verified(number, MOVED);
            return Ok(());
        }
        match worked {
            Ok(()) if is_unreadable => self.report.is_not_verified(number, UNREADABLE),
            Ok(()) => {}
            Err(error @ (VerifyError::Failed(_) | VerifyError::Rebuilding(_))) => self.report.is_not_verified(number, error),
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Checks the archive of a partition, on this machine and at its shared place, and its log
    /// after that.
    fn check_events(
        &mut self,
        number: u16,
        archive: &SealedEvents,
        shared: Option<&dyn SharedArchive>,
    ) -> Result<(), VerifyError> {
        let is_stopped = self.sources.stop_check(&[number]);
        if let Some(shared) = shared {
            check_archive(archive, &format!("archive/partition={number:02}"), &mut self.report, &*is_stopped)?;
            match shared.damaged_objects(number, &*is_stopped) {
                Ok(damaged) => damaged.into_iter().for_each(|object| self.report.is_damaged(object.address, object.reason)),
                // The caller finds out the reason.
                Err(SharedArchiveError::Stopped) => return Ok(()),
                Err(error) => return Err(fault::of_shared_archive(&error).into()),
            }
        }
        let wanted = Wanted::partition(number, archive.catalog().logged_after());
        let read = self.sources.history.read(&[wanted], &mut |_| match is_stopped() {
            true => std::ops::ControlFlow::Break(()),
            false => std::ops::ControlFlow::Continue(()),
        });
        read.map_err(fault::of_history).or_else(|fault| self.unreadable_history(&[number], fault))
    }

    /// Recomputes the state of a partition, and compares it.
    fn recompute_partition(&mut self, number: u16, archive: &SealedEvents, scratch: &Scratch) -> Result<(), VerifyError> {
        // The recomputation starts from the current bases. The stored state is not behind them.
        let _bases = self.sources.history.bases();
        let Some(held) = self.hold(number)? else { return Ok(()) };
        if held.is_empty() && !self.known_partitions(archive).contains(&number) {
            return Ok(());
        }
        self.recompute(vec![held], scratch)
    }
}
