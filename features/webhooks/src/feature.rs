//! What webhooks do when something happens in the engine.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use headcount_actors::{Feature, FeatureFigure, MovedDocuments, PropagateChange};
use headcount_common::{ControlError, partition_of};
use headcount_control::RegistryError;
use headcount_domain::{Position, ProjectId};

use crate::changes::forget;
use crate::held::Tries;
use crate::sender;
use crate::store::Webhooks;
use crate::webhook::{KIND, Webhook};

impl Feature for Webhooks {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn start(self: Arc<Self>) -> io::Result<()> {
        self.projects_deleted();
        if self.settings.sends { sender::start(self) } else { Ok(()) }
    }

    fn close(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        self.work.notify_one();
    }

    fn save(&self) {
        self.write_unsaved(self.parts.clock().now(), true);
    }

    /// Costs next to nothing if the project has no webhook.
    fn notified(&self, project: ProjectId) {
        if !self.held.read().has_of(project) {
            return;
        }
        self.woken.lock().insert(project);
        self.work.notify_one();
    }

    /// Makes the webhooks of a partition begin at the progress of its former owner, but not after
    /// the end of the log.
    fn takes(&self, partition: u16, until: Position) {
        self.gave_up(partition);
        let mut held = self.held.write();
        let of_partition = held.all_mut().filter(|held| partition_of(held.webhook.project) == partition);
        of_partition.for_each(|held| held.lost_after = Some(until));
    }

    /// Resumes the webhooks of a partition.
    fn took(&self, partition: u16) {
        let held = self.held.read();
        let projects: Vec<_> =
            held.all().map(|held| held.webhook.project).filter(|project| partition_of(*project) == partition).collect();
        drop(held);
        projects.into_iter().for_each(|project| self.notified(project));
    }

    /// Saves the progress of a partition's webhooks, if that succeeds at once, and forgets it:
    /// another machine takes the partition over, or this one again.
    fn gave_up(&self, partition: u16) {
        let _one = self.saving.lock();
        let held = self.held.read();
        let of_partition = held.all().filter(|held| partition_of(held.webhook.project) == partition);
        let unsaved = of_partition.filter(|held| held.unsaved_since.is_some());
        let unsaved: Vec<_> = unsaved.map(|held| (held.webhook.id.clone(), held.progress.clone())).collect();
        drop(held);
        for (id, progress) in unsaved {
            if let Err(error) = self.write_progress(&id, &progress) {
                tracing::info!(webhook = %id, %error, "the next owner of a project repeats some notifications");
                break;
            }
        }
        let mut held = self.held.write();
        held.all_mut().filter(|held| partition_of(held.webhook.project) == partition).for_each(forget);
    }

    /// Removes their webhooks. Failures are retried at the next start.
    fn projects_deleted(&self) {
        let held = self.held.read();
        let is_orphan = |webhook: &&Webhook| self.parts.registry().policy(webhook.project).is_none();
        let orphans = held.all().map(|held| &held.webhook).filter(is_orphan);
        let orphans: Vec<_> = orphans.map(|webhook| (webhook.organization, webhook.id.clone())).collect();
        drop(held);
        for (organization, id) in orphans {
            match self.remove(organization, &id, self.parts.clock().now()) {
                Ok(()) | Err(RegistryError::NotFound { .. }) => {}
                Err(error) => {
                    tracing::warn!(%error, "the webhooks of a deleted project could not be removed; the next start tries again");
                    return;
                }
            }
        }
    }

    fn follow(&self) -> Result<u64, ControlError> {
        self.items.follow(|id, webhook| {
            self.hold(id, webhook);
            Ok(())
        })
    }

    fn propagate_with(&self, propagate: PropagateChange) {
        self.items.propagate_with(propagate);
    }

    /// Deliveries since the start, and the webhooks whose last try failed.
    fn figures(&self) -> Vec<FeatureFigure> {
        let (held, now) = (self.held.read(), self.parts.known_now());
        let failing = held.all().filter_map(|held| held.progress.pending());
        let oldest = failing.clone().map(|delivery| delivery.created_at.0).min();
        let lag_ms = oldest.map_or(0, |oldest| u64::try_from(now.0.saturating_sub(oldest)).unwrap_or_default());
        let Tries { delivered, failed, dead } = &self.tries;
        let of = |name, help, value| FeatureFigure { name, help, value };
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        vec![
            of("headcount_webhook_delivered_total", "Notifications that the receiver of a webhook took.", count(delivered)),
            of("headcount_webhook_failed_tries_total", "Tries to send a notification that failed.", count(failed)),
            of("headcount_webhook_dead_total", "Notifications that were given up.", count(dead)),
            of("headcount_webhooks_failing", "Webhooks whose last try failed.", failing.count() as u64),
            of("headcount_webhook_lag_seconds", "Age of the oldest notification that is tried again.", lag_ms / 1_000),
        ]
    }

    fn for_backup(&self, is_wanted: &dyn Fn(ProjectId) -> bool) -> Result<Box<dyn MovedDocuments>, ControlError> {
        Ok(Box::new(self.moved(is_wanted)?))
    }
}
