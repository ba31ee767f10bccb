//! Funnels: the events that fit steps, sorted by entity and time, so that chains are found entity
//! by entity.

mod chains;
mod counts;
mod people;
mod record;

use std::io;

use headcount_domain::figures::{ChainLength, FunnelSteps, StepOrder};
use headcount_domain::intake::fields::Field;
use headcount_domain::queries::EntityLevel;
use headcount_domain::{Predicate, Window};

use super::super::accounts::{Accounts, ENTITY, EntityKey};
use super::super::error::{Result, check};
use super::super::events::Scan;
use super::super::record_sort::{RecordSorter, SortedRecords};
use super::carried::Carried;
use super::detail::{Detail, WantedDetails};
use super::events::{VisitQuestion, VisitWindow, after_values, values_of};
use super::fold::{CountedOwner, CountedSession, VisitCounts};
use super::goal_set::GoalSet;
use super::people::visit_chosen;
use record::FoundStep;

pub(in super::super) use counts::funnel;

/// A funnel has some sorts besides those of sessions. Together they have the memory of one.
const SHARE: usize = 4;

/// Asks for the events that fit steps, of all entities.
struct StepsQuestion<'q> {
    windows: [Option<Window>; 2],
    predicate: &'q Predicate,
    steps: &'q FunnelSteps,
    breakdown: Option<&'q Field>,
}

impl StepsQuestion<'_> {
    /// Whether sessions decide the answer.
    fn needs_sessions(&self) -> bool {
        self.steps.length == ChainLength::Session
            || self.breakdown.is_some_and(Field::of_session)
            || self.predicate.reads_sessions()
            || self.steps.steps.iter().any(Predicate::reads_sessions)
    }
}

/// Returns the events that fit steps: those of each entity follow each other, in the order of their
/// sequences and times.
fn find_steps(scan: &Scan<'_>, question: &StepsQuestion<'_>, sort_bytes: usize) -> Result<SortedRecords> {
    let StepsQuestion { windows, predicate, steps, breakdown } = question;
    let of_accounts = steps.level == EntityLevel::Account;
    let reaching = |window: Window| VisitWindow::Reaching(window, steps.length.until(window, scan.timezone));
    let asked = VisitQuestion {
        windows: windows.map(|window| window.map(reaching)),
        predicate,
        goals: GoalSet::new(&steps.steps),
        // In a strict order, events that fit no step end chains.
        only_goals: steps.order != StepOrder::Strict,
        needs_sessions: question.needs_sessions(),
        dimensions: breakdown.map_or(&[], std::slice::from_ref),
        details: of_accounts.then_some(WantedDetails { only_money: false, touches: None, companies: true }),
    };
    let sorter = || RecordSorter::new(scan.scratch(), sort_bytes / SHARE);
    let accounts = of_accounts.then(|| Accounts::read(scan, sort_bytes / SHARE)).transpose()?;
    let values = asked.dimensions.len();
    let mut found = FoundSteps { steps, accounts, values, lonely: 0, found: sorter(), record: Vec::new() };
    visit_chosen(scan, &asked, sort_bytes, &mut found)?;
    let FoundSteps { accounts, found, .. } = found;
    let found = found.finish()?;
    match accounts {
        Some(accounts) => of_their_accounts(scan, accounts, found, sorter()),
        None => Ok(found),
    }
}

/// Sorts the steps of companies by their accounts.
fn of_their_accounts(
    scan: &Scan<'_>,
    accounts: Accounts,
    mut found: SortedRecords,
    mut resolved: RecordSorter,
) -> Result<SortedRecords> {
    let mut domains = accounts.finish(scan)?;
    while let Some(record) = found.next()? {
        check(scan.cancelled)?;
        let (entity, rest) = record.split_at(ENTITY.min(record.len()));
        resolved.push(&[&domains.account(EntityKey::read(entity))?.to_bytes(), rest])?;
    }
    Ok(resolved.finish()?)
}

/// Collects the events that fit steps.
struct FoundSteps<'q> {
    steps: &'q FunnelSteps,
    /// `None`: entities are identities.
    accounts: Option<Accounts>,
    /// The number of values in the keys of events.
    values: usize,
    /// The number of events that are in no session.
    lonely: u64,
    found: RecordSorter,
    record: Vec<u8>,
}

impl FoundSteps<'_> {
    /// Whether a chain can begin in the sequence of an event: no chain begins after the windows.
    fn can_begin(&self, session: Option<&CountedSession>, event: &Carried<'_>) -> bool {
        if self.steps.length != ChainLength::Session {
            return true;
        }
        let began = session.map_or(event.buckets, |session| session.began);
        event.buckets.iter().zip(began).any(|(bucket, began)| bucket.is_some() && began != Some(1))
    }

    /// The sequence of an event: all events of an entity are one, unless chains end with sessions.
    fn sequence(&mut self, session: Option<&CountedSession>) -> u64 {
        match (self.steps.length, session) {
            (ChainLength::Within(_), _) => 0,
            (ChainLength::Session, Some(session)) => session.number,
            (ChainLength::Session, None) => {
                self.lonely += 1;
                u64::MAX - self.lonely
            }
        }
    }
}

impl VisitCounts for FoundSteps<'_> {
    fn event(&mut self, of: CountedOwner<'_>, event: &Carried<'_>, key: &[u8]) -> io::Result<()> {
        let Some((identity, met)) = of.identity.zip(of.met) else { return Ok(()) };
        let is_wanted = match self.steps.order {
            StepOrder::Strict => met.is_interactive,
            StepOrder::Loose | StepOrder::Any => !event.goals_met.is_empty(),
        };
        if !is_wanted || !self.can_begin(of.session, event) {
            return Ok(());
        }
        let entity = match &mut self.accounts {
            Some(accounts) => accounts.of(identity.key, Detail::read(after_values(event.key, self.values)).company)?,
            None => EntityKey::of_identity(identity.key),
        };
        let step = FoundStep {
            sequence: self.sequence(of.session),
            at: met.at,
            windows: event.buckets,
            steps: event.goals_met.iter().fold(0, |steps, step| steps | 1 << step),
            money: event.money,
            // Only the event that begins a chain tells its row.
            value: values_of(key).next().filter(|_| self.values > 0 && event.buckets[0] == Some(0)).unwrap_or_default(),
        };
        self.record.clear();
        step.write(entity, &mut self.record);
        self.found.push(&[&self.record])
    }

    fn session(&mut self, _: &CountedSession, _: [bool; 2], _: &[u8]) -> io::Result<()> {
        Ok(())
    }
}
