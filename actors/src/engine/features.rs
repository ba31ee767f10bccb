//! The features of an engine.

use std::any::Any;
use std::sync::Arc;

use super::config::OpenError;
use super::handle::Engine;
use super::subjects::WeakEngine;
use crate::feature::{Feature, InstallFeature};

impl Engine {
    /// The features that were installed, in the order of [`EngineConfig`](crate::EngineConfig).
    #[must_use]
    pub fn features(&self) -> &[Arc<dyn Feature>] {
        self.ingest.features.all()
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
        let mut started = self.ingest.features.install(features).iter().map(|feature| Arc::clone(feature).start());
        started.try_for_each(|started| started.map_err(|error| OpenError::Start(error.to_string())))
    }
}
