//! Passes over all events of a question, in the order of recording.

use std::ops::ControlFlow;

use headcount_domain::{Event, Position, Predicate, ProjectId, Window};

use super::events::Scan;
use super::matching::Matching;
use super::shared::Scans;
use crate::admission_gate::Holder;
use crate::shard::AskError;

/// Receives the events of an export, one by one.
pub trait ExportSink: Send + 'static {
    /// Takes an event, and waits for room for it if need be. Ends the export with
    /// [`ControlFlow::Break`].
    fn take(&mut self, position: Position, event: Box<Event>) -> ControlFlow<()>;
}

impl Scans {
    /// Passes the events of a project that were recorded before the call to `sink`, lowest position
    /// first, and returns it. `window` is `None` for all days. Dropping the future ends the export.
    ///
    /// # Errors
    /// [`AskError::Busy`] if too many exports are under way, and those of [`AskError`].
    pub async fn export_events<S: ExportSink>(
        &self,
        project: ProjectId,
        window: Option<Window>,
        predicate: Predicate,
        mut sink: S,
    ) -> Result<S, AskError> {
        let organization = self.questions.organization_of(project).map(Holder::Organization);
        let turn = self.exports.take_for([organization, None], 1).map_err(|_| AskError::Busy)?;
        let check = move |scan: &Scan<'_>| window.map_or(Ok(()), |window| scan.check_is_kept(window.start));
        self.scan_with(turn, project, move |mut scan, sort_bytes| {
            check(&scan)?;
            let mut matching = Matching::new(&scan, window, &predicate, sort_bytes)?;
            scan.visit_after(0, window, &mut |position, event| {
                Ok(if matching.has(position, &event)? { sink.take(position, event) } else { ControlFlow::Continue(()) })
            })?;
            // Files may have been removed meanwhile.
            scan.floor = scan.scans.questions.known_floor(project);
            check(&scan)?;
            Ok(sink)
        })
        .await
    }
}
