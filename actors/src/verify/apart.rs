//! The verification of the partitions that a node of a cluster has, one after the other.
//!
//! A partition may be given up meanwhile. What is read then may be anything, so that it counts only if the partition was here all the time.

use headcount_common::{SharedArchive, SharedArchiveError};

use super::error::VerifyError;
use super::file_checks::check_archive;
use super::run::{HeldCheck, VerifyRun};
use crate::fault;
use crate::history::{PartitionArchives, SealedEvents, Wanted};
use crate::recompute::Scratch;

/// Why a partition was not verified that was here before.
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

    /// Does a part of the work for a partition. What is found counts if it was here all the time.
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
        // Asked after everything was read: a partition that went and came back is not the one that was here.
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

    /// Checks the archive of a partition, here and where all nodes reach it, and its log behind that.
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
                // The caller finds out why.
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
        // What is recomputed starts from the bases that are there now, which the stored state is not behind.
        let _bases = self.sources.history.bases();
        let Some(held) = self.hold(number)? else { return Ok(()) };
        if held.is_empty() && !self.known_partitions(archive).contains(&number) {
            return Ok(());
        }
        self.recompute(vec![held], scratch)
    }
}
