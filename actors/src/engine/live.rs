//! Watching a project: its figures, at most ten times a second, while it has watchers.

use std::sync::Arc;
use std::time::{Duration, Instant as Stopwatch};

use headcount_common::partition_of;
use headcount_domain::ProjectId;

use super::handle::Engine;
use super::looker::{Look, Looker, Unseen};
use crate::live::{LiveEnd, LiveState, LiveWatch, Publisher};

/// The pause between two looks at a project.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How long a project is still looked at after the last watcher left, so that a returning watcher
/// finds the last notifications.
const LINGER: Duration = Duration::from_secs(10);

impl Engine {
    /// Begins to watch a project. Returns `None` if [too many](crate::MAX_WATCHES) watch it.
    #[must_use]
    pub fn watch(&self, project: ProjectId) -> Option<LiveWatch> {
        let (watch, publisher) = self.inner.watches.begin(project)?;
        if let Some(publisher) = publisher {
            let engine = Arc::downgrade(&self.inner);
            // Once the engine is closed, the publisher is dropped, and the watch ends.
            self.ingest.arbiter.spawn(follow(publisher, move || engine.upgrade().map(|inner| Engine { inner })));
        }
        Some(watch)
    }
}

/// Publishes the frames of a project.
async fn follow(mut publisher: Publisher, engine: impl Fn() -> Option<Engine>) {
    let Some(mut looker) = engine().map(|engine| Looker::new(&engine, publisher.project)) else { return };
    let mut unwatched = None;
    loop {
        let began = Stopwatch::now();
        let Some(engine) = engine() else { return };
        if engine.admission.is_draining() {
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
        match looker.look(&engine).await {
            Ok(Look::Frame(frame)) => publisher.publish(LiveState::Frame(Arc::new(frame))),
            Ok(Look::Same) => {}
            // The frame may show data of an erased person, so none is shown.
            Ok(Look::Anew) => publisher.publish(LiveState::Starting),
            Err(Unseen::Deleted) => return publisher.publish(LiveState::Ended(LiveEnd::Deleted)),
            // Another node has the project. The reader is sent there when it reconnects.
            Err(Unseen::Failed(_)) if !engine.owners().is_here(partition_of(publisher.project)) => {
                return publisher.publish(LiveState::Ended(LiveEnd::Stopped));
            }
            // The next look tries again.
            Err(Unseen::Failed(error)) => tracing::debug!(%error, "a watched project could not be looked at"),
        }
        drop(engine);
        tokio::time::sleep(looker.pause().max(LOOK_EVERY)).await;
    }
}

#[cfg(test)]
mod tests {
    use actix::ArbiterHandle;

    use super::*;
    use crate::engine::EngineConfig;

    /// The directory can be opened again once all threads of the engine have ended.
    fn ends_when_dropped_by(task: impl FnOnce(&ArbiterHandle, Engine)) {
        let dir = tempfile::tempdir().unwrap();
        let mut config = EngineConfig::new(dir.path());
        config.min_free_bytes = 0;
        let engine = Engine::open(config.clone()).unwrap();
        let arbiter = engine.ingest.arbiter.clone();
        task(&arbiter, engine);
        let until = Stopwatch::now() + Duration::from_secs(60);
        while let Err(error) = Engine::open(config.clone()) {
            assert!(Stopwatch::now() < until, "{error}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    #[test]
    fn a_task_of_the_engine_may_hold_it_last() {
        ends_when_dropped_by(|arbiter, engine| {
            assert!(arbiter.spawn(async move { drop(engine) }));
        });
        ends_when_dropped_by(|arbiter, engine| {
            assert!(arbiter.spawn(async move { drop(tokio::task::spawn_blocking(move || drop(engine)).await) }));
        });
    }
}
