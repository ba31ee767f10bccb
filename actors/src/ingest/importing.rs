//! Imports into the data directory of this process: records their events, and reads the marks of
//! killed imports from the log.

use std::ops::ControlFlow;
use std::sync::Arc;

use headcount_domain::{Fault, Position, ProjectId};
use headcount_storage::log::Record;

use super::receipt::ImportReceipt;
use super::tracking::has_notification;
use super::{Ingest, Prepared, Refusal, TrackError};
use crate::admission_gate::Permit;
use crate::event_codec;
use crate::fault;
use crate::import_mark::ImportMark;
use crate::intake_counts::DropCounts;

impl Ingest {
    /// Records a part of an imported file, with its mark if the import can be resumed after it.
    /// Parts are recorded in the order of the calls, whenever the returned futures are polled. No
    /// quota applies, since quotas guard against clients and not against the operator.
    ///
    /// # Errors
    /// Nothing was recorded. For errors of the future, see [`TrackError`].
    pub fn record_imported(
        self: &Arc<Self>,
        project: ProjectId,
        prepared: Vec<Result<Prepared, Refusal>>,
        mark: Option<&ImportMark>,
        mut permit: Permit,
    ) -> Result<impl Future<Output = Result<ImportReceipt, TrackError>> + use<>, TrackError> {
        permit.keep(self.questions.erasures.epoch());
        let mut drops = DropCounts::default();
        let (kept, mut batch) = self.keep(prepared, &mut drops)?;
        let (events, places) = (kept.events, kept.places);
        let (mut waiting, notifies) = (None, has_notification(&events));
        if !events.is_empty() {
            self.admission.accepts(project).map_err(|why| TrackError::Unavailable(why.into()))?;
            waiting = Some(self.tracker.record_part(events, mark, permit));
        }
        let ingest = Arc::clone(self);
        Ok(async move {
            let outcomes = match waiting {
                Some(waiting) => waiting.await?,
                None => Vec::new(),
            };
            let position = outcomes.last().map(|outcome| outcome.position);
            if notifies {
                ingest.tell_of_notification(project);
            }
            batch.apply(outcomes, &places, &mut drops);
            ingest.count_batch(project, &batch, &drops);
            Ok(ImportReceipt { batch, position })
        })
    }

    /// Keeps the log after `position` for imports, replacing the former position; `None` keeps
    /// nothing.
    pub fn keep_for_imports(&self, position: Option<Position>) {
        self.imports.keep_after(position);
    }

    /// Returns the marks of an import in the log after a position, in order. Blocking.
    ///
    /// # Errors
    /// The log can't be read.
    pub fn import_marks(&self, import: u64, after: Position) -> Result<Vec<ImportMark>, Fault> {
        let (mut marks, mut undecoded) = (Vec::new(), Ok(()));
        let mut visit = |record: Record<'_>| match event_codec::mark(record.payload) {
            Ok(mark) => {
                marks.extend(mark.filter(|mark| mark.import == import));
                ControlFlow::Continue(())
            }
            Err(error) => {
                undecoded = Err(Fault::damaged_log(error.to_string()));
                ControlFlow::Break(())
            }
        };
        self.imports.log.read(&|_| Some(after), &mut visit).map_err(fault::of_log)?;
        undecoded.map(|()| marks)
    }
}
