//! The audit logs of all organizations.
//!
//! ```text
//! control/audit/<organization>/     the entries of an organization: a log
//! ```
//!
//! The control log has each entry first, and keeps it until the audit log has it
//! ([`Trail::needs_from`]). If a copy fails or a crash prevents it, it is repeated before the next
//! entry and at the next start. If an audit log can't be read or written, readers get the error,
//! and changes go on. If the control log can't be read, that is an error as usual.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use headcount_common::{ControlError, ControlLog};
use headcount_domain::{Instant, OrganizationId};
use headcount_storage::files::create_private_dir;
use headcount_storage::log::LogFile;

use super::file::AuditFile;
use crate::{AuditEntry, AuditPage, AuditQuery, record};

/// The number of audit logs open at once while they catch up.
const AT_ONCE: usize = 256;

/// The audit logs.
#[derive(Debug)]
pub(crate) struct Trail {
    dir: PathBuf,
    /// The organizations whose audit log lacks entries, each with the first control record that it
    /// lacks.
    behind: BTreeMap<OrganizationId, u64>,
    /// The time by which the age of entries is measured.
    pub(crate) known: Instant,
}

impl Trail {
    /// Opens the audit logs in `dir`, and adds the missing entries of the control records up to
    /// `until`.
    pub(crate) fn open(dir: &Path, log: &dyn ControlLog, until: u64) -> Result<Self, ControlError> {
        create_private_dir(dir).map_err(|error| ControlError::io("create", dir, error))?;
        let mut trail = Self { dir: dir.to_path_buf(), behind: BTreeMap::new(), known: Instant::default() };
        audited(log, (0, until), &mut |position, organization, _| trail.note(organization, position))?;
        trail.make_up(log, until)?;
        Ok(trail)
    }

    /// Records that the audit log of an organization may lack the entries of the control record at
    /// `position`.
    pub(crate) fn note(&mut self, organization: OrganizationId, position: u64) {
        self.behind.entry(organization).or_insert(position);
    }

    /// Adds the missing entries of the control records up to `until`. Failures are logged and
    /// retried later.
    pub(crate) fn make_up(&mut self, log: &dyn ControlLog, until: u64) -> Result<(), ControlError> {
        let organizations: Vec<OrganizationId> = self.behind.keys().copied().collect();
        for organizations in organizations.chunks(AT_ONCE) {
            for (organization, error) in self.catch_up(organizations, log, until)? {
                warn(organization, &error);
            }
        }
        Ok(())
    }

    /// Adds the entries of the control record at `position`, which is on disk. A failure is logged
    /// and retried later.
    pub(crate) fn follow(&mut self, organization: OrganizationId, position: u64, entries: &[AuditEntry], log: &dyn ControlLog) {
        if entries.is_empty() {
            return;
        }
        let added = if self.behind.contains_key(&organization) {
            self.catch_up_one(organization, log, position)
        } else {
            let added = self.add(organization, position, entries);
            if added.is_err() {
                self.behind.insert(organization, position);
            }
            added
        };
        if let Err(error) = added {
            warn(organization, &error);
        }
    }

    /// The first control record whose entries are missing in an audit log.
    pub(crate) fn needs_from(&self) -> Option<u64> {
        self.behind.values().min().copied()
    }

    /// Returns entries of an organization from the control records up to `until`; `None` if the
    /// entry to begin after doesn't exist.
    pub(crate) fn page(
        &mut self,
        organization: OrganizationId,
        query: &AuditQuery,
        now: Instant,
        (log, until): (&dyn ControlLog, u64),
    ) -> Result<Option<AuditPage>, ControlError> {
        self.catch_up_one(organization, log, until)?;
        self.file(organization)?.page(query, now)
    }

    /// The files of all audit logs.
    pub(crate) fn files(&self) -> Result<Vec<LogFile>, ControlError> {
        let failed = |error| ControlError::io("list", &self.dir, error);
        let mut files = Vec::new();
        for dir in headcount_storage::files::list(&self.dir).map_err(failed)? {
            files.extend(AuditFile::open(&dir)?.files()?);
        }
        Ok(files)
    }

    fn file(&self, organization: OrganizationId) -> Result<AuditFile, ControlError> {
        let dir = self.dir.join(organization.to_string());
        create_private_dir(&dir).map_err(|error| ControlError::io("create", &dir, error))?;
        AuditFile::open(&dir)
    }

    fn add(&self, organization: OrganizationId, position: u64, entries: &[AuditEntry]) -> Result<(), ControlError> {
        let mut file = self.file(organization)?;
        file.append(position, entries)?;
        // The entries are stored, even if old ones can't be removed now.
        if file.has_grown(entries.len())
            && let Err(error) = file.expire(self.known)
        {
            tracing::warn!(%organization, %error, "could not remove old entries of the audit log: will try again");
        }
        Ok(())
    }

    /// Adds the entries of the control records up to `until` that an audit log lacks.
    fn catch_up_one(&mut self, organization: OrganizationId, log: &dyn ControlLog, until: u64) -> Result<(), ControlError> {
        let mut failed = self.catch_up(&[organization], log, until)?;
        failed.remove(&organization).map_or(Ok(()), Err)
    }

    /// Adds the entries of the control records up to `until` that the audit logs of organizations
    /// lack, in one pass over the records. Returns the errors of audit logs.
    fn catch_up(
        &mut self,
        organizations: &[OrganizationId],
        log: &dyn ControlLog,
        until: u64,
    ) -> Result<BTreeMap<OrganizationId, ControlError>, ControlError> {
        let (mut open, mut failed) = (BTreeMap::new(), BTreeMap::new());
        for organization in organizations {
            let Some(from) = self.behind.get(organization).copied() else { continue };
            match self.file(*organization).and_then(|file| file.reflects().map(|reflected| (file, reflected))) {
                Ok((file, reflected)) => drop(open.insert(*organization, (file, (from - 1).max(reflected)))),
                Err(error) => drop(failed.insert(*organization, error)),
            }
        }
        let Some(after) = open.values().map(|(_, after)| *after).min() else { return Ok(failed) };
        audited(log, (after, until), &mut |position, organization, entries| {
            let Some((file, after)) = open.get_mut(&organization) else { return };
            if position > *after
                && let Err(error) = file.append(position, entries)
            {
                open.remove(&organization);
                failed.insert(organization, error);
            }
        })?;
        self.behind.retain(|organization, _| !open.contains_key(organization));
        Ok(failed)
    }
}

/// Passes the audit entries of the control records between two positions to `visit`.
fn audited(
    log: &dyn ControlLog,
    (after, until): (u64, u64),
    visit: &mut dyn FnMut(u64, OrganizationId, &[AuditEntry]),
) -> Result<(), ControlError> {
    let mut ended = Ok(());
    log.read_after(after, &mut |position, payload| {
        if position > until {
            return ControlFlow::Break(());
        }
        match record::decode_audit(payload, position) {
            Ok(Some((organization, entries))) => visit(position, organization, &entries),
            Ok(None) => {}
            Err(error) => ended = Err(error),
        }
        if ended.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    ended
}

fn warn(organization: OrganizationId, error: &ControlError) {
    tracing::error!(%organization, %error, "the audit log lacks changes, which the control log keeps: will try again");
}
