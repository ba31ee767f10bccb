//! The parts of an engine.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use headcount_common::secrets::Signer;
use headcount_common::{DocumentStores, Owners};
use headcount_control::Registry;
use headcount_domain::{Instant, Position, ProjectId};

use crate::clock_guard::ClockGuard;
use crate::questions::Questions;
use crate::scans::Scans;

/// The parts of an engine, for code that needs only some of them. Nobody who has them holds the
/// engine: its data directory is free once it is closed.
#[derive(Debug, Clone)]
pub struct EngineParts {
    /// Questions about the state of projects.
    pub questions: Arc<Questions>,
    /// Passes over recorded events.
    pub scans: Scans,
    /// Opens the documents of features.
    pub stores: Arc<dyn DocumentStores>,
    pub(crate) clock_guard: Arc<ClockGuard>,
    pub(crate) data_dir: PathBuf,
}

impl EngineParts {
    /// The data directory.
    pub fn data_dir(&self) -> &Path {
        &self.data_dir
    }

    /// The registry, for owners of a part of it.
    pub fn shared_registry(&self) -> Arc<Registry> {
        Arc::clone(&self.questions.registry)
    }

    /// The owner of each partition, for owners of a part of it.
    #[must_use]
    pub fn shared_owners(&self) -> Arc<Owners> {
        Arc::clone(&self.questions.owners)
    }

    /// Returns the known time: data that is too old at this time may be removed.
    pub fn known_now(&self) -> Instant {
        self.clock_guard.now()
    }

    /// Whether the engine is about to stop.
    pub fn is_closing(&self) -> bool {
        self.scans.is_closing()
    }

    /// The position of the last event in the log of a partition.
    pub fn last_position(&self, partition: u16) -> Position {
        self.questions.logged.last_position(partition)
    }

    /// A number that changes when a project loses the events of a person. Versions alone may return
    /// to former values.
    pub fn reflected_erasures(&self, project: ProjectId) -> u64 {
        self.questions.erasures.reflected(project)
    }

    /// Derives secrets from the key of the installation.
    pub fn signer(&self) -> &Signer {
        self.questions.secrets.signer()
    }
}

impl Deref for EngineParts {
    type Target = Questions;

    fn deref(&self) -> &Questions {
        &self.questions
    }
}
