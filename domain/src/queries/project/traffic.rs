//! The sessions of a window, by source, medium, campaign and channel.

use std::collections::HashMap;
use std::hash::Hash;

use crate::acquisition::{DIRECT, NONE};
use crate::cells::count_of;
use crate::facts::Touch;
use crate::fault::Fault;
use crate::indexes::dictionary::TermId;
use crate::money::ratio_of_counts;
use crate::queries::answers::{Listed, Traffic, TrafficRow};
use crate::queries::partial::{Query, Reader, candidates, rank};
use crate::records::Source;
use crate::rollups::Visits;
use crate::time::Window;
use crate::versions::{Depends, FigureKind};
use serde::{Deserialize, Serialize};

/// Asks for the sessions that began in a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrafficQuery {
    /// The days.
    pub window: Window,
    /// The most rows of each list.
    pub limit: usize,
}

impl Query for TrafficQuery {
    type Partial = Traffic;

    fn depends(&self) -> Depends {
        Depends::Days(&[FigureKind::Traffic], self.window)
    }

    fn answer<S: Source>(&self, reader: &mut Reader<'_, S>) -> Result<Traffic, Fault> {
        let traffic = &reader.project.rollups.traffic;
        let rows = || traffic.between(self.window.start.0, self.window.end.0);
        let by = |name: fn(&Touch) -> Option<TermId>| {
            sums(rows().map(|((.., touch), visits)| (touch.as_ref().and_then(name), visits)))
        };
        let sources = by(Touch::source);
        let (mediums, campaigns) = (by(|touch| Some(touch.medium)), by(|touch| Some(touch.campaign)));
        let channels = sums(rows().map(|((_, channel, _), visits)| (channel, visits)));
        let total = channels.values().copied().fold(Visits::default(), Visits::plus);

        let channels = channels.into_iter().map(|(channel, visits)| row(channel.name().to_owned(), visits));
        let mut named = |sums, nothing| named(sums, nothing, self.limit, reader);
        Ok(Traffic {
            sessions: total.sessions,
            bounces: total.bounces,
            bounce_rate: ratio_of_counts(count_of(total.bounces), count_of(total.sessions)),
            by_channel: listed(channels.collect(), self.limit),
            by_source: named(sources, DIRECT)?,
            by_medium: named(mediums, NONE)?,
            by_campaign: named(campaigns, NONE)?,
        })
    }
}

fn sums<K: Eq + Hash>(rows: impl Iterator<Item = (K, Visits)>) -> HashMap<K, Visits> {
    let mut sums: HashMap<K, Visits> = HashMap::new();
    for (key, visits) in rows {
        let sum = sums.entry(key).or_default();
        *sum = sum.plus(visits);
    }
    sums
}

/// Looks up the names of the first rows. Rows without a source, and rows that lack only a medium or
/// a campaign, get the name `nothing`.
fn named<S: Source>(
    mut sums: HashMap<Option<TermId>, Visits>,
    nothing: &str,
    limit: usize,
    reader: &mut Reader<'_, S>,
) -> Result<Listed<TrafficRow>, Fault> {
    if let Some(missing) = sums.remove(&None) {
        let id = reader.project.dictionary.find(nothing, reader.hasher, reader.source)?;
        let sum = sums.entry(id).or_default();
        *sum = sum.plus(missing);
    }
    let mut sums: Vec<(Option<TermId>, Visits)> = sums.into_iter().collect();
    let total = sums.len();
    candidates(&mut sums, limit, |(_, visits)| visits.sessions);
    let mut rows = Vec::with_capacity(sums.len());
    for (id, visits) in sums {
        let name = match id {
            Some(id) => reader.project.dictionary.text(id, reader.source)?,
            None => nothing,
        };
        rows.push(row(name.to_owned(), visits));
    }
    Ok(Listed { truncated: total > limit, ..listed(rows, limit) })
}

fn row(name: String, visits: Visits) -> TrafficRow {
    TrafficRow { name, sessions: visits.sessions, bounces: visits.bounces }
}

fn listed(mut rows: Vec<TrafficRow>, limit: usize) -> Listed<TrafficRow> {
    rank(&mut rows, |row| row.sessions, |row| row.name.clone());
    let truncated = rows.len() > limit;
    rows.truncate(limit);
    Listed { rows, truncated }
}
