//! Reading: the overlay of the partition's view first, then sled.

use std::ops::ControlFlow;

use super::super::{PartitionId, StoreError, Visit, partition_of};
use super::Inner;
use super::frame::{Stamp, chunk_key, value_key};
use super::journal::Change;
use super::partition::Overlay;
use super::tree::Handle;

impl Inner {
    pub(super) fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        let partition = partition_of(key)?;
        let slot = self.slot(partition);
        // Held until the value is read: as long as it is, no later checkpoint touches sled.
        let view = slot.view();
        if let Some(overlay) = &view.overlay
            && let Some(change) = overlay.changes.keys.get(key)
        {
            return self.watch(overlay.read(key, change));
        }
        self.read(|tree| tree.get(&value_key(key))?.map(|frame| unframe(tree, partition, key, &frame)).transpose())
    }

    /// Reads from sled. Where a failed write keeps sled from being read, it is opened again.
    pub(super) fn read<T>(&self, read: impl Fn(&Handle) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let tree = self.tree.handle()?;
        let outcome = match read(&tree) {
            Err(StoreError::Io { .. }) => read(&*self.tree.reopen(tree)?),
            outcome => outcome,
        };
        self.watch(outcome)
    }

    pub(super) fn scan(&self, prefix: &[u8], visit: &mut Visit<'_>) -> Result<(), StoreError> {
        let slot = self.slot(partition_of(prefix)?);
        let view = slot.view();
        let mut visited = false;
        let mut noting = |key: &[u8], value: &[u8]| {
            visited = true;
            visit(key, value)
        };
        let tree = self.tree.handle()?;
        let mut outcome = scan_view(&tree, slot.partition, prefix, view.overlay.as_deref(), &mut noting);
        if matches!(outcome, Err(StoreError::Io { .. })) {
            let reopened = self.tree.reopen(tree);
            if visited {
                // Whoever scans begins again, and then it works.
                return outcome;
            }
            let tree = reopened?;
            outcome = scan_view(&tree, slot.partition, prefix, view.overlay.as_deref(), visit);
        }
        self.watch(outcome)
    }
}

/// Merges what sled holds with what the overlay says, in the order of the keys.
fn scan_view(
    tree: &Handle,
    partition: PartitionId,
    prefix: &[u8],
    overlay: Option<&Overlay>,
    visit: &mut Visit<'_>,
) -> Result<(), StoreError> {
    let mut changes = overlay
        .iter()
        .flat_map(|overlay| overlay.changes.keys.range(prefix.to_vec()..).map(move |pair| (*overlay, pair)))
        .take_while(|(_, (key, _))| key.starts_with(prefix))
        .peekable();
    let mut go_on = true;
    tree.scan(&value_key(prefix), |physical, frame| {
        let key = physical.get(1..).unwrap_or_default();
        while let Some((overlay, (changed, change))) = changes.next_if(|(_, (changed, _))| changed.as_slice() < key) {
            go_on = overlay.visit(changed, change, visit)?;
            if !go_on {
                return Ok(false);
            }
        }
        go_on = match changes.next_if(|(_, (changed, _))| changed.as_slice() == key) {
            Some((overlay, (changed, change))) => overlay.visit(changed, change, visit)?,
            None => visit(key, &unframe(tree, partition, key, frame)?).is_continue(),
        };
        Ok(go_on)
    })?;
    while go_on && let Some((overlay, (changed, change))) = changes.next() {
        go_on = overlay.visit(changed, change, visit)?;
    }
    Ok(())
}

/// The value behind a frame, put together from its chunks if need be, and checked.
pub(super) fn unframe(tree: &Handle, partition: PartitionId, key: &[u8], frame: &[u8]) -> Result<Vec<u8>, StoreError> {
    let (stamp, inline) = Stamp::split(frame)?;
    let mut value = inline.to_vec();
    for index in 0..stamp.chunks() {
        let chunk = tree.get(&chunk_key(partition, stamp.generation, stamp.ordinal, index))?;
        match chunk {
            Some(chunk) => value.extend_from_slice(&chunk),
            None => return Err(StoreError::damaged(format!("a part of a long value in partition {partition} is missing"))),
        }
    }
    if stamp.fits(key, &value) {
        Ok(value)
    } else {
        Err(StoreError::damaged(format!("a value in partition {partition} fails its checksum")))
    }
}

impl Overlay {
    fn read(&self, key: &[u8], change: &Change) -> Result<Option<Vec<u8>>, StoreError> {
        match change {
            Change::Delete => Ok(None),
            Change::Put { stamp, offset } => self.journal.value(key, stamp, *offset).map(Some),
        }
    }

    /// Shows a changed pair to a scan; returns whether to go on.
    fn visit(&self, key: &[u8], change: &Change, visit: &mut Visit<'_>) -> Result<bool, StoreError> {
        Ok(match self.read(key, change)? {
            Some(value) => visit(key, &value) != ControlFlow::Break(()),
            None => true,
        })
    }
}
