//! What a feature is to the engine, and what it hears of it.

use std::any::Any;
use std::fmt::Debug;
use std::io;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use headcount_common::ControlError;
use headcount_control::{Erasure, RegistryError};
use headcount_domain::{OrganizationId, Position, ProjectId, RecordKey};

use crate::parts::EngineParts;
use crate::position_map::PositionMap;
use crate::subject::{SubjectKeys, Subjects};

/// Makes a feature of the parts of an engine that was opened. It serves nobody yet.
pub type InstallFeature = Arc<dyn Fn(&EngineParts, Arc<dyn Subjects>) -> Result<Arc<dyn Feature>, ControlError> + Send + Sync>;

/// Waits until all other nodes have applied the change of a document with this number.
pub type PropagateChange = Box<dyn Fn(u64) + Send + Sync>;

/// A feature of a running engine. The engine calls these functions; by default they do nothing.
pub trait Feature: Any + Send + Sync {
    /// The kind of its documents.
    fn kind(&self) -> &'static str;

    /// Starts its work.
    ///
    /// # Errors
    /// A thread can't be started.
    fn start(self: Arc<Self>) -> io::Result<()> {
        Ok(())
    }

    /// Begins to stop its work: the engine closes. Called more than once.
    fn close(&self) {}

    /// Writes what is only in memory, while the engine closes. Blocks.
    fn save(&self) {}

    /// A project has a new event that asks for a notification.
    fn notified(&self, _: ProjectId) {}

    /// This machine takes a partition over, whose log ends at a position. Blocks.
    fn takes(&self, _: u16, _: Position) {}

    /// This machine owns a partition, and the partition is ready.
    fn took(&self, _: u16) {}

    /// This machine gives a partition up. Blocks.
    fn gave_up(&self, _: u16) {}

    /// Projects were deleted. Blocks.
    fn projects_deleted(&self) {}

    /// An erasure of a subject with these keys is durable. Blocks.
    ///
    /// # Errors
    /// What the feature has of the subject could not be removed.
    fn erased(&self, _: OrganizationId, _: &SubjectKeys) -> Result<(), RegistryError> {
        Ok(())
    }

    /// The keys of the identities that had an e-mail address when they were erased, as far as its
    /// documents tell.
    fn erased_with(&self, _: OrganizationId, _email: RecordKey) -> SubjectKeys {
        SubjectKeys::default()
    }

    /// The control data has changed.
    fn control_changed(&self) {}

    /// Applies the changes of its documents by other nodes up to now. Returns the number of the
    /// last change. Blocks.
    ///
    /// # Errors
    /// Changes applied before the failure stay.
    fn follow(&self) -> Result<u64, ControlError> {
        Ok(0)
    }

    /// Calls a function after each change of its documents. Only the first call counts.
    fn propagate_with(&self, _: PropagateChange) {}

    /// Its figures for `/metrics`.
    fn figures(&self) -> Vec<FeatureFigure> {
        Vec::new()
    }

    /// Reads its documents of the wanted projects, for a backup of all nodes. Blocks.
    ///
    /// # Errors
    /// They can't be read.
    fn for_backup(&self, _is_wanted: &dyn Fn(ProjectId) -> bool) -> Result<Box<dyn MovedDocuments>, ControlError> {
        Ok(Box::new(()))
    }
}

/// The features of an engine. There are none until they are installed.
#[derive(Default)]
pub(crate) struct InstalledFeatures(OnceLock<Vec<Arc<dyn Feature>>>);

impl InstalledFeatures {
    pub(crate) fn install(&self, features: Vec<Arc<dyn Feature>>) -> &[Arc<dyn Feature>] {
        self.0.get_or_init(|| features)
    }

    pub(crate) fn all(&self) -> &[Arc<dyn Feature>] {
        self.0.get().map_or(&[], Vec::as_slice)
    }

    pub(crate) fn of_kind(&self, kind: &str) -> Option<&Arc<dyn Feature>> {
        self.all().iter().find(|feature| feature.kind() == kind)
    }
}

/// A figure for `/metrics`.
#[derive(Debug, Clone, Copy)]
pub struct FeatureFigure {
    /// The name. That of a counter ends in `_total`.
    pub name: &'static str,
    /// The meaning.
    pub help: &'static str,
    /// The value.
    pub value: u64,
}

/// A document that moves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MovedDocument {
    /// Its key.
    pub key: String,
    /// Its content.
    pub content: Vec<u8>,
    /// The value that belongs to it.
    pub value: Option<Vec<u8>>,
}

/// The control data of a backup.
pub struct BackedUpControl<'a> {
    /// Whether a project is there.
    pub has_project: &'a dyn Fn(ProjectId) -> bool,
    /// Whether an organization is there.
    pub has_organization: &'a dyn Fn(OrganizationId) -> bool,
    /// The erasures, including finished ones.
    pub erasures: &'a [Erasure],
}

/// The documents of a feature, for another log where events have other positions.
pub trait MovedDocuments: Debug + Send + Sync {
    /// Adds the positions in the documents to the wanted ones.
    fn want(&self, _: &mut PositionMap) {}

    /// Returns them with the new positions. A value has at most `max_bytes`.
    ///
    /// # Errors
    /// They can't be encoded.
    fn documents(&self, _positions: &PositionMap, _max_bytes: usize) -> io::Result<Vec<MovedDocument>> {
        Ok(Vec::new())
    }

    /// Reads once more those that have no positions, before the control data of a backup.
    ///
    /// # Errors
    /// They can't be read.
    fn refresh(&self) -> Result<(), ControlError> {
        Ok(())
    }

    /// Writes those that belong to the control data to a data directory that has none.
    ///
    /// # Errors
    /// Any error of the operating system.
    fn write(&self, _dir: &Path, _control: &BackedUpControl<'_>, _positions: &PositionMap) -> io::Result<()> {
        Ok(())
    }
}

/// No documents.
impl MovedDocuments for () {}

/// Documents, and the number of those that could not be read.
pub type ReadDocuments = (Box<dyn MovedDocuments>, usize);

/// A kind of documents that move into a cluster.
#[derive(Debug, Clone, Copy)]
pub struct MovedKind {
    /// The kind.
    pub kind: &'static str,
    /// The name of such documents in answers.
    pub name: &'static str,
    /// Reads those of a data directory that no process changes.
    pub read: fn(&Path) -> io::Result<ReadDocuments>,
}
