//! The streams that readers of shares hold: half of those that a project can have, so that
//! strangers leave room for its owners.

use std::collections::HashMap;
use std::sync::Arc;

use headcount_actors::MAX_WATCHES;
use headcount_domain::ProjectId;
use parking_lot::Mutex;

/// The most streams of a project that readers of shares hold.
const MAX_SHARE_STREAMS: usize = MAX_WATCHES / 2;

/// How many streams there are of each project.
#[derive(Debug, Default, Clone)]
pub(crate) struct ShareStreams(Arc<Mutex<HashMap<ProjectId, usize>>>);

/// The place of one stream. Dropping it frees the place.
#[derive(Debug)]
pub(crate) struct ShareStream {
    project: ProjectId,
    all: ShareStreams,
}

impl ShareStreams {
    /// Takes a place. `None`: there are too many.
    pub(crate) fn begin(&self, project: ProjectId) -> Option<ShareStream> {
        let mut counts = self.0.lock();
        let count = counts.entry(project).or_default();
        if *count >= MAX_SHARE_STREAMS {
            return None;
        }
        *count += 1;
        Some(ShareStream { project, all: self.clone() })
    }
}

impl Drop for ShareStream {
    fn drop(&mut self) {
        let mut counts = self.all.0.lock();
        if let Some(count) = counts.get_mut(&self.project) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.project);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_bounded_by_project_and_given_back() {
        let streams = ShareStreams::default();
        let mut held: Vec<_> = (0..MAX_SHARE_STREAMS).map(|_| streams.begin(ProjectId(1)).unwrap()).collect();
        assert!(streams.begin(ProjectId(1)).is_none());
        assert!(streams.begin(ProjectId(2)).is_some(), "another project");
        held.pop();
        held.push(streams.begin(ProjectId(1)).unwrap());
        drop(held);
        assert!(streams.0.lock().is_empty());
    }
}
