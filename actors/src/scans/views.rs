//! Kept answers, so that a question that is asked again costs little.
//!
//! A view is a question with its last answer, the version of the days that it read, and if there is
//! room, the figures that the answer was made of. While the version stays, the answer is that of a
//! new scan. When it changed, the figures are advanced by the events that were recorded since.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use actix::System;
use headcount_control::Registry;
use headcount_domain::ProjectId;
use parking_lot::Mutex;

use super::kept::{KeptQuestion, ViewState};

/// The most views of a project.
const MAX_VIEWS: usize = 128;
/// How long a view is kept that nobody asks for.
pub(crate) const IDLE: Duration = Duration::from_secs(10 * 60);
/// Memory of a view besides its question, its answer and its figures, roughly.
const VIEW_BYTES: usize = 512;

/// The views of all projects, within a budget.
pub(crate) struct Views {
    /// The most bytes; 0 to keep nothing.
    most: usize,
    table: Mutex<ViewTable>,
    hits: AtomicU64,
    misses: AtomicU64,
    evictions: AtomicU64,
}

#[derive(Default)]
struct ViewTable {
    projects: BTreeMap<ProjectId, Vec<ViewEntry>>,
    bytes: usize,
}

struct ViewEntry {
    view: Arc<View>,
    bytes: usize,
    asked: Instant,
}

/// A question, and what is kept of its answers.
pub(super) struct View {
    project: ProjectId,
    question: Arc<KeptQuestion>,
    /// One asks at a time; others wait for its answer.
    pub(super) kept: Arc<tokio::sync::Mutex<ViewState>>,
}

/// Figures about kept answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ViewFigures {
    /// The number of views.
    pub count: usize,
    /// Their bytes, estimated.
    pub bytes: usize,
    /// The number of questions that were answered with one.
    pub hits: u64,
    /// The number of questions that were answered by a whole scan.
    pub misses: u64,
    /// The number of views that were removed: idle, too large, or too many.
    pub evictions: u64,
}

impl ViewTable {
    /// Changes the bytes of a view. Returns `false` if it was removed meanwhile.
    fn set_bytes(&mut self, view: &Arc<View>, bytes: usize) -> bool {
        let entries = self.projects.get_mut(&view.project);
        let Some(entry) = entries.and_then(|entries| entries.iter_mut().find(|entry| Arc::ptr_eq(&entry.view, view))) else {
            return false;
        };
        self.bytes = self.bytes - entry.bytes + bytes;
        entry.bytes = bytes;
        true
    }

    /// Removes a view. Returns whether it was there.
    fn remove(&mut self, view: &Arc<View>) -> bool {
        let Some(entries) = self.projects.get_mut(&view.project) else { return false };
        let Some(at) = entries.iter().position(|entry| Arc::ptr_eq(&entry.view, view)) else { return false };
        self.bytes -= entries.swap_remove(at).bytes;
        if entries.is_empty() {
            self.projects.remove(&view.project);
        }
        true
    }

    /// Removes the view of `project` that was asked for least recently, apart from `kept`. Returns
    /// whether there was one.
    fn evict_from(&mut self, project: ProjectId, kept: Option<&Arc<View>>) -> bool {
        let entries = self.projects.get(&project).into_iter().flatten();
        let others = entries.filter(|entry| kept.is_none_or(|kept| !Arc::ptr_eq(&entry.view, kept)));
        let oldest = others.min_by_key(|entry| entry.asked).map(|entry| Arc::clone(&entry.view));
        oldest.is_some_and(|oldest| self.remove(&oldest))
    }

    /// Removes a view of the project whose views take most, apart from `kept`. Returns whether
    /// there was one.
    fn evict_from_largest(&mut self, kept: &Arc<View>) -> bool {
        let size = |entries: &Vec<ViewEntry>| entries.iter().map(|entry| entry.bytes).sum::<usize>();
        let largest = self.projects.iter().max_by_key(|(_, entries)| size(entries)).map(|(project, _)| *project);
        largest.is_some_and(|project| self.evict_from(project, Some(kept)))
    }
}

impl Views {
    /// Keeps at most `most` bytes; 0 keeps nothing.
    pub(crate) fn new(most: usize) -> Self {
        let count = AtomicU64::default;
        Self { most, table: Mutex::default(), hits: count(), misses: count(), evictions: count() }
    }

    /// Returns the view of a question; a new one if there is none. `None` if nothing is kept.
    pub(super) fn open(&self, project: ProjectId, question: &Arc<KeptQuestion>) -> Option<Arc<View>> {
        if self.most == 0 {
            return None;
        }
        let (mut table, asked) = (self.table.lock(), Instant::now());
        let entries = table.projects.entry(project).or_default();
        if let Some(entry) = entries.iter_mut().find(|entry| entry.view.question == *question) {
            entry.asked = asked;
            return Some(Arc::clone(&entry.view));
        }
        let is_full = entries.len() >= MAX_VIEWS;
        if is_full && table.evict_from(project, None) {
            self.evictions.fetch_add(1, Ordering::Relaxed);
        }
        let view = Arc::new(View { project, question: Arc::clone(question), kept: Arc::default() });
        let entry = ViewEntry { view: Arc::clone(&view), bytes: 0, asked };
        table.projects.entry(project).or_default().push(entry);
        drop(table);
        self.resize(&view, 0).then_some(view)
    }

    /// Makes room for a view with figures and an answer of `bytes`, by evicting others: those of
    /// the project that has most, so that nobody takes the room of who has less. `false` if there
    /// is no such room, or if it was evicted itself: then the caller keeps neither figures nor
    /// answer.
    pub(super) fn resize(&self, view: &Arc<View>, bytes: usize) -> bool {
        let empty = VIEW_BYTES + view.question.weight();
        let (mut table, mut evicted) = (self.table.lock(), 0);
        let mut fits = table.set_bytes(view, empty + bytes);
        if !fits {
            return false;
        }
        if empty + bytes <= self.most {
            while table.bytes > self.most && table.evict_from_largest(view) {
                evicted += 1;
            }
        }
        if table.bytes > self.most {
            fits = false;
            table.set_bytes(view, empty);
            if table.bytes > self.most {
                evicted += u64::from(table.remove(view));
            }
        }
        self.evictions.fetch_add(evicted, Ordering::Relaxed);
        fits
    }

    /// Removes the views that nobody asked for since [`IDLE`] before `now`, and those of unknown
    /// projects.
    pub(crate) fn remove_idle(&self, now: Instant, is_known: impl Fn(ProjectId) -> bool) {
        let mut table = self.table.lock();
        let (mut freed, mut removed) = (0, 0);
        table.projects.retain(|project, entries| {
            let is_known = is_known(*project);
            entries.retain(|entry| {
                let stays = is_known && now.saturating_duration_since(entry.asked) < IDLE;
                if !stays {
                    freed += entry.bytes;
                    removed += 1;
                }
                stays
            });
            !entries.is_empty()
        });
        table.bytes -= freed;
        self.evictions.fetch_add(removed, Ordering::Relaxed);
    }

    /// Removes the views of a project.
    pub(crate) fn forget(&self, project: ProjectId) {
        let mut table = self.table.lock();
        let removed = table.projects.remove(&project).unwrap_or_default();
        table.bytes -= removed.iter().map(|entry| entry.bytes).sum::<usize>();
    }

    /// Counts a question that was answered with a view.
    pub(super) fn count_hit(&self) {
        self.hits.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a question that was answered by a whole scan.
    pub(super) fn count_miss(&self) {
        self.misses.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the figures for `/metrics`.
    pub(crate) fn figures(&self) -> ViewFigures {
        let table = self.table.lock();
        ViewFigures {
            count: table.projects.values().map(Vec::len).sum(),
            bytes: table.bytes,
            hits: self.hits.load(Ordering::Relaxed),
            misses: self.misses.load(Ordering::Relaxed),
            evictions: self.evictions.load(Ordering::Relaxed),
        }
    }
}

/// The room of the view that a scan fills.
pub(super) struct ViewRoom<'v> {
    views: &'v Views,
    view: Option<Arc<View>>,
    granted: usize,
}

/// The least number of bytes for which room is made at a time.
const ROOM_STEP: usize = 1 << 18;

impl<'v> ViewRoom<'v> {
    /// The room of `view`. Without a view there is none.
    pub(super) fn new(views: &'v Views, view: Option<Arc<View>>) -> Self {
        Self { views, view, granted: 0 }
    }

    /// Whether the figures may take `bytes`.
    pub(super) fn has(&mut self, bytes: usize) -> bool {
        let more = bytes + ROOM_STEP;
        if bytes > self.granted && self.reserve(more) {
            self.granted = more;
        }
        bytes <= self.granted
    }

    /// Makes room for what is kept in the end: figures and an answer of `bytes`. Returns whether
    /// there is room.
    pub(super) fn reserve(&self, bytes: usize) -> bool {
        self.view.as_ref().is_some_and(|view| self.views.resize(view, bytes))
    }
}

/// How often idle views are removed.
const CHECKED_EVERY: Duration = Duration::from_secs(30);

/// Creates views of at most `most` bytes. While `system` runs, idle views and those of deleted
/// projects are removed.
pub(super) fn start_views(most: usize, system: &System, registry: &Arc<Registry>) -> Arc<Views> {
    let views = Arc::new(Views::new(most));
    let (checked, registry) = (Arc::clone(&views), Arc::clone(registry));
    system.arbiter().spawn(async move {
        loop {
            tokio::time::sleep(CHECKED_EVERY).await;
            checked.remove_idle(Instant::now(), |project| registry.policy(project).is_some());
        }
    });
    views
}

#[cfg(test)]
mod tests {
    use headcount_domain::{Day, Predicate, Window};

    use super::*;

    fn question(number: i32) -> Arc<KeptQuestion> {
        let window = Window { start: Day(number), end: Day(number) };
        Arc::new(KeptQuestion::UniqueUsers { window, predicate: Predicate::default() })
    }

    #[test]
    fn few_views_of_a_project_are_kept_and_the_latest_of_them() {
        let views = Views::new(1 << 20);
        let first = views.open(ProjectId(1), &question(0)).unwrap();
        for number in 1..200 {
            views.open(ProjectId(1), &question(number)).unwrap();
            let again = views.open(ProjectId(1), &question(0)).unwrap();
            assert!(Arc::ptr_eq(&again, &first), "it was asked for most recently");
        }
        let figures = views.figures();
        assert_eq!((figures.count, figures.evictions), (MAX_VIEWS, 200 - MAX_VIEWS as u64));
        assert!(!views.resize(&Arc::new(View { project: ProjectId(1), question: question(0), kept: Arc::default() }), 1));
    }

    #[test]
    fn who_has_most_makes_room() {
        let views = Views::new(100_000);
        let small = views.open(ProjectId(1), &question(0)).unwrap();
        assert!(views.resize(&small, 10_000));
        let large: Vec<_> = (0..3).map(|number| views.open(ProjectId(2), &question(number)).unwrap()).collect();
        assert!(large.iter().all(|view| views.resize(view, 40_000)));
        assert!(views.figures().bytes <= 100_000);
        assert_eq!((views.figures().count, views.figures().evictions), (3, 1));
        assert!(views.resize(&small, 10_000), "that of the other project stays");
        assert!(!views.resize(&large[0], 40_000), "it was removed");
        // One that has most, and nothing else, takes nothing from others.
        assert!(!views.resize(&large[2], 95_000));
        assert_eq!(views.figures().count, 2);
        assert!(views.resize(&small, 10_000) && !views.resize(&small, 100_000));
        assert!(views.figures().bytes < 5_000, "what was refused is not kept");
        assert!(Views::new(0).open(ProjectId(1), &question(0)).is_none());
    }

    #[test]
    fn idle_views_go_and_those_of_deleted_projects() {
        let views = Views::new(1 << 20);
        for project in 1..=3 {
            views.open(ProjectId(project), &question(0)).unwrap();
        }
        let now = Instant::now();
        views.remove_idle(now, |project| project != ProjectId(2));
        assert_eq!(views.figures().count, 2);
        views.remove_idle(now + IDLE, |_| true);
        let expected = ViewFigures { count: 0, bytes: 0, hits: 0, misses: 0, evictions: 3 };
        assert_eq!(views.figures(), expected);
    }

    #[test]
    fn room_is_made_in_steps() {
        let views = Views::new(1 << 20);
        let view = views.open(ProjectId(1), &question(0)).unwrap();
        let mut room = ViewRoom::new(&views, Some(view));
        assert!(room.has(1_000) && room.has(500_000));
        assert!(views.figures().bytes > 500_000);
        assert!(room.reserve(2_000));
        assert!(views.figures().bytes < 4_000);
        assert!(!room.has(1 << 20));
        assert!(!ViewRoom::new(&views, None).has(1));
    }
}
