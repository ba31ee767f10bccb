//! Sessions by channel, source, medium and campaign.

use std::io;

use headcount_domain::aggregate::{GroupKey, TopGroups};
use headcount_domain::figures::{EventFigures, OriginRow, SessionOrigins};
use headcount_domain::filter::Predicate;
use headcount_domain::intake::fields::{BuiltIn, Field, Scalar, SessionField};
use headcount_domain::time::{Buckets, Interval, Window};

use super::super::error::ScanError;
use super::super::events::Scan;
use super::carried::Carried;
use super::events::{VisitQuestion, values_of};
use super::fold::{CountedSession, VisitCounts, visit};
use super::rows::RowTable;

/// The lists: by channel, source, medium and campaign.
const LISTS: usize = 4;

/// Counts the sessions that began in a window, in tables and sorts of `sort_bytes` each. Each list has at most `limit` rows.
pub(in super::super) fn traffic(
    scan: &Scan<'_>,
    window: Window,
    limit: usize,
    sort_bytes: usize,
) -> Result<SessionOrigins, ScanError> {
    let dimensions: [Field; LISTS] = [
        Field::BuiltIn(BuiltIn::AcquisitionChannel),
        Field::Session(SessionField::Source),
        Field::Session(SessionField::Medium),
        Field::Session(SessionField::Campaign),
    ];
    let asked = VisitQuestion {
        windows: [Some(Buckets::new(window, Interval::Month, scan.timezone)), None],
        predicate: &Predicate::default(),
        dimensions: &dimensions,
        details: None,
    };
    let rows = RowTable::new(scan.engine.scratch(), sort_bytes);
    let mut counts = SessionCounts { rows, totals: EventFigures::default(), key: Vec::new() };
    visit(scan, &asked, sort_bytes, &mut counts)?;
    let mut lists: [TopGroups<EventFigures>; LISTS] = std::array::from_fn(|_| TopGroups::new(limit));
    counts.rows.finish(scan.cancelled, &mut |key, figures, _| {
        let Some((list, value)) = key.as_bytes().split_first() else { return };
        if let Some(list) = lists.get_mut(usize::from(*list)) {
            list.add(Some(figures.sessions.into()), GroupKey::read(value), figures);
        }
    })?;
    let truncated = lists.iter().any(|list| list.count() > limit as u64);
    let [by_channel, by_source, by_medium, by_campaign] = lists.map(|list| list.finish().map(row).collect());
    Ok(SessionOrigins { totals: counts.totals, by_channel, by_source, by_medium, by_campaign, truncated })
}

fn row((value, figures): (Scalar<'static>, EventFigures)) -> OriginRow {
    let value = if let Scalar::Text(value) = value { value.into_owned() } else { String::new() };
    OriginRow { value, figures }
}

struct SessionCounts {
    /// Sessions by the number of their list and their value in it.
    rows: RowTable,
    totals: EventFigures,
    key: Vec<u8>,
}

impl VisitCounts for SessionCounts {
    fn event(&mut self, _: Option<&CountedSession>, _: &Carried<'_>, _: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn session(&mut self, session: &CountedSession, _: [bool; 2], key: &[u8]) -> io::Result<()> {
        if session.began[0].is_none() {
            return Ok(());
        }
        self.totals.sessions += 1;
        self.totals.bounces += u64::from(session.is_bounce);
        for (list, value) in (0..).zip(values_of(key)) {
            self.key.clear();
            self.key.push(list);
            self.key.extend_from_slice(value);
            let [row, _] = self.rows.row(&self.key)?;
            row.add_session(session);
        }
        Ok(())
    }
}
