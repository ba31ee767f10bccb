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
#[cfg(feature = "cluster")]
use super::file::StoredEntry;
use crate::{AuditEntry, AuditPage, AuditQuery, record};

/// The number of audit logs open at once while they catch up.
const AT_ONCE: usize = 256;

/// The number of entries in a piece, or a few more.
#[cfg(feature = "cluster")]
const PIECE_ENTRIES: usize = 64;

/// Entries for another machine: of each control record all or none.
#[cfg(feature = "cluster")]
#[derive(serde::Serialize, serde::Deserialize)]
struct AuditPiece {
    organization: OrganizationId,
    entries: Vec<StoredEntry>,
}

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
        let mut trail = Self::at(dir)?;
        audited(log, (log.first_position() - 1, until), &mut |position, organization, _| trail.note(organization, position))?;
        trail.make_up(log, until)?;
        Ok(trail)
    }

    /// Opens the audit logs in `dir` as they are.
    pub(crate) fn at(dir: &Path) -> Result<Self, ControlError> {
        create_private_dir(dir).map_err(|error| ControlError::io("create", dir, error))?;
        Ok(Self { dir: dir.to_path_buf(), behind: BTreeMap::new(), known: Instant::default() })
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
            let added =
                self.file(organization).and_then(|mut file| add(&mut file, self.known, (organization, position), entries));
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

    /// Returns the entries of an organization that its readers see, from the control records up to
    /// `until`, in pieces for [`Self::receive`].
    #[cfg(feature = "cluster")]
    pub(crate) fn pieces(
        &mut self,
        organization: OrganizationId,
        until: u64,
        (log, applied): (&dyn ControlLog, u64),
    ) -> Result<Vec<Vec<u8>>, ControlError> {
        self.catch_up_one(organization, log, applied)?;
        let mut entries = Vec::new();
        self.file(organization)?.visit_back(&mut |stored| {
            entries.extend(Some(stored).filter(|stored| stored.control <= until));
            ControlFlow::Continue(())
        })?;
        entries.reverse();
        let mut pieces: Vec<Vec<StoredEntry>> = vec![Vec::new()];
        for of_record in entries.chunk_by(|one, next| one.control == next.control) {
            match pieces.last_mut().filter(|piece| piece.len() < PIECE_ENTRIES) {
                Some(piece) => piece.extend_from_slice(of_record),
                None => pieces.push(of_record.to_vec()),
            }
        }
        let encode = |entries| serde_json::to_vec(&AuditPiece { organization, entries });
        pieces.into_iter().map(encode).collect::<Result<_, _>>().map_err(ControlError::Unencodable)
    }

    /// Adds the entries of a piece from another machine that the audit log lacks.
    #[cfg(feature = "cluster")]
    pub(crate) fn receive(&self, piece: &[u8]) -> Result<(), ControlError> {
        let bad = |error: serde_json::Error| ControlError::BadRecord { position: 0, message: format!("audit log: {error}") };
        let AuditPiece { organization, mut entries } = serde_json::from_slice(piece).map_err(bad)?;
        let mut file = self.file(organization)?;
        let reflected = file.reflects()?;
        entries.retain(|stored| stored.control > reflected);
        if entries.is_empty() { Ok(()) } else { file.append_stored(&entries) }
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
        let known = self.known;
        audited(log, (after, until), &mut |position, organization, entries| {
            let Some((file, after)) = open.get_mut(&organization) else { return };
            if position > *after
                && let Err(error) = add(file, known, (organization, position), entries)
            {
                open.remove(&organization);
                failed.insert(organization, error);
            }
        })?;
        self.behind.retain(|organization, _| !open.contains_key(organization));
        Ok(failed)
    }
}

/// Adds the entries of the control record at `position` to the audit log of an organization.
fn add(
    file: &mut AuditFile,
    known: Instant,
    (organization, position): (OrganizationId, u64),
    entries: &[AuditEntry],
) -> Result<(), ControlError> {
    file.append(position, entries)?;
    // The entries are stored, even if old ones can't be removed now.
    if file.has_grown(entries.len())
        && let Err(error) = file.expire(known)
    {
        tracing::warn!(%organization, %error, "could not remove old entries of the audit log: will try again");
    }
    Ok(())
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
