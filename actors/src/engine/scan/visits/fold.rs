//! The pass: session by session, each with its chosen events once it is known whether they are chosen.

use std::io;

use headcount_domain::filter::Filter;
use headcount_domain::ids::RecordKey;
use headcount_domain::intake::fields::{BuiltIn, Entry, Field, Scalar, SessionEnd};

use super::super::error::ScanError;
use super::super::events::Scan;
use super::super::sessions::{InSession, Sessions};
use super::carried::Carried;
use super::events::{VisitQuestion, add_events, write_value};
use super::session_buffer::SessionBuffer;

/// A session that matches what is asked of it.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct CountedSession {
    /// The key of its identity.
    pub(in super::super) identity_key: RecordKey,
    /// The number of its identity. The sessions of an identity follow each other.
    pub(in super::super) identity: u64,
    pub(in super::super) number: u64,
    /// The bucket of each window in which it began.
    pub(in super::super) began: [Option<u16>; 2],
    pub(in super::super) is_bounce: bool,
    pub(in super::super) duration_ms: u64,
}

/// Counts chosen events, and the sessions that hold them.
pub(in super::super) trait VisitCounts {
    /// Sees the entry of a session, whether or not the session matches.
    fn entry(&mut self, _session: &CountedSession, _entry: &InSession<'_>, _key: &[u8]) -> io::Result<()> {
        Ok(())
    }

    /// Counts a chosen event, which is in a window; `session` is `None` if it has no ids.
    fn event(&mut self, session: Option<&CountedSession>, event: &Carried<'_>, key: &[u8]) -> io::Result<()>;

    /// Counts a session, after its events. `holds` says in which windows it holds a chosen event.
    fn session(&mut self, session: &CountedSession, holds: [bool; 2], key: &[u8]) -> io::Result<()>;
}

/// Counts what `question` asks for, in sorts of `sort_bytes`.
pub(in super::super) fn visit(
    scan: &Scan<'_>,
    question: &VisitQuestion<'_>,
    sort_bytes: usize,
    counts: &mut dyn VisitCounts,
) -> Result<(), ScanError> {
    let mut sessions = Sessions::new(scan, sort_bytes);
    let null_key = question.null_key();
    let is_of_session = question.decided_by().is_some();
    let all_hold_for_null = |end| question.predicate.of_session_end(end).all(|filter| filter.holds(&Scalar::Null));
    let chooses_alone = all_hold_for_null(SessionEnd::Entry) && all_hold_for_null(SessionEnd::Exit);
    add_events(scan, question, &mut sessions, &mut |carried| {
        let event = Carried::read(carried);
        let key = if is_of_session { &null_key } else { event.key };
        if chooses_alone { counts.event(None, &event, key) } else { Ok(()) }
    })?;
    let buffer = SessionBuffer::new(scan.engine.scratch(), sort_bytes);
    let mut open = SessionFold::new(question, counts, buffer, all_hold_for_null(SessionEnd::Exit));
    sessions.visit(scan, &mut |event| open.add(&event))?;
    Ok(open.end()?)
}

/// The session that is being read.
struct SessionFold<'v> {
    question: &'v VisitQuestion<'v>,
    counts: &'v mut dyn VisitCounts,
    identity: Option<RecordKey>,
    session: CountedSession,
    first_ms: i64,
    last_ms: i64,
    events: u64,
    entry_matches: bool,
    /// What holds if no event has an address.
    no_exit_matches: bool,
    exit_matches: bool,
    /// The values that belong to the session.
    key: Vec<u8>,
    null_key: Vec<u8>,
    /// The events that are chosen if the session is.
    chosen: SessionBuffer,
}

impl<'v> SessionFold<'v> {
    fn new(
        question: &'v VisitQuestion<'v>,
        counts: &'v mut dyn VisitCounts,
        chosen: SessionBuffer,
        no_exit_matches: bool,
    ) -> Self {
        let session = CountedSession {
            identity_key: RecordKey(0),
            identity: 0,
            number: 0,
            began: [None; 2],
            is_bounce: false,
            duration_ms: 0,
        };
        Self {
            question,
            counts,
            identity: None,
            session,
            first_ms: 0,
            last_ms: 0,
            events: 0,
            entry_matches: false,
            no_exit_matches,
            exit_matches: false,
            key: Vec::new(),
            null_key: question.null_key(),
            chosen,
        }
    }

    fn add(&mut self, event: &InSession<'_>) -> io::Result<()> {
        let carried = Carried::read(event.carried);
        if event.is_entry {
            self.end()?;
            self.begin(event, &carried);
            if event.earlier_entry.is_none() {
                self.counts.entry(&self.session, event, carried.key)?;
            }
        }
        self.events += 1;
        self.last_ms = event.time_ms;
        if carried.can_be_exit {
            self.exit_matches = carried.exit_matches;
            if self.question.decided_by() == Some(SessionEnd::Exit) {
                self.key.clear();
                self.key.extend_from_slice(carried.key);
            }
        }
        if carried.may_count() { self.chosen.push(event.carried) } else { Ok(()) }
    }

    fn begin(&mut self, event: &InSession<'_>, carried: &Carried<'_>) {
        if self.identity != Some(event.identity) {
            self.identity = Some(event.identity);
            self.session.identity_key = event.identity;
            self.session.identity += 1;
        }
        self.session.number += 1;
        (self.first_ms, self.events, self.exit_matches) = (event.time_ms, 0, self.no_exit_matches);
        (self.session.began, self.entry_matches) = (carried.buckets, carried.entry_matches);
        let is_by_entry = self.question.decided_by() == Some(SessionEnd::Entry);
        self.key.clear();
        self.key.extend_from_slice(if is_by_entry { carried.key } else { &self.null_key });
        if let Some(entry) = &event.earlier_entry {
            self.begin_below_floor(entry, is_by_entry);
        }
    }

    /// Begins a session whose entry is not kept: it began before the windows, and only its channel is known.
    fn begin_below_floor(&mut self, entry: &Entry, is_by_entry: bool) {
        let value = |field: &Field| match field {
            Field::BuiltIn(BuiltIn::AcquisitionChannel) => field.value_of_session(Some(entry)),
            _ => Scalar::Null,
        };
        let holds = |filter: &Filter| filter.holds(&value(filter.field()));
        self.session.began = [None; 2];
        self.entry_matches = self.question.predicate.of_session_end(SessionEnd::Entry).all(holds);
        if is_by_entry {
            self.key.clear();
            self.question.dimensions.iter().for_each(|field| write_value(&value(field), &mut self.key));
        }
    }

    /// Counts the session, if there is one and it matches.
    fn end(&mut self) -> io::Result<()> {
        if self.session.number == 0 || !self.entry_matches || !self.exit_matches {
            self.chosen.clear();
            return Ok(());
        }
        self.session.is_bounce = self.events == 1;
        self.session.duration_ms = u64::try_from(self.last_ms.saturating_sub(self.first_ms)).unwrap_or_default();
        let Self { session, counts, key, chosen, question, .. } = self;
        let is_of_session = question.decided_by().is_some();
        let (session, key) = (&*session, &key[..]);
        let mut holds = [false; 2];
        chosen.drain(|carried| {
            let event = Carried::read(carried);
            (0..2).for_each(|window| holds[window] |= event.buckets[window].is_some());
            counts.event(Some(session), &event, if is_of_session { key } else { event.key })
        })?;
        if holds == [false; 2] { Ok(()) } else { counts.session(session, holds, key) }
    }
}
