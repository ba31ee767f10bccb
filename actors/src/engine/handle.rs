//! The handle to a running engine.

use std::ops::Deref;
use std::sync::Arc;

use super::common::Common;
use super::config::{EngineConfig, OpenError};
#[cfg(feature = "fault-injection")]
use super::fault_injection::plant as planted;
use super::open;
use super::running::{RunningEngine, start};
use crate::geo::GeoDatabase;

/// A running engine. Clones are handles to the same one.
#[derive(Clone)]
pub struct Engine {
    pub(super) inner: Arc<RunningEngine>,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("data_dir", &self.inner.config.data_dir).finish_non_exhaustive()
    }
}

impl Deref for Engine {
    type Target = RunningEngine;

    fn deref(&self) -> &RunningEngine {
        &self.inner
    }
}

#[cfg(not(feature = "fault-injection"))]
#[expect(clippy::unnecessary_wraps, reason = "as in `fault_injection`")]
fn planted(config: EngineConfig) -> Result<EngineConfig, OpenError> {
    Ok(config)
}

impl Engine {
    /// Opens a data directory: recovers the log, rebuilds what the store lacks, and starts.
    ///
    /// Blocking; takes as long as replaying the log since the last checkpoint.
    ///
    /// # Errors
    /// See [`OpenError`]. A damaged log is an error; a damaged store is rebuilt.
    pub fn open(config: EngineConfig) -> Result<Self, OpenError> {
        let config = planted(config)?;
        let common = Common::local(&config)?;
        Self::open_with(config, common)
    }

    /// Like [`Engine::open`], with parts that others may share. A node of a cluster has no
    /// partitions until [`Partitions::adopt`](super::Partitions::adopt).
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open_on(config: EngineConfig, common: Common) -> Result<Self, OpenError> {
        Self::open_with(planted(config)?, common)
    }

    fn open_with(config: EngineConfig, common: Common) -> Result<Self, OpenError> {
        // Opened first, so that a wrong file is reported before a long replay.
        let geo = config.geo_db.as_deref().map(GeoDatabase::open).transpose()?;
        let opened = open::open(&config, common)?;
        let engine = Self { inner: Arc::new(start(config, opened, geo)?) };
        engine.start_known_time();
        engine.ingest.start_retention();
        engine.start_counting();
        engine.start_features()?;
        Ok(engine)
    }
}
