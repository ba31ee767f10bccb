//! Sessions by source, medium, campaign and channel, as the embedded engine reports them.

use crate::frozen::Visit;
use std::collections::BTreeMap;

/// A name, with its number of sessions and of bounces.
pub type Row = (String, i64, i64);

/// The sessions of a project.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// The number of sessions.
    pub sessions: i64,
    /// The number of sessions with exactly one event.
    pub bounces: i64,
    /// By source, sorted by sessions, descending.
    pub by_source: Vec<Row>,
    /// By medium.
    pub by_medium: Vec<Row>,
    /// By campaign.
    pub by_campaign: Vec<Row>,
    /// By channel.
    pub by_channel: Vec<Row>,
}

/// Counts sessions.
#[must_use]
pub fn traffic(visits: &[Visit]) -> Traffic {
    let by = |name: &dyn Fn(&Visit) -> String| {
        let mut rows: BTreeMap<String, (i64, i64)> = BTreeMap::new();
        for visit in visits {
            let row = rows.entry(name(visit)).or_default();
            row.0 += 1;
            row.1 += i64::from(visit.is_bounce);
        }
        let mut rows: Vec<Row> = rows.into_iter().map(|(name, (sessions, bounces))| (name, sessions, bounces)).collect();
        rows.sort_by_key(|(_, sessions, _)| -sessions);
        rows
    };
    Traffic {
        sessions: i64::try_from(visits.len()).expect("not that many"),
        bounces: by(&|_| String::new()).first().map_or(0, |(_, _, bounces)| *bounces),
        by_source: by(&|visit| visit.origin.source.clone()),
        by_medium: by(&|visit| visit.origin.medium.clone()),
        by_campaign: by(&|visit| visit.origin.campaign.clone()),
        by_channel: by(&|visit| visit.channel.clone()),
    }
}
