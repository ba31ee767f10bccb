//! The control log and its snapshots: records changes and restores the state.
//!
//! ```text
//! control/log/                       the records, one an append (partition 0)
//! control/snapshot-<position>.json   the state up to that record; the two newest are kept
//! control/audit/                     the audit logs (`audit::trail`)
//! ```
//!
//! The log keeps all records after the *older* of the two snapshots: if the newer one is damaged,
//! nothing is lost.

use std::fs::{self, Permissions};
use std::ops::ControlFlow;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use headcount_common::{ControlError, ControlLog, LocalControlLog};
use headcount_domain::{Instant, OrganizationId};
use headcount_storage::files::{PRIVATE_DIR, create_private_dir};
use headcount_storage::log::LogFile;

use super::audit::trail::Trail;
use super::record::{self, ControlRecord};
use super::state::State;
use super::{AuditEntry, AuditPage, AuditQuery, snapshot};

/// The number of kept snapshots.
const KEPT_SNAPSHOTS: usize = 2;

/// When snapshots are written and segments end.
#[derive(Debug, Clone)]
pub(super) struct JournalOptions {
    /// The minimum number of records between two snapshots.
    pub(super) snapshot_every: u64,
    /// The next snapshot waits for one record per this many bytes of the last one. With a hundred
    /// thousand projects, snapshots after a fixed number of records would cost more than the
    /// records.
    pub(super) snapshot_bytes_per_record: u64,
    /// Size of a segment of the log in bytes. Only whole segments are removed.
    pub(super) segment_bytes: u64,
}

impl Default for JournalOptions {
    fn default() -> Self {
        // A record takes some 600 bytes: a segment has about the records between two snapshots.
        JournalOptions { snapshot_every: 256, snapshot_bytes_per_record: 1024, segment_bytes: 256 * 1024 }
    }
}

/// The control log with its snapshots.
#[derive(Debug)]
pub(super) struct Journal {
    dir: PathBuf,
    log: Box<dyn ControlLog>,
    trail: Trail,
    options: JournalOptions,
    /// The last record that the state reflects. With other writers, the log may have more.
    applied: u64,
    /// The last record that the newest snapshot reflects; 0 without one.
    snapshot_at: u64,
    /// The size of that snapshot.
    snapshot_bytes: u64,
}

impl Journal {
    /// Opens the control log in `dir`, or creates one there, and reads the state that it leads to.
    pub(super) fn open(dir: &Path, options: JournalOptions) -> Result<(Self, State), ControlError> {
        let log = Self::local_log(dir, options.segment_bytes)?;
        Self::open_on(dir, Box::new(log), options)
    }

    /// Opens the control log in `dir`, or creates one there.
    pub(super) fn local_log(dir: &Path, segment_bytes: u64) -> Result<LocalControlLog, ControlError> {
        let log_dir = dir.join("log");
        [dir, &log_dir].into_iter().try_for_each(create_dir)?;
        LocalControlLog::open(&log_dir, segment_bytes)
    }

    /// Opens the snapshots and audit logs in `dir`, or creates them there, and reads the state that
    /// `log` leads to.
    pub(super) fn open_on(dir: &Path, log: Box<dyn ControlLog>, options: JournalOptions) -> Result<(Self, State), ControlError> {
        create_dir(dir)?;
        let (snapshot_at, mut state) = match newest_snapshot(dir, &*log) {
            #[cfg(feature = "cluster")]
            Err(ControlError::SnapshotLost { .. }) if receive(dir, &*log)? => newest_snapshot(dir, &*log)?,
            #[cfg(feature = "cluster")]
            Ok((_, state)) if has_lost_audit_logs(dir, &*log, &state) => {
                // Without them, an interrupted attempt is repeated.
                snapshot::list(dir)?.into_iter().try_for_each(|position| snapshot::remove(dir, position))?;
                receive(dir, &*log)?;
                newest_snapshot(dir, &*log)?
            }
            found => found?,
        };
        let snapshot_bytes = if snapshot_at == 0 { 0 } else { snapshot::bytes(dir, snapshot_at)? };
        let applied = replay(&*log, snapshot_at, &mut state)?;
        let trail = Trail::open(&dir.join("audit"), &*log, applied)?;
        Ok((Journal { dir: dir.to_path_buf(), log, trail, options, applied, snapshot_at, snapshot_bytes }, state))
    }

    /// Passes the records that the state does not reflect yet to `apply`, and copies their audit
    /// entries. Returns the number of records.
    pub(super) fn catch_up(
        &mut self,
        apply: &mut dyn FnMut(u64, ControlRecord) -> Result<(), ControlError>,
    ) -> Result<u64, ControlError> {
        let Self { log, trail, applied, .. } = self;
        let (before, known) = (*applied, log.last_position());
        if known <= before {
            return Ok(0);
        }
        if log.first_position() > before + 1 {
            return Err(ControlError::Compacted { log_begins: log.first_position(), applied: before });
        }
        let mut failure = None;
        log.read_after(before, &mut |position, payload| {
            let taken = in_order(position, *applied + 1)
                .and_then(|()| Ok((record::decode(payload, position)?, record::decode_audit(payload, position)?)))
                .and_then(|(record, audit)| apply(position, record).map(|()| audit));
            match taken {
                Ok(audit) => {
                    *applied = position;
                    if let Some((organization, _)) = audit {
                        trail.note(organization, position);
                    }
                    ControlFlow::Continue(())
                }
                Err(error) => {
                    failure = Some(error);
                    ControlFlow::Break(())
                }
            }
        })?;
        trail.make_up(&**log, *applied)?;
        match failure {
            Some(error) => Err(error),
            None if *applied < known => Err(missing(*applied + 1)),
            None => Ok(*applied - before),
        }
    }

    /// Passes the records after a position up to the state to `visit`.
    pub(super) fn read_again(&self, after: u64, visit: &mut dyn FnMut(ControlRecord)) -> Result<(), ControlError> {
        let mut last = after;
        if last >= self.applied {
            return Ok(());
        }
        read_after(&*self.log, after, |position, payload| {
            in_order(position, last + 1)?;
            visit(record::decode(payload, position)?);
            last = position;
            Ok(if last < self.applied { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        })?;
        if last < self.applied { Err(missing(last + 1)) } else { Ok(()) }
    }

    /// Finds out which records other writers have appended.
    pub(super) fn refresh(&mut self) -> Result<(), ControlError> {
        self.log.refresh()
    }

    /// Appends a record with its audit entries. The record was checked against the state before
    /// `position`. Durable on return. After an error neither was recorded, or both are undecided
    /// ([`ControlLog::append_at`]).
    pub(super) fn append_at(&mut self, position: u64, record: &ControlRecord, audit: &[AuditEntry]) -> Result<(), ControlError> {
        self.log.append_at(position, &record::encode(self.log.record_version(), record, audit)?)?;
        self.applied = position;
        self.trail.follow(record.organization(), position, audit, &*self.log);
        Ok(())
    }

    /// Sets the time by which the age of audit entries is measured.
    pub(super) fn note_time(&mut self, known: Instant) {
        self.trail.known = known;
    }

    /// Returns entries of an organization's audit log; `None` if the entry to begin after doesn't
    /// exist.
    pub(super) fn audit_page(
        &mut self,
        organization: OrganizationId,
        query: &AuditQuery,
        now: Instant,
    ) -> Result<Option<AuditPage>, ControlError> {
        self.trail.page(organization, query, now, (&*self.log, self.applied))
    }

    /// The log.
    pub(super) fn log(&self) -> &dyn ControlLog {
        &*self.log
    }

    /// Returns an organization's part of a shared snapshot, from the control records up to `until`.
    #[cfg(feature = "cluster")]
    pub(super) fn audit_pieces(&mut self, organization: OrganizationId, until: u64) -> Result<Vec<Vec<u8>>, ControlError> {
        self.trail.pieces(organization, until, (&*self.log, self.applied))
    }

    /// Position of the next record.
    pub(super) fn next_position(&self) -> u64 {
        self.applied + 1
    }

    /// Writes a snapshot if enough records have come since the last one, and removes obsolete
    /// files. Call it after each record, with a `state` that reflects all records. A failure is
    /// logged and retried after the next record, since the log has all records.
    pub(super) fn roll(&mut self, state: &State) {
        let distance = self.options.snapshot_every.max(self.snapshot_bytes / self.options.snapshot_bytes_per_record);
        // Others may remove the records that an audit log here lacks. Then this machine must start
        // from a snapshot that it shares with them, which has their entries.
        let is_whole = !self.log.is_shared() || self.trail.needs_from().is_none();
        if self.applied - self.snapshot_at >= distance
            && is_whole
            && let Err(error) = self.try_roll(state)
        {
            tracing::warn!(%error, "could not write a snapshot of the control data: will try again");
        }
    }

    /// The files of the logs and the snapshots. They stay as they are until the next record.
    pub(super) fn files(&self) -> Result<Vec<LogFile>, ControlError> {
        let mut files = self.log.files()?;
        files.extend(self.trail.files()?);
        for position in snapshot::list(&self.dir)? {
            let (path, bytes) = (snapshot::path(&self.dir, position), snapshot::bytes(&self.dir, position)?);
            files.push(LogFile { path, bytes });
        }
        Ok(files)
    }

    fn try_roll(&mut self, state: &State) -> Result<(), ControlError> {
        let position = self.applied;
        let bytes = snapshot::encode(position, self.log.record_version(), state)?;
        self.snapshot_bytes = snapshot::write(&self.dir, position, &bytes)?;
        self.snapshot_at = position;
        let positions = snapshot::list(&self.dir)?;
        let Some(oldest_kept) = positions.get(KEPT_SNAPSHOTS - 1) else { return Ok(()) };
        let needed_from = self.trail.needs_from().unwrap_or(u64::MAX);
        self.log.remove_before(needed_from.min(oldest_kept + 1))?;
        for position in &positions[KEPT_SNAPSHOTS..] {
            snapshot::remove(&self.dir, *position)?;
        }
        Ok(())
    }
}

/// Returns the newest intact snapshot and its position, if it covers what the log has lost;
/// position 0 and an empty state if the log is complete.
fn newest_snapshot(dir: &Path, log: &dyn ControlLog) -> Result<(u64, State), ControlError> {
    let (log_begins, log_ends) = (log.first_position(), log.last_position() + 1);
    let positions = snapshot::list(dir)?;
    if let Some(newest) = positions.first()
        && *newest >= log_ends
    {
        return Err(ControlError::LogLost { dir: dir.to_path_buf(), log_ends, snapshot: newest + 1 });
    }
    let mut damaged = Vec::new();
    for position in positions {
        if position + 1 < log_begins {
            break;
        }
        if let Some(state) = snapshot::load(dir, position)? {
            set_aside(dir, &damaged)?;
            return Ok((position, state));
        }
        damaged.push(position);
    }
    if log_begins > 1 {
        let damaged = damaged.iter().map(|position| snapshot::path(dir, *position)).collect();
        return Err(ControlError::SnapshotLost { dir: dir.to_path_buf(), log_begins, damaged });
    }
    set_aside(dir, &damaged)?;
    Ok((0, State::default()))
}

/// Whether audit logs are gone, and the log no longer has all of their entries.
#[cfg(feature = "cluster")]
fn has_lost_audit_logs(dir: &Path, log: &dyn ControlLog, state: &State) -> bool {
    let is_gone = |organization: &OrganizationId| !dir.join("audit").join(organization.to_string()).exists();
    log.is_shared() && log.first_position() > 1 && state.tenants.keys().any(is_gone)
}

/// Writes the newest shared snapshot of a log into `dir`, if there is one: its first piece is a
/// snapshot file, and the others have entries of audit logs. The file is written last, so that an
/// interrupted attempt is repeated.
#[cfg(feature = "cluster")]
fn receive(dir: &Path, log: &dyn ControlLog) -> Result<bool, ControlError> {
    let (trail, mut received) = (Trail::at(&dir.join("audit"))?, None);
    let damaged = || ControlError::BadRecord { position: 0, message: "the shared snapshot is damaged".to_owned() };
    log.read_shared_snapshot(&mut |piece| {
        if received.is_some() {
            return trail.receive(piece);
        }
        let (position, _) = snapshot::decode(dir, piece)?.ok_or_else(damaged)?;
        received = Some((position, piece.to_vec()));
        Ok(())
    })?;
    received.map_or(Ok(false), |(position, bytes)| snapshot::write(dir, position, &bytes).map(|_| true))
}

fn set_aside(dir: &Path, damaged: &[u64]) -> Result<(), ControlError> {
    for position in damaged {
        let path = snapshot::path(dir, *position);
        tracing::warn!(path = %path.display(), "damaged snapshot of the control data: set aside, the log has all of it");
        snapshot::set_aside(dir, *position)?;
    }
    Ok(())
}

fn create_dir(dir: &Path) -> Result<(), ControlError> {
    create_private_dir(dir)
        .and_then(|()| fs::set_permissions(dir, Permissions::from_mode(PRIVATE_DIR)))
        .map_err(|error| ControlError::io("create", dir, error))
}

/// Applies the records after `snapshot_at`. Returns the position of the last one.
fn replay(log: &dyn ControlLog, snapshot_at: u64, state: &mut State) -> Result<u64, ControlError> {
    let mut next = snapshot_at + 1;
    read_after(log, snapshot_at, |position, payload| {
        replay_one(position, next, payload, state)?;
        next += 1;
        Ok(ControlFlow::Continue(()))
    })?;
    if next <= log.last_position() { Err(missing(next)) } else { Ok(next - 1) }
}

/// Passes records to `visit` until it breaks or fails.
fn read_after(
    log: &dyn ControlLog,
    after: u64,
    mut visit: impl FnMut(u64, &[u8]) -> Result<ControlFlow<()>, ControlError>,
) -> Result<(), ControlError> {
    let mut failure = None;
    log.read_after(after, &mut |position, payload| {
        visit(position, payload).unwrap_or_else(|error| {
            failure = Some(error);
            ControlFlow::Break(())
        })
    })?;
    failure.map_or(Ok(()), Err)
}

fn replay_one(position: u64, expected: u64, payload: &[u8], state: &mut State) -> Result<(), ControlError> {
    in_order(position, expected)?;
    let record = record::decode(payload, position)?;
    state.check(&record).map_err(|misfit| ControlError::BadRecord { position, message: misfit.to_owned() })?;
    state.apply(record);
    Ok(())
}

fn in_order(position: u64, expected: u64) -> Result<(), ControlError> {
    if position == expected { Ok(()) } else { Err(missing(expected)) }
}

/// A repaired log may have gaps. Control data with a gap would be wrong without a sign of it.
fn missing(position: u64) -> ControlError {
    ControlError::BadRecord { position, message: "it is missing from the control log".to_owned() }
}
