//! The fields of sessions as their events decide them, for filters and groups of single events.
//!
//! The event that decides a field may come after others of its session, so the events that match
//! wait for the session's end.

use std::io;

use super::error::Result;
use headcount_domain::aggregate::Grouping;
use headcount_domain::intake::fields::{Decider, Entry};
use headcount_domain::{Predicate, RecordKey};

use super::events::Scan;
use super::session_buffer::SessionBuffer;
use super::sessions::{InSession, SessionPlace, Sessions};

/// The event itself matches, apart from its session.
const MATCHES: u8 = 1;
const HAS_PAGE: u8 = 2;
const HAS_SOURCE: u8 = 4;
/// The session matches what is asked of its page if this event decides it.
const PAGE_MATCHES: u8 = 8;
/// The session matches what is asked of its channel if this event decides it.
const SOURCE_MATCHES: u8 = 16;

/// The fields of no session.
const NO_SESSION: Entry = Entry { url: None, channel: None };

/// Returns what an event carries first: what it is to `predicate`, by itself and as one that
/// decides the fields of `entry`.
pub(super) fn flags(predicate: &Predicate, entry: &Entry, has_source: bool, matches: bool) -> u8 {
    let flag = |flag: u8, is_set: bool| if is_set { flag } else { 0 };
    flag(MATCHES, matches)
        | flag(HAS_PAGE, entry.url.is_some())
        | flag(HAS_SOURCE, has_source)
        | flag(PAGE_MATCHES, predicate.matches_decided(Decider::FirstPage, Some(entry)))
        | flag(SOURCE_MATCHES, predicate.matches_decided(Decider::Source, Some(entry)))
}

/// Receives the identity of an event that matches, as its session does, and what the event carries
/// after its flags; if events are grouped by a field of the session, the group.
pub(super) type MatchVisitor<'v> = dyn FnMut(RecordKey, &[u8]) -> io::Result<()> + 'v;

/// Passes the events that match, as their sessions do, to `visit`. If `grouping` is of sessions,
/// events carry the group that they decide after their flags.
pub(super) fn visit_matching(
    sessions: Sessions<'_>,
    scan: &Scan<'_>,
    (predicate, grouping): (&Predicate, Option<&Grouping>),
    sort_bytes: usize,
    visit: &mut MatchVisitor<'_>,
) -> Result<()> {
    let mut open = DecidedSession {
        predicate,
        grouping: grouping.filter(|grouping| grouping.is_by_session()),
        identity: RecordKey(0),
        page: Decision::default(),
        source: Decision::default(),
        group: Vec::new(),
        waiting: SessionBuffer::new(scan.scratch(), sort_bytes),
    };
    sessions.visit(scan, &mut |event| open.add(&event, visit))?;
    Ok(open.end(visit)?)
}

/// Whether the session matches what is asked of some fields, and whether the event that decides
/// them was met.
#[derive(Debug, Clone, Copy, Default)]
struct Decision {
    is_made: bool,
    matches: bool,
}

/// The session that is being read.
struct DecidedSession<'o> {
    predicate: &'o Predicate,
    /// What events are grouped by, if it is a field of the session.
    grouping: Option<&'o Grouping>,
    identity: RecordKey,
    page: Decision,
    source: Decision,
    group: Vec<u8>,
    /// The events that match.
    waiting: SessionBuffer,
}

impl DecidedSession<'_> {
    fn add(&mut self, event: &InSession<'_>, visit: &mut MatchVisitor<'_>) -> io::Result<()> {
        let Some((flags, rest)) = event.carried.split_first() else { return Ok(()) };
        match event.place {
            SessionPlace::Begins => {
                self.end(visit)?;
                self.begin(event.identity, event.earlier_entry.as_ref());
                if event.earlier_entry.is_none() {
                    // Unless a later event has a source, the entry decides.
                    self.source.matches = flags & SOURCE_MATCHES > 0;
                    self.set_group(Decider::Source, rest);
                }
            }
            SessionPlace::Alone => {
                self.end(visit)?;
                self.begin(event.identity, Some(&NO_SESSION));
            }
            SessionPlace::GoesOn => {}
        }
        if event.is_interactive {
            self.decide(*flags, rest);
        }
        if flags & MATCHES > 0 { self.waiting.push(if self.grouping.is_some() { &[] } else { rest }) } else { Ok(()) }
    }

    /// Begins a session. The fields that are `known` are not decided by its events.
    fn begin(&mut self, identity: RecordKey, known: Option<&Entry>) {
        let entry = known.unwrap_or(&NO_SESSION);
        let decision =
            |decider| Decision { is_made: known.is_some(), matches: self.predicate.matches_decided(decider, Some(entry)) };
        (self.page, self.source) = (decision(Decider::FirstPage), decision(Decider::Source));
        self.identity = identity;
        if let Some(grouping) = self.grouping {
            self.group.clear();
            grouping.write_session_key(entry, &mut self.group);
        }
    }

    fn decide(&mut self, flags: u8, rest: &[u8]) {
        if flags & HAS_PAGE > 0 && !self.page.is_made {
            self.page = Decision { is_made: true, matches: flags & PAGE_MATCHES > 0 };
            self.set_group(Decider::FirstPage, rest);
        }
        if flags & HAS_SOURCE > 0 && !self.source.is_made {
            self.source = Decision { is_made: true, matches: flags & SOURCE_MATCHES > 0 };
            self.set_group(Decider::Source, rest);
        }
    }

    /// Sets the group that an event decides, if groups are of a field of this kind.
    fn set_group(&mut self, decider: Decider, group: &[u8]) {
        if self.grouping.is_some_and(|grouping| grouping.by().decider() == Some(decider)) {
            self.group.clear();
            self.group.extend_from_slice(group);
        }
    }

    /// Passes on the events of the session, if it matches.
    fn end(&mut self, visit: &mut MatchVisitor<'_>) -> io::Result<()> {
        if !(self.page.matches && self.source.matches) {
            self.waiting.clear();
            return Ok(());
        }
        let (identity, group) = (self.identity, self.grouping.map(|_| &self.group[..]));
        self.waiting.drain(|rest| visit(identity, group.unwrap_or(rest)))
    }
}
