//! The watches of projects.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use headcount_domain::ProjectId;
use parking_lot::Mutex;
use tokio::sync::watch::{Receiver, Sender, channel};

use super::feeds::{FeedReader, Feeds};
use super::frame::LiveFrame;

/// The maximum number of simultaneous watches of a project.
pub const MAX_WATCHES: usize = 256;

/// The reason why no more frames come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LiveEnd {
    /// The project was deleted.
    Deleted,
    /// The engine stops, or the watch failed. You may begin another one.
    Stopped,
}

/// The state of a watched project.
#[derive(Debug, Clone, Default)]
pub enum LiveState {
    /// The first frame is being made.
    #[default]
    Starting,
    /// The latest frame.
    Frame(Arc<LiveFrame>),
    /// No more frames come.
    Ended(LiveEnd),
}

/// The watched projects, and their feeds.
#[derive(Debug, Default)]
pub(crate) struct Watches {
    projects: Arc<Mutex<HashMap<ProjectId, WatchedProject>>>,
    feeds: Arc<Feeds>,
}

#[derive(Debug)]
struct WatchedProject {
    states: Receiver<LiveState>,
    watchers: Arc<AtomicUsize>,
}

/// A watch of a project. It keeps only the latest state, however slowly it is read.
#[derive(Debug)]
pub struct LiveWatch {
    states: Receiver<LiveState>,
    watchers: Arc<AtomicUsize>,
}

/// Publishes the states of a project.
#[derive(Debug)]
pub(crate) struct Publisher {
    /// The project.
    pub(crate) project: ProjectId,
    states: Sender<LiveState>,
    watchers: Arc<AtomicUsize>,
    all: Arc<Mutex<HashMap<ProjectId, WatchedProject>>>,
}

impl Watches {
    pub(crate) fn new(feeds: Arc<Feeds>) -> Self {
        Self { projects: Arc::default(), feeds }
    }

    /// Begins the feed of a project.
    pub(crate) fn feed(&self, project: ProjectId) -> FeedReader {
        self.feeds.begin(project)
    }

    /// Begins a watch. The first watch of a project also gets the publisher. Returns `None` if
    /// there are too many.
    pub(crate) fn begin(&self, project: ProjectId) -> Option<(LiveWatch, Option<Publisher>)> {
        let mut all = self.projects.lock();
        if let Some(WatchedProject { states, watchers }) = all.get(&project) {
            if watchers.load(Ordering::Acquire) >= MAX_WATCHES {
                return None;
            }
            watchers.fetch_add(1, Ordering::AcqRel);
            return Some((LiveWatch { states: states.clone(), watchers: Arc::clone(watchers) }, None));
        }
        let (sender, states) = channel(LiveState::Starting);
        let watchers = Arc::new(AtomicUsize::new(1));
        all.insert(project, WatchedProject { states: states.clone(), watchers: Arc::clone(&watchers) });
        let publisher = Publisher { project, states: sender, watchers: Arc::clone(&watchers), all: Arc::clone(&self.projects) };
        Some((LiveWatch { states, watchers }, Some(publisher)))
    }
}

impl LiveWatch {
    /// Waits for a state other than the last one. Returns `None` if the publisher is gone.
    pub async fn changed(&mut self) -> Option<LiveState> {
        self.states.changed().await.ok()?;
        Some(self.states.borrow_and_update().clone())
    }

    /// Returns the state, and marks it as seen.
    pub fn latest(&mut self) -> LiveState {
        self.states.borrow_and_update().clone()
    }
}

impl Drop for LiveWatch {
    fn drop(&mut self) {
        self.watchers.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Publisher {
    /// Whether the project has watchers.
    pub(crate) fn is_watched(&self) -> bool {
        self.watchers.load(Ordering::Acquire) > 0
    }

    /// Publishes a state.
    pub(crate) fn publish(&self, state: LiveState) {
        self.states.send_replace(state);
    }

    /// Ends, unless the project has watchers again. Later watches get another publisher.
    pub(crate) fn end_if_unwatched(self) -> Result<(), Self> {
        let all = Arc::clone(&self.all);
        let mut all = all.lock();
        if self.is_watched() {
            return Err(self);
        }
        all.remove(&self.project);
        // Its own removal finds nothing.
        drop(all);
        Ok(())
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        let mut all = self.all.lock();
        if all.get(&self.project).is_some_and(|watched| Arc::ptr_eq(&watched.watchers, &self.watchers)) {
            all.remove(&self.project);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROJECT: ProjectId = ProjectId(5);

    #[test]
    fn watches_are_bounded_and_the_last_one_ends_the_publisher() {
        let watches = Watches::default();
        let (first, publisher) = watches.begin(PROJECT).unwrap();
        let mut publisher = publisher.unwrap();
        let mut more: Vec<_> = (1..MAX_WATCHES).map(|_| watches.begin(PROJECT).unwrap()).collect();
        assert!(more.iter().all(|(_, publisher)| publisher.is_none()));
        assert!(watches.begin(PROJECT).is_none());
        assert!(watches.begin(ProjectId(6)).is_some(), "of another project");
        more.pop();
        let again = watches.begin(PROJECT).unwrap();
        drop(more);
        publisher = publisher.end_if_unwatched().unwrap_err();
        drop((again, first));
        assert!(!publisher.is_watched());
        publisher.end_if_unwatched().unwrap();
        assert!(watches.begin(PROJECT).unwrap().1.is_some(), "another publisher");
    }

    #[test]
    fn a_publisher_that_is_gone_makes_room_for_another() {
        let watches = Watches::default();
        let (mut watch, publisher) = watches.begin(PROJECT).unwrap();
        publisher.as_ref().unwrap().publish(LiveState::Ended(LiveEnd::Deleted));
        drop(publisher);
        assert!(matches!(watch.latest(), LiveState::Ended(LiveEnd::Deleted)));
        assert!(watches.begin(PROJECT).unwrap().1.is_some());
    }
}
