//! The features of an engine, and the documents that they follow.

use std::any::Any;
use std::sync::Arc;

use headcount_control::RegistryError;
use headcount_domain::ids::ProjectId;

use super::config::OpenError;
use super::handle::{Engine, Inner};
use super::subjects::WeakEngine;
use crate::feature::{Feature, InstallFeature, PropagateChange};

impl Inner {
    pub(super) fn features(&self) -> &[Arc<dyn Feature>] {
        self.features.get().map_or(&[], Vec::as_slice)
    }
}

impl Engine {
    /// The features that were installed, in the order of [`EngineConfig`](crate::EngineConfig).
    #[must_use]
    pub fn features(&self) -> &[Arc<dyn Feature>] {
        self.inner.features()
    }

    /// A feature, if it was installed.
    #[must_use]
    pub fn feature<F: Feature>(&self) -> Option<Arc<F>> {
        let mut features = self.features().iter().map(|feature| Arc::clone(feature) as Arc<dyn Any + Send + Sync>);
        features.find_map(|feature| feature.downcast().ok())
    }

    /// Makes the features of the configuration, and starts their work.
    pub(super) fn start_features(&self) -> Result<(), OpenError> {
        let subjects = Arc::new(WeakEngine(Arc::downgrade(&self.inner)));
        let install = |install: &InstallFeature| install(self, Arc::<WeakEngine>::clone(&subjects));
        let features: Result<Vec<_>, _> = self.inner.config.features.iter().map(install).collect();
        let features = features.map_err(|error| OpenError::Directory(error.to_string()))?;
        let features = self.inner.features.get_or_init(|| features);
        let mut started = features.iter().map(|feature| Arc::clone(feature).start());
        started.try_for_each(|started| started.map_err(|error| OpenError::Start(error.to_string())))
    }

    /// Tells the features that a project has a new notification.
    pub(super) fn tell_of_notification(&self, project: ProjectId) {
        self.features().iter().for_each(|feature| feature.notified(project));
    }

    /// Applies the changes of a kind of documents by other nodes up to now. Returns the number of
    /// the last change. Blocking; asks the brokers.
    ///
    /// # Errors
    /// [`RegistryError::Storage`]: they can't be read, or not written here.
    pub fn follow_documents(&self, kind: &str) -> Result<u64, RegistryError> {
        self.feature_of(kind).map_or(Ok(0), |feature| Ok(feature.follow()?))
    }

    /// Makes each change of a kind of documents wait until `propagate` returns, which gets the
    /// number of the change, and waits until all other nodes that answer requests have applied it.
    /// Only the first call counts.
    pub fn propagate_documents_with(&self, kind: &str, propagate: PropagateChange) {
        if let Some(feature) = self.feature_of(kind) {
            feature.propagate_with(propagate);
        }
    }

    fn feature_of(&self, kind: &str) -> Option<&Arc<dyn Feature>> {
        self.features().iter().find(|feature| feature.kind() == kind)
    }
}
