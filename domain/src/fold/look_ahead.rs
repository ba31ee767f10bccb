//! Prefetches the records of the next events before they are folded.

use crate::company::AccountSlot;
use crate::identity::{Identity, IdentitySlot, SentKeys};
use crate::ids::RecordKey;
use crate::project::Project;

impl Project {
    /// Prefetches the records that folding events with these keys will change, if they are in
    /// memory. Returns a number that depends on everything read.
    ///
    /// A fold waits for the memory of one record after the other, because each step depends on the
    /// one before. The reads here are independent, so the processor waits for many events at once.
    #[must_use]
    pub fn look_ahead(&self, keys: &[SentKeys]) -> u64 {
        let named = keys.iter().flat_map(|keys| [keys.user, keys.other]).flatten();
        let of_identity = named.filter_map(|key| self.identity_in_memory(key)).map(|identity| identity.facts.look_ahead());
        let read = of_identity.fold(0, |read, part| read ^ part);
        let named = keys.iter().filter_map(|keys| self.identity_in_memory(keys.named()?));
        named.fold(read, |read, identity| read ^ self.look_ahead_at_company(identity))
    }

    fn identity_in_memory(&self, key: RecordKey) -> Option<&Identity> {
        match self.people.peek(key)? {
            IdentitySlot::Canonical(identity) => Some(identity),
            // The event of a linked anonymous id usually has its user, too.
            IdentitySlot::Alias { .. } => None,
        }
    }

    fn look_ahead_at_company(&self, identity: &Identity) -> u64 {
        let Some(association) = identity.company else { return 0 };
        let group = self.groups.peek(association.company).map_or(0, |group| group.look_ahead(identity.history_key));
        match self.accounts.peek(association.company) {
            Some(AccountSlot::Canonical(account)) => group ^ account.facts.look_ahead(),
            _ => group,
        }
    }
}
