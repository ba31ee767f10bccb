//! The state of a watched project, and its frames.
//!
//! The first look reads the events of the last minutes from the history, and counts the events of
//! the day. From then on, each event comes through the project's [feed](crate::live::Feeds). A look
//! costs one question to the shard, and counting the events since the last look. Each figure knows
//! the last event that it counts, so an event counts once, even if it comes both ways.

use std::collections::VecDeque;
use std::time::{Duration, Instant as Stopwatch};

use headcount_domain::queries::{Today, TodayQuery};
use headcount_domain::{Day, Depends, Filter, Instant, Position, Predicate, ProjectId, Window};

use super::handle::Engine;
use crate::live::{FeedReader, LiveEvent, LiveFigures, LiveFrame, RECENT_MS, RecentEvents};
use crate::shard::AskError;

/// How often figures are updated if only the clock changes them.
const CLOCK_MS: i64 = 5_000;
/// The number of consecutive looks that may read the history before a pause. If events are read
/// faster than they arrive, each reading has fewer.
const READINGS: usize = 4;
/// The pause after that, as a multiple of the time that the readings took.
const PAUSE_FACTOR: u32 = 4;
/// The longest pause.
const MAX_PAUSE: Duration = Duration::from_secs(10);

/// The result of a look.
pub(super) enum Look {
    /// The last frame is still valid, or the next look has another one.
    Same,
    /// A new frame.
    Frame(LiveFrame),
    /// The last frame is no longer valid. The next look begins with the history.
    Anew,
}

/// The reason why there is no frame.
pub(super) enum Unseen {
    Deleted,
    Failed(AskError),
}

impl From<AskError> for Unseen {
    fn from(error: AskError) -> Self {
        Self::Failed(error)
    }
}

/// The state of a watched project.
pub(super) struct Looker {
    project: ProjectId,
    feed: FeedReader,
    /// Events of the feed that are in no frame yet.
    waiting: VecDeque<LiveEvent>,
    /// Whether the history has events that the feed lacks.
    is_behind: bool,
    recent: RecentEvents,
    /// The last event of `recent`; `None` before the first look.
    read: Option<Position>,
    /// The counts of the day.
    counts: Option<CountedDay>,
    /// The incarnation of the log and the number of reflected erasures at the last reading.
    data: Option<(u128, u64)>,
    /// The last frame.
    last: Option<LiveFrame>,
    /// The durations of the last looks, as long as each read the history.
    readings: Vec<Duration>,
}

/// The events of a day.
struct CountedDay {
    day: Day,
    events: EventCount,
    pageviews: EventCount,
}

/// A number of events up to a position.
struct EventCount {
    count: u64,
    until: Position,
}

impl EventCount {
    fn add(&mut self, position: Position) {
        if position > self.until {
            (self.count, self.until) = (self.count + 1, position);
        }
    }
}

impl Looker {
    pub(super) fn new(engine: &Engine, project: ProjectId) -> Self {
        Self {
            project,
            feed: engine.inner.watches.feed(project),
            waiting: VecDeque::new(),
            is_behind: true,
            recent: RecentEvents::default(),
            read: None,
            counts: None,
            data: None,
            last: None,
            readings: Vec::new(),
        }
    }

    /// Returns how long to wait before the next look. If a project's events arrive faster than they
    /// can be read, the pause keeps it from occupying a core.
    pub(super) fn pause(&mut self) -> Duration {
        if self.readings.len() < READINGS {
            return Duration::ZERO;
        }
        (self.readings.drain(..).sum::<Duration>() * PAUSE_FACTOR).min(MAX_PAUSE)
    }

    /// Looks at the project.
    pub(super) async fn look(&mut self, engine: &Engine) -> Result<Look, Unseen> {
        let config = engine.registry().policy(self.project).ok_or(Unseen::Deleted)?;
        let now = engine.clock().now();
        let day = config.policy.timezone.day_of(now);
        let (_, version) = engine.version(self.project, &Depends::Everything).await?;
        let data = self.data_of(engine);
        let former = self.data.replace(data);
        // An identity was erased, so the last reading may have its events and notifications. Or
        // brokers have lost events of the last reading.
        let is_other = former.is_some_and(|former| former != data);
        // The clock was set back. Minutes that will be shown again are forgotten.
        let is_earlier = self.last.as_ref().is_some_and(|last| last.at.0 - now.0 > CLOCK_MS);
        if is_other || is_earlier || self.recent.is_too_coarse() {
            self.restart();
            return Ok(Look::Anew);
        }
        if let Some(last) = &self.last {
            let is_fresh = now.0 - last.at.0 < CLOCK_MS && last.figures.day == day;
            if version == last.position && is_fresh {
                return Ok(Look::Same);
            }
        }
        let today = match self.read(engine, day, now).await {
            Ok(today) => today,
            Err(error) => {
                // The waiting events would grow while looks fail. The history has them, too.
                self.waiting.clear();
                self.is_behind = true;
                return Err(error);
            }
        };
        self.take_feed();
        if self.is_behind || self.data_of(engine) != data {
            // The next look begins with that.
            return Ok(Look::Same);
        }
        // The frame must be later than all of its events.
        let Some(frame) = self.frame(&today, data, engine.clock().now()) else {
            return Ok(Look::Same);
        };
        let is_news = !self.last.as_ref().is_some_and(|last| last.position == frame.position && last.figures == frame.figures);
        self.last = Some(frame.clone());
        Ok(if is_news { Look::Frame(frame) } else { Look::Same })
    }

    fn data_of(&self, engine: &Engine) -> (u128, u64) {
        (engine.log_incarnation(self.project), engine.reflected_erasures(self.project))
    }

    fn restart(&mut self) {
        (self.recent, self.read, self.counts, self.last) = (RecentEvents::default(), None, None, None);
        drop(self.feed.take());
        self.waiting.clear();
        self.is_behind = true;
    }

    /// Reads the events that the feed lacks, and the figures of the day.
    async fn read(&mut self, engine: &Engine, day: Day, now: Instant) -> Result<Today, Unseen> {
        self.take_feed();
        let reads = self.is_behind || self.counts.as_ref().is_none_or(|counts| counts.day != day);
        if reads {
            let began = Stopwatch::now();
            let caught_up = self.catch_up(engine, day, now).await;
            self.readings.push(began.elapsed());
            caught_up?;
        } else {
            self.readings.clear();
        }
        Ok(engine.ask(self.project, TodayQuery { day, since: now }).await?)
    }

    /// Takes the events of the feed. If the feed lost some, the history has them.
    fn take_feed(&mut self) {
        match self.feed.take() {
            Some(events) => self.waiting.extend(events),
            None => {
                self.waiting.clear();
                self.is_behind = true;
            }
        }
    }

    /// Reads from the history the events that the feed lacks: all at first, later the lost ones and
    /// the counts of a new day.
    async fn catch_up(&mut self, engine: &Engine, day: Day, now: Instant) -> Result<(), Unseen> {
        if self.is_behind {
            self.counts = None;
            self.read_history(engine, now).await?;
            self.is_behind = false;
        }
        let events = count(engine, self.project, day, Predicate::default()).await?;
        self.counts = Some(CountedDay { day, events, pageviews: count(engine, self.project, day, pageviews()?).await? });
        Ok(())
    }

    /// Reads the events since the last look, or those of the last minutes.
    async fn read_history(&mut self, engine: &Engine, now: Instant) -> Result<(), Unseen> {
        let mut after = match self.read {
            Some(read) => read,
            None => {
                let query = TodayQuery { day: Day(0), since: now.plus_ms(-RECENT_MS) };
                let today = engine.ask(self.project, query).await?;
                today.before_recent.unwrap_or(today.position)
            }
        };
        loop {
            let next = engine.scans.live_events_after(self.project, after).await?;
            next.events.iter().for_each(|event| self.recent.add(event, now));
            after = next.until;
            self.read = Some(after);
            if !next.has_more {
                return Ok(());
            }
        }
    }

    /// Adds the events that `today` counts, and makes a frame. Returns `None` if the day is not
    /// counted.
    fn frame(&mut self, today: &Today, (incarnation, erasures): (u128, u64), now: Instant) -> Option<LiveFrame> {
        let read = self.read.get_or_insert(0);
        let counts = self.counts.as_mut()?;
        let counted = self.waiting.partition_point(|event| event.position <= today.position);
        for event in self.waiting.drain(..counted) {
            if event.day == counts.day {
                counts.events.add(event.position);
            }
            if event.day == counts.day && event.is_pageview {
                counts.pageviews.add(event.position);
            }
            if event.position > *read {
                *read = event.position;
                self.recent.add(&event, now);
            }
        }
        self.recent.forget_before(now);
        let figures = LiveFigures {
            day: counts.day,
            events: counts.events.count,
            unique_users: today.unique_users,
            sessions: today.sessions,
            pageviews: counts.pageviews.count,
            revenue: today.revenue,
            orders: today.orders,
            users_5m: self.recent.present(now),
            minutes: self.recent.minutes(now),
        };
        let (position, notifications) = (today.position, self.recent.notifications());
        Some(LiveFrame { incarnation, erasures, position, at: now, figures, notifications })
    }
}

/// Counts the events of a day.
async fn count(engine: &Engine, project: ProjectId, day: Day, predicate: Predicate) -> Result<EventCount, Unseen> {
    let window = Window { start: day, end: day };
    let (count, until) = engine.scans.count_events(project, window, predicate).await?;
    Ok(EventCount { count, until })
}

fn pageviews() -> Result<Predicate, Unseen> {
    let names = r#"["pageview", "page_view", "$pageview", "page"]"#;
    let filter = Filter::new("name", "is", Some(names)).map_err(|_| AskError::NoAnswer)?;
    Ok(Predicate::new(None, vec![filter.into()]).map_err(|_| AskError::NoAnswer)?)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::engine::EngineConfig;
    use crate::ingest::NewEvent;
    use headcount_common::clock::FixedClock;

    const NOW: Instant = Instant(1_790_000_000_000);
    const ROUND: i64 = 60;

    /// Some events sign in late, some belong to earlier minutes, and some to the day before.
    async fn send(engine: &Engine, project: ProjectId, round: i64) {
        let event = |number: i64| {
            let name = ["pageview", "order", "page"][usize::try_from(number % 3).unwrap()];
            let ago_ms = [0, 7 * 60_000, 40 * 60_000, 86_400_000][usize::try_from(number % 4).unwrap()];
            let event = NewEvent::new(name).at_ms(NOW.0 - ago_ms).anonymous(format!("a{}", number % 45));
            if number % 7 == 6 { event.user(format!("u{}", number % 20)).notify() } else { event }
        };
        let events: Vec<_> = (round * ROUND..(round + 1) * ROUND).map(event).collect();
        assert!(engine.track_batch(project, &events).await.unwrap().errors.is_empty());
    }

    async fn frame(looker: &mut Looker, engine: &Engine) -> LiveFrame {
        loop {
            match looker.look(engine).await {
                Ok(Look::Frame(frame)) => return frame,
                Ok(Look::Same | Look::Anew) => {}
                Err(Unseen::Failed(error)) => panic!("{error}"),
                Err(Unseen::Deleted) => panic!("it is deleted"),
            }
        }
    }

    #[tokio::test]
    async fn a_clock_that_is_set_back_shows_former_minutes_again() {
        let dir = tempfile::tempdir().unwrap();
        let clock = Arc::new(FixedClock::at(NOW));
        let mut config = EngineConfig::new(dir.path());
        config.min_free_bytes = 0;
        config.clock = Arc::<FixedClock>::clone(&clock);
        let engine = Engine::open(config).unwrap();
        let project = engine.registry().initialize(NOW).unwrap().project_id;
        send(&engine, project, 0).await;
        let mut looker = Looker::new(&engine, project);
        let before = frame(&mut looker, &engine).await;
        clock.set(NOW.plus_ms(3_600_000));
        let later = frame(&mut looker, &engine).await;
        assert_eq!((later.figures.users_5m, later.figures.minutes.iter().map(|minute| minute.events).sum::<u64>()), (0, 0));
        clock.set(NOW);
        assert!(matches!(looker.look(&engine).await, Ok(Look::Anew)));
        assert_eq!(frame(&mut looker, &engine).await, before);
        engine.close().await;
    }

    #[tokio::test]
    async fn a_watch_that_lost_its_feed_shows_the_same() {
        let dir = tempfile::tempdir().unwrap();
        let mut config = EngineConfig::new(dir.path());
        config.min_free_bytes = 0;
        config.clock = Arc::new(FixedClock::at(NOW));
        let engine = Engine::open(config).unwrap();
        let project = engine.registry().initialize(NOW).unwrap().project_id;
        send(&engine, project, 0).await;
        let mut looker = Looker::new(&engine, project);
        let mut last = frame(&mut looker, &engine).await;
        assert_eq!((last.figures.events, looker.readings.len()), (45, 1), "three quarters of the first events are of the day");
        for round in 1..8_u64 {
            if round % 3 == 2 {
                looker.feed.lose();
            }
            send(&engine, project, i64::try_from(round).unwrap()).await;
            last = frame(&mut looker, &engine).await;
            assert_eq!(looker.readings.len(), usize::from(round % 3 == 2), "of round {round}");
            assert_eq!((last.figures.events, last.figures.pageviews), (45 * (round + 1), 30 * (round + 1)), "round {round}");
        }
        // Another looker reads everything from the history, and ends the feed of the first.
        let mut other = Looker::new(&engine, project);
        assert_eq!(frame(&mut other, &engine).await, last);
        send(&engine, project, 8).await;
        let both = (frame(&mut looker, &engine).await, frame(&mut other, &engine).await);
        assert_eq!(both.0, both.1);
        assert!(!both.0.notifications.is_empty() && both.0.figures.users_5m > 10, "{both:?}");
        engine.close().await;
    }
}
