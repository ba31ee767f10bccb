//! What a feature is to the engine, and what it hears of it.

use std::any::Any;
use std::fmt::Debug;
use std::io;
use std::path::Path;
use std::sync::Arc;

use headcount_common::ControlError;
use headcount_domain::{Position, ProjectId};

use crate::parts::EngineParts;
use crate::position_map::PositionMap;

/// Makes a feature of the parts of an engine that was opened. It serves nobody yet.
pub type InstallFeature = Arc<dyn Fn(&EngineParts) -> Result<Arc<dyn Feature>, ControlError> + Send + Sync>;

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
    fn for_backup(&self, is_wanted: &dyn Fn(ProjectId) -> bool) -> Result<Box<dyn MovedDocuments>, ControlError>;
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

    /// Writes those of the wanted projects to a data directory that has none.
    ///
    /// # Errors
    /// Any error of the operating system.
    fn write(&self, _dir: &Path, _is_wanted: &dyn Fn(ProjectId) -> bool, _positions: &PositionMap) -> io::Result<()> {
        Ok(())
    }
}

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
