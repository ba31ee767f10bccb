//! A data directory made for a backup of a cluster, since no machine has one with everything.

use std::path::Path;

use headcount_common::DOCUMENT_KINDS;
use headcount_control::Registry;
use headcount_domain::Position;
use headcount_storage::backup::{BackupTarget, BackupWriter};
use headcount_storage::format::Format;

use super::collector::Collector;
use super::error::BackupFailure;
use super::snapshot::projects;
use super::staging::Staging;

/// The directory. It is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct MadeDirectory {
    staging: Staging,
}

impl MadeDirectory {
    /// Creates it, empty, in the data directory of a machine. Only one exists at a time.
    ///
    /// # Errors
    /// Returns [`BackupFailure::Layout`], and errors of the operating system.
    pub(crate) fn create(machine: &Path) -> Result<Self, BackupFailure> {
        let staging = Staging::create(machine)?;
        Format::open(&staging.dir)?;
        Ok(Self { staging })
    }

    /// Its path.
    pub(crate) fn path(&self) -> &Path {
        &self.staging.dir
    }

    /// Writes everything except the log, which has events up to `last`: its control data and
    /// documents, and the machine's key.
    ///
    /// # Errors
    /// Returns [`BackupFailure::Control`], and errors of reading and writing.
    pub(crate) fn pass_on<T: BackupTarget>(
        &self,
        machine: &Path,
        last: Position,
        writer: &mut BackupWriter<'_, T>,
    ) -> Result<(), BackupFailure> {
        let registry = Registry::open(self.path())?;
        let mut of_machine = Collector::new(machine, Some(&self.staging));
        of_machine.take("keys/hash.key", None, None)?;
        let mut made = Collector::new(self.path(), None);
        made.take("FORMAT", None, None)?;
        DOCUMENT_KINDS.iter().try_for_each(|kind| made.take_documents(kind))?;
        registry.hold_files(|files| made.take_log(files))??;
        of_machine.files.iter().chain(&made.files).try_for_each(|file| file.add_to(writer))?;
        writer.set_projects(projects(&registry, last)?);
        Ok(())
    }
}
