//! Explains figures of users, sessions and money: each chosen event is looked at by itself, session by session.

use std::io;

use headcount_domain::facts::Moment;
use headcount_domain::figures::{ExplainedFigure, Reason};
use headcount_domain::money::Amount;

use super::super::visits::{Carried, CountedSession, Detail, VisitCounts};
use super::found::FoundEvents;

/// What a user or a session contributes.
const ONE: Amount = Amount::from_micros(1_000_000);

/// See the module.
pub(super) struct CountedEvents {
    figure: ExplainedFigure,
    pub(super) found: FoundEvents,
    /// The number of the identity or session that was met last.
    last: u64,
}

impl CountedEvents {
    pub(super) fn new(figure: ExplainedFigure, found: FoundEvents) -> Self {
        Self { figure, found, last: 0 }
    }

    /// Whether the event is the first one of this number. The events of a number follow each other.
    fn is_first_of(&mut self, number: u64) -> bool {
        std::mem::replace(&mut self.last, number) != number
    }

    fn add_of_session(&mut self, session: &CountedSession, at: Moment) {
        let identity = Some(session.identity_key);
        if self.figure == ExplainedFigure::UniqueUsers {
            if self.is_first_of(session.identity) {
                self.found.add(at, identity, ONE, Reason::FirstOfUser);
            }
        } else if self.is_first_of(session.number) {
            match session.began[0] {
                Some(_) => self.found.add(at, identity, ONE, Reason::FirstOfSession),
                None => self.found.leave_out(at, identity, Reason::BeganBefore),
            }
        }
    }
}

impl VisitCounts for CountedEvents {
    fn event(&mut self, session: Option<&CountedSession>, event: &Carried<'_>, key: &[u8]) -> io::Result<()> {
        let detail = Detail::read(key);
        let Some(at) = detail.at else { return Ok(()) };
        let identity = session.map(|session| session.identity_key);
        if self.figure.is_of_money() {
            match self.figure.of_money(event.money, detail.is_server_only) {
                Some(Ok((contributes, why))) => self.found.add(at, identity, contributes, why),
                Some(Err(why)) => self.found.leave_out(at, identity, why),
                None => {}
            }
            return Ok(());
        }
        match session {
            Some(session) => self.add_of_session(session, at),
            None if !detail.has_consent => self.found.leave_out(at, None, Reason::NoConsent),
            None => {}
        }
        Ok(())
    }

    fn session(&mut self, _: &CountedSession, _: [bool; 2], _: &[u8]) -> io::Result<()> {
        Ok(())
    }
}
