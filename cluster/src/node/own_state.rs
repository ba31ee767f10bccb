//! Compares the saved state of a partition on this node with the log, before the node takes the
//! partition over.
//!
//! Brokers that lost messages, or were restored from a copy, may now have other messages in place
//! of the lost ones. State from the lost messages must not be combined with the new messages.

use headcount_actors::SavedPositions;

use super::shared::Shared;
use super::timing::NodeError;
use crate::log::{Link, LogError, LogReader, sequence_of};

/// Checks that the log has the messages that the saved state of the partition reflects. Removes the
/// state if it doesn't, and an operator has resumed the partition since the state was saved. Also
/// removes a state that can't be compared, because the log no longer has the last message that it
/// reflects, or the partition was resumed since.
///
/// # Errors
/// [`NodeError::Lost`]: an operator has to check the partition. All others: the outcome is unknown,
/// or the state can't be removed.
pub(super) async fn compare(shared: &Shared, partition: u16, resumed: u64, reader: &LogReader) -> Result<(), NodeError> {
    let engine = shared.engine.clone();
    let saved = tokio::task::spawn_blocking(move || engine.partitions.saved_positions(partition))
        .await
        .map_err(NodeError::unavailable)?;
    // A state that can't be read is built again.
    let Ok(SavedPositions { reflected, mark, .. }) = saved else { return Ok(()) };
    let timing = shared.commit.audit;
    let compared = match mark {
        Some(mark) => reader.confirm_lost(Link::from(mark), timing).await,
        None => reader.reaches(sequence_of(reflected), timing).await,
    };
    let is_resumed = resumed != mark.map_or(0, |mark| mark.resumed);
    match compared {
        Ok(true) if !is_resumed || reflected == 0 => Ok(()),
        Ok(is_confirmed) => {
            tracing::info!(
                partition,
                is_confirmed,
                is_resumed,
                "what was saved can't be compared with the log, and is made anew"
            );
            Ok(shared.engine.partitions.discard(partition).await?)
        }
        Err(lost @ (LogError::Missing { .. } | LogError::Broken { .. })) => {
            if !is_resumed {
                return Err(NodeError::Lost(lost));
            }
            tracing::warn!(partition, %lost, "the partition was resumed without what the brokers lost: its state is made anew");
            Ok(shared.engine.partitions.discard(partition).await?)
        }
        Err(error) => Err(error.into()),
    }
}

/// Checks that the log reaches beyond the sealed events. If it ended before, new events would get
/// the positions of sealed ones.
///
/// # Errors
/// [`NodeError::Lost`]: an operator has to check the partition, even after it was resumed. All
/// others: the outcome is unknown.
pub(super) async fn compare_files(shared: &Shared, partition: u16, reader: &LogReader) -> Result<(), NodeError> {
    let sealed = shared.files.as_ref().map_or(0, |files| sequence_of(files.sealed_until(partition)));
    if reader.known_bounds().1 >= sealed {
        return Ok(());
    }
    match reader.reaches(sealed, shared.commit.audit).await {
        Ok(_) => Ok(()),
        Err(LogError::Missing { stream, wanted }) => Err(NodeError::Lost(LogError::BehindFiles { stream, wanted, sealed })),
        Err(error) => Err(error.into()),
    }
}
