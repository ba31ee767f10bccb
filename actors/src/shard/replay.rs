//! Replays the log into partitions while a data directory is opened.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use headcount_domain::fault::Fault;
use headcount_domain::intake::event::Position;
use headcount_storage::log::{History, Record};

use super::applier::Applier;
use super::partition::{Partition, Partitions};
use crate::event_codec;
use crate::fault;
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
    let after: BTreeMap<u16, Position> = partitions.iter().map(|(number, partition)| (*number, partition.applied())).collect();
    // The lowest partition of a shard has the number of the shard.
    let shard = partitions.keys().next().map_or(0, |number| usize::from(*number));
    let mut end = Ok(Replayed::All);
    let mut read = 0;
    let mut visit = |record: Record<'_>| {
        let Some(partition) = partitions.get_mut(&record.partition) else { return ControlFlow::Continue(()) };
        match replay_record(partition, applier, &record, applied) {
            Ok(true) => {}
            Ok(false) => {
                end = Ok(Replayed::Panicked(record.partition));
                return ControlFlow::Break(());
            }
            Err(fault) => {
                end = Err(fault);
                return ControlFlow::Break(());
            }
        }
        progress.reached(shard, record.first);
        read += record.payload.len();
        if read < limit_bytes {
            return ControlFlow::Continue(());
        }
        end = Ok(Replayed::Enough);
        ControlFlow::Break(())
    };
    history.read(&|number| after.get(&number).copied(), &mut visit).map_err(fault::of_log)?;
    end
}

/// Applies what a partition lacks of a record. `false`: an event panicked.
fn replay_record(
    partition: &mut Partition,
    applier: &mut Applier,
    record: &Record<'_>,
    applied: &mut u64,
) -> Result<bool, Fault> {
    let events = event_codec::decode(record.payload).map_err(fault::of_logged)?;
    for (event, position) in events.into_iter().zip(record.first..) {
        if position <= partition.applied() {
            continue;
        }
        if applier.apply(partition, &event, position)?.is_none() {
            return Ok(false);
        }
        *applied += 1;
    }
    Ok(true)
}
