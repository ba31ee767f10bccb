//! The links of ids whose first events may be gone: below the floor of a project. The shard knows them.

use std::io;

use headcount_domain::identity::IdentityLink;
use headcount_domain::ids::RecordKey;

use super::error::ScanError;
use super::events::{IDS_A_QUESTION, Scan};
use super::external_sort::Sorter;
use super::links::{KEY, Links, bytes, key_of};

/// Collects the ids of events, on disk.
pub(super) struct LinkedIds {
    ids: Sorter<KEY>,
}

impl LinkedIds {
    /// Prepares to collect ids; `None` if the project has no floor, so that the scan meets every link.
    pub(super) fn of(scan: &Scan<'_>, sort_bytes: usize) -> Option<Self> {
        scan.floor.map(|_| Self { ids: Sorter::new(scan.engine.scratch(), KEY, sort_bytes) })
    }

    /// Adds an id. Users are never linked.
    pub(super) fn add(&mut self, id: RecordKey) -> io::Result<()> {
        if id.is_user() { Ok(()) } else { self.ids.push(bytes(id)) }
    }

    /// Adds the links of all ids to `links`.
    pub(super) fn link(self, scan: &Scan<'_>, links: &mut Links<'_>) -> Result<(), ScanError> {
        let (mut last, mut asked) = (None, Vec::new());
        for id in self.ids.finish()? {
            let id = key_of(&id?);
            if last.replace(id) != Some(id) {
                asked.push(id);
            }
            if asked.len() >= IDS_A_QUESTION {
                push(scan, std::mem::take(&mut asked), links)?;
            }
        }
        push(scan, asked, links)
    }
}

fn push(scan: &Scan<'_>, ids: Vec<RecordKey>, links: &mut Links<'_>) -> Result<(), ScanError> {
    if ids.is_empty() {
        return Ok(());
    }
    // The shard knows the first link of an id, which comes before all that the scan meets.
    let first = |link: IdentityLink| IdentityLink { position: 0, ..link };
    scan.linked(ids)?.try_for_each(|link| Ok(links.push(first(link))?))
}
