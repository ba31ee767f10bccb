//! Explains figures of users, sessions and money: each chosen event is looked at by itself, session
//! by session.

use std::io;

use headcount_domain::facts::Moment;
use headcount_domain::figures::{ExplainedFigure, Reason};
use headcount_domain::{Amount, RecordKey};

use super::super::visits::{Carried, CountedIdentity, CountedOwner, CountedSession, Detail, VisitCounts};
use super::found::FoundEvents;

/// What a user or a session contributes.
const ONE: Amount = Amount::from_micros(1_000_000);

/// See the module.
pub(super) struct CountedEvents {
    figure: ExplainedFigure,
    pub(super) found: FoundEvents,
    /// The first chosen event so far of the identity or session that is being met.
    first: Option<FirstEvent>,
}

/// The first chosen event of an identity or a session.
#[derive(Clone, Copy)]
struct FirstEvent {
    /// The number of the identity or session. Its events follow each other.
    number: u64,
    at: Moment,
    identity: RecordKey,
    /// Why it counts, or does not.
    why: Reason,
}

impl CountedEvents {
    pub(super) fn new(figure: ExplainedFigure, found: FoundEvents) -> Self {
        Self { figure, found, first: None }
    }

    /// Returns the events that were found, once all were visited.
    pub(super) fn finish(mut self) -> FoundEvents {
        self.end_first();
        self.found
    }

    /// Meets a chosen event of an identity or a session, which need not be in order within an
    /// instant.
    fn meet(&mut self, event: FirstEvent) {
        if let Some(first) = self.first.as_mut().filter(|first| first.number == event.number) {
            first.at = first.at.min(event.at);
            return;
        }
        self.end_first();
        self.first = Some(event);
    }

    fn end_first(&mut self) {
        match self.first.take() {
            Some(FirstEvent { at, identity, why: Reason::BeganBefore, .. }) => {
                self.found.leave_out(at, Some(identity), Reason::BeganBefore);
            }
            Some(FirstEvent { at, identity, why, .. }) => self.found.add(at, Some(identity), ONE, why),
            None => {}
        }
    }

    fn add_of_identity(&mut self, identity: CountedIdentity, session: Option<&CountedSession>, at: Moment) {
        let CountedIdentity { key: identity, number } = identity;
        match session {
            _ if self.figure == ExplainedFigure::UniqueUsers => {
                self.meet(FirstEvent { number, at, identity, why: Reason::FirstOfUser });
            }
            Some(session) => {
                let why = if session.began[0].is_some() { Reason::FirstOfSession } else { Reason::BeganBefore };
                self.meet(FirstEvent { number: session.number, at, identity, why });
            }
            None => self.found.leave_out(at, Some(identity), Reason::NoSession),
        }
    }
}

impl VisitCounts for CountedEvents {
    fn event(&mut self, of: CountedOwner<'_>, event: &Carried<'_>, key: &[u8]) -> io::Result<()> {
        let detail = Detail::read(key);
        let Some(at) = detail.at else { return Ok(()) };
        if self.figure.is_of_money() {
            let identity = of.identity.map(|identity| identity.key);
            match self.figure.of_money(event.money, detail.is_server_only) {
                Some(Ok((contributes, why))) => self.found.add(at, identity, contributes, why),
                Some(Err(why)) => self.found.leave_out(at, identity, why),
                None => {}
            }
            return Ok(());
        }
        match of.identity {
            Some(identity) => self.add_of_identity(identity, of.session, at),
            None if !detail.has_consent => self.found.leave_out(at, None, Reason::NoConsent),
            None => {}
        }
        Ok(())
    }

    fn session(&mut self, _: &CountedSession, _: [bool; 2], _: &[u8]) -> io::Result<()> {
        Ok(())
    }
}
