//! The progress of opening an engine, for observers on other threads.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use headcount_domain::Position;
use parking_lot::RwLock;

/// The progress of opening an engine.
#[derive(Debug, Default)]
pub struct Progress {
    /// The last position of the log.
    end: OnceLock<Position>,
    /// The position that each shard has reached.
    shards: RwLock<Vec<AtomicU64>>,
}

impl Progress {
    /// Returns the position up to which every shard has replayed the log, and the log's last
    /// position; `None` before the replay.
    pub fn replayed(&self) -> Option<(Position, Position)> {
        let end = *self.end.get()?;
        let shards = self.shards.read();
        let reached = shards.iter().map(|shard| shard.load(Ordering::Relaxed)).min()?;
        Some((reached.min(end), end))
    }

    /// Records that `shards` shards begin to replay a log that ends at `end`.
    pub(crate) fn begin(&self, shards: usize, end: Position) {
        let _ = self.end.set(end);
        let begun = (0..shards).map(|_| AtomicU64::new(0)).collect();
        *self.shards.write() = begun;
    }

    /// Records that a shard has reached a position.
    pub(crate) fn reached(&self, shard: usize, position: Position) {
        let shards = self.shards.read();
        if let Some(shard) = shards.get(shard) {
            shard.store(position, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_shard_counts() {
        let progress = Progress::default();
        assert_eq!(progress.replayed(), None);
        progress.begin(2, 100);
        assert_eq!(progress.replayed(), Some((0, 100)));
        progress.reached(0, 100);
        progress.reached(1, 40);
        assert_eq!(progress.replayed(), Some((40, 100)));
        progress.reached(1, Position::MAX);
        assert_eq!(progress.replayed(), Some((100, 100)));
    }
}
