//! Replays recorded events into partitions while a data directory is opened.

use std::ops::ControlFlow;
use std::sync::Arc;

use headcount_domain::fault::{Fault, FaultKind};
use headcount_domain::identity::SentKeys;

use super::applier::Applier;
use super::partition::{Partition, Partitions};
use super::pipeline::EventPipeline;
use super::refold::{self, Refold};
use super::shard::Shard;
use crate::fault;
use crate::history::{History, HistoryError, HistoryPiece, PieceOrigin, Wanted};

/// How a pass over the recorded events ended.
enum Replayed {
    /// At the last one.
    All,
    /// At an event that panicked, in this partition.
    Panicked(u16),
    /// At a damaged file of the archive, which this partition needs.
    Damaged(u16, Fault),
}

impl Shard {
    /// Replays what was recorded into the partitions, setting aside what panics twice.
    pub(crate) fn catch_up(&mut self) -> Result<(), Fault> {
        loop {
            match self.replay()? {
                Replayed::All => {
                    for (number, Refold { projects, .. }) in std::mem::take(&mut self.pipeline.refolds) {
                        // A broken partition is rebuilt, and its projects are folded anew then.
                        if self.pipeline.partitions.contains_key(&number) {
                            self.pipeline.context.erasures.reflects(&projects);
                        }
                    }
                    return self.make_room();
                }
                Replayed::Panicked(number) => {
                    // Nobody waits for the neighbours yet: the partition is opened again as its last checkpoint left it.
                    self.checkpoints.cancel(number).wait(&*self.pipeline.context.store);
                    let partition = Partition::open(number, self.pipeline.context.clone())?;
                    self.pipeline.partitions.insert(number, partition);
                }
                Replayed::Damaged(number, fault) => {
                    // The others are served; this one is rebuilt once the file is intact.
                    self.break_partition((number, fault));
                    self.pipeline.rebuild_to_the_end(number);
                }
            }
        }
    }

    /// Reads from where each partition stands.
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
            // The partition stands where the others were saved.
            if let Some(partition) = self.pipeline.partitions.get_mut(&number) {
                partition.replay_from(PieceOrigin::EndOfArchive(until));
            }
        }
        let wanted = wanted(&self.pipeline.partitions);
        self.replay_wanted(&*history, &wanted, false)
    }

    /// The projects that are folded anew, by partition.
    fn refolds(&self) -> Vec<(u16, Refold)> {
        let is_there = |number: &u16| self.pipeline.partitions.contains_key(number);
        let refolds = self.pipeline.refolds.iter().filter(|(number, _)| is_there(number));
        refolds.map(|(number, refold)| (*number, refold.clone())).collect()
    }

    /// Replays what is wanted. `anew`: a project, up to where the others of its partition stand.
    fn replay_wanted(&mut self, history: &dyn History, wanted: &[Wanted], anew: bool) -> Result<Replayed, Fault> {
        let mut end = Ok(Replayed::All);
        let mut read = 0;
        let result = history.read(wanted, &mut |mut piece: HistoryPiece| {
            if anew {
                // Others of its partition with higher positions are applied already.
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

    /// Applies the events of a piece. `false`: an event panicked.
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

fn wanted(partitions: &Partitions) -> Vec<Wanted> {
    partitions.iter().map(|(number, partition)| Wanted::partition(*number, partition.applied())).collect()
}
