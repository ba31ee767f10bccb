//! Decides whether events are admitted.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use headcount_common::partition_of;
use headcount_domain::ids::ProjectId;

use super::disk_guard::DiskGuard;
use crate::admission_gate::{Gate, Holder, Permit, Refused};
use crate::shard::{CheckpointProgress, PartitionHealth};

/// The checks that an event must pass before any part of it is read.
pub(super) struct Admission {
    pub(super) gate: Gate,
    /// The bytes of bodies without events. They are read while events fill their own pool.
    pub(super) others: Gate,
    pub(super) disk: DiskGuard,
    pub(super) health: Arc<PartitionHealth>,
    pub(super) checkpoints: Arc<CheckpointProgress>,
    closing: Arc<AtomicBool>,
    /// Whether clients should send no new work here. Work that arrives is still done.
    pub(super) draining: AtomicBool,
}

impl Admission {
    pub(super) fn new(
        [gate, others]: [Gate; 2],
        disk: DiskGuard,
        health: Arc<PartitionHealth>,
        checkpoints: Arc<CheckpointProgress>,
    ) -> Self {
        Self { gate, others, disk, health, checkpoints, closing: Arc::default(), draining: AtomicBool::new(false) }
    }

    /// Admits nothing from now on.
    pub(super) fn close(&self) {
        self.closing.store(true, Ordering::SeqCst);
    }

    /// What is set when nothing is admitted any more.
    pub(super) fn closing(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.closing)
    }

    pub(super) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Relaxed)
    }

    /// Returns the reason why no event can be admitted now, if there is one.
    pub(super) fn unavailable(&self) -> Option<&'static str> {
        if self.is_closing() {
            return Some("the server is shutting down");
        }
        (!self.disk.has_space()).then_some("the disk is nearly full")
    }

    pub(super) fn admit(&self, project: ProjectId, address: Option<IpAddr>, bytes: usize) -> Result<Permit, Refused> {
        if let Some(why) = self.unavailable() {
            return Err(Refused::Unavailable(why));
        }
        self.health.check_project(project).map_err(Refused::Unavailable)?;
        self.gate.take_for([Some(Holder::Project(project)), address.map(Holder::of_address)], bytes)
    }

    /// Admits bytes whose project is not known yet. They count against the address's share.
    pub(super) fn admit_from(&self, address: Option<IpAddr>, bytes: usize) -> Result<Permit, Refused> {
        if let Some(why) = self.unavailable() {
            return Err(Refused::Unavailable(why));
        }
        self.gate.take_for([None, address.map(Holder::of_address)], bytes)
    }

    /// Checks that the checkpoints of a project's partition allow new events.
    pub(super) fn accepts(&self, project: ProjectId) -> Result<(), &'static str> {
        match self.checkpoints.accepts(partition_of(project)) {
            true => Ok(()),
            false => Err("the state of this project can't be written to disk"),
        }
    }
}
