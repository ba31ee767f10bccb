//! The health of partitions and projects: whether they take events and queries. Written by the
//! shards, read before events are logged.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};

use headcount_common::{NOT_HERE, Owners, PARTITIONS, partition_of};
use headcount_domain::{Fault, FaultKind, ProjectId};
use parking_lot::{Mutex, RwLock};

/// The error for a partition in a rebuild, and for a project whose state is replaced.
const REBUILT: &str = "the figures of this project are being rebuilt";

/// The condition of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Condition {
    /// It works.
    Working = 0,
    /// Its state is being rebuilt from the log.
    Rebuilding = 1,
    /// Its state can't be rebuilt for now.
    Failed = 2,
}

/// The condition of each partition with the reason, and the held projects.
#[derive(Debug)]
pub(crate) struct PartitionHealth {
    conditions: Vec<AtomicU8>,
    reasons: Mutex<BTreeMap<u16, (Condition, Fault)>>,
    /// The projects whose state is being replaced.
    held: RwLock<BTreeSet<ProjectId>>,
    /// The number of these projects. It is almost always 0, so most lookups take no lock.
    held_count: AtomicUsize,
    owners: Arc<Owners>,
    stopping: AtomicBool,
}

impl Default for PartitionHealth {
    /// Returns the health for a machine that owns all partitions.
    fn default() -> Self {
        Self::new(Arc::new(Owners::alone()))
    }
}

impl PartitionHealth {
    /// Begins with every partition working. A partition takes events and queries only while this
    /// machine owns it.
    pub(crate) fn new(owners: Arc<Owners>) -> Self {
        Self {
            conditions: (0..PARTITIONS).map(|_| AtomicU8::new(Condition::Working as u8)).collect(),
            reasons: Mutex::default(),
            held: RwLock::default(),
            held_count: AtomicUsize::new(0),
            owners,
            stopping: AtomicBool::new(false),
        }
    }

    /// Checks that a partition takes events and queries.
    ///
    /// # Errors
    /// The reason, in words for clients.
    pub(crate) fn check(&self, partition: u16) -> Result<(), &'static str> {
        let condition = self.conditions.get(usize::from(partition)).map(|condition| condition.load(Ordering::Acquire));
        match condition {
            _ if !self.owners.is_here(partition) => Err(NOT_HERE),
            None | Some(0) => Ok(()),
            Some(1) => Err(REBUILT),
            Some(_) => Err("the figures of this project are not available; the server's log says why"),
        }
    }

    /// Checks that a project takes events and queries.
    ///
    /// # Errors
    /// The reason, in words for clients.
    pub(crate) fn check_project(&self, project: ProjectId) -> Result<(), &'static str> {
        self.check(partition_of(project))?;
        if self.is_held(project) { Err(REBUILT) } else { Ok(()) }
    }

    /// Checks that a project answers.
    ///
    /// # Errors
    /// Returns the same errors as [`PartitionHealth::check_answers`].
    pub(crate) fn check_project_answers(&self, project: ProjectId) -> Result<(), Fault> {
        self.check_answers(partition_of(project))?;
        if self.is_held(project) { Err(Fault::io(REBUILT)) } else { Ok(()) }
    }

    fn is_held(&self, project: ProjectId) -> bool {
        self.held_count.load(Ordering::Acquire) > 0 && self.held.read().contains(&project)
    }

    /// Stops a project from taking events and queries while its state is replaced.
    pub(super) fn hold(&self, project: ProjectId) {
        let mut held = self.held.write();
        held.insert(project);
        self.held_count.store(held.len(), Ordering::Release);
    }

    /// Lets a project take events and queries again.
    pub(super) fn let_go(&self, project: ProjectId) {
        let mut held = self.held.write();
        held.remove(&project);
        self.held_count.store(held.len(), Ordering::Release);
    }

    /// Checks that a partition answers.
    ///
    /// # Errors
    /// The fault of the archive if a damaged file prevents a rebuild, or else a fault that says to
    /// try again.
    pub(crate) fn check_answers(&self, partition: u16) -> Result<(), Fault> {
        let Err(why) = self.check(partition) else { return Ok(()) };
        let reasons = self.reasons.lock();
        match reasons.get(&partition) {
            Some((_, fault)) if fault.kind == FaultKind::DamagedArchive => Err(fault.clone()),
            _ => Err(Fault::io(why)),
        }
    }

    /// Marks a partition as working again.
    pub(crate) fn set_working(&self, partition: u16) {
        self.store(partition, Condition::Working);
        self.reasons.lock().remove(&partition);
    }

    /// Sets the condition of a partition that does not work.
    pub(crate) fn set_condition(&self, partition: u16, condition: Condition, fault: &Fault) {
        self.reasons.lock().insert(partition, (condition, fault.clone()));
        self.store(partition, condition);
    }

    fn store(&self, partition: u16, condition: Condition) {
        if let Some(known) = self.conditions.get(usize::from(partition)) {
            known.store(condition as u8, Ordering::Release);
        }
    }

    /// The partitions that don't work, each with its condition and the reason.
    pub(crate) fn not_working(&self) -> Vec<(u16, Condition, String)> {
        let reasons = self.reasons.lock();
        reasons.iter().map(|(partition, (condition, fault))| (*partition, *condition, fault.to_string())).collect()
    }

    /// Tells the shards to drop their queues, because the engine stops.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }
}
