//! Reading: the overlay of the realm's view first, then sled.

use std::ops::ControlFlow;

use super::super::{Realm, StoreError, Visit, realm_of};
use super::Inner;
use super::frame::{Stamp, chunk_key, value_key};
use super::journal::Change;
use super::realm::Overlay;

impl Inner {
    pub(super) fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        let realm = realm_of(key)?;
        let slot = self.slot(realm);
        // Held until the value is read: as long as it is, no later checkpoint touches sled.
        let view = slot.view();
        if let Some(overlay) = &view.overlay
            && let Some(change) = overlay.changes.keys.get(key)
        {
            return self.watch(overlay.read(key, change));
        }
        let frame = self.watch(self.tree.get(&value_key(key)))?;
        self.watch(frame.map(|frame| self.unframe(realm, key, &frame)).transpose())
    }

    pub(super) fn scan(&self, prefix: &[u8], visit: &mut Visit<'_>) -> Result<(), StoreError> {
        let slot = self.slot(realm_of(prefix)?);
        let view = slot.view();
        self.watch(self.scan_view(slot.realm, prefix, view.overlay.as_deref(), visit))
    }

    /// Merges what sled holds with what the overlay says, in the order of the keys.
    fn scan_view(&self, realm: Realm, prefix: &[u8], overlay: Option<&Overlay>, visit: &mut Visit<'_>) -> Result<(), StoreError> {
        let mut changes = overlay
            .iter()
            .flat_map(|overlay| overlay.changes.keys.range(prefix.to_vec()..).map(move |pair| (*overlay, pair)))
            .take_while(|(_, (key, _))| key.starts_with(prefix))
            .peekable();
        let mut go_on = true;
        self.tree.scan(&value_key(prefix), |physical, frame| {
            let key = physical.get(1..).unwrap_or_default();
            while let Some((overlay, (changed, change))) = changes.next_if(|(_, (changed, _))| changed.as_slice() < key) {
                go_on = overlay.visit(changed, change, visit)?;
                if !go_on {
                    return Ok(false);
                }
            }
            go_on = match changes.next_if(|(_, (changed, _))| changed.as_slice() == key) {
                Some((overlay, (changed, change))) => overlay.visit(changed, change, visit)?,
                None => visit(key, &self.unframe(realm, key, frame)?).is_continue(),
            };
            Ok(go_on)
        })?;
        while go_on && let Some((overlay, (changed, change))) = changes.next() {
            go_on = overlay.visit(changed, change, visit)?;
        }
        Ok(())
    }

    /// The value behind a frame, put together from its chunks if need be, and checked.
    pub(super) fn unframe(&self, realm: Realm, key: &[u8], frame: &[u8]) -> Result<Vec<u8>, StoreError> {
        let (stamp, inline) = Stamp::split(frame)?;
        let mut value = inline.to_vec();
        for index in 0..stamp.chunks() {
            let chunk = self.tree.get(&chunk_key(realm, stamp.generation, stamp.ordinal, index))?;
            match chunk {
                Some(chunk) => value.extend_from_slice(&chunk),
                None => return Err(StoreError::damaged(format!("a part of a long value in realm {realm} is missing"))),
            }
        }
        if stamp.fits(key, &value) {
            Ok(value)
        } else {
            Err(StoreError::damaged(format!("a value in realm {realm} fails its checksum")))
        }
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
