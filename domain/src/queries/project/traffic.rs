//! The sessions of a window, by source, medium, campaign and channel.

use std::collections::HashMap;
use std::hash::Hash;

use crate::acquisition::{DIRECT, NONE};
use crate::cells::count_of;
use crate::facts::Touch;
use crate::fault::Fault;
use crate::indexes::dictionary::TermId;
use crate::money::ratio_of_counts;
use crate::queries::answers::{Traffic, TrafficRow};
use crate::queries::partial::{Query, Reader, rank};
use crate::records::Source;
use crate::rollups::Visits;
use crate::time::Window;
use crate::versions::{Depends, FigureKind};
use serde::{Deserialize, Serialize};

/// Asks for the sessions that began in a window.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct TrafficQuery {
    /// The days.
    pub window: Window,
}

impl Query for TrafficQuery {
    type Partial = Traffic;

    fn depends(&self) -> Depends {
        Depends::Days(&[FigureKind::Traffic], self.window)
    }

    fn answer<S: Source>(&self, reader: &mut Reader<'_, S>) -> Result<Traffic, Fault> {
        let traffic = &reader.project.rollups.traffic;
        let rows = || traffic.between(self.window.start.0, self.window.end.0);
        let by = |name: fn(&Touch) -> TermId| sums(rows().map(|((_, _, touch), visits)| (touch.as_ref().map(name), visits)));
        let (sources, mediums, campaigns) = (by(|touch| touch.source), by(|touch| touch.medium), by(|touch| touch.campaign));
        let channels = sums(rows().map(|((_, channel, _), visits)| (channel, visits)));
        let total = channels.values().copied().fold(Visits::default(), Visits::plus);

        let channels = channels.into_iter().map(|(channel, visits)| row(channel.name().to_owned(), visits));
        Ok(Traffic {
            sessions: total.sessions,
            bounces: total.bounces,
            bounce_rate: ratio_of_counts(count_of(total.bounces), count_of(total.sessions)),
            by_channel: ranked(channels.collect()),
            by_source: named(sources, DIRECT, reader)?,
            by_medium: named(mediums, NONE, reader)?,
            by_campaign: named(campaigns, NONE, reader)?,
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

/// Names the rows. Rows without a source get the name `nothing`, as do rows that only lack a medium or a campaign.
fn named<S: Source>(
    mut sums: HashMap<Option<TermId>, Visits>,
    nothing: &str,
    reader: &mut Reader<'_, S>,
) -> Result<Vec<TrafficRow>, Fault> {
    if let Some(missing) = sums.remove(&None) {
        let id = reader.project.dictionary.find(nothing, reader.hasher, reader.source)?;
        let sum = sums.entry(id).or_default();
        *sum = sum.plus(missing);
    }
    let mut rows = Vec::with_capacity(sums.len());
    for (id, visits) in sums {
        let name = match id {
            Some(id) => reader.project.dictionary.text(id, reader.source)?,
            None => nothing,
        };
        rows.push(row(name.to_owned(), visits));
    }
    Ok(ranked(rows))
}

fn row(name: String, visits: Visits) -> TrafficRow {
    TrafficRow { name, sessions: visits.sessions, bounces: visits.bounces }
}

fn ranked(mut rows: Vec<TrafficRow>) -> Vec<TrafficRow> {
    rank(&mut rows, |row| row.sessions, |row| row.name.clone());
    rows
}
