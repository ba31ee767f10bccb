//! Writes a backup of a cluster.

use std::io;
use std::path::Path;
use std::sync::Arc;

use headcount_common::local::{LocalValues, kind_dir};
use headcount_common::nodes::AskNodeError;
use headcount_control::{Erasure, Registry};
use headcount_domain::{Position, ProjectId};
use headcount_storage::backup::{BackupManifest, BackupTarget, BackupWriter};

use super::begin::NodesBackup;
use super::copied::CopiedProjects;
use super::error::NodesBackupError;
use super::questions::{PartitionEvents, PartitionEventsQuestion, PartitionRecord};
use crate::backup::NewLog;
use crate::engine::subjects::ask_patiently;
use crate::event_codec::{self, LogRecord};
use crate::feature::BackedUpControl;
use crate::intake_counts::{INTAKE, IntakeCounts};
use crate::position_map::PositionMap;
use crate::shard::AskError;

/// Receives events, and writes them to the backup.
struct Receiver<'w, 't, T> {
    backup: &'w NodesBackup,
    is_over: &'w dyn Fn() -> bool,
    writer: &'w mut BackupWriter<'t, T>,
    log: NewLog,
    positions: PositionMap,
}

impl NodesBackup {
    /// Writes the backup, unless `is_over` becomes true. Events go to the target as they arrive, so
    /// that the disk of this machine holds only some of them at a time. Blocks. Call it inside a
    /// runtime.
    ///
    /// # Errors
    /// Returns a [`NodesBackupError`]. The backup is incomplete then.
    pub fn write(self, target: &mut impl BackupTarget, is_over: &dyn Fn() -> bool) -> Result<BackupManifest, NodesBackupError> {
        self.write_all(target, &|| is_over() || self.engine.is_closing())
    }

    fn write_all<T: BackupTarget>(&self, target: &mut T, is_over: &dyn Fn() -> bool) -> Result<BackupManifest, NodesBackupError> {
        let now = self.engine.clock().now().to_string();
        let mut writer = BackupWriter::new(target, BackupManifest::new(env!("CARGO_PKG_VERSION"), now, Vec::new()));
        let copied = self.copy_projects(&mut writer, is_over)?;
        let (last, positions) = self.write_events(&mut writer, &copied, is_over)?;
        // Read before the control data, which then have all erasures of the requests.
        self.documents.iter().try_for_each(|documents| documents.refresh())?;
        let later = self.engine.registry().moment()?;
        let (dir, left) = (self.directory.path(), later.projects());
        let erasures: Vec<Erasure> = later.erasures().cloned().collect();
        let control = BackedUpControl {
            has_project: &|project| left.contains(&project),
            has_organization: &|organization| later.has_organization(organization),
            erasures: &erasures,
        };
        // After the control data, which features may have to agree with.
        let written = self.documents.iter().try_for_each(|documents| documents.write(dir, &control, &positions));
        written.map_err(NodesBackupError::io("write the documents of features to", dir))?;
        self.write_counts(dir).map_err(NodesBackupError::io("write the counts of dropped events to", dir))?;
        drop(Registry::create_from(dir, &self.control_records(&later, last, &copied.until)?)?);
        self.directory.pass_on(self.engine.data_dir(), last, &mut writer)?;
        Ok(writer.finish()?)
    }

    /// Writes the counts of dropped events of all partitions, as their owners last wrote them.
    fn write_counts(&self, dir: &Path) -> io::Result<()> {
        let values = LocalValues::of_partitions(&kind_dir(dir, INTAKE))?;
        self.engine.ingest.counts.copy_to(&IntakeCounts::new(Arc::new(values), false)?).map_err(io::Error::other)
    }

    /// Writes the log. Returns its last position, and the new positions for documents.
    fn write_events<T: BackupTarget>(
        &self,
        writer: &mut BackupWriter<'_, T>,
        copied: &CopiedProjects,
        is_over: &dyn Fn() -> bool,
    ) -> Result<(Position, PositionMap), NodesBackupError> {
        let log = NewLog::create(self.directory.path(), copied.first_logged(), writer)?;
        let mut receiver = Receiver { backup: self, is_over, writer, log, positions: PositionMap::default() };
        copied.until.iter().for_each(|(project, until)| receiver.positions.keep(*project, *until));
        self.documents.iter().for_each(|documents| documents.want(&mut receiver.positions));
        for (partition, end) in &self.ends {
            receiver.receive(*partition, *end)?;
            self.check_has_all(*partition, is_over)?;
        }
        let Receiver { writer, log, mut positions, .. } = receiver;
        positions.finish();
        Ok((log.finish(writer)?, positions))
    }
}

impl NodesBackup {
    /// Whether the events of a project are read, instead of its files copied.
    pub(super) fn is_read(&self, project: ProjectId) -> bool {
        self.projects.contains(&project) && !self.copied.contains(&project)
    }

    /// Checks that there is room for `bytes`, and that the client still waits for the backup.
    pub(super) fn check_goes_on(&self, bytes: u64, is_over: &dyn Fn() -> bool) -> Result<(), NodesBackupError> {
        if is_over() {
            return Err(NodesBackupError::Stopped);
        }
        if self.engine.inner.admission.disk.has_spare(bytes) { Ok(()) } else { Err(NodesBackupError::DiskFull) }
    }
}

impl<T: BackupTarget> Receiver<'_, '_, T> {
    /// Receives a partition up to a position: sealed events project by project, and the rest from
    /// the log.
    fn receive(&mut self, partition: u16, end: Position) -> Result<(), NodesBackupError> {
        let mut after = 0;
        while after < end {
            let (reached, projects) = self.receive_page(partition, None, (after, end))?;
            for project in projects.into_iter().filter(|project| self.backup.is_read(*project)) {
                let mut of_project = after;
                while of_project < reached && !self.backup.engine.admission.is_deleted(project) {
                    (of_project, _) = self.receive_page(partition, Some(project), (of_project, reached))?;
                }
            }
            after = reached;
        }
        Ok(())
    }

    /// Receives a page. Returns the position that it reaches, and the projects whose events up to
    /// there are still missing.
    fn receive_page(
        &mut self,
        partition: u16,
        project: Option<ProjectId>,
        (after, until): (Position, Position),
    ) -> Result<(Position, Vec<ProjectId>), NodesBackupError> {
        self.backup.check_goes_on(0, self.is_over)?;
        let (engine, applied) = (&self.backup.engine, self.backup.moment.applied);
        let question = PartitionEventsQuestion { partition, applied, project, after, until };
        // A deleted project gets no answer, and needs none: the control data will have its
        // deletion.
        let is_in_vain = || project.is_some_and(|project| engine.admission.is_deleted(project));
        let page = match ask_patiently(&|| (self.is_over)() || is_in_vain(), || engine.ask_about_partition(question.clone())) {
            Err(_) if is_in_vain() => return Ok((until, Vec::new())),
            page => page?,
        };
        let (reached, projects) = match page {
            PartitionEvents::Found { records, reached } => {
                records.into_iter().try_for_each(|record| self.add(partition, record))?;
                self.log.pass_on(self.writer)?;
                (reached, Vec::new())
            }
            PartitionEvents::Sealed { until, projects } if project.is_none() => (until, projects),
            PartitionEvents::Sealed { .. } => return Err(strange("it passes on the question for one project")),
        };
        if reached <= after || reached > until {
            return Err(strange("its answer is about other positions"));
        }
        Ok((reached, projects))
    }

    fn add(&mut self, partition: u16, record: PartitionRecord) -> Result<(), NodesBackupError> {
        let PartitionRecord { project, positions, payload } = record;
        if !self.backup.is_read(project) {
            return Ok(());
        }
        let decoded = event_codec::decode(&payload).map_err(|error| strange(&error.to_string()))?;
        let is_its = match &decoded {
            LogRecord::Events(events) => events.iter().all(|event| event.project == project),
            LogRecord::Floor(floor) => floor.project == project,
        };
        let count = decoded.count();
        if !is_its || count != positions.len() || count == 0 {
            return Err(strange("a record is not what it is said to be"));
        }
        let first = self.log.add(partition, u32::try_from(count).unwrap_or(u32::MAX), payload)?;
        self.positions.pass(project, &positions, first);
        Ok(())
    }
}

/// Returns the error of an answer that no node of this version gives.
fn strange(what: &str) -> NodesBackupError {
    AskError::from(AskNodeError::OtherVersion(what.to_owned())).into()
}
