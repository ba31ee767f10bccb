//! The audit logs of all organizations.
//!
//! ```text
//! control/audit/<organization>/     the entries of an organization: a log
//! ```
//!
//! The control log has each entry first, and keeps it until it is here ([`Trail::needs_from`]). So a copy that fails, or that a crash prevents, is made up for
//! before the next entry and at the next start. An audit log that can't be read or written stops no change: it answers with the error. A control log that
//! can't be read is an error, as ever.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use headcount_common::{ControlError, ControlLog};
use headcount_domain::ids::OrganizationId;
use headcount_domain::time::Instant;
use headcount_storage::files::create_private_dir;
use headcount_storage::log::LogFile;

use super::file::AuditFile;
use crate::{AuditEntry, AuditPage, AuditQuery, record};

/// How many audit logs are open while they are caught up.
const AT_ONCE: usize = 256;

/// The audit logs.
#[derive(Debug)]
pub(crate) struct Trail {
    dir: PathBuf,
    /// The organizations whose audit log lacks entries, each with the control record from which on it does.
    behind: BTreeMap<OrganizationId, u64>,
    /// The time as of which entries may be removed.
    pub(crate) known: Instant,
}

impl Trail {
    /// Opens the audit logs in `dir`, and adds what they lack of the control records up to `until`.
    pub(crate) fn open(dir: &Path, log: &dyn ControlLog, until: u64) -> Result<Self, ControlError> {
        create_private_dir(dir).map_err(|error| ControlError::io("create", dir, error))?;
        let mut trail = Self { dir: dir.to_path_buf(), behind: BTreeMap::new(), known: Instant::default() };
        audited(log, (0, until), &mut |position, organization, _| trail.note(organization, position))?;
        trail.make_up(log, until)?;
        Ok(trail)
    }

    /// Notes that the audit log of an organization may lack the entries of the control record at `position`.
    pub(crate) fn note(&mut self, organization: OrganizationId, position: u64) {
        self.behind.entry(organization).or_insert(position);
    }

    /// Adds what audit logs lack of the control records up to `until`. Where that fails, it is logged, and made up for later.
    pub(crate) fn make_up(&mut self, log: &dyn ControlLog, until: u64) -> Result<(), ControlError> {
        let organizations: Vec<OrganizationId> = self.behind.keys().copied().collect();
        for organizations in organizations.chunks(AT_ONCE) {
            for (organization, error) in self.catch_up(organizations, log, until)? {
                warn(organization, &error);
            }
        }
        Ok(())
    }

    /// Adds the entries of the control record at `position`, which is on disk. A failure is logged, and made up for later.
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

    /// The first control record whose entries are not yet in an audit log.
    pub(crate) fn needs_from(&self) -> Option<u64> {
        self.behind.values().min().copied()
    }

    /// Returns entries of an organization, of the control records up to `until`; `None` if the query begins after an entry that is not there.
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
        // The entries are there, whether or not old ones can be removed now.
        if file.has_grown(entries.len())
            && let Err(error) = file.expire(self.known)
        {
            tracing::warn!(%organization, %error, "could not remove old entries of the audit log: will try again");
        }
        Ok(())
    }

    /// Adds the entries that an audit log lacks of the control records up to `until`.
    fn catch_up_one(&mut self, organization: OrganizationId, log: &dyn ControlLog, until: u64) -> Result<(), ControlError> {
        let mut failed = self.catch_up(&[organization], log, until)?;
        failed.remove(&organization).map_or(Ok(()), Err)
    }

    /// Adds the entries that the audit logs of organizations lack of the control records up to `until`, in one pass over these. Returns what is wrong with audit logs.
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

/// Passes the entries of the control records after a position, up to another, to `visit`.
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
