//! The first events after a position that somebody wants.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use headcount_domain::{Event, Position, ProjectId};

use super::shared::Scans;
use crate::shard::AskError;

/// What was taken of the first events after a position.
#[derive(Debug)]
pub struct FirstEvents<T> {
    /// What was taken, in order.
    pub taken: Vec<T>,
    /// Up to here, there are no others.
    pub until: Position,
    /// Whether events follow that were not read.
    pub has_more: bool,
}

impl Scans {
    /// Returns what `take` makes of the first events after a position that it wants, each with its
    /// size in bytes, until there are `most` of them or they have `most_bytes`. Costs one pass over
    /// the events up to the last of them, and asks no shard about any.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn first_after<T: Send + 'static>(
        &self,
        project: ProjectId,
        after: Position,
        (most, most_bytes): (usize, usize),
        take: fn(Position, &Event) -> Option<(T, usize)>,
    ) -> Result<FirstEvents<T>, AskError> {
        self.scan(project, move |scan, _| {
            let mut first = FirstEvents { taken: Vec::new(), until: scan.until.max(after), has_more: false };
            let mut bytes = 0;
            scan.visit_after(after, None, &mut |position, event| {
                let Some((taken, of_taken)) = take(position, &event) else { return Ok(ControlFlow::Continue(())) };
                bytes += of_taken;
                first.taken.push(taken);
                if first.taken.len() < most && bytes < most_bytes {
                    return Ok(ControlFlow::Continue(()));
                }
                (first.until, first.has_more) = (position, true);
                Ok(ControlFlow::Break(()))
            })?;
            Ok(first)
        })
        .await
    }

    /// Returns those of the positions that still have an event.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn existing(&self, project: ProjectId, positions: BTreeSet<Position>) -> Result<BTreeSet<Position>, AskError> {
        self.scan(project, move |scan, _| {
            let mut found = BTreeSet::new();
            scan.find_events(&positions, &mut |position, _| {
                found.insert(position);
            })?;
            Ok(found)
        })
        .await
    }
}
