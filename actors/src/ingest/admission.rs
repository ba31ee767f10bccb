//! Decides whether the bytes of requests are admitted, before any of them is read.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use headcount_common::partition_of;
use headcount_control::Registry;
use headcount_domain::ProjectId;

use super::disk_guard::DiskGuard;
use crate::admission_gate::{Gate, Holder, Permit, Refused};
use crate::deleted_projects::DeletedProjects;
use crate::shard::{CheckpointProgress, PartitionHealth};

/// Admits the bytes of requests, while there is room and their events can be recorded.
pub struct Admission {
    pub(crate) gate: Gate,
    /// The bytes of bodies without events. They are read while events fill their own pool.
    pub(crate) others: Gate,
    pub(crate) disk: DiskGuard,
    pub(crate) health: Arc<PartitionHealth>,
    pub(crate) checkpoints: Arc<CheckpointProgress>,
    pub(crate) deleted: Arc<DeletedProjects>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) closing: Arc<AtomicBool>,
    pub(crate) draining: AtomicBool,
}

impl Admission {
    /// Admits nothing from now on.
    pub(crate) fn close(&self) {
        self.closing.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Relaxed)
    }

    /// Makes `/readyz` fail from now on, so that load balancers send no new work here. Work that
    /// arrives is still done.
    pub fn begin_drain(&self) {
        self.draining.store(true, Ordering::SeqCst);
    }

    /// Whether the engine is about to stop, so that clients should connect elsewhere.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::SeqCst) || self.is_closing()
    }

    /// Returns the reason why no event can be taken now, if there is one.
    #[must_use]
    pub fn unavailable(&self) -> Option<&'static str> {
        if self.is_closing() {
            return Some("the server is shutting down");
        }
        (!self.disk.has_space()).then_some("the disk is nearly full")
    }

    /// Admits `bytes` of events of a project that came from `address`. The bytes count against the
    /// admission limit and the shares of the project and the address, until the events are applied.
    ///
    /// # Errors
    /// The events can't be taken now.
    pub fn admit(&self, project: ProjectId, address: Option<IpAddr>, bytes: usize) -> Result<Permit, Refused> {
        if let Some(why) = self.unavailable() {
            return Err(Refused::Unavailable(why));
        }
        self.health.check_project(project).map_err(Refused::Unavailable)?;
        self.admit_for(Holder::Project(project), address, bytes)
    }

    /// Admits `bytes` from `address` whose project is not known yet. They count against the
    /// address's share.
    ///
    /// # Errors
    /// The bytes can't be taken now.
    pub fn admit_from(&self, address: Option<IpAddr>, bytes: usize) -> Result<Permit, Refused> {
        if let Some(why) = self.unavailable() {
            return Err(Refused::Unavailable(why));
        }
        self.gate.take_for([None, address.map(Holder::of_address)], bytes)
    }

    /// Admits `bytes` of events, also of events that another node records. They count against the
    /// admission limit, and against the shares of `holder` and the address.
    ///
    /// # Errors
    /// The events can't be taken now.
    pub fn admit_for(&self, holder: Holder, address: Option<IpAddr>, bytes: usize) -> Result<Permit, Refused> {
        let permit = self.gate.take_for([Some(holder), address.map(Holder::of_address)], bytes)?;
        match holder {
            // A deletion waits for the permits of its project. No further permit is given.
            Holder::Project(project) if self.is_deleted(project) => Err(Refused::Unavailable("the project was deleted")),
            _ => Ok(permit),
        }
    }

    /// Admits `bytes` of a body without events. Such bodies have their own pool. They count against
    /// the shares of `holder` and the address.
    ///
    /// # Errors
    /// Too many such bytes are in flight.
    pub fn admit_without_events(&self, holder: Option<Holder>, address: Option<IpAddr>, bytes: usize) -> Result<Permit, Refused> {
        self.others.take_for([holder, address.map(Holder::of_address)], bytes)
    }

    /// Takes `bytes` of the admission limit without a holder. Returns `None` if there is no room.
    #[must_use]
    pub fn admit_bytes(&self, bytes: usize) -> Option<Permit> {
        self.gate.take(bytes)
    }

    /// Checks that the checkpoints of a project's partition allow new events.
    pub(crate) fn accepts(&self, project: ProjectId) -> Result<(), &'static str> {
        match self.checkpoints.accepts(partition_of(project)) {
            true => Ok(()),
            false => Err("the state of this project can't be written to disk"),
        }
    }

    /// Whether a project is deleted whose configuration was found before. All of its data may
    /// already be removed.
    pub(crate) fn is_deleted(&self, project: ProjectId) -> bool {
        self.deleted.contains(project) || self.registry.policy(project).is_none()
    }
}
