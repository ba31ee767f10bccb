//! Questions that are answered by a scan.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use headcount_common::partition_of;
use headcount_domain::aggregate::{Aggregate, Grouping};
use headcount_domain::figures::{
    Breakdown, BreakdownQuestion, Funnel, FunnelQuestion, GoalsQuestion, GoalsReport, Journeys, JourneysQuestion, Report,
    ReportQuestion,
};
use headcount_domain::intake::fields::{BuiltIn, Field};
use headcount_domain::queries::UniqueUsers;
use headcount_domain::{Position, Predicate, ProjectId, Timezone, Window};
use headcount_storage::background::{self, Tempo};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::aggregate::{AggregateQuestion, aggregate};
use super::error::{Result, ScanError};
use super::events::Scan;
use super::kept::{KeptAnswer, KeptQuestion, KeptVersion, ReadData, ViewState};
use super::kept_figures::KeptFigures;
use super::shared::Scans;
use super::unique_users::unique_users;
use super::views::ViewRoom;
use super::visits::{breakdown, funnel, goals, journeys, report};
use crate::shard::AskError;

/// An answer, with the position up to which it counts all events.
type KeptAt = (KeptAnswer, Position);

/// Set when nobody waits for a scan any more.
type Cancelled = Arc<AtomicBool>;

struct CancelOnDrop(Cancelled);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Runs a scan on its own thread, at a lower priority than events. If the system has no thread,
/// the scan is dropped, and the question has no answer.
fn stand_back(scan: Box<dyn FnOnce() + Send>) {
    let runtime = Handle::current();
    let run = move || {
        let _runtime = runtime.enter();
        background::begin_at(background::NICENESS_OF_QUESTIONS, || Tempo::Full);
        scan();
    };
    // Threads of the runtime do other work afterwards, and can't get their priority back.
    match std::thread::Builder::new().name("scan".into()).spawn(run) {
        Ok(thread) => drop(thread.join()),
        Err(error) => tracing::error!(%error, "no thread for a scan"),
    }
}

impl Scans {
    /// Unique users with an event that matches `predicate`, per day of `window` and over it.
    ///
    /// Costs a pass over the project's events, unless the answer is kept. Dropping the future ends
    /// it.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn unique_users(&self, project: ProjectId, window: Window, predicate: Predicate) -> Result<UniqueUsers, AskError> {
        match self.ask_kept(project, KeptQuestion::UniqueUsers { window, predicate }).await? {
            (KeptAnswer::UniqueUsers(users), _) => Ok(users),
            _ => Err(AskError::NoAnswer),
        }
    }

    /// Groups the events of `window` that match `predicate`, and returns the first `limit` groups.
    ///
    /// Costs a pass over the project's events, unless the answer is kept. Dropping the future ends
    /// it.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn aggregate(
        &self,
        project: ProjectId,
        window: Window,
        predicate: Predicate,
        grouping: Grouping,
        limit: usize,
    ) -> Result<Aggregate, AskError> {
        match self.ask_kept(project, KeptQuestion::Aggregate { window, predicate, grouping, limit }).await? {
            (KeptAnswer::Aggregate(groups), _) => Ok(groups),
            _ => Err(AskError::NoAnswer),
        }
    }

    /// Returns the figures of a window by time: of its chosen events, and of the sessions that hold
    /// them.
    ///
    /// Costs a pass over the project's events, unless the answer is kept. Dropping the future ends
    /// it.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn report(&self, project: ProjectId, question: ReportQuestion) -> Result<Report, AskError> {
        match self.ask_kept(project, KeptQuestion::Report(question)).await? {
            (KeptAnswer::Report(report), _) => Ok(report),
            _ => Err(AskError::NoAnswer),
        }
    }

    /// Returns the figures of a window by the values of a property, as [`Scans::report`] does.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn breakdown(&self, project: ProjectId, question: BreakdownQuestion) -> Result<Breakdown, AskError> {
        match self.ask_kept(project, KeptQuestion::Breakdown(question)).await? {
            (KeptAnswer::Breakdown(breakdown), _) => Ok(breakdown),
            _ => Err(AskError::NoAnswer),
        }
    }

    /// Returns the figures of goals, as [`Scans::report`] does.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn goals(&self, project: ProjectId, question: GoalsQuestion) -> Result<GoalsReport, AskError> {
        match self.ask_kept(project, KeptQuestion::Goals(question)).await? {
            (KeptAnswer::Goals(report), _) => Ok(report),
            _ => Err(AskError::NoAnswer),
        }
    }

    /// Returns how far people, or accounts, get in a funnel, as [`Scans::report`] does.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn funnel(&self, project: ProjectId, question: FunnelQuestion) -> Result<Funnel, AskError> {
        match self.ask_kept(project, KeptQuestion::Funnel(question)).await? {
            (KeptAnswer::Funnel(funnel), _) => Ok(funnel),
            _ => Err(AskError::NoAnswer),
        }
    }

    /// Returns the ways that sessions take, as [`Scans::report`] does.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn journeys(&self, project: ProjectId, question: JourneysQuestion) -> Result<Journeys, AskError> {
        match self.ask_kept(project, KeptQuestion::Journeys(question)).await? {
            (KeptAnswer::Journeys(journeys), _) => Ok(journeys),
            _ => Err(AskError::NoAnswer),
        }
    }

    /// Counts the events of `window` that match `predicate`, as [`Scans::aggregate`] does, up to
    /// the position that it also returns.
    ///
    /// # Errors
    /// See [`AskError`].
    pub(crate) async fn count_events(
        &self,
        project: ProjectId,
        window: Window,
        predicate: Predicate,
    ) -> Result<(u64, Position), AskError> {
        // A field of few values: the sum of all groups is the number of events.
        let grouping = Grouping::new(Field::BuiltIn(BuiltIn::Device), None).map_err(|_| AskError::NoAnswer)?;
        let question = KeptQuestion::Aggregate { window, predicate, grouping, limit: usize::from(u8::MAX) };
        match self.ask_kept(project, question).await? {
            (KeptAnswer::Aggregate(groups), until) => Ok((groups.rows.iter().map(|row| row.count).sum(), until)),
            _ => Err(AskError::NoAnswer),
        }
    }

    async fn ask_kept(&self, project: ProjectId, question: KeptQuestion) -> Result<KeptAt, AskError> {
        let question = Arc::new(question);
        self.in_time(async {
            loop {
                if let Some(answer) = self.ask_view(project, Arc::clone(&question)).await? {
                    return Ok(answer);
                }
            }
        })
        .await
    }

    /// Answers by what is kept, and keeps the answer. `None`: the floor rose meanwhile.
    async fn ask_view(&self, project: ProjectId, question: Arc<KeptQuestion>) -> Result<Option<KeptAt>, AskError> {
        let views = &self.views;
        let view = views.open(project, &question);
        let mut kept = match &view {
            Some(view) => Arc::clone(&view.kept).lock_owned().await,
            None => Arc::<tokio::sync::Mutex<ViewState>>::default().lock_owned().await,
        };
        // Read before the position of the scan: what touches the days later has another version.
        let (_, days) = self.questions.version(project, &question.depends()).await?;
        let data = ReadData {
            set_aside: self.dead.count_of(partition_of(project)),
            resumed: self.questions.resumed(project),
            erasures: self.questions.reflected_erasures(project),
            floor: self.questions.known_floor(project),
        };
        let version = KeptVersion { days, data };
        let answer = kept.answer_of(version);
        if answer.is_some() || kept.has_figures() {
            views.count_hit()
        } else {
            views.count_miss()
        }
        if let Some(answer) = answer {
            return Ok(Some(answer));
        }
        self.scan_in_turn(project, move |scan, sort_bytes| {
            let mut room = ViewRoom::new(&scan.scans.views, view);
            kept.advance(&question, version, &scan, &mut room, sort_bytes)
        })
        .await
    }

    /// Runs a scan within the time that a question may take. `answer` also gets the memory of each
    /// of its tables and sorts.
    pub(super) async fn scan<R: Send + 'static>(
        &self,
        project: ProjectId,
        answer: impl Fn(Scan<'_>, usize) -> Result<R> + Clone + Send + 'static,
    ) -> Result<R, AskError> {
        self.in_time(async {
            loop {
                if let Some(answer) = self.scan_in_turn(project, answer.clone()).await? {
                    return Ok(answer);
                }
            }
        })
        .await
    }

    /// Returns `None` if the floor rose meanwhile: some events may have been gone before the scan
    /// read them.
    async fn scan_in_turn<R: Send + 'static>(
        &self,
        project: ProjectId,
        answer: impl FnOnce(Scan<'_>, usize) -> Result<R> + Send + 'static,
    ) -> Result<Option<R>, AskError> {
        let turn = self.turns.take(self.questions.organization_of(project)).await?;
        self.scan_with(turn, project, move |scan, sort_bytes| {
            let (questions, project, floor) = (&scan.scans.questions, scan.project, scan.floor);
            let answer = answer(scan, sort_bytes)?;
            Ok((questions.known_floor(project) <= floor).then_some(answer))
        })
        .await
    }

    /// Runs a scan that holds `turn`. Dropping the future ends it.
    pub(super) async fn scan_with<T: Send + 'static, R: Send + 'static>(
        &self,
        turn: T,
        project: ProjectId,
        answer: impl FnOnce(Scan<'_>, usize) -> Result<R> + Send + 'static,
    ) -> Result<R, AskError> {
        let until = self.questions.last(project).await?;
        let known = self.known_ids(project).await?;
        let floor = self.questions.known_floor(project);
        let timezone = self.questions.registry.policy(project).map_or(Timezone::UTC, |config| config.policy.timezone);
        self.run_scan(turn, move |scans, cancelled, sort_bytes| {
            answer(Scan { scans, project, until, known, floor, timezone, cancelled }, sort_bytes)
        })
        .await
    }

    /// Runs what belongs to a scan that holds `turn`, on a thread of its own. Dropping the future
    /// ends it.
    pub(super) async fn run_scan<T: Send + 'static, R: Send + 'static>(
        &self,
        turn: T,
        scan: impl FnOnce(&Self, &AtomicBool, usize) -> Result<R> + Send + 'static,
    ) -> Result<R, AskError> {
        let cancelled = Cancelled::default();
        let _cancel = CancelOnDrop(Arc::clone(&cancelled));
        let (scans, (send, answer)) = (self.clone(), oneshot::channel());
        // Boxed, so that the code that runs it exists once.
        let scan: Box<dyn FnOnce() + Send> = Box::new(move || {
            let answer = scan(&scans, &cancelled, scans.sort_bytes);
            // The turn lasts until the scan is over, whether or not somebody waits.
            drop(turn);
            let _nobody_waits = send.send(answer);
        });
        tokio::task::spawn_blocking(|| stand_back(scan));
        match answer.await.map_err(|_| AskError::NoAnswer)? {
            Ok(answer) => Ok(answer),
            Err(ScanError::Ask(error)) => Err(error),
            Err(ScanError::Cancelled) => Err(AskError::NoAnswer),
            Err(error) => {
                tracing::error!(%error, "the events could not be scanned");
                Err(AskError::NoAnswer)
            }
        }
    }
}

impl KeptQuestion {
    /// Answers it by the events that `kept` has not counted yet.
    fn answer_by(
        &self,
        scan: &Scan<'_>,
        figures: &mut KeptFigures,
        room: &mut ViewRoom<'_>,
        sort_bytes: usize,
    ) -> Result<KeptAnswer> {
        match self {
            Self::Aggregate { window, predicate, grouping, limit } => {
                let question = AggregateQuestion { window: *window, predicate, grouping, limit: *limit };
                aggregate(scan, &question, figures, sort_bytes).map(KeptAnswer::Aggregate)
            }
            Self::UniqueUsers { window, predicate } => {
                unique_users(scan, *window, predicate, (figures, room), sort_bytes).map(KeptAnswer::UniqueUsers)
            }
            Self::Report(question) => report(scan, question, sort_bytes).map(KeptAnswer::Report),
            Self::Breakdown(question) => breakdown(scan, question, sort_bytes).map(KeptAnswer::Breakdown),
            Self::Goals(question) => goals(scan, question, (figures, room), sort_bytes).map(KeptAnswer::Goals),
            Self::Funnel(question) => funnel(scan, question, sort_bytes).map(KeptAnswer::Funnel),
            Self::Journeys(question) => journeys(scan, question, sort_bytes).map(KeptAnswer::Journeys),
        }
    }
}

impl ViewState {
    /// Answers a question. `version` is one that was read before the scan's position, and its
    /// floor.
    fn advance(
        &mut self,
        question: &KeptQuestion,
        mut version: KeptVersion,
        scan: &Scan<'_>,
        room: &mut ViewRoom<'_>,
        sort_bytes: usize,
    ) -> Result<KeptAt> {
        scan.check_is_kept(question.start())?;
        version.data.floor = scan.floor;
        if self.data != version.data || self.figures.until() > scan.until {
            self.figures = KeptFigures::None;
        }
        self.data = version.data;
        self.answer = None;
        let answer = question.answer_by(scan, &mut self.figures, room, sort_bytes);
        let of_answer = answer.as_ref().map_or(0, KeptAnswer::weight);
        if !room.reserve(self.figures.weight() + of_answer) {
            self.figures = KeptFigures::None;
            if !room.reserve(of_answer) {
                return answer.map(|answer| (answer, scan.until));
            }
        }
        let answer = (answer?, scan.until);
        self.answer = Some((version, answer.clone()));
        Ok(answer)
    }
}
