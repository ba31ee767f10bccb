//! Fills rollups that a saved state lacks: a version saved it that did not have them yet.

use crate::company::AccountSlot;
use crate::contribution::{EntityKind, Sign};
use crate::facts::DirtyRange;
use crate::fault::Fault;
use crate::fold::contribute_own;
use crate::identity::IdentitySlot;
use crate::project::Project;
use crate::records::{SavedRecords, page_key};

impl Project {
    /// Replaces the rows of the rollups with `tags` by the contributions of the saved facts. Facts
    /// keep all days, so the days below the floor are filled too. The floor has to be restored
    /// afterwards.
    ///
    /// # Errors A record could not be read.
    pub fn fill_rollups(&mut self, tags: &[u8], saved: &impl SavedRecords) -> Result<(), Fault> {
        let mut filled = Self::new(self.limits);
        saved.each_record::<IdentitySlot>(&mut |_, slot| {
            let IdentitySlot::Canonical(mut identity) = slot else { return Ok(()) };
            let member = identity.history_key;
            identity.facts.load_all(|serial| saved.page::<IdentitySlot>(page_key(member, serial)))?;
            contribute_own(&mut filled, &identity, &DirtyRange::ANY, Sign::Plus);
            Ok(())
        })?;
        saved.each_record::<AccountSlot>(&mut |key, slot| {
            let AccountSlot::Canonical(mut account) = slot else { return Ok(()) };
            account.facts.load_all(|serial| saved.page::<AccountSlot>(page_key(key, serial)))?;
            filled.rollups.contribute(EntityKind::Account, &account.facts, Sign::Plus, &DirtyRange::ANY);
            Ok(())
        })?;
        self.rollups.adopt(tags, filled.rollups);
        Ok(())
    }
}
