//! What an opening store examines, and what it takes up again.
//!
//! What sled 0.34.7 does with a flipped byte in its `db` file depends on where it lies. In the part of the log that is
//! replayed at open (all that was written since the open before) a message with a wrong checksum ends the reading of
//! its 512 KiB segment *without an error*: later segments are applied all the same, and pages whose updates were skipped
//! show older contents, or the replay trips over what is missing and panics. Elsewhere it is an error or a panic when
//! the page is read. Of 900 flips (half of them in `db`, of 6 MB) 402 damaged the store: 240 made sled panic and 67 made
//! it report an error at open, 83 lost the tail of the log silently (the seals showed it), and 12 were found by reading
//! all values; in 5 of these every read succeeded, with wrong answers. Nothing hung; 450 cut files all showed.
//! So checksums per value are not enough, and neither is a seal of the last commit: only a digest over all pairs of a
//! realm tells.

use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use super::super::parallel::check_each;
use super::super::{Realm, StoreError};
use super::Inner;
use super::checkpoint::apply;
use super::frame::{FORMAT, FORMAT_KEY, RealmState, STATE_PREFIX, Stamp, realm_of_state, state_key, value_key};
use super::journal::{self, Journal};
use super::read::unframe;
use super::realm::{Overlay, RealmSlot};
use super::tree::Handle;
use crate::files::{self, sync_dir};

impl Inner {
    /// Brings every realm to its last committed checkpoint. Returns whether the store is new.
    pub(super) fn recover(&self) -> Result<bool, StoreError> {
        let tree = self.tree.handle()?;
        let realms = self.known_realms(&tree)?;
        let created = match tree.get(&FORMAT_KEY)? {
            Some(format) if format == FORMAT => false,
            Some(_) => return Err(StoreError::damaged("the format marker is not this version's")),
            None if realms.is_empty() && tree.is_empty()? => {
                tree.set(&FORMAT_KEY, FORMAT)?;
                tree.sync()?;
                sync_dir(&self.dir).map_err(StoreError::io("sync a directory"))?;
                true
            }
            None => return Err(StoreError::damaged("the format marker is missing")),
        };
        for realm in realms {
            let slot = self.recover_realm(&tree, realm)?;
            self.realms.write().unwrap_or_else(PoisonError::into_inner).insert(realm, Arc::new(slot));
        }
        Ok(created)
    }

    /// The realms that sled or a journal knows of.
    fn known_realms(&self, tree: &Handle) -> Result<BTreeSet<Realm>, StoreError> {
        let mut realms = BTreeSet::new();
        tree.scan(&STATE_PREFIX, |key, _| {
            realms.insert(realm_of_state(key).ok_or_else(|| StoreError::damaged("a realm state under no realm"))?);
            Ok(true)
        })?;
        for path in files::list(&self.journals).map_err(StoreError::io("list the journals"))? {
            realms.extend(path.file_name().and_then(|name| name.to_str()).and_then(journal::realm_of));
        }
        Ok(realms)
    }

    /// Compares what sled holds of a realm with its seals, and applies what was committed but not applied.
    fn recover_realm(&self, tree: &Handle, realm: Realm) -> Result<RealmSlot, StoreError> {
        let stored = tree.get(&state_key(realm))?;
        let stored = stored.map(|bytes| RealmState::decode(&bytes)).transpose()?.unwrap_or_default();
        let odd = self.open_journal(realm, 1)?;
        let even = self.open_journal(realm, 2)?;
        let newest = [odd, even].into_iter().flatten().max_by_key(|journal| journal.header().state.generation);
        let sealed = newest.as_ref().map(|journal| journal.header().state).unwrap_or_default();
        // One ahead: the newest header is lost (it shares no block with anything else), and sled has what it sealed.
        if stored == sealed || stored.generation == sealed.generation + 1 {
            return Ok(RealmSlot::new(realm, stored));
        }
        let lost = || {
            let (has, sealed) = (stored.generation, sealed.generation);
            StoreError::damaged(format!("sled has checkpoint {has} of realm {realm}, but {sealed} was sealed"))
        };
        let journal = newest.filter(|journal| !journal.header().applied && stored.generation + 1 == sealed.generation);
        let journal = journal.ok_or_else(lost)?;
        let Some(changes) = journal.changes().map_err(StoreError::io("read a journal"))? else {
            // A power cut while the journal was synced: this checkpoint never counted.
            return Ok(RealmSlot::new(realm, stored));
        };
        let slot = RealmSlot::new(realm, sealed);
        let overlay = Overlay { journal, changes };
        apply(tree, realm, &overlay)?;
        overlay.journal.retire().map_err(StoreError::io("retire a journal"))?;
        Ok(slot)
    }

    fn open_journal(&self, realm: Realm, generation: u64) -> Result<Option<Journal>, StoreError> {
        let path = journal::path(&self.journals, realm, generation);
        Journal::open(&path, realm).map_err(StoreError::io("open a journal"))
    }

    /// Compares all values of all realms with the realms' digests, as many realms at a time as there are processors.
    pub(super) fn check_all(&self) -> Result<(), StoreError> {
        let realms: Vec<_> = self.realms.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect();
        check_each(&realms, |slot| self.watch(self.check_realm(slot)))
    }

    fn check_realm(&self, slot: &RealmSlot) -> Result<(), StoreError> {
        let view = loop {
            let view = slot.view();
            if view.overlay.is_none() {
                break view;
            }
            drop(view);
            // A commit is under way, or sled failed.
            match self.recover_slot(slot) {
                Err(StoreError::Busy { .. }) => std::thread::sleep(Duration::from_millis(1)),
                outcome => outcome?,
            }
        };
        let tree = self.tree.handle()?;
        let mut found = RealmState { generation: view.state.generation, ..RealmState::default() };
        let prefix = value_key(&slot.realm.prefix());
        tree.scan(&prefix, |physical, frame| {
            let key = physical.get(1..).unwrap_or_default();
            unframe(&tree, slot.realm, key, frame)?;
            found.add(Stamp::split(frame)?.0.element(key));
            Ok(true)
        })?;
        if found == view.state {
            Ok(())
        } else {
            let (realm, count, expected) = (slot.realm, found.count, view.state.count);
            Err(StoreError::damaged(format!("realm {realm} holds {count} pairs that are not the {expected} committed")))
        }
    }
}
