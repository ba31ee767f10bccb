//! The events of watched projects, on their way from the shards to the watches.
//!
//! A shard that applies an event of a watched project adds the few words that a watch counts to the
//! project's feed, without a lookup. For other projects it reads a single number. A watch that
//! falls behind loses its feed, and reads the missed events from the history.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use headcount_domain::{Day, Event, EventSubject, Instant, Position, ProjectId};
use parking_lot::{Mutex, RwLock};

use super::frame::LiveNotification;

/// The maximum number of events waiting in a feed: half a second's at the highest rates. An event
/// with long texts counts as several.
const MAX_WAITING: usize = 1 << 16;
/// The maximum number of events waiting in all feeds: some 25 MB.
const MAX_WAITING_IN_ALL: usize = 1 << 18;

/// The part of an event that a watch counts.
#[derive(Debug, Clone)]
pub(crate) struct LiveEvent {
    pub(crate) position: Position,
    pub(crate) time: Instant,
    pub(crate) day: Day,
    pub(crate) is_pageview: bool,
    pub(crate) subject: EventSubject,
    pub(crate) notification: Option<Arc<LiveNotification>>,
}

impl LiveEvent {
    /// The number of events without texts that take as much memory.
    fn weight(&self) -> usize {
        1 + self.notification.as_ref().map_or(0, |notification| notification.bytes().div_ceil(size_of::<Self>()))
    }

    /// Returns the part of an event that a watch counts.
    pub(crate) fn new(event: &Event, position: Position, subject: EventSubject) -> Self {
        Self {
            position,
            time: event.time,
            day: event.day,
            is_pageview: event.is_pageview(),
            subject,
            notification: LiveNotification::of(position, event).map(Arc::new),
        }
    }
}

/// The feeds of watched projects.
#[derive(Debug, Default)]
pub(crate) struct Feeds {
    /// The number of feeds. Without any, nothing else is read.
    open: AtomicUsize,
    waiting: AtomicUsize,
    feeds: RwLock<HashMap<ProjectId, Arc<Mutex<Feed>>>>,
}

#[derive(Debug, Default)]
struct Feed {
    events: VecDeque<LiveEvent>,
    /// The sum of the events' weights.
    weight: usize,
    /// The last event offered. A replay offers events again.
    last: Position,
    /// Whether events did not fit.
    has_lost: bool,
    /// Whether the project has another reader.
    is_over: bool,
}

/// The reading end of a feed. Dropping it ends the feed.
#[derive(Debug)]
pub(crate) struct FeedReader {
    feeds: Arc<Feeds>,
    project: ProjectId,
    feed: Arc<Mutex<Feed>>,
}

impl Feeds {
    /// Begins the feed of a project, with the events applied from now on. Replaces an earlier
    /// reader of the project, which has to begin again.
    pub(crate) fn begin(self: &Arc<Self>, project: ProjectId) -> FeedReader {
        FeedReader { feeds: Arc::clone(self), project, feed: self.register(project) }
    }

    fn register(&self, project: ProjectId) -> Arc<Mutex<Feed>> {
        let feed = Arc::<Mutex<Feed>>::default();
        let former = self.feeds.write().insert(project, Arc::clone(&feed));
        match former {
            Some(former) => former.lock().is_over = true,
            None => drop(self.open.fetch_add(1, Ordering::SeqCst)),
        }
        feed
    }

    /// Adds an applied event, if its project is watched.
    pub(crate) fn offer(&self, event: &Event, position: Position, subject: EventSubject) {
        if self.open.load(Ordering::SeqCst) == 0 {
            return;
        }
        let Some(feed) = self.feeds.read().get(&event.project).cloned() else { return };
        self.push(&mut feed.lock(), LiveEvent::new(event, position, subject));
    }

    fn empty(&self, feed: &mut Feed) -> VecDeque<LiveEvent> {
        self.waiting.fetch_sub(std::mem::take(&mut feed.weight), Ordering::Relaxed);
        std::mem::take(&mut feed.events)
    }

    fn push(&self, feed: &mut Feed, event: LiveEvent) {
        if event.position <= feed.last {
            return;
        }
        feed.last = event.position;
        let weight = event.weight();
        let fits = feed.weight + weight <= MAX_WAITING && self.waiting.load(Ordering::Relaxed) + weight <= MAX_WAITING_IN_ALL;
        if feed.has_lost || !fits {
            self.empty(feed);
            feed.has_lost = true;
            return;
        }
        self.waiting.fetch_add(weight, Ordering::Relaxed);
        feed.weight += weight;
        feed.events.push_back(event);
    }
}

impl FeedReader {
    /// Takes the waiting events, in order. Returns `None` if events were lost, up to the last one
    /// that was applied.
    pub(crate) fn take(&mut self) -> Option<VecDeque<LiveEvent>> {
        let mut feed = self.feed.lock();
        let events = self.feeds.empty(&mut feed);
        if feed.is_over {
            drop(feed);
            self.feed = self.feeds.register(self.project);
            return None;
        }
        (!std::mem::take(&mut feed.has_lost)).then_some(events)
    }

    /// Acts as if there had been no room for an event.
    #[cfg(test)]
    pub(crate) fn lose(&self) {
        self.feed.lock().has_lost = true;
    }
}

impl Drop for FeedReader {
    fn drop(&mut self) {
        let mut feeds = self.feeds.feeds.write();
        if feeds.get(&self.project).is_some_and(|feed| Arc::ptr_eq(feed, &self.feed)) {
            feeds.remove(&self.project);
            self.feeds.open.fetch_sub(1, Ordering::SeqCst);
        }
        // A shard that still has the feed could add one more event, which must not count forever.
        let mut feed = self.feed.lock();
        drop(self.feeds.empty(&mut feed));
        feed.last = Position::MAX;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROJECT: ProjectId = ProjectId(5);

    fn event(position: Position) -> LiveEvent {
        let (subject, notification) = (EventSubject::default(), None);
        LiveEvent { position, time: Instant(0), day: Day(0), is_pageview: false, subject, notification }
    }

    fn positions(reader: &mut FeedReader) -> Option<Vec<Position>> {
        Some(reader.take()?.iter().map(|event| event.position).collect())
    }

    #[test]
    fn all_feeds_take_25_mb() {
        assert!(MAX_WAITING_IN_ALL * size_of::<LiveEvent>() < 26_000_000);
    }

    #[test]
    fn events_come_once_and_in_order() {
        let feeds = Arc::<Feeds>::default();
        let mut reader = feeds.begin(PROJECT);
        let feed = Arc::clone(&reader.feed);
        let push = |position| feeds.push(&mut feed.lock(), event(position));
        [3, 5, 3, 5, 8].into_iter().for_each(push);
        assert_eq!(positions(&mut reader), Some(vec![3, 5, 8]));
        [5, 8, 9].into_iter().for_each(push);
        assert_eq!((positions(&mut reader), feeds.waiting.load(Ordering::Relaxed)), (Some(vec![9]), 0));
    }

    #[test]
    fn a_feed_that_nobody_reads_is_bounded_and_says_that_it_lost_events() {
        let feeds = Arc::<Feeds>::default();
        let mut readers: Vec<FeedReader> = (0..6).map(|number| feeds.begin(ProjectId(number))).collect();
        let most = MAX_WAITING as u64;
        for reader in &readers {
            (1..=most).for_each(|position| feeds.push(&mut reader.feed.lock(), event(position)));
        }
        assert!(feeds.waiting.load(Ordering::Relaxed) <= MAX_WAITING_IN_ALL);
        assert_eq!(positions(&mut readers[0]).unwrap().len(), MAX_WAITING);
        assert_eq!(positions(&mut readers[5]), None, "there is no room for the events of a fifth");
        let feed = Arc::clone(&readers[0].feed);
        let push = |position| feeds.push(&mut feed.lock(), event(position));
        (1..=most + 1).for_each(|position| push(most + position));
        assert_eq!((positions(&mut readers[0]), positions(&mut readers[0])), (None, Some(Vec::new())), "it goes on");
        push(3 * most);
        assert_eq!(positions(&mut readers[0]), Some(vec![3 * most]));
        drop(readers);
        assert_eq!((feeds.open.load(Ordering::SeqCst), feeds.waiting.load(Ordering::Relaxed)), (0, 0));
    }

    #[test]
    fn long_texts_take_more_room() {
        let text = Some("a".repeat(4_000));
        let feeds = Arc::<Feeds>::default();
        let mut reader = feeds.begin(PROJECT);
        let feed = Arc::clone(&reader.feed);
        let notification = |position| LiveNotification {
            position,
            event_id: String::new(),
            name: String::new(),
            message: text.clone(),
            channel: text.clone(),
            at: Instant(0),
        };
        for position in 1..=1_000 {
            let notification = Some(Arc::new(notification(position)));
            feeds.push(&mut feed.lock(), LiveEvent { notification, ..event(position) });
            assert!(feed.lock().events.len() < 2_000_000 / 8_000 * 3, "{position}");
        }
        assert_eq!((positions(&mut reader), feeds.waiting.load(Ordering::Relaxed)), (None, 0));
    }

    #[test]
    fn another_reader_of_a_project_takes_its_feed_over() {
        let feeds = Arc::<Feeds>::default();
        let (mut first, mut second) = (feeds.begin(PROJECT), feeds.begin(PROJECT));
        assert_eq!((positions(&mut first), positions(&mut first)), (None, Some(Vec::new())));
        assert_eq!((positions(&mut second), positions(&mut second)), (None, Some(Vec::new())));
        drop(first);
        assert_eq!((feeds.open.load(Ordering::SeqCst), feeds.feeds.read().len()), (1, 1));
        drop(second);
        assert_eq!((feeds.open.load(Ordering::SeqCst), feeds.feeds.read().len()), (0, 0));
    }
}
