//! Builds company profiles, on their own thread.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use headcount_actors::{
    BackedUpControl, EngineParts, Feature, FeatureFigure, InstallFeature, MovedDocuments, PositionMap, PropagateChange,
};
use headcount_common::local::{item_names, kind_dir};
use headcount_common::{ControlError, PARTITIONS};
use headcount_control::{Author, BuildError, BuildRun, BuildRunId, RegistryError, Result};
use headcount_domain::{Instant, OrganizationId, ProjectId};
use headcount_storage::files::{create_private_dir, hard_link};
use tokio::task::JoinSet;

use crate::build_queue::BuildQueue;
use crate::builds::{BuildRequest, ProfileBuild};
use crate::profile::KIND;
use crate::reader::BuildSettings;
use crate::research::SiteFindings;
use crate::store::CompanyProfiles;

/// The number of websites read at the same time.
const MAX_RUNNING: usize = 8;
/// The number of websites read for one organization, so that its slow websites leave room for
/// others.
const MAX_RUNNING_OF_ONE: usize = 2;
/// The pause after a failure to save a result.
const AFTER_FAILURE: Duration = Duration::from_secs(5);

/// The company profiles of an engine, and the builds that fill them.
#[derive(Debug)]
pub struct Profiles {
    parts: EngineParts,
    settings: BuildSettings,
    store: Arc<CompanyProfiles>,
    queue: BuildQueue,
}

/// Makes company profiles a feature of an engine.
pub fn install(settings: BuildSettings) -> InstallFeature {
    Arc::new(move |parts, _| Ok(Arc::new(Profiles::open(parts.clone(), settings.clone())?)))
}

impl Profiles {
    /// Opens the profiles of an engine. A node that owns no partition knows none before it follows
    /// them.
    fn open(parts: EngineParts, settings: BuildSettings) -> Result<Self, ControlError> {
        // The page reads them often.
        let documents = parts.stores.copied_documents(KIND, parts.data_dir());
        let documents =
            documents.map_err(|error| ControlError::Documents(format!("the company profiles can't be opened: {error}")))?;
        let store = Arc::new(CompanyProfiles::new(parts.shared_registry(), documents));
        if (0..PARTITIONS).any(|partition| parts.owners().is_here(partition)) {
            store.follow()?;
        }
        Ok(Self { parts, settings, store, queue: BuildQueue::default() })
    }

    /// The profiles.
    pub fn store(&self) -> &CompanyProfiles {
        &self.store
    }

    /// Begins to build a company profile from a website, and returns the run. The run continues by
    /// itself, even after a restart.
    ///
    /// It fills the named profile, or else the one with this website, or else the organization's
    /// own, which is created if it is missing. If a run for that profile is in progress, that run
    /// is returned. A run costs one Action, or none if the organization has no profile.
    ///
    /// # Errors
    /// Returns [`RegistryError::Invalid`] `website`; [`RegistryError::NotFound`] if the profile
    /// doesn't exist; [`RegistryError::Conflict`] `website_mismatch` if the profile has another
    /// website, `website_taken`, `limit_reached`; [`RegistryError::Exhausted`] `actions_exhausted`;
    /// [`RegistryError::Storage`].
    pub fn begin_build(&self, organization: OrganizationId, request: &BuildRequest, by: impl Into<Author>) -> Result<BuildRun> {
        let run = self.store.begin_build(organization, request, &by.into())?;
        self.queue.work.notify_one();
        Ok(run)
    }

    /// Returns a run, and the profile that it filled. Runs are kept for 30 days after their end.
    ///
    /// # Errors
    /// Returns [`RegistryError::NotFound`] if the organization doesn't have the run;
    /// [`RegistryError::Storage`].
    pub fn build(&self, organization: OrganizationId, id: &BuildRunId) -> Result<ProfileBuild> {
        let run = self.parts.registry().kept_build(organization, id, self.parts.clock().now())?;
        let filled = run.outcome.as_ref().and_then(|outcome| outcome.result.as_ref().ok());
        let profile = match filled.map(|id| self.store.get(organization, id)) {
            None | Some(Err(RegistryError::NotFound { .. })) => None,
            Some(profile) => Some(profile?),
        };
        Ok(ProfileBuild { is_running: self.queue.is_running(id), run, profile })
    }

    /// Whether this engine works on a build. The owner of one partition does, which the build's id
    /// selects.
    fn works_on(&self, run: &BuildRun) -> bool {
        let number = xxhash_rust::xxh3::xxh3_64(run.id.to_string().as_bytes()) % u64::from(PARTITIONS);
        self.parts.owners().is_here(u16::try_from(number).unwrap_or(0))
    }

    fn is_open(&self) -> bool {
        !self.queue.is_stopped() && !self.parts.is_closing()
    }
}

impl Feature for Profiles {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn start(self: Arc<Self>) -> io::Result<()> {
        if !self.settings.builds {
            return Ok(());
        }
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            // A website that exceeds its time limit keeps its thread for a while.
            .max_blocking_threads(MAX_RUNNING * 2)
            .build()?;
        std::thread::Builder::new().name("builds".into()).spawn(move || {
            runtime.block_on(Builder(self).run());
            // Websites being read now are read again after the next start.
            runtime.shutdown_background();
        })?;
        Ok(())
    }

    fn close(&self) {
        self.queue.stop();
    }

    fn save(&self) {
        self.queue.wait();
    }

    fn took(&self, _: u16) {
        self.queue.work.notify_one();
    }

    fn control_changed(&self) {
        self.queue.work.notify_one();
    }

    fn follow(&self) -> Result<u64, ControlError> {
        self.store.follow()
    }

    fn propagate_with(&self, propagate: PropagateChange) {
        self.store.items.propagate_with(propagate);
    }

    fn figures(&self) -> Vec<FeatureFigure> {
        self.queue.figures()
    }

    fn for_backup(&self, _: &dyn Fn(ProjectId) -> bool) -> Result<Box<dyn MovedDocuments>, ControlError> {
        let data_dir = self.parts.data_dir().to_owned();
        Ok(Box::new(CopiedProfiles { store: Arc::clone(&self.store), data_dir }))
    }
}

/// The profiles for a backup, which are read last: it then has all paid builds.
#[derive(Debug)]
struct CopiedProfiles {
    store: Arc<CompanyProfiles>,
    data_dir: PathBuf,
}

impl MovedDocuments for CopiedProfiles {
    fn write(&self, data_dir: &Path, _: &BackedUpControl<'_>, _: &PositionMap) -> io::Result<()> {
        self.store.follow().map_err(io::Error::other)?;
        let (from, to) = (kind_dir(&self.data_dir, KIND), kind_dir(data_dir, KIND));
        create_private_dir(&to)?;
        item_names(&from)?.into_iter().try_for_each(|name| link(&from.join(&name), &to.join(&name)))
    }
}

/// Gives a file a second name. One that is removed meanwhile is left out.
fn link(from: &Path, to: &Path) -> io::Result<()> {
    loop {
        match hard_link(from, to) {
            // Replaced or removed: the kernel then reports that the former one does not exist.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if !from.try_exists()? {
                    return Ok(());
                }
            }
            linked => return linked,
        }
    }
}

#[derive(Clone)]
struct Builder(Arc<Profiles>);

impl Builder {
    async fn run(self) {
        let Self(profiles) = &self;
        let mut runs = JoinSet::new();
        while profiles.is_open() {
            let is_own = |run: &BuildRun| profiles.works_on(run);
            let most = (MAX_RUNNING, MAX_RUNNING_OF_ONE);
            while let Some(run) = profiles.queue.take_next(profiles.parts.registry(), is_own, most) {
                runs.spawn(self.clone().build(run));
            }
            tokio::select! {
                Some(ended) = runs.join_next(), if !runs.is_empty() => if let Err(error) = ended {
                    tracing::error!(%error, "the build of a company profile failed");
                },
                () = profiles.queue.work.notified() => {}
            }
        }
    }

    async fn build(self, run: BuildRun) {
        let (organization, id) = (run.organization, run.id.clone());
        let start = move |profiles: &Profiles, now| profiles.parts.registry().note_build_start(organization, &id, now);
        let mut changed = self.change(&run, start).await;
        if changed.as_ref().is_some_and(|run| run.outcome.is_none()) {
            let (of, findings) = (run.clone(), self.read(&run).await);
            let end = move |profiles: &Profiles, now| profiles.store.end_build(&of, &findings, now);
            changed = self.change(&run, end).await;
        }
        self.0.queue.end(&run.id, changed.as_ref());
    }

    /// Changes a run, and retries until that is saved. Returns `None` if building ends, or another
    /// node works on the run and reads the website again.
    async fn change(
        &self,
        run: &BuildRun,
        change: impl Fn(&Profiles, Instant) -> Result<BuildRun> + Send + Sync + 'static,
    ) -> Option<BuildRun> {
        let change = Arc::new(change);
        while self.0.is_open() && self.0.works_on(run) {
            let (change, profiles, now) = (Arc::clone(&change), Arc::clone(&self.0), self.0.parts.clock().now());
            match tokio::task::spawn_blocking(move || profiles.queue.save(|| change(&profiles, now))).await {
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
        let settings = &self.0.settings;
        let (read, website) = (Arc::clone(&settings.read), run.website.clone());
        let failed = |code: &str, message: &str| {
            let url = Some(run.website.to_string());
            let failure = Some(BuildError { code: code.to_owned(), message: message.to_owned(), url });
            SiteFindings { failure, ..SiteFindings::default() }
        };
        let reading = tokio::task::spawn_blocking(move || read(&website));
        match tokio::time::timeout(settings.timeout, reading).await {
            Ok(Ok(findings)) => findings,
            Ok(Err(error)) => {
                tracing::error!(run = %run.id, %error, "reading a website failed");
                failed("internal_error", "reading the website failed")
            }
            Err(_) => failed("timeout", "reading the website took too long"),
        }
    }
}
