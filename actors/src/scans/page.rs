//! Pages of events, with what their identities and sessions tell about them.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use super::error::Result;
use headcount_domain::facts::Moment;
use headcount_domain::intake::fields::Entry;
use headcount_domain::queries::{EventVisit, VisitsQuery};
use headcount_domain::{Day, Event, IdentityId, Instant, Position, Predicate, ProjectId, SentKeys, Timezone, Window};

use super::events::Scan;
use super::latest::LatestQuestion;
use super::matching::Matching;
use super::page_events::PageEvents;
use super::shared::Scans;
use crate::shard::AskError;

/// How many events the shard is asked about at a time, so that others have their turn.
const EVENTS_A_QUESTION: usize = 64;

/// The order of a page, and where the page begins.
#[derive(Debug, Clone, Copy)]
pub enum PageOrder {
    /// The latest first; of those before a moment.
    LatestFirst {
        /// The moment of the last event of the page before.
        before: Option<Moment>,
    },
    /// In the order of recording; of those after a position.
    Recorded {
        /// The position.
        after: Position,
    },
}

/// Asks for a page of events.
#[derive(Debug, Clone)]
pub struct PageQuestion {
    /// The condition on events.
    pub predicate: Predicate,
    /// The days; `None` for all.
    pub window: Option<Window>,
    /// The order, and where the page begins.
    pub order: PageOrder,
    /// The most events.
    pub limit: usize,
    /// The last position of the first page's answer; `None` for the first page.
    pub until: Option<Position>,
}

/// A page of events.
#[derive(Debug)]
pub struct EventsPage {
    /// The events.
    pub events: Vec<PagedEvent>,
    /// The last position of the project when the first page was asked for. No page has later
    /// events.
    pub until: Position,
    /// Whether more events follow.
    pub has_more: bool,
}

/// An event of a page.
#[derive(Debug)]
pub struct PagedEvent {
    /// Its position.
    pub position: Position,
    /// The event.
    pub event: Box<Event>,
    /// Its identity, after links.
    pub identity: Option<IdentityId>,
    /// The fields of its session.
    pub entry: Option<Entry>,
}

impl Scans {
    /// Returns a page of events.
    ///
    /// A page of the latest events costs the reading of what was not sealed, and of the row groups
    /// that can have events of the page; a condition on sessions, passes over the project's events.
    /// Dropping the future ends it.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn events_page(&self, project: ProjectId, question: PageQuestion) -> Result<EventsPage, AskError> {
        self.scan(project, move |mut scan, sort_bytes| {
            scan.until = question.until.unwrap_or(scan.until).min(scan.until);
            page(&scan, &question, sort_bytes)
        })
        .await
    }
}

/// The days of a window's events before a moment; `None` for all.
fn days_before(window: Option<Window>, before: Option<Moment>) -> Option<Window> {
    let Some(before) = before else { return window };
    // In no timezone is it later than a day after that of UTC.
    let end = Timezone::UTC.day_of(before.time).plus(1);
    let Window { start, end: last } = window.unwrap_or(Window { start: Day(i32::MIN), end });
    Some(Window { start, end: last.min(end) })
}

fn page(scan: &Scan<'_>, question: &PageQuestion, sort_bytes: usize) -> Result<EventsPage> {
    let PageQuestion { predicate, window, limit, .. } = question;
    window.map_or(Ok(()), |window| scan.check_is_kept(window.start))?;
    let mut matching = Matching::new(scan, *window, predicate, sort_bytes)?;
    let mut kept = PageEvents::new(*limit);
    match question.order {
        PageOrder::LatestFirst { before } if !predicate.needs_session() => {
            let question = LatestQuestion { window: *window, predicate, before, limit: *limit };
            scan.find_latest(&question, &mut kept)?;
        }
        PageOrder::LatestFirst { before } => scan.visit_after(0, days_before(*window, before), &mut |position, event| {
            let at = Moment { time: event.time, position };
            if before.is_none_or(|before| at < before) && matching.has(position, &event)? {
                kept.offer(at, event);
            }
            Ok(ControlFlow::Continue(()))
        })?,
        PageOrder::Recorded { after } => scan.visit_after(after, *window, &mut |position, event| {
            if matching.has(position, &event)? {
                // One that finds no room says that more follow.
                if kept.is_full() {
                    kept.cut = Some(Moment { time: Instant(0), position });
                    return Ok(ControlFlow::Break(()));
                }
                kept.append(position, event);
            }
            Ok(ControlFlow::Continue(()))
        })?,
    }
    let mut events: Vec<(Position, Box<Event>)> = kept.events.into_iter().map(|(at, event)| (at.position, event)).collect();
    if matches!(question.order, PageOrder::LatestFirst { .. }) {
        events.reverse();
    }
    let visits = visits(scan, &events)?;
    let entries = entries(scan, &events, &visits)?;
    let paged = |((position, event), visit): ((Position, Box<Event>), Option<EventVisit>)| {
        let entry = visit.as_ref().and_then(|visit| visit.session).map(|session| {
            scan.entry_of(&session).unwrap_or_else(|| Entry {
                url: session.page_at.and_then(|at| entries.get(&at.position)?.url.clone()),
                channel: Some(session.channel),
            })
        });
        PagedEvent { position, event, identity: visit.map(|visit| visit.identity), entry }
    };
    let events = events.into_iter().zip(visits).map(paged).collect();
    Ok(EventsPage { events, until: scan.until, has_more: kept.cut.is_some() })
}

/// Asks the shard for the identities and sessions of events. An event without ids has none.
fn visits(scan: &Scan<'_>, events: &[(Position, Box<Event>)]) -> Result<Vec<Option<EventVisit>>> {
    let hasher = scan.hasher();
    let asked = |(position, event): &(Position, Box<Event>)| {
        let key = SentKeys::of(&event.who, hasher).named()?;
        Some((key, Moment { time: event.time, position: *position }))
    };
    let mut visits = Vec::with_capacity(events.len());
    for events in events.chunks(EVENTS_A_QUESTION) {
        let asked: Vec<_> = events.iter().map(asked).collect();
        let query = VisitsQuery { events: asked.iter().flatten().copied().collect() };
        let mut answers = scan.ask(query)?.into_iter();
        visits.extend(asked.into_iter().map(|asked| asked.and_then(|_| answers.next().flatten())));
    }
    Ok(visits)
}

/// Returns what the events with the first addresses of sessions decide, by position: those in the
/// page, and those that are read for them.
fn entries(
    scan: &Scan<'_>,
    events: &[(Position, Box<Event>)],
    visits: &[Option<EventVisit>],
) -> Result<BTreeMap<Position, Entry>> {
    let sessions = visits.iter().flatten().filter_map(|visit| visit.session);
    let kept = sessions.filter(|session| !scan.is_below_floor(session.day));
    let mut missing: BTreeSet<Position> = kept.filter_map(|session| Some(session.page_at?.position)).collect();
    let mut entries = BTreeMap::new();
    for (position, event) in events {
        if missing.remove(position) {
            entries.insert(*position, Entry::of(event));
        }
    }
    scan.find_events(&missing, &mut |position, event| drop(entries.insert(position, Entry::of(event))))?;
    Ok(entries)
}
