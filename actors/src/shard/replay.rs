//! Replays recorded events into partitions while a data directory is opened.

use std::ops::ControlFlow;
use std::sync::Arc;

use headcount_domain::{Fault, FaultKind, SentKeys};

use super::applier::Applier;
use super::partition::{Partition, PartitionMap};
use super::pipeline::EventPipeline;
use super::refold::{self, Refold};
use super::shard::Shard;
use crate::fault;
use crate::history::{History, HistoryError, HistoryPiece, PieceOrigin, Wanted};

/// The result of a pass over the recorded events.
enum Replayed {
    /// The pass reached the last event.
    All,
    /// An event of this partition panicked.
    Panicked(u16),
    /// A file of the archive that this partition needs is damaged.
    Damaged(u16, Fault),
}

impl Shard {
    /// Replays the recorded events into the partitions, setting aside events that panic twice.
    pub(crate) fn catch_up(&mut self) -> Result<(), Fault> {
        loop {
            match self.replay()? {
                Replayed::All => {
                    for (number, Refold { projects, .. }) in std::mem::take(&mut self.pipeline.refolds) {
                        // A broken partition is rebuilt, which folds its projects again.
                        if self.pipeline.partitions.contains_key(&number) {
                            self.pipeline.context.erasures.reflects(&projects);
                        }
                    }
                    return self.make_room();
                }
                Replayed::Panicked(number) => {
                    // No request waits for the other partitions yet, so the partition is opened
                    // again from its last checkpoint.
                    self.checkpoints.cancel(number).wait(&*self.pipeline.context.store);
                    let partition = Partition::open(number, self.pipeline.context.clone())?;
                    self.pipeline.partitions.insert(number, partition);
                }
                Replayed::Damaged(number, fault) => {
                    // The other partitions are served. This one is rebuilt once the file is intact.
                    self.break_partition((number, fault));
                    self.pipeline.rebuild_to_the_end(number);
                }
            }
        }
    }

    /// Reads from the position of each partition.
    fn replay(&mut self) -> Result<Replayed, Fault> {
        let history = Arc::clone(&self.pipeline.history);
        let bases = history.bases();
        for (number, partition) in &mut self.pipeline.partitions {
            match partition.load_bases(&*bases) {
                Err(fault) if fault.kind == FaultKind::DamagedArchive => return Ok(Replayed::Damaged(*number, fault)),
                loaded => loaded?,
            }
        }
        for (number, Refold { projects, until }) in self.refolds() {
            for (project, _) in projects {
                match self.replay_wanted(&*history, &[refold::wanted(project, until)], true)? {
                    Replayed::All => {}
                    end => return Ok(end),
                }
            }
            // The partition is at the saved position of its other projects.
            if let Some(partition) = self.pipeline.partitions.get_mut(&number) {
                partition.replay_from(PieceOrigin::EndOfArchive(until));
            }
        }
        let wanted = wanted(&self.pipeline.partitions);
        self.replay_wanted(&*history, &wanted, false)
    }

    /// The projects that are folded again, by partition.
    fn refolds(&self) -> Vec<(u16, Refold)> {
        let is_there = |number: &u16| self.pipeline.partitions.contains_key(number);
        let refolds = self.pipeline.refolds.iter().filter(|(number, _)| is_there(number));
        refolds.map(|(number, refold)| (*number, refold.clone())).collect()
    }

    /// Replays the wanted events. With `anew`, they are those of a project that is folded again, up
    /// to the position of its partition.
    fn replay_wanted(&mut self, history: &dyn History, wanted: &[Wanted], anew: bool) -> Result<Replayed, Fault> {
        let mut end = Ok(Replayed::All);
        let mut read = 0;
        let result = history.read(wanted, &mut |mut piece: HistoryPiece| {
            if anew {
                // Higher positions of its partition are applied already.
                piece.origin = PieceOrigin::Archive;
            }
            match self.replay_piece(&piece) {
                Ok(true) => {}
                Ok(false) => {
                    end = Ok(Replayed::Panicked(piece.partition));
                    return ControlFlow::Break(());
                }
                Err(fault) => {
                    end = Err(fault);
                    return ControlFlow::Break(());
                }
            }
            read += piece.bytes;
            if read >= self.evictor.replay_bytes() {
                read = 0;
                if let Err(fault) = self.make_room() {
                    end = Err(fault);
                    return ControlFlow::Break(());
                }
            }
            ControlFlow::Continue(())
        });
        match result {
            Ok(()) => end,
            Err(HistoryError::Archive { partition, error }) if error.is_damage() => {
                Ok(Replayed::Damaged(partition, fault::of_archive(error)))
            }
            Err(error) => Err(fault::of_history(error)),
        }
    }

    /// Applies the events of a piece. Returns `false` if an event panicked.
    fn replay_piece(&mut self, piece: &HistoryPiece) -> Result<bool, Fault> {
        // The lowest partition of a shard has the number of the shard.
        let shard = self.pipeline.partitions.keys().next().map_or(0, |number| usize::from(*number));
        let EventPipeline { partitions, applier, context, .. } = &mut self.pipeline;
        let Some(partition) = partitions.get_mut(&piece.partition) else { return Ok(true) };
        partition.replay_from(piece.origin);
        for (position, event) in &piece.events {
            let keys = SentKeys::of(&event.who, &context.hasher);
            if applier.apply(partition, (event, keys), *position)?.is_none() {
                return Ok(false);
            }
            self.replayed += 1;
        }
        if let Some((position, floor)) = piece.floor {
            Applier::raise_floor(partition, floor, position)?;
        }
        if let Some((first, _)) = piece.events.first() {
            context.progress.reached(shard, *first);
        }
        Ok(true)
    }
}

fn wanted(partitions: &PartitionMap) -> Vec<Wanted> {
    partitions.iter().map(|(number, partition)| Wanted::partition(*number, partition.applied)).collect()
}
