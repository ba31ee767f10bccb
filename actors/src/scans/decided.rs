//! The fields of sessions as their events decide them, for filters and groups of single events.
//!
//! The event that decides a field may come after others of its session, so the events that match
//! wait for the session's end.

use std::io;

use super::error::Result;
use headcount_domain::aggregate::Grouping;
use headcount_domain::intake::fields::{Decider, Entry};
use headcount_domain::{PartSet, Predicate, RecordKey};

use super::events::Scan;
use super::people::People;
use super::session_buffer::SessionBuffer;
use super::sessions::{InSession, SessionPlace, Sessions};

/// The event itself matches, apart from its session.
const MATCHES: u8 = 1;
const HAS_PAGE: u8 = 2;
const HAS_SOURCE: u8 = 4;
/// The bytes of an event's parts, which follow its flags.
const PARTS: usize = size_of::<u64>();

/// The fields of no session.
const NO_SESSION: Entry = Entry { url: None, channel: None };

/// Returns what an event carries first: what it is to a predicate, by itself and as one that
/// decides the fields of `entry`.
pub(super) fn flags(parts: PartSet, entry: &Entry, has_source: bool, matches: bool) -> [u8; 1 + PARTS] {
    let flag = |flag: u8, is_set: bool| if is_set { flag } else { 0 };
    let mut flags = [0; 1 + PARTS];
    flags[0] = flag(MATCHES, matches) | flag(HAS_PAGE, entry.url.is_some()) | flag(HAS_SOURCE, has_source);
    flags[1..].copy_from_slice(&parts.0.to_le_bytes());
    flags
}

/// Returns the flags and the parts of an event, and what follows them.
fn read_flags(carried: &[u8]) -> Option<(u8, PartSet, &[u8])> {
    let (flags, rest) = carried.split_first()?;
    let (parts, rest) = rest.split_first_chunk::<PARTS>()?;
    Some((*flags, PartSet(u64::from_le_bytes(*parts)), rest))
}

/// Receives the identity of an event that matches, as its session does, and what the event carries
/// after its flags; if events are grouped by a field of the session, the group.
pub(super) type MatchVisitor<'v> = dyn FnMut(RecordKey, &[u8]) -> io::Result<()> + 'v;

/// Passes the events that match, as their sessions do, to `visit`. If `grouping` is of sessions,
/// events carry the group that they decide after their flags.
pub(super) fn visit_matching(
    sessions: Sessions<'_>,
    scan: &Scan<'_>,
    (predicate, mut people): (&Predicate, Option<People>),
    grouping: Option<&Grouping>,
    sort_bytes: usize,
    visit: &mut MatchVisitor<'_>,
) -> Result<()> {
    let mut visit = |identity: RecordKey, carried: &[u8]| {
        let is_wanted = people.as_mut().map_or(Ok(true), |people| Ok::<_, io::Error>(people.windows_of(identity)? > 0))?;
        if is_wanted { visit(identity, carried) } else { Ok(()) }
    };
    let mut open = DecidedSession {
        predicate,
        grouping: grouping.filter(|grouping| grouping.is_by_session()),
        identity: RecordKey(0),
        parts: PartSet::default(),
        has_page: false,
        has_source: false,
        group: Vec::new(),
        waiting: SessionBuffer::new(scan.scratch(), sort_bytes),
    };
    sessions.visit(scan, &mut |event| open.add(&event, &mut visit))?;
    Ok(open.end(&mut visit)?)
}

/// The session that is being read.
struct DecidedSession<'o> {
    predicate: &'o Predicate,
    /// What events are grouped by, if it is a field of the session.
    grouping: Option<&'o Grouping>,
    identity: RecordKey,
    /// The parts of the session that hold, as far as its events decided them.
    parts: PartSet,
    /// Whether the page and the source are decided.
    has_page: bool,
    has_source: bool,
    group: Vec<u8>,
    /// The parts of the events that match, and what else they carry.
    waiting: SessionBuffer,
}

impl DecidedSession<'_> {
    fn add(&mut self, event: &InSession<'_>, visit: &mut MatchVisitor<'_>) -> io::Result<()> {
        let Some((flags, parts, rest)) = read_flags(event.carried) else { return Ok(()) };
        match event.place {
            SessionPlace::Begins => {
                self.end(visit)?;
                self.begin(event.identity, event.earlier_entry.as_ref());
                if event.earlier_entry.is_none() {
                    // Unless a later event has a source, the entry decides.
                    self.decide(Decider::Source, parts, rest);
                }
            }
            SessionPlace::Alone => {
                self.end(visit)?;
                self.begin(event.identity, Some(&NO_SESSION));
            }
            SessionPlace::GoesOn => {}
        }
        if event.is_interactive && flags & HAS_PAGE > 0 {
            self.decide(Decider::LastPage, parts, rest);
            if !std::mem::replace(&mut self.has_page, true) {
                self.decide(Decider::FirstPage, parts, rest);
            }
        }
        if event.is_interactive && flags & HAS_SOURCE > 0 && !std::mem::replace(&mut self.has_source, true) {
            self.decide(Decider::Source, parts, rest);
        }
        if flags & MATCHES == 0 {
            return Ok(());
        }
        let end = if self.grouping.is_some() { 1 + PARTS } else { event.carried.len() };
        self.waiting.push(&[&event.carried[..end]])
    }

    /// Begins a session. The fields that are `known` are not decided by its events.
    fn begin(&mut self, identity: RecordKey, known: Option<&Entry>) {
        let entry = known.unwrap_or(&NO_SESSION);
        self.parts = self.predicate.parts_in(Some(entry));
        (self.has_page, self.has_source) = (known.is_some(), known.is_some());
        self.identity = identity;
        if let Some(grouping) = self.grouping {
            self.group.clear();
            grouping.write_session_key(entry, &mut self.group);
        }
    }

    /// Takes the parts that an event decides, and the group, if groups are of such a field.
    fn decide(&mut self, decider: Decider, parts: PartSet, group: &[u8]) {
        self.parts = self.parts.replaced(self.predicate.mask(Some(decider)), parts);
        if self.grouping.is_some_and(|grouping| grouping.by().decider() == Some(decider)) {
            self.group.clear();
            self.group.extend_from_slice(group);
        }
    }

    /// Passes on the events of the session that match.
    fn end(&mut self, visit: &mut MatchVisitor<'_>) -> io::Result<()> {
        let (identity, group) = (self.identity, self.grouping.map(|_| &self.group[..]));
        let Self { predicate, parts: session, waiting, .. } = self;
        let own = predicate.mask(None);
        waiting.drain(|carried| match read_flags(carried) {
            Some((_, parts, rest)) if predicate.holds(session.replaced(own, parts)) => visit(identity, group.unwrap_or(rest)),
            _ => Ok(()),
        })
    }
}
