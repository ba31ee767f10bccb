//! How a backup of several machines is written.

use std::time::{Duration, Instant as Stopwatch};

use headcount_domain::ids::ProjectId;
use headcount_domain::intake::event::Position;
use headcount_storage::backup::{BackupManifest, BackupTarget, BackupWriter};

use super::begin::NodesBackup;
use super::error::NodesBackupError;
use super::questions::{PartitionEvents, PartitionEventsQuestion, PartitionRecord};
use crate::backup::NewLog;
use crate::engine::exporting::ask_patiently;
use crate::engine::shard_client::AskError;
use crate::event_codec::{self, LogRecord};
use crate::nodes::AskNodeError;
use crate::position_map::PositionMap;
use crate::privacy;
use crate::webhooks;

/// How often it is looked whether a change of the control data has made the backup one that can't be completed.
const LOOK_EVERY: Duration = Duration::from_secs(60);

/// Receives events, and passes them on.
struct Receiver<'w, 't, T> {
    backup: &'w NodesBackup,
    is_over: &'w dyn Fn() -> bool,
    writer: &'w mut BackupWriter<'t, T>,
    log: NewLog,
    positions: PositionMap,
    /// When it was last looked whether the backup can still be completed.
    looked: Stopwatch,
}

impl NodesBackup {
    /// Writes the backup, until `is_over`. Events go to the target as they come, so that the disk of this machine has some of them at a time. Blocks; call it where a runtime is.
    ///
    /// # Errors
    /// [`NodesBackupError`]. The backup is not complete then.
    pub fn write(self, target: &mut impl BackupTarget, is_over: &dyn Fn() -> bool) -> Result<BackupManifest, NodesBackupError> {
        let is_over = || is_over() || self.engine.inner.admission.is_closing();
        match self.write_all(target, &is_over) {
            Err(error) if is_over() || error.is_of_target() => Err(error),
            // A change may be why there was no answer.
            Err(error) => {
                let changed = self.check_unchanged().err().filter(|found| matches!(found, NodesBackupError::Changed(_)));
                Err(changed.unwrap_or(error))
            }
            written => written,
        }
    }

    fn write_all<T: BackupTarget>(&self, target: &mut T, is_over: &dyn Fn() -> bool) -> Result<BackupManifest, NodesBackupError> {
        let now = self.engine.clock().now().to_string();
        let mut writer = BackupWriter::new(target, BackupManifest::new(env!("CARGO_PKG_VERSION"), now, Vec::new()));
        let (last, positions) = self.write_events(&mut writer, is_over)?;
        self.engine.partition_ends(&self.projects, self.moment.applied, is_over)?;
        self.check_unchanged()?;
        let dir = self.directory.path();
        webhooks::write_moved(dir, &self.webhooks, &positions).map_err(NodesBackupError::io("write the webhooks to", dir))?;
        let written = privacy::write_backed_up(dir, &self.requests);
        written.map_err(NodesBackupError::io("write the privacy requests to", dir))?;
        self.directory.pass_on(self.engine.data_dir(), last, &mut writer)?;
        Ok(writer.finish()?)
    }

    /// Writes the log. Returns its last position, and those that webhooks want to know.
    fn write_events<T: BackupTarget>(
        &self,
        writer: &mut BackupWriter<'_, T>,
        is_over: &dyn Fn() -> bool,
    ) -> Result<(Position, PositionMap), NodesBackupError> {
        let log = NewLog::create(self.directory.path(), writer)?;
        let (positions, looked) = (PositionMap::default(), Stopwatch::now());
        let mut receiver = Receiver { backup: self, is_over, writer, log, positions, looked };
        self.webhooks.iter().for_each(|webhook| webhook.want(&mut receiver.positions));
        for (partition, end) in &self.ends {
            receiver.receive(*partition, *end)?;
        }
        let Receiver { writer, log, mut positions, .. } = receiver;
        positions.finish();
        Ok((log.finish(writer)?, positions))
    }

    /// Checks that nothing was changed that makes events wrong which were read before.
    fn check_unchanged(&self) -> Result<(), NodesBackupError> {
        let now = self.engine.registry().moment()?;
        self.moment.contradicted_by(&now).map_or(Ok(()), |what| Err(NodesBackupError::Changed(what)))
    }
}

impl<T: BackupTarget> Receiver<'_, '_, T> {
    /// Receives what a partition has up to a position: what is sealed project by project, and the rest as the log has it.
    fn receive(&mut self, partition: u16, end: Position) -> Result<(), NodesBackupError> {
        let mut after = 0;
        while after < end {
            let (reached, projects) = self.receive_page(partition, None, (after, end))?;
            for project in projects.into_iter().filter(|project| self.backup.projects.contains(project)) {
                let mut of_project = after;
                while of_project < reached {
                    (of_project, _) = self.receive_page(partition, Some(project), (of_project, reached))?;
                }
            }
            after = reached;
        }
        Ok(())
    }

    /// Receives a page. Returns the position that it reaches, and the projects whose events up to there are still to be received.
    fn receive_page(
        &mut self,
        partition: u16,
        project: Option<ProjectId>,
        (after, until): (Position, Position),
    ) -> Result<(Position, Vec<ProjectId>), NodesBackupError> {
        self.check_goes_on()?;
        let (engine, applied) = (&self.backup.engine, self.backup.moment.applied);
        let question = PartitionEventsQuestion { partition, applied, project, after, until };
        // There is no answer about a project that was deleted.
        let is_in_vain = || (self.is_over)() || project.is_some_and(|project| engine.registry().policy(project).is_none());
        let page = ask_patiently(&is_in_vain, || engine.ask_about_partition(question.clone()))?;
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
        if !self.backup.projects.contains(&project) {
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

    fn check_goes_on(&mut self) -> Result<(), NodesBackupError> {
        if (self.is_over)() {
            return Err(NodesBackupError::Stopped);
        }
        if self.looked.elapsed() >= LOOK_EVERY {
            // Without an answer it may go on: it is looked again, and at the end.
            if let Err(changed @ NodesBackupError::Changed(_)) = self.backup.check_unchanged() {
                return Err(changed);
            }
            self.looked = Stopwatch::now();
        }
        let inner = &self.backup.engine.inner;
        // Twice of what events need, as exports leave it.
        let least = inner.config.min_free_bytes.saturating_mul(2);
        if inner.admission.disk.free_bytes() < least { Err(NodesBackupError::DiskFull) } else { Ok(()) }
    }
}

/// The error of an answer that no node of this version gives.
fn strange(what: &str) -> NodesBackupError {
    AskError::from(AskNodeError::OtherVersion(what.to_owned())).into()
}
