//! The properties in the metadata of the events of a window.

use std::collections::HashMap;

use super::error::Result;
use headcount_archive::schema::METADATA;
use headcount_domain::aggregate::{FieldRanking, MetadataFields, TypeCounts};
use headcount_domain::intake::fields::{ScalarType, visit_paths};
use headcount_domain::{Event, Position, ProjectId, Window};

use super::events::{Scan, Tally, TallyError};
use super::group_table::GroupTable;
use super::sealed_group::SealedGroup;
use super::shared::Scans;
use crate::shard::AskError;

impl Scans {
    /// Returns the properties in the metadata of the events of `window`: the `limit` that the most
    /// events have.
    ///
    /// Costs a pass over the project's events. Dropping the future ends it.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn metadata_fields(&self, project: ProjectId, window: Window, limit: usize) -> Result<MetadataFields, AskError> {
        self.scan(project, move |scan, sort_bytes| scan.metadata_fields(window, limit, sort_bytes)).await
    }
}

/// The number of events by path and type.
type PathCounts = HashMap<(String, ScalarType), u64>;

impl Scan<'_> {
    fn metadata_fields(&self, window: Window, limit: usize, sort_bytes: usize) -> Result<MetadataFields> {
        self.check_is_kept(window.start)?;
        let mut tally = FieldTally { window, fields: GroupTable::new(self.scratch(), sort_bytes) };
        self.tally(0, Some(window), &|group: &SealedGroup<'_>| read_paths(window, group), &mut tally)?;
        let mut ranking = FieldRanking::new(limit);
        tally.fields.visit(self.cancelled, &mut |path, group| {
            ranking.add(&String::from_utf8_lossy(path), TypeCounts::of_group(group));
            Ok(())
        })?;
        Ok(ranking.finish())
    }
}

/// Reads the paths of a row group's metadata. Metadata that several events share is read once.
fn read_paths(window: Window, group: &SealedGroup<'_>) -> Result<PathCounts, TallyError> {
    let mut rows = group.counted()?;
    group.retain_days(&mut rows, window)?;
    let mut counts = PathCounts::new();
    if rows.is_empty() {
        return Ok(counts);
    }
    let texts = group.texts(METADATA)?;
    let mut events = vec![0_u64; texts.null() as usize + 1];
    rows.for_each(|row| events[texts.codes()[row] as usize] += 1);
    for (code, events) in (0..).zip(events).filter(|(_, events)| *events > 0) {
        let Some(json) = texts.value(code) else { continue };
        visit_paths(json, &mut |path, kind| *counts.entry((path.to_owned(), kind)).or_default() += events);
    }
    Ok(counts)
}

/// Counts the events that have each path.
struct FieldTally {
    window: Window,
    fields: GroupTable,
}

impl Tally<PathCounts> for FieldTally {
    fn group(&mut self, counts: PathCounts) -> Result<()> {
        for ((path, kind), events) in counts {
            self.fields.add(path.as_bytes(), TypeCounts::of(kind, events).to_group())?;
        }
        Ok(())
    }

    fn event(&mut self, _: Position, event: &Event) -> Result<()> {
        let Some(json) = event.details.metadata.as_deref().filter(|_| self.window.contains(event.day)) else { return Ok(()) };
        let mut added = Ok(());
        visit_paths(json, &mut |path, kind| {
            if added.is_ok() {
                added = self.fields.add(path.as_bytes(), TypeCounts::of(kind, 1).to_group());
            }
        });
        Ok(added?)
    }
}
