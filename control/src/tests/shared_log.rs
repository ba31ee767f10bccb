//! A control log in memory, and registries that write to it.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use headcount_common::ControlLog;
use tempfile::TempDir;

use super::*;

pub(super) type Meanwhile = Box<dyn Fn() + Send>;

/// The handle of one writer to a log in memory. It knows the records of other writers only as far
/// as it has met them.
#[derive(Clone, Default)]
pub(super) struct SharedLog {
    pub(super) records: Arc<parking_lot::Mutex<Vec<Vec<u8>>>>,
    /// The number of records that were removed.
    pub(super) removed: Arc<AtomicU64>,
    /// The pieces of a shared snapshot. An empty one can't be read.
    pub(super) pieces: Arc<parking_lot::Mutex<Vec<Vec<u8>>>>,
    pub(super) known: Arc<AtomicU64>,
    /// An action directly before the next append.
    pub(super) meanwhile: Arc<parking_lot::Mutex<Option<Meanwhile>>>,
    pub(super) conflicts: Arc<AtomicUsize>,
    /// Whether each append is refused.
    pub(super) refuses: bool,
    /// Whether appends are recorded without an answer.
    pub(super) is_silent: Arc<AtomicBool>,
    /// The number of records read.
    pub(super) read: Arc<AtomicUsize>,
}

impl std::fmt::Debug for SharedLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SharedLog").field("known", &self.known).finish_non_exhaustive()
    }
}

impl ControlLog for SharedLog {
    fn first_position(&self) -> u64 {
        self.removed.load(Ordering::Relaxed) + 1
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn read_shared_snapshot(&self, take: &mut dyn FnMut(&[u8]) -> Result<(), ControlError>) -> Result<(), ControlError> {
        let unread = || Err(ControlError::Undecided("no answer".into()));
        self.pieces.lock().iter().try_for_each(|piece| if piece.is_empty() { unread() } else { take(piece) })
    }

    fn last_position(&self) -> u64 {
        self.known.load(Ordering::Relaxed)
    }

    fn refresh(&mut self) -> Result<(), ControlError> {
        self.known.store(self.records.lock().len() as u64, Ordering::Relaxed);
        Ok(())
    }

    fn append_at(&mut self, expected: u64, record: &[u8]) -> Result<(), ControlError> {
        if let Some(meanwhile) = self.meanwhile.lock().take() {
            meanwhile();
        }
        let mut records = self.records.lock();
        let next = records.len() as u64 + 1;
        if expected != next || self.refuses {
            self.known.store(next - 1, Ordering::Relaxed);
            self.conflicts.fetch_add(1, Ordering::Relaxed);
            return Err(ControlError::Conflict { expected, next });
        }
        records.push(record.to_vec());
        if self.is_silent.load(Ordering::Relaxed) {
            return Err(ControlError::Undecided("no answer".into()));
        }
        self.known.store(next, Ordering::Relaxed);
        Ok(())
    }

    fn read_after(&self, position: u64, visit: &mut dyn FnMut(u64, &[u8]) -> ControlFlow<()>) -> Result<(), ControlError> {
        let records = self.records.lock().clone();
        assert!(position + 1 >= self.first_position(), "a record that was removed is read");
        for (at, record) in (1..).zip(&records).skip(usize::try_from(position).unwrap()) {
            self.read.fetch_add(1, Ordering::Relaxed);
            if visit(at, record).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn remove_before(&mut self, _: u64) -> Result<(), ControlError> {
        Ok(())
    }

    fn files(&self) -> Result<Vec<LogFile>, ControlError> {
        Ok(Vec::new())
    }
}

impl SharedLog {
    /// The same log, for another writer.
    pub(super) fn of_another(&self) -> Self {
        let Self { records, removed, pieces, .. } = self.clone();
        let known = Arc::new(AtomicU64::new(records.lock().len() as u64));
        Self { records, removed, pieces, known, ..Self::default() }
    }
}

/// A registry with a directory of its own.
pub(super) struct Writer {
    pub(super) dir: TempDir,
    pub(super) log: SharedLog,
    pub(super) registry: Registry,
}

impl Writer {
    pub(super) fn open(log: SharedLog) -> Self {
        Self::open_in(tempfile::tempdir().unwrap(), log).unwrap()
    }

    pub(super) fn open_in(dir: TempDir, log: SharedLog) -> Result<Self> {
        let registry = Registry::of(Journal::open_on(dir.path(), Box::new(log.clone()), small())?)?;
        Ok(Self { dir, log, registry })
    }

    /// Another writer to the same log.
    pub(super) fn another(&self) -> Arc<Self> {
        Arc::new(Self::open(self.log.of_another()))
    }

    /// Runs `act` on `other` directly before the next append.
    pub(super) fn meanwhile(&self, other: &Arc<Self>, act: impl Fn(&Registry) + Send + 'static) {
        let other = Arc::clone(other);
        *self.log.meanwhile.lock() = Some(Box::new(move || act(&other.registry)));
    }

    pub(super) fn audited(&self, organization: OrganizationId) -> Vec<AuditEntry> {
        let query = AuditQuery { limit: 100, starting_after: None, action: None, target_id: None };
        self.registry.audit_log(organization, &query, NOW).unwrap().entries
    }

    /// Everything, once all records are applied.
    pub(super) fn everything(&self) -> (State, Listing) {
        self.registry.catch_up().unwrap();
        everything(&self.registry)
    }
}
