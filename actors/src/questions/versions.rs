//! The versions of answers about a project.

use headcount_common::partition_of;
use headcount_domain::{Depends, Position, ProjectId};

use super::Questions;
use crate::shard::AskError;

impl Questions {
    /// Returns a number of this start and of the project's log, for [`Questions::has_position`].
    pub fn start_number(&self, project: ProjectId) -> u64 {
        self.starts.present() ^ self.resumed(project)
    }

    /// Whether a position, a project's last one during the start with this number, still means the
    /// same event. It doesn't if the data directory was restored from an earlier copy, or if
    /// brokers have lost events and the partition continues without them.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn has_position(&self, project: ProjectId, position: Position, start_number: u64) -> Result<bool, AskError> {
        let (_, last) = self.version(project, &Depends::Everything).await?;
        Ok(position <= last && self.starts.has(start_number ^ self.resumed(project), position))
    }

    /// Returns a value that changes exactly when an answer that depends on `depends` may have
    /// changed: the incarnation of the data, the floor if sessions are read, and the last event's
    /// position.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn version(&self, project: ProjectId, depends: &Depends) -> Result<(u128, Position), AskError> {
        // While the state is rebuilt or replaced, the version would be that of an earlier state.
        let check = || self.health.check_project_answers(project).map_err(AskError::Lost);
        check()?;
        let known = || Some(self.versions.get(&project)?.of(depends));
        if !self.versions.contains_key(&project) {
            // Not loaded since the start: reading it loads it.
            self.last(project).await?;
        }
        // Before the version: a floor that rises meanwhile is one of the next version.
        let floor = self.known_floor(project).filter(|_| depends.reads_sessions());
        let incarnation = self.incarnation_of(project) ^ floor.map_or(0, |floor| u128::from(floor.0.cast_unsigned()) << 32);
        let version = known().unwrap_or(0);
        check()?;
        Ok((incarnation, version))
    }

    /// Returns the incarnation of a project's data. Each erasure changes it, since versions may
    /// recur.
    fn incarnation_of(&self, project: ProjectId) -> u128 {
        self.log_incarnation(project) ^ u128::from(self.reflected_erasures(project))
    }

    /// The incarnation of a project's log.
    pub(crate) fn log_incarnation(&self, project: ProjectId) -> u128 {
        self.incarnation ^ u128::from(self.resumed(project)) << 64
    }

    /// See [`ReadLog::resumed`](headcount_storage::log::ReadLog::resumed).
    pub(crate) fn resumed(&self, project: ProjectId) -> u64 {
        self.logged.resumed(partition_of(project))
    }

    /// The number of erasures that the project's answers reflect.
    pub(crate) fn reflected_erasures(&self, project: ProjectId) -> u64 {
        self.erasures.reflected(project)
    }

    /// The position of a project's last event that counted.
    pub(crate) async fn last(&self, project: ProjectId) -> Result<Position, AskError> {
        self.ask_shard(project, move |shard| shard.last(project)).await
    }
}
