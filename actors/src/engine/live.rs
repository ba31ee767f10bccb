//! Watching a project: its figures, ten times a second at most, for as long as somebody watches.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant as Stopwatch};

use headcount_domain::aggregate::Grouping;
use headcount_domain::filter::{Filter, Predicate};
use headcount_domain::identity::IdentityId;
use headcount_domain::ids::{ProjectId, RecordKey};
use headcount_domain::intake::event::{Event, Position};
use headcount_domain::intake::fields::{BuiltIn, Field};
use headcount_domain::queries::TodayQuery;
use headcount_domain::time::{Day, Instant, Window};
use headcount_domain::versions::Depends;

use super::handle::Engine;
use super::scan::{PageOrder, PageQuestion};
use super::shard_client::AskError;
use crate::live::{LiveEnd, LiveFigures, LiveFrame, LiveState, LiveWatch, Publisher, RECENT_MS, RecentEvents};

/// The pause between two looks at a project.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How long figures may stay that only the clock changes.
const CLOCK_MS: i64 = 5_000;
/// How long a project is looked at after the last watcher left, so that who comes back finds the last notifications.
const LINGER: Duration = Duration::from_secs(10);
/// The pause after a long look, as a multiple of its duration. So a watched project costs a fifth of a core at most.
const PAUSE_FACTOR: u32 = 4;
/// How many events are read at a time.
const PAGE_EVENTS: usize = 2_000;

impl Engine {
    /// Begins to watch a project. `None`: [too many](crate::MAX_WATCHES) watch it.
    #[must_use]
    pub fn watch(&self, project: ProjectId) -> Option<LiveWatch> {
        let (watch, publisher) = self.inner.watches.begin(project)?;
        if let Some(publisher) = publisher {
            let engine = Arc::downgrade(&self.inner);
            let threads = self.inner.threads.lock();
            // Without threads the publisher is dropped, and the watch ends.
            if let Some(threads) = threads.as_ref() {
                threads.system.arbiter().spawn(follow(publisher, move || engine.upgrade().map(|inner| Engine { inner })));
            }
        }
        Some(watch)
    }

    /// Whether the engine is about to stop: watchers go elsewhere.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.inner.draining.load(Ordering::SeqCst) || self.inner.admission.is_closing()
    }
}

/// Publishes the frames of a project.
async fn follow(mut publisher: Publisher, engine: impl Fn() -> Option<Engine>) {
    let mut looker = Looker::default();
    let mut unwatched = None;
    loop {
        let began = Stopwatch::now();
        let Some(engine) = engine() else { return };
        if engine.is_draining() {
            return publisher.publish(LiveState::Ended(LiveEnd::Stopped));
        }
        if publisher.is_watched() {
            unwatched = None;
        } else if began - *unwatched.get_or_insert(began) >= LINGER {
            match publisher.end_if_unwatched() {
                Ok(()) => return,
                Err(watched) => publisher = watched,
            }
        }
        match looker.look(&engine, publisher.project()).await {
            Ok(Some(frame)) => publisher.publish(LiveState::Frame(Arc::new(frame))),
            Ok(None) => {}
            Err(Unseen::Deleted) => return publisher.publish(LiveState::Ended(LiveEnd::Deleted)),
            // The next look tries again.
            Err(Unseen::Failed(error)) => tracing::debug!(%error, "a watched project could not be looked at"),
        }
        drop(engine);
        tokio::time::sleep(LOOK_EVERY.max(began.elapsed() * PAUSE_FACTOR)).await;
    }
}

/// Why there is no frame.
enum Unseen {
    Deleted,
    Failed(AskError),
}

impl From<AskError> for Unseen {
    fn from(error: AskError) -> Self {
        Self::Failed(error)
    }
}

/// What is known of a watched project.
#[derive(Default)]
struct Looker {
    recent: RecentEvents,
    /// Up to where events were read; `None` before the first look.
    read: Option<Position>,
    /// The incarnation of the data that was read.
    incarnation: Option<u128>,
    /// The last frame.
    last: Option<LiveFrame>,
    /// The version that the last frame is of.
    version: Position,
}

impl Looker {
    /// Returns a frame, if it is another one than the last.
    async fn look(&mut self, engine: &Engine, project: ProjectId) -> Result<Option<LiveFrame>, Unseen> {
        let config = engine.registry().policy(project).ok_or(Unseen::Deleted)?;
        let now = engine.clock().now();
        let day = config.policy.timezone.day_of(now);
        let (incarnation, version) = engine.version(project, &Depends::Everything).await?;
        if let Some(last) = &self.last {
            let is_fresh = now.0.saturating_sub(last.at.0).abs() < CLOCK_MS && last.figures.day == day;
            if version == self.version && last.incarnation == incarnation && is_fresh {
                return Ok(None);
            }
        }
        if self.incarnation.replace(incarnation).is_some_and(|former| former != incarnation) {
            // An identity was erased. What was read may have its events and notifications.
            (self.recent, self.read) = (RecentEvents::default(), None);
        }
        self.read_events(engine, project, now).await?;
        self.recent.forget_before(now);
        let figures = self.figures(engine, project, day, now).await?;
        // Events may have come since: all that were read are in the frame.
        let position = self.read.unwrap_or_default().max(version);
        let frame = LiveFrame { incarnation, position, at: now, figures, notifications: self.recent.notifications() };
        self.version = version;
        let is_same = self
            .last
            .as_ref()
            .is_some_and(|last| (last.incarnation, last.position) == (incarnation, position) && last.figures == frame.figures);
        self.last = Some(frame.clone());
        Ok((!is_same).then_some(frame))
    }

    /// Reads the events since the last look, or those of the last minutes.
    async fn read_events(&mut self, engine: &Engine, project: ProjectId, now: Instant) -> Result<(), Unseen> {
        let mut after = match self.read {
            Some(read) => read,
            None => {
                let since = now.plus_ms(-RECENT_MS);
                let query = TodayQuery { day: Day(0), since };
                match engine.ask(project, query).await?.before_recent {
                    Some(before) => before,
                    None => engine.last(project).await?,
                }
            }
        };
        loop {
            let order = PageOrder::Recorded { after };
            let question = PageQuestion { predicate: Predicate::default(), window: None, order, limit: PAGE_EVENTS, until: None };
            let page = engine.events_page(project, question).await?;
            for paged in &page.events {
                self.take(engine, paged.position, &paged.event, paged.identity.as_ref(), now);
            }
            after = match page.events.last() {
                Some(last) if page.has_more => last.position,
                _ => page.until.max(after),
            };
            self.read = Some(after);
            if !page.has_more {
                return Ok(());
            }
        }
    }

    fn take(&mut self, engine: &Engine, position: Position, event: &Event, identity: Option<&IdentityId>, now: Instant) {
        let key = |id: &IdentityId| -> RecordKey { engine.hasher().identity(id) };
        let identity = identity.filter(|id| **id != IdentityId::Nobody).map(key);
        if let (Some(user), Some(_), Some(anonymous)) = (identity, &event.who.user_id, &event.who.anonymous_id) {
            // What the anonymous id did before it was linked.
            self.recent.link(key(&IdentityId::Anonymous(anonymous.clone())), user);
        }
        self.recent.add(position, event, identity, now);
    }

    async fn figures(&self, engine: &Engine, project: ProjectId, day: Day, now: Instant) -> Result<LiveFigures, Unseen> {
        let today = engine.ask(project, TodayQuery { day, since: now }).await?;
        Ok(LiveFigures {
            day,
            events: count(engine, project, day, Predicate::default()).await?,
            unique_users: today.unique_users,
            sessions: today.sessions,
            pageviews: count(engine, project, day, pageviews()?).await?,
            revenue: today.revenue,
            orders: today.orders,
            users_5m: self.recent.present(now),
            minutes: self.recent.minutes(now),
        })
    }
}

/// Counts the events of a day. The answer is kept, so that the next one costs the events since.
async fn count(engine: &Engine, project: ProjectId, day: Day, predicate: Predicate) -> Result<u64, Unseen> {
    let window = Window { start: day, end: day };
    // A field of few values: the sum of all groups is the number of events.
    let grouping = Grouping::new(Field::BuiltIn(BuiltIn::Device), None).map_err(|_| AskError::NoAnswer)?;
    let groups = engine.aggregate(project, window, predicate, grouping, usize::from(u8::MAX)).await?;
    Ok(groups.rows.iter().map(|row| row.count).sum())
}

fn pageviews() -> Result<Predicate, Unseen> {
    let names = r#"["pageview", "page_view", "$pageview", "page"]"#;
    let filter = Filter::new("name", "is", Some(names)).map_err(|_| AskError::NoAnswer)?;
    Ok(Predicate::new(None, vec![filter]).map_err(|_| AskError::NoAnswer)?)
}
