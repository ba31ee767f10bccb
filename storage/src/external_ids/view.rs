//! What an index knows but for its active table, for readers on other threads.

use std::sync::Arc;

use super::error::ExternalIdsError;
use super::run::Run;
use super::{ExternalIds, Table};

/// What an index knew at one moment, but for its active table. Costs little to make; the runs stay readable while it lives.
#[derive(Debug, Clone)]
pub struct ExternalIdsView {
    frozen: Option<Arc<Table>>,
    runs: Vec<Arc<Run>>,
}

impl ExternalIds {
    /// What is known outside the active table.
    #[must_use]
    pub fn view(&self) -> ExternalIdsView {
        ExternalIdsView { frozen: self.frozen_table(), runs: self.runs.clone() }
    }
}

impl ExternalIdsView {
    /// The first position that has this fingerprint, if it was known outside the active table.
    ///
    /// # Errors
    /// [`ExternalIdsError::Damaged`], [`ExternalIdsError::Io`].
    pub fn get(&self, fingerprint: u128) -> Result<Option<u64>, ExternalIdsError> {
        first_of(self.frozen.as_deref(), &self.runs, fingerprint)
    }
}

/// The first position that has this fingerprint, of those that a table being written and runs know.
pub(super) fn first_of(frozen: Option<&Table>, runs: &[Arc<Run>], fingerprint: u128) -> Result<Option<u64>, ExternalIdsError> {
    if let Some(known) = frozen.and_then(|table| table.get(&fingerprint)) {
        return Ok(Some(*known));
    }
    let mut first = None;
    for run in runs {
        if let Some(known) = run.get(fingerprint)? {
            first = Some(first.map_or(known, |first: u64| first.min(known)));
        }
    }
    Ok(first)
}
