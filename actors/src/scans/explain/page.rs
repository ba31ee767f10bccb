//! Pages of explanations.

use std::collections::{BTreeMap, BTreeSet};

use headcount_common::partition_of;
use headcount_domain::facts::Moment;
use headcount_domain::figures::{ExplainPlace, ExplainQuestion, ExplainedEvent, Explanation};
use headcount_domain::queries::{EntityLevel, VisitsQuery};
use headcount_domain::{IdentityId, Instant, Position, ProjectId, RecordKey, SentKeys};
use xxhash_rust::xxh3::Xxh3;

use super::super::error::{Result, check};
use super::super::events::Scan;
use super::super::shared::Scans;
use super::super::visits::{GoalSet, VisitQuestion, VisitWindow, WantedDetails, visit_chosen};
use super::attribution::AttributedEvents;
use super::counted::CountedEvents;
use super::found::{FoundEvent, FoundEvents, FoundList};
use crate::shard::AskError;

/// How long the pages of an explanation can be asked for after the first one.
const LIFE_MS: i64 = 15 * 60 * 1000;
/// Attribution has four sorts besides those of sessions. Together they have the memory of one.
const SHARE_OF_ATTRIBUTION: usize = 4;
/// How many events the shard is asked about at a time, so that others have their turn.
const EVENTS_A_QUESTION: usize = 64;

/// Why there is no page of an explanation.
#[derive(Debug, thiserror::Error)]
pub enum ExplainError {
    /// The pages are of a state that is not known any more, or their time is over: begin with the
    /// first page.
    #[error("the pages of this explanation have expired")]
    Expired,
    /// The project gave no answer.
    #[error(transparent)]
    Ask(#[from] AskError),
}

impl Scans {
    /// Returns a number that changes with every start, erasure, and new floor of a project, and
    /// when events were set aside: what pages of an explanation can't outlive.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn explain_state(&self, project: ProjectId) -> Result<u64, AskError> {
        let floor = self.questions.floor(project).await?;
        let mut hash = Xxh3::new();
        hash.update(&self.questions.start_number(project).to_le_bytes());
        hash.update(&self.questions.reflected_erasures(project).to_le_bytes());
        hash.update(&self.dead.count_of(partition_of(project)).to_le_bytes());
        hash.update(&floor.map_or(i32::MIN, |floor| floor.0).to_le_bytes());
        Ok(hash.digest())
    }

    /// Checks that a page of an explanation can be asked for.
    ///
    /// # Errors
    /// [`ExplainError::Expired`] 15 minutes after the first page, and after a start or an erasure.
    pub async fn check_explain_place(&self, project: ProjectId, place: &ExplainPlace) -> Result<(), ExplainError> {
        let age_ms = self.questions.clock().now().0.saturating_sub(place.began.0);
        let state = self.explain_state(project).await?;
        let is_known = place.state == state && (0..LIFE_MS).contains(&age_ms);
        if is_known && place.until <= self.questions.last(project).await? { Ok(()) } else { Err(ExplainError::Expired) }
    }

    /// Explains a figure: which events make it up, and which are not counted.
    ///
    /// Each page costs a pass over the project's events, and one or two sorts of them; revenue
    /// under touches of accounts costs another. Dropping the future ends it.
    ///
    /// # Errors
    /// See [`ExplainError`].
    pub async fn explain(&self, project: ProjectId, question: ExplainQuestion) -> Result<Explanation, ExplainError> {
        if let Some(place) = &question.place {
            self.check_explain_place(project, place).await?;
        }
        let began = question.place.map_or_else(|| self.questions.clock().now(), |place| place.began);
        let (state, is_first) = (self.explain_state(project).await?, question.place.is_none());
        let explanation = self.scan(project, move |mut scan, sort_bytes| {
            scan.until = question.place.map_or(scan.until, |place| place.until.min(scan.until));
            explain(&scan, &question, (began, state), sort_bytes)
        });
        let explanation = explanation.await.map_err(|error| match error {
            AskError::BelowFloor(_) if !is_first => ExplainError::Expired,
            error => error.into(),
        })?;
        // What was read while it changed may be of neither state.
        match self.explain_state(project).await? == state {
            true => Ok(explanation),
            false if is_first => Err(AskError::NoAnswer.into()),
            false => Err(ExplainError::Expired),
        }
    }
}

fn explain(
    scan: &Scan<'_>,
    question: &ExplainQuestion,
    (began, state): (Instant, u64),
    sort_bytes: usize,
) -> Result<Explanation> {
    scan.check_is_kept(question.window.start)?;
    let FoundEvents { result, rows, not_counted } = find(scan, question, sort_bytes)?;
    let has_more = rows.has_more || not_counted.has_more;
    let last = [rows.last(), not_counted.last()];
    let next = has_more.then_some(ExplainPlace { until: scan.until, began, state, last });
    let mut shown = ShownEvents::read(scan, [&rows, &not_counted])?;
    Ok(Explanation { result, rows: shown.list(&rows)?, not_counted: shown.list(&not_counted)?, until: scan.until, next })
}

/// Finds the events of a page, and the figure.
fn find(scan: &Scan<'_>, question: &ExplainQuestion, sort_bytes: usize) -> Result<FoundEvents> {
    let ExplainQuestion { figure, attributed, window, predicate, limit, place } = question;
    let found = FoundEvents::new(*limit, *place);
    let asked = VisitQuestion {
        windows: [Some(VisitWindow::Whole(*window)), None],
        predicate,
        goals: GoalSet::new(&[]),
        only_goals: false,
        needs_sessions: true,
        dimensions: &[],
        details: Some(WantedDetails {
            only_money: figure.is_of_money(),
            touches: attributed.as_ref(),
            companies: attributed.as_ref().is_some_and(|attributed| attributed.level == EntityLevel::Account),
        }),
    };
    match attributed {
        Some(attributed) => {
            let mut events = AttributedEvents::new(scan, attributed, found, sort_bytes / SHARE_OF_ATTRIBUTION)?;
            visit_chosen(scan, &asked, sort_bytes, &mut events)?;
            events.finish()
        }
        None => {
            let mut events = CountedEvents::new(*figure, found);
            visit_chosen(scan, &asked, sort_bytes, &mut events)?;
            Ok(events.finish())
        }
    }
}

/// The events of a page as they are shown, by position.
struct ShownEvents(BTreeMap<Position, ExplainedEvent>);

impl ShownEvents {
    /// Reads the events of some lists.
    fn read(scan: &Scan<'_>, lists: [&FoundList; 2]) -> Result<Self> {
        let found: BTreeMap<Moment, FoundEvent> =
            lists.into_iter().flat_map(|list| &list.events).map(|(at, event)| (*at, *event)).collect();
        let positions: BTreeSet<Position> = found.keys().map(|at| at.position).collect();
        let of_position: BTreeMap<Position, (Moment, FoundEvent)> =
            found.iter().map(|(at, event)| (at.position, (*at, *event))).collect();
        let (hasher, mut shown) = (scan.hasher(), BTreeMap::new());
        let mut linked: Vec<(Position, RecordKey, Moment)> = Vec::new();
        scan.find_events(&positions, &mut |position, event| {
            let Some((at, FoundEvent { identity, contributes, why })) = of_position.get(&position).copied() else { return };
            let named = SentKeys::of(&event.who, hasher).named();
            // The id that it names is that of its identity, unless that is linked to a user.
            let id = identity.filter(|identity| named == Some(*identity)).map(|_| event.who.id());
            if let Some(user) = identity.filter(|_| id.is_none()) {
                linked.push((position, user, at));
            }
            shown.insert(position, ExplainedEvent::new(event, at, id, contributes, why));
        })?;
        let mut shown = Self(shown);
        shown.name_users(scan, &linked)?;
        Ok(shown)
    }

    /// Asks the shard for the users that ids are linked to.
    fn name_users(&mut self, scan: &Scan<'_>, linked: &[(Position, RecordKey, Moment)]) -> Result<()> {
        for some in linked.chunks(EVENTS_A_QUESTION) {
            check(scan.cancelled)?;
            let query = VisitsQuery { events: some.iter().map(|(_, user, at)| (*user, *at)).collect() };
            let users = scan.ask(query)?;
            for ((position, ..), visit) in some.iter().zip(users) {
                let user: Option<IdentityId> = visit.map(|visit| visit.identity);
                self.0.entry(*position).and_modify(|event| event.identity = user);
            }
        }
        Ok(())
    }

    /// Returns the events of a list, the latest first.
    fn list(&mut self, list: &FoundList) -> Result<Vec<ExplainedEvent>> {
        let latest_first = list.events.keys().rev();
        // What was found a moment ago is there, unless it was erased meanwhile.
        latest_first.map(|at| self.0.remove(&at.position).ok_or(AskError::NoAnswer.into())).collect()
    }
}
