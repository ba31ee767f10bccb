//! Shares snapshots of the control data, and removes the records that two of them cover.
//!
//! One node writes a snapshot at a time: it notes that in the key of the
//! [snapshots](SharedSnapshots) before it begins. If it does not get on for some time, another node
//! notes the same. From then on, the former node can't list its snapshot any more, and the other
//! one removes its parts.

use std::time::{Duration, Instant};

use headcount_common::{ControlError, ControlLog as _};
use headcount_control::{Registry, RegistryError};
use tokio::runtime::Handle;

use crate::cells::KvCells;
use crate::connection::Connection;
use crate::control::{ControlStream, PIECE_END, answer};
use crate::log::{Link, LogEnd, LogReader};
use crate::record::BUCKET;
use crate::snapshots::{KEPT, SharedSnapshot, SharedSnapshots};
use crate::stream::StreamName;

/// When snapshots are written.
#[derive(Debug, Clone, Copy)]
pub struct CompactionPace {
    /// The minimum number of records between two snapshots: more than between those of a node, so
    /// that a node that runs finds the records after its own.
    pub every: u64,
    /// The next snapshot waits for one record per this many bytes of the last one.
    pub bytes_per_record: u64,
    /// How long another node that writes a snapshot may take for a part, or to read all parts.
    pub patience: Duration,
}

impl Default for CompactionPace {
    fn default() -> Self {
        Self { every: 1024, bytes_per_record: 512, patience: Duration::from_secs(300) }
    }
}

/// The size of a part. Brokers accept messages of 1 MB by default.
const PART_BYTES: usize = 512 << 10;

/// Compacts the control log of a cluster. Each node has one.
#[derive(Debug)]
pub struct Compaction {
    runtime: Handle,
    cells: KvCells,
    control: LogReader,
    parts: ControlStream,
    pace: CompactionPace,
    /// What another node has written of a snapshot, and since when it has not got on.
    seen: Option<((u64, u64), Instant)>,
}

impl Compaction {
    /// Opens the streams. Tasks of `runtime` must not call the functions.
    ///
    /// # Errors
    /// Returns a [`ControlError`].
    pub fn open(
        runtime: &Handle,
        (connection, replicas): (&Connection, usize),
        pace: CompactionPace,
    ) -> Result<Self, ControlError> {
        let snapshots = StreamName::snapshots();
        runtime.block_on(snapshots.make_deletable(connection, replicas)).map_err(ControlError::Documents)?;
        let control = answer(runtime, LogReader::open(connection, &StreamName::control().stream))?;
        let parts = ControlStream::open_as(runtime, connection, &snapshots)?;
        let cells = KvCells::existing(connection, BUCKET);
        Ok(Self { runtime: runtime.clone(), cells, control, parts, pace, seen: None })
    }

    /// Shares a snapshot if enough records have come since the last one, and removes what is not
    /// needed any more. Call it now and then. It ends early if `goes_on` says so, which is asked
    /// before each step.
    ///
    /// # Errors
    /// Returns a [`RegistryError`]: nothing that is needed was removed.
    pub fn run(&mut self, registry: &Registry, goes_on: &dyn Fn() -> bool) -> Result<(), RegistryError> {
        let (shared, revision) = SharedSnapshots::read(&self.runtime, &self.cells)?;
        // The node that listed the newest one may have died since.
        self.trim(&shared)?;
        let newest = shared.kept.first();
        let after = newest.map_or(0, |newest| newest.control.sequence);
        let distance = self.pace.every.max(newest.map_or(0, |newest| newest.bytes) / self.pace.bytes_per_record);
        if registry.applied()? < after + distance {
            return Ok(());
        }
        self.parts.refresh()?;
        let tail = self.parts.last_position();
        if shared.is_writing && self.gets_on(revision, tail) {
            return Ok(());
        }
        step(goes_on)?;
        let claim = SharedSnapshots { is_writing: true, ..shared };
        let Some(revision) = claim.write(&self.runtime, &self.cells, revision)? else { return Ok(()) };
        let written = claim.kept.first().map_or(0, |newest| newest.end.sequence);
        // The last one stays: its chain is needed to verify the next message.
        for sequence in written + 1..tail {
            self.runtime.block_on(self.parts.reader().remove(sequence));
        }
        let snapshot = self.write(registry, tail, goes_on)?;
        step(goes_on)?;
        self.parts.read_parts(&snapshot, &mut |_| Ok(()))?;
        step(goes_on)?;
        let kept = std::iter::once(snapshot).chain(claim.kept).take(KEPT).collect();
        let listed = SharedSnapshots { is_writing: false, kept, ..claim };
        if listed.write(&self.runtime, &self.cells, revision)?.is_some() {
            tracing::info!(record = snapshot.control.sequence, bytes = snapshot.bytes, "shared a snapshot of the control data");
            step(goes_on)?;
            self.trim(&listed)?;
        }
        Ok(())
    }

    /// Whether another node that writes a snapshot has got on lately.
    fn gets_on(&mut self, revision: u64, tail: u64) -> bool {
        let since = match self.seen {
            Some((seen, since)) if seen == (revision, tail) => since,
            _ => self.seen.insert(((revision, tail), Instant::now())).1,
        };
        since.elapsed() < self.pace.patience
    }

    /// Writes the parts of a snapshot after the message `tail`.
    fn write(&mut self, registry: &Registry, tail: u64, goes_on: &dyn Fn() -> bool) -> Result<SharedSnapshot, RegistryError> {
        let (mut last, mut bytes, mut part) = (tail, 0, Vec::new());
        let parts = &mut self.parts;
        let mut send = |part: &[u8]| {
            step(goes_on)?;
            last += 1;
            parts.append_at(last, part)
        };
        let position = registry.write_shared_snapshot(&mut |piece| {
            bytes += piece.len() as u64 + 1;
            for some in piece.chunks(PART_BYTES).chain([&[PIECE_END][..]]) {
                part.extend(some);
                if part.len() >= PART_BYTES {
                    let rest = part.split_off(PART_BYTES);
                    send(&std::mem::replace(&mut part, rest))?;
                }
            }
            Ok(())
        })?;
        send(&part)?;
        let end = Link::from(self.parts.end_at(last)?);
        let control: LogEnd = answer(&self.runtime, self.control.end_at(position))?;
        Ok(SharedSnapshot { control: control.into(), first: tail + 1, end, bytes })
    }

    /// Removes the records that both snapshots cover, and the parts of earlier snapshots.
    fn trim(&self, shared: &SharedSnapshots) -> Result<(), ControlError> {
        let Some(older) = shared.kept.get(KEPT - 1) else { return Ok(()) };
        answer(&self.runtime, self.control.keep_from(older.control.sequence))?;
        answer(&self.runtime, self.parts.reader().keep_from(older.first - 1))
    }
}

fn step(goes_on: &dyn Fn() -> bool) -> Result<(), ControlError> {
    if goes_on() { Ok(()) } else { Err(ControlError::Documents("the node stops".to_owned())) }
}
