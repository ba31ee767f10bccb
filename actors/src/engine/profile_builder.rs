//! Building company profiles, on a thread of its own.

use std::io;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::task::JoinSet;

use super::handle::{Engine, Inner};
use crate::partitions::PARTITIONS;
use crate::profiles::{BuildQueue, ResearchSettings, SiteFindings};
use crate::registry::{BuildError, BuildRun};

/// How many websites are read at a time.
const MAX_RUNNING: usize = 8;
/// How many for one organization, so that slow websites of one leave room for the others.
const MAX_RUNNING_OF_ONE: usize = 2;
/// How often a member looks for builds that others have begun or left.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// The pause after a failure to save a result.
const AFTER_FAILURE: Duration = Duration::from_secs(5);

impl Engine {
    /// Whether a build is this engine's: each is that of the owner of one partition, which its id says.
    fn works_on(&self, run: &BuildRun) -> bool {
        let number = xxhash_rust::xxh3::xxh3_64(run.id.to_string().as_bytes()) % u64::from(PARTITIONS);
        self.owners().is_here(u16::try_from(number).unwrap_or(0))
    }

    /// Begins to build, for as long as the engine is there.
    pub(super) fn start_builds(&self) -> io::Result<()> {
        let Some(settings) = self.inner.config.research.clone().filter(|settings| settings.builds) else { return Ok(()) };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            // A website that takes longer than it may is left behind.
            .max_blocking_threads(MAX_RUNNING * 2)
            .build()?;
        let builder = Builder { engine: Arc::downgrade(&self.inner), queue: Arc::clone(&self.inner.profiles.builds), settings };
        std::thread::Builder::new().name("builds".into()).spawn(move || {
            runtime.block_on(builder.run());
            // Websites that are being read now are read again after the next start.
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
            let is_alone = engine.owners().is_alone();
            drop(engine);
            tokio::select! {
                Some(ended) = runs.join_next(), if !runs.is_empty() => if let Err(error) = ended {
                    tracing::error!(%error, "the build of a company profile failed");
                },
                () = self.queue.work.notified() => {}
                // Others begin builds, and leave some.
                () = tokio::time::sleep(LOOK_EVERY), if !is_alone => {}
            }
        }
    }

    /// The engine, for a moment: it is not held while a website is read.
    fn engine(&self) -> Option<Engine> {
        let inner = self.engine.upgrade().filter(|inner| !self.queue.is_stopped() && !inner.admission.is_closing())?;
        Some(Engine { inner })
    }

    async fn build(self, run: BuildRun) {
        let findings = Arc::new(self.read(&run).await);
        let mut ended = None;
        while let Some(engine) = self.engine() {
            let (findings, of, queue) = (Arc::clone(&findings), run.clone(), Arc::clone(&self.queue));
            if !engine.works_on(&run) {
                // Another member reads the website again, and ends the run.
                break;
            }
            let now = engine.clock().now();
            let end = move || queue.save(|| engine.inner.profiles.end_build(engine.registry(), &of, &findings, now));
            match tokio::task::spawn_blocking(end).await {
                Ok(Some(Ok(run))) => {
                    ended = Some(run);
                    break;
                }
                Ok(None) => break,
                Ok(Some(Err(error))) => {
                    tracing::warn!(run = %run.id, %error, "the result of a build could not be saved; it is tried again");
                }
                Err(error) => {
                    tracing::error!(run = %run.id, %error, "the result of a build could not be saved; it is tried again")
                }
            }
            tokio::time::sleep(AFTER_FAILURE).await;
        }
        self.queue.end(&run.id, ended.as_ref());
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
