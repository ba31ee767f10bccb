//! The pass: session by session, each with its chosen events once it is known whether they are
//! chosen.

use std::io;

use super::super::error::Result;
use headcount_domain::intake::fields::{BuiltIn, Decider, Entry, Field, Scalar};
use headcount_domain::{PartSet, RecordKey};

use super::super::events::Scan;
use super::super::people::{HeldWindows, People};
use super::super::session_buffer::SessionBuffer;
use super::super::sessions::{InSession, SessionPlace, Sessions};
use super::carried::{Carried, MetAt};
use super::events::{VisitQuestion, add_events, write_value};

/// The identity of an event that is counted.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct CountedIdentity {
    pub(in super::super) key: RecordKey,
    /// Rises from identity to identity. The events of an identity follow each other.
    pub(in super::super) number: u64,
}

/// A session that matches what is asked of it.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct CountedSession {
    pub(in super::super) number: u64,
    /// The bucket of each window in which it began.
    pub(in super::super) began: [Option<u16>; 2],
    pub(in super::super) is_bounce: bool,
    pub(in super::super) duration_ms: u64,
}

/// Whose a counted event is, and the session that has it or that it is attached to.
#[derive(Debug, Clone, Copy, Default)]
pub(in super::super) struct CountedOwner<'s> {
    /// `None` if the event has no ids.
    pub(in super::super) identity: Option<CountedIdentity>,
    pub(in super::super) session: Option<&'s CountedSession>,
    /// `None` if the event has no ids.
    pub(in super::super) met: Option<MetAt>,
}

/// Counts chosen events, and the sessions that hold them.
pub(in super::super) trait VisitCounts {
    /// Sees any event of an identity, whether or not it is chosen.
    fn met(&mut self, _identity: RecordKey, _event: &InSession<'_>, _key: &[u8]) -> io::Result<()> {
        Ok(())
    }

    /// Counts a chosen event, which is in a window. Of one instant, interactive events come first.
    fn event(&mut self, of: CountedOwner<'_>, event: &Carried<'_>, key: &[u8]) -> io::Result<()>;

    /// Counts a session, after its events. `holds` says in which windows it holds a chosen event.
    fn session(&mut self, session: &CountedSession, holds: [bool; 2], key: &[u8]) -> io::Result<()>;
}

/// Counts what `question` asks for, of `people` or of all, in sorts of `sort_bytes`.
pub(in super::super) fn visit(
    scan: &Scan<'_>,
    question: &VisitQuestion<'_>,
    people: Option<People>,
    sort_bytes: usize,
    counts: &mut dyn VisitCounts,
) -> Result<()> {
    let mut sessions = Sessions::new(scan, sort_bytes);
    let null_key = question.null_key();
    let (is_of_session, mut met) = (question.decided_by().is_some(), Vec::new());
    add_events(scan, question, &mut sessions, &mut |carried| {
        let mut event = Carried::read(carried);
        question.goals.met(event.goals, &question.goals.parts_in(None), &mut met);
        event.goals_met = &met;
        let key = if is_of_session { &null_key } else { event.key };
        if question.chooses_of_nobody(&event) { counts.event(CountedOwner::default(), &event, key) } else { Ok(()) }
    })?;
    let buffer = SessionBuffer::new(scan.scratch(), sort_bytes);
    let mut open = SessionFold::new(question, counts, (buffer, people));
    sessions.visit(scan, &mut |event| open.add(&event))?;
    Ok(open.end()?)
}

/// The session that is being read.
struct SessionFold<'v> {
    question: &'v VisitQuestion<'v>,
    counts: &'v mut dyn VisitCounts,
    identity: Option<CountedIdentity>,
    people: Option<People>,
    /// The windows in which the conditions on people hold for the identity.
    held: HeldWindows,
    /// Whether there is a session; else there are only events that are attached to none.
    is_session: bool,
    session: CountedSession,
    first_ms: i64,
    last_ms: i64,
    /// The number of interactive events.
    events: u64,
    /// The parts of the session that hold, as far as its events decided them.
    parts: PartSet,
    /// The same, for each goal that depends on sessions.
    of_goals: Vec<PartSet>,
    /// Whether the first page and the source are decided.
    has_page: bool,
    has_source: bool,
    /// The values that belong to the session.
    key: Vec<u8>,
    null_key: Vec<u8>,
    /// The events that may be chosen.
    chosen: SessionBuffer,
}

impl<'v> SessionFold<'v> {
    fn new(
        question: &'v VisitQuestion<'v>,
        counts: &'v mut dyn VisitCounts,
        (chosen, people): (SessionBuffer, Option<People>),
    ) -> Self {
        Self {
            question,
            counts,
            identity: None,
            people,
            held: HeldWindows::MAX,
            is_session: false,
            session: CountedSession { number: 0, began: [None; 2], is_bounce: false, duration_ms: 0 },
            first_ms: 0,
            last_ms: 0,
            events: 0,
            parts: PartSet::default(),
            of_goals: Vec::new(),
            has_page: false,
            has_source: false,
            key: Vec::new(),
            null_key: question.null_key(),
            chosen,
        }
    }

    fn add(&mut self, event: &InSession<'_>) -> io::Result<()> {
        let carried = Carried::read(event.carried);
        if event.place != SessionPlace::GoesOn {
            self.end()?;
            self.begin(event, &carried)?;
        }
        self.counts.met(event.identity, event, carried.key)?;
        if event.is_interactive {
            self.events += 1;
            self.last_ms = event.time_ms;
            self.meet(&carried);
        }
        if carried.may_count() { self.chosen.push(&[&MetAt::of(event).to_bytes(), event.carried]) } else { Ok(()) }
    }

    /// Begins a session, or events without one.
    fn begin(&mut self, event: &InSession<'_>, carried: &Carried<'_>) -> io::Result<()> {
        if self.identity.is_none_or(|identity| identity.key != event.identity) {
            let number = self.identity.map_or(0, |identity| identity.number) + 1;
            self.identity = Some(CountedIdentity { key: event.identity, number });
            if let Some(people) = &mut self.people {
                self.held = people.windows_of(event.identity)?;
            }
        }
        self.is_session = event.place == SessionPlace::Begins;
        self.session.number += u64::from(self.is_session);
        (self.first_ms, self.last_ms, self.events) = (event.time_ms, event.time_ms, 0);
        (self.session.began, self.parts) = (carried.buckets, self.question.predicate.parts_in(event.earlier_entry.as_ref()));
        self.of_goals = self.question.goals.parts_in(event.earlier_entry.as_ref());
        (self.has_page, self.has_source) = (event.earlier_entry.is_some(), event.earlier_entry.is_some());
        self.key.clear();
        self.key.extend_from_slice(&self.null_key);
        match &event.earlier_entry {
            Some(entry) => self.begin_below_floor(entry),
            // Unless a later event has a source, the entry decides.
            None if self.is_session => self.decide(Decider::Source, carried),
            None => {}
        }
        Ok(())
    }

    /// Begins a session whose entry is not kept: it began before the windows, and only its channel
    /// and its exit are known.
    fn begin_below_floor(&mut self, entry: &Entry) {
        let value = |field: &Field| match field {
            Field::BuiltIn(BuiltIn::AcquisitionChannel) => field.value_of_session(Some(entry)),
            _ => Scalar::Null,
        };
        self.session.began = [None; 2];
        if self.question.decided_by() == Some(Decider::Source) {
            self.key.clear();
            self.question.dimensions.iter().for_each(|field| write_value(&value(field), &mut self.key));
        }
    }

    /// Takes what an interactive event decides.
    fn meet(&mut self, event: &Carried<'_>) {
        if event.has_page {
            self.decide(Decider::LastPage, event);
            if !std::mem::replace(&mut self.has_page, true) {
                self.decide(Decider::FirstPage, event);
            }
        }
        if event.has_source && !std::mem::replace(&mut self.has_source, true) {
            self.decide(Decider::Source, event);
        }
    }

    /// Takes the parts that an event decides, and the values, if rows are of such.
    fn decide(&mut self, decider: Decider, event: &Carried<'_>) {
        self.parts = self.parts.replaced(self.question.predicate.mask(Some(decider)), event.parts);
        self.question.goals.decide(decider, event.goals, &mut self.of_goals);
        if self.question.decided_by() == Some(decider) {
            self.key.clear();
            self.key.extend_from_slice(event.key);
        }
    }

    /// Counts the events of the session that match, and the session if it has any.
    fn end(&mut self) -> io::Result<()> {
        if self.held == 0 || !self.question.predicate.may_hold_in(self.parts) {
            self.chosen.clear();
            return Ok(());
        }
        let windows = self.held;
        let held = |window: usize| windows >> window & 1 > 0;
        (0..2).filter(|window| !held(*window)).for_each(|window| self.session.began[window] = None);
        self.session.is_bounce = self.events == 1;
        self.session.duration_ms = u64::try_from(self.last_ms.saturating_sub(self.first_ms)).unwrap_or_default();
        let Self { identity, is_session, session, counts, key, chosen, question, parts, of_goals, .. } = self;
        let is_of_session = question.decided_by().is_some();
        let (session, key) = (&*session, &key[..]);
        let owner = CountedOwner { identity: *identity, session: Some(session).filter(|_| *is_session), met: None };
        let (mut holds, mut met) = ([false; 2], Vec::new());
        chosen.drain(|record| {
            let Some((at, carried)) = MetAt::read(record) else { return Ok(()) };
            let (of, mut event) = (CountedOwner { met: Some(at), ..owner }, Carried::read(carried));
            if !question.chooses(&event, *parts) {
                return Ok(());
            }
            question.goals.met(event.goals, of_goals, &mut met);
            event.goals_met = &met;
            (0..2).filter(|window| !held(*window)).for_each(|window| event.buckets[window] = None);
            (0..2).for_each(|window| holds[window] |= event.buckets[window].is_some());
            if !event.may_count() {
                return Ok(());
            }
            counts.event(of, &event, if is_of_session { key } else { event.key })
        })?;
        if holds == [false; 2] || !*is_session { Ok(()) } else { counts.session(session, holds, key) }
    }
}
