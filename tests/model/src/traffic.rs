//! Sessions by source, medium, campaign and channel, which only the embedded engine reports.

use crate::acquisition::{DIRECT, Origin, channel, origin};
use crate::facts::Facts;
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

/// Counts the sessions of a project whose entries satisfy `is_in`.
#[must_use]
pub fn traffic(facts: &Facts<'_>, project: &str, is_in: impl Fn(i64) -> bool) -> Traffic {
    let entered = |entry: usize| facts.events[entry].project == project && is_in(facts.events[entry].at_ms);
    let sessions: Vec<_> = facts.sessions.iter().filter(|session| entered(session.entry())).collect();
    let by = |name: &dyn Fn(usize) -> String| {
        let mut rows: BTreeMap<String, (i64, i64)> = BTreeMap::new();
        for session in &sessions {
            let row = rows.entry(name(session.entry())).or_default();
            row.0 += 1;
            row.1 += i64::from(session.events.len() == 1);
        }
        let mut rows: Vec<Row> = rows.into_iter().map(|(name, (sessions, bounces))| (name, sessions, bounces)).collect();
        rows.sort_by_key(|(_, sessions, _)| -sessions);
        rows
    };
    let touch = |entry: usize| {
        let origin = origin(&facts.events[entry]);
        if origin.source == DIRECT { Origin::direct() } else { origin }
    };
    Traffic {
        sessions: i64::try_from(sessions.len()).expect("not that many"),
        bounces: by(&|_| String::new()).first().map_or(0, |(_, _, bounces)| *bounces),
        by_source: by(&|entry| touch(entry).source),
        by_medium: by(&|entry| touch(entry).medium),
        by_campaign: by(&|entry| touch(entry).campaign),
        by_channel: by(&|entry| channel(&facts.events[entry])),
    }
}
