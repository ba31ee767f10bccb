//! Builds company profiles, on their own thread.

use std::io;
use std::sync::{Arc, Weak};
use std::time::Duration;

use headcount_common::PARTITIONS;
use headcount_control::{BuildError, BuildRun, RegistryError};
use headcount_domain::time::Instant;
use tokio::task::JoinSet;

use super::handle::{Engine, Inner};
use crate::profiles::{BuildQueue, ResearchSettings, SiteFindings};

/// The number of websites read at the same time.
const MAX_RUNNING: usize = 8;
/// The number of websites read for one organization, so that its slow websites leave room for
/// others.
const MAX_RUNNING_OF_ONE: usize = 2;
/// The pause after a failure to save a result.
const AFTER_FAILURE: Duration = Duration::from_secs(5);

impl Engine {
    /// Whether this engine works on a build. The owner of one partition does, which the build's id
    /// selects.
    fn works_on(&self, run: &BuildRun) -> bool {
        let number = xxhash_rust::xxh3::xxh3_64(run.id.to_string().as_bytes()) % u64::from(PARTITIONS);
        self.owners().is_here(u16::try_from(number).unwrap_or(0))
    }

    /// Starts building, while the engine exists.
    pub(super) fn start_builds(&self) -> io::Result<()> {
        let Some(settings) = self.inner.config.research.clone().filter(|settings| settings.builds) else { return Ok(()) };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            // A website that exceeds its time limit keeps its thread for a while.
            .max_blocking_threads(MAX_RUNNING * 2)
            .build()?;
        let builder = Builder { engine: Arc::downgrade(&self.inner), queue: Arc::clone(&self.inner.profiles.builds), settings };
        std::thread::Builder::new().name("builds".into()).spawn(move || {
            runtime.block_on(builder.run());
            // Websites being read now are read again after the next start.
            runtime.shutdown_background();
        })?;
        Ok(())
    }
}

#[derive(Clone)]
struct Builder {
    engine: Weak<Inner>,
    queue: Arc<BuildQueue>,
    settings: ResearchSettings,
}

impl Builder {
    async fn run(self) {
        let mut runs = JoinSet::new();
        while let Some(engine) = self.engine() {
            let is_own = |run: &BuildRun| engine.works_on(run);
            while let Some(run) = self.queue.take_next(engine.registry(), is_own, (MAX_RUNNING, MAX_RUNNING_OF_ONE)) {
                runs.spawn(self.clone().build(run));
            }
            drop(engine);
            tokio::select! {
                Some(ended) = runs.join_next(), if !runs.is_empty() => if let Err(error) = ended {
                    tracing::error!(%error, "the build of a company profile failed");
                },
                () = self.queue.work.notified() => {}
            }
        }
    }

    /// The engine, for a moment. Nothing holds it while a website is read.
    fn engine(&self) -> Option<Engine> {
        let inner = self.engine.upgrade().filter(|inner| !self.queue.is_stopped() && !inner.admission.is_closing())?;
        Some(Engine { inner })
    }

    async fn build(self, run: BuildRun) {
        let (organization, id) = (run.organization, run.id.clone());
        let start = move |engine: &Engine, now| engine.registry().note_build_start(organization, &id, now);
        let mut changed = self.change(&run, start).await;
        if changed.as_ref().is_some_and(|run| run.outcome.is_none()) {
            let (of, findings) = (run.clone(), self.read(&run).await);
            let end = move |engine: &Engine, now| engine.inner.profiles.end_build(engine.registry(), &of, &findings, now);
            changed = self.change(&run, end).await;
        }
        self.queue.end(&run.id, changed.as_ref());
    }

    /// Changes a run, and retries until that is saved. Returns `None` if building ends, or another
    /// node works on the run and reads the website again.
    async fn change(
        &self,
        run: &BuildRun,
        change: impl Fn(&Engine, Instant) -> Result<BuildRun, RegistryError> + Send + Sync + 'static,
    ) -> Option<BuildRun> {
        let change = Arc::new(change);
        while let Some(engine) = self.engine().filter(|engine| engine.works_on(run)) {
            let (change, queue, now) = (Arc::clone(&change), Arc::clone(&self.queue), engine.clock().now());
            match tokio::task::spawn_blocking(move || queue.save(|| change(&engine, now))).await {
                Ok(Some(Ok(run))) => return Some(run),
                Ok(None) => return None,
                Ok(Some(Err(error))) => tracing::warn!(run = %run.id, %error, "a build could not be saved; it is tried again"),
                Err(error) => tracing::error!(run = %run.id, %error, "a build could not be saved; it is tried again"),
            }
            tokio::time::sleep(AFTER_FAILURE).await;
        }
        None
    }

    async fn read(&self, run: &BuildRun) -> SiteFindings {
        let (reader, website) = (Arc::clone(&self.settings.reader), run.website.clone());
        let failed = |code: &str, message: &str| {
            let url = Some(run.website.to_string());
            let failure = Some(BuildError { code: code.to_owned(), message: message.to_owned(), url });
            SiteFindings { failure, ..SiteFindings::default() }
        };
        let reading = tokio::task::spawn_blocking(move || reader.read(&website));
        match tokio::time::timeout(self.settings.timeout, reading).await {
            Ok(Ok(findings)) => findings,
            Ok(Err(error)) => {
                tracing::error!(run = %run.id, %error, "reading a website failed");
                failed("internal_error", "reading the website failed")
            }
            Err(_) => failed("timeout", "reading the website took too long"),
        }
    }
}
