//! Replays the log into partitions while a data directory is opened.

use std::ops::ControlFlow;

use headcount_domain::fault::Fault;

use super::applier::Applier;
use super::partition::{Partition, Partitions};
use crate::fault;
use crate::history::{History, Piece, Wanted};
use crate::opening_progress::Progress;

/// How a pass over the log ended.
pub(super) enum Replayed {
    /// At the end of the log.
    All,
    /// After as many bytes as may be read before memory is checked.
    Enough,
    /// At an event that panicked, in this partition.
    Panicked(u16),
}

/// Reads the log from where each partition stands, up to `limit_bytes`. Adds the number of applied events to `applied`.
pub(super) fn replay(
    partitions: &mut Partitions,
    applier: &mut Applier,
    history: &dyn History,
    limit_bytes: usize,
    progress: &Progress,
    applied: &mut u64,
) -> Result<Replayed, Fault> {
    let wanted = partitions.iter().map(|(number, partition)| Wanted::partition(*number, partition.applied()));
    let wanted: Vec<Wanted> = wanted.collect();
    // The lowest partition of a shard has the number of the shard.
    let shard = partitions.keys().next().map_or(0, |number| usize::from(*number));
    let mut end = Ok(Replayed::All);
    let mut read = 0;
    let mut visit = |piece: Piece| {
        let Some(partition) = partitions.get_mut(&piece.partition) else { return ControlFlow::Continue(()) };
        match replay_piece(partition, applier, &piece, applied) {
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
        if let Some((first, _)) = piece.events.first() {
            progress.reached(shard, *first);
        }
        read += piece.bytes;
        if read < limit_bytes {
            return ControlFlow::Continue(());
        }
        end = Ok(Replayed::Enough);
        ControlFlow::Break(())
    };
    history.read(&wanted, &mut visit).map_err(fault::of_history)?;
    end
}

/// Applies the events of a piece. `false`: an event panicked.
fn replay_piece(partition: &mut Partition, applier: &mut Applier, piece: &Piece, applied: &mut u64) -> Result<bool, Fault> {
    for (position, event) in &piece.events {
        if applier.apply(partition, event, *position)?.is_none() {
            return Ok(false);
        }
        *applied += 1;
    }
    Ok(true)
}
