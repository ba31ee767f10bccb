//! Reading all runs, to find damage before it is met.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Instant;

use super::super::error::StoreError;
use super::super::parallel::check_each;
use super::Tables;
use crate::pace::{self, Pace};
use crate::sstable::reader::Run;

impl Tables {
    /// Reads everything and checks it.
    pub(in crate::store) fn verify(&self) -> Result<(), StoreError> {
        self.verify_until(None).map(drop)
    }

    /// Checks runs until a time, as many at once as there are processors, and returns those that are left.
    pub(in crate::store) fn verify_until(&self, deadline: Option<Instant>) -> Result<UncheckedTables, StoreError> {
        let slots = self.slots.read().unwrap_or_else(PoisonError::into_inner);
        let runs: Vec<Arc<Run>> = slots.values().flat_map(|slot| slot.runs().to_vec()).collect();
        drop(slots);
        let left = Mutex::new(Vec::new());
        check_each(&runs, |run| {
            if !run.verify(&mut pace::until(deadline))? {
                left.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::downgrade(run));
            }
            Ok(())
        })?;
        Ok(UncheckedTables(left.into_inner().unwrap_or_else(PoisonError::into_inner)))
    }
}

/// Tables that were opened and not read yet. One that is merged away meanwhile was read by the merge.
#[derive(Debug)]
pub struct UncheckedTables(Vec<Weak<Run>>);

impl UncheckedTables {
    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Reads them and checks them, unless `pace` breaks it off.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] if something is missing or changed, [`StoreError::Io`].
    pub fn check(&self, pace: &mut Pace<'_>) -> Result<(), StoreError> {
        for run in self.0.iter().filter_map(Weak::upgrade) {
            if !run.verify(pace)? {
                break;
            }
        }
        Ok(())
    }
}
