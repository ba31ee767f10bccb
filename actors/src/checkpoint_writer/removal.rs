//! Deletes a project's data from the store, between two checkpoints.

use std::ops::ControlFlow;
use std::sync::mpsc::Sender;

use headcount_storage::keyspace::PartitionId;
use headcount_storage::store::{Store, StoreError};

/// The pairs under some prefixes, to be deleted.
pub(super) struct Removal {
    /// The part of the store.
    pub(super) stored_as: PartitionId,
    pub(super) prefixes: Vec<Vec<u8>>,
    pub(super) reply: Sender<Result<(), StoreError>>,
}

impl Removal {
    /// Deletes the pairs, in their own commit.
    pub(super) fn run(self, store: &dyn Store) {
        // If the engine stops, the receiver is gone, and the next start repeats the removal.
        let _ = self.reply.send(remove(store, self.stored_as, &self.prefixes));
    }
}

fn remove(store: &dyn Store, stored_as: PartitionId, prefixes: &[Vec<u8>]) -> Result<(), StoreError> {
    store.recover(stored_as)?;
    let mut keys = Vec::new();
    for prefix in prefixes {
        store.scan(prefix, &mut |key, _| {
            keys.push(key.to_vec());
            ControlFlow::Continue(())
        })?;
    }
    let mut checkpoint = store.begin(stored_as)?;
    keys.iter().try_for_each(|key| checkpoint.delete(key))?;
    // Committed even without keys, since this removes the rewritten files.
    checkpoint.commit()
}
