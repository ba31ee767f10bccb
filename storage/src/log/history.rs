//! What was recorded, as its readers see it.

use std::ops::ControlFlow;

use super::error::LogError;
use super::{Position, Record};

/// The recorded events of all partitions, in order. The log of this machine is one implementation.
///
/// Bounds are per partition: a history that consists of several logs has no common last position.
pub trait History: Send + Sync {
    /// Position of the last durable event that `partition` can have.
    fn last_position(&self, partition: u16) -> Position;

    /// Passes each record of the wanted partitions to `visit`, in order of position, up to what was durable at the call.
    ///
    /// `wanted` returns the position after which a partition is wanted, or `None`. A record is visited if its *last* event
    /// lies after that position, so the first record may begin before it. `visit` ends the reading with
    /// [`ControlFlow::Break`].
    ///
    /// # Errors
    /// [`LogError::Damaged`], [`LogError::Removed`], [`LogError::Io`]: records before the failure have been visited.
    fn read(
        &self,
        wanted: &dyn Fn(u16) -> Option<Position>,
        visit: &mut dyn FnMut(Record<'_>) -> ControlFlow<()>,
    ) -> Result<(), LogError>;
}
