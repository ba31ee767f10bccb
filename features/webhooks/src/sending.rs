//! What is sent next, and what becomes of each try.

use std::collections::BTreeSet;
use std::io;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant as Stopwatch};

use headcount_control::WebhookId;
use headcount_domain::{Instant, OrganizationId, Position, ProjectId};

use crate::held::HeldWebhook;
use crate::progress::{DeliveryProgress, DeliveryStatus};
use crate::request::Notification;
use crate::store::Webhooks;
use crate::webhook::{Webhook, WebhookStatus};

/// How long progress may be only in memory. A stop in between repeats the notifications sent since.
const SAVE_EVERY_MS: i64 = 1_000;
/// How long other progress is still written after brokers did not answer about one webhook.
const SAVE_PATIENCE: Duration = Duration::from_secs(2);

/// The next work of a webhook.
#[derive(Debug, Clone)]
pub(crate) struct Outlook {
    pub(crate) webhook: Webhook,
    pub(crate) done: Position,
    /// The last erasure of the project that the list of deliveries reflects.
    pub(crate) reflected: u64,
    /// The time of the next try of a failed delivery.
    pub(crate) next_at: Option<Instant>,
    /// A number that changes with each replay.
    pub(crate) generation: u64,
}

/// The outcome of a try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeliveryAttempt {
    /// The notification is done: delivered, or given up.
    Done,
    /// It will be tried again after this time.
    Again(Duration),
    /// The webhook was changed meanwhile, so the outcome is ignored.
    Outdated,
}

impl Webhooks {
    /// Returns the projects woken since the last call.
    pub(crate) fn take_woken(&self) -> BTreeSet<ProjectId> {
        std::mem::take(&mut *self.woken.lock())
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }

    /// All webhooks, each with its organization.
    pub(crate) fn all(&self) -> Vec<(WebhookId, OrganizationId)> {
        self.held.read().all().map(whose).collect()
    }

    /// The webhooks of projects, each with its organization.
    pub(crate) fn of_projects(&self, projects: &BTreeSet<ProjectId>) -> Vec<(WebhookId, OrganizationId)> {
        let held = self.held.read();
        projects.iter().flat_map(|project| held.of_project(*project)).map(whose).collect()
    }

    /// The next work of a webhook; `None` if it is gone or paused.
    pub(crate) fn outlook(&self, id: &WebhookId) -> Option<Outlook> {
        let held = self.held.read();
        let held = held.get(id).filter(|held| held.webhook.status == WebhookStatus::Active)?;
        Some(Outlook {
            webhook: held.webhook.clone(),
            done: held.progress.done,
            reflected: held.progress.reflected,
            next_at: held.progress.pending().map(|delivery| delivery.next_at),
            generation: held.generation,
        })
    }

    /// Records the outcome of a try: the status of the answer, or the error.
    pub(crate) fn tried(
        &self,
        (id, generation): (&WebhookId, u64),
        notification: &Notification,
        outcome: Result<u16, &'static str>,
        now: Instant,
    ) -> DeliveryAttempt {
        let mut held = self.held.write();
        let Some(held) = held.get_mut(id).filter(|held| held.generation == generation) else { return DeliveryAttempt::Outdated };
        let delivery = held.progress.begin(notification, now);
        delivery.attempts = delivery.attempts.saturating_add(1);
        delivery.last_status = outcome.ok();
        delivery.last_error = outcome.err().map(str::to_owned);
        let is_delivered = outcome.is_ok_and(|status| (200..300).contains(&status));
        let tried_ms = u64::try_from(now.0.saturating_sub(delivery.tried_since.0)).unwrap_or_default();
        let attempt = if is_delivered {
            (delivery.status, delivery.delivered_at) = (DeliveryStatus::Delivered, Some(now));
            self.tries.delivered.fetch_add(1, Ordering::Relaxed);
            DeliveryAttempt::Done
        } else if Duration::from_millis(tried_ms) >= self.settings.give_up_after {
            delivery.status = DeliveryStatus::Dead;
            self.tries.failed.fetch_add(1, Ordering::Relaxed);
            self.tries.dead.fetch_add(1, Ordering::Relaxed);
            DeliveryAttempt::Done
        } else {
            let wait = self.settings.wait_after(delivery.attempts);
            delivery.next_at = now.plus_ms(i64::try_from(wait.as_millis()).unwrap_or(i64::MAX));
            self.tries.failed.fetch_add(1, Ordering::Relaxed);
            DeliveryAttempt::Again(wait)
        };
        if attempt == DeliveryAttempt::Done {
            held.progress.done = held.progress.done.max(notification.position());
        }
        held.progress.prune(now);
        held.unsaved_since.get_or_insert(now);
        attempt
    }

    /// Records that there is no notification up to a position.
    pub(crate) fn passed(&self, (id, generation): (&WebhookId, u64), done: Position, now: Instant) {
        let mut held = self.held.write();
        if let Some(held) = held.get_mut(id).filter(|held| held.generation == generation && held.progress.done < done) {
            held.progress.done = done;
            held.progress.prune(now);
            held.unsaved_since.get_or_insert(now);
        }
    }

    /// The positions of the deliveries of a webhook.
    pub(crate) fn listed(&self, id: &WebhookId) -> BTreeSet<Position> {
        let held = self.held.read();
        held.get(id).map(|held| held.progress.deliveries.keys().copied().collect()).unwrap_or_default()
    }

    /// Keeps only the deliveries up to `until` whose events are in `there`, durably.
    ///
    /// # Errors
    /// Any error of the operating system.
    pub(crate) fn keep(&self, id: &WebhookId, there: &BTreeSet<Position>, until: Position, reflected: u64) -> io::Result<()> {
        let _one = self.saving.lock();
        let progress = {
            let mut held = self.held.write();
            let Some(held) = held.get_mut(id) else { return Ok(()) };
            held.progress.deliveries.retain(|position, _| *position > until || there.contains(position));
            held.progress.clone()
        };
        let progress = DeliveryProgress { reflected, ..progress };
        self.write_progress(id, &progress)?;
        if let Some(held) = self.held.write().get_mut(id) {
            held.progress.reflected = reflected;
        }
        Ok(())
    }

    /// Writes the progress that has been only in memory for long enough, or all of it. Failures are
    /// retried.
    pub(crate) fn write_unsaved(&self, now: Instant, all: bool) {
        let (_one, began) = (self.saving.lock(), Stopwatch::now());
        let due = |since: Instant| all || now.0.saturating_sub(since.0).abs() >= SAVE_EVERY_MS;
        let unsaved: Vec<_> = {
            let held = self.held.read();
            let unsaved = held.all().filter(|held| held.unsaved_since.is_some_and(due));
            unsaved.map(|held| (held.webhook.id.clone(), held.progress.clone())).collect()
        };
        for (id, progress) in unsaved {
            match self.write_progress(&id, &progress) {
                Ok(()) => {
                    if let Some(held) = self.held.write().get_mut(&id).filter(|held| held.progress == progress) {
                        held.unsaved_since = None;
                    }
                }
                Err(error) => {
                    tracing::warn!(webhook = %id, %error, "the progress of a webhook could not be written; it is tried again");
                    // The others would wait for the same brokers, and a takeover of a partition
                    // waits for all of them.
                    if began.elapsed() >= SAVE_PATIENCE {
                        return;
                    }
                }
            }
        }
    }

    /// Whether there is progress only in memory.
    pub(crate) fn is_unsaved(&self) -> bool {
        self.held.read().all().any(|held| held.unsaved_since.is_some())
    }
}

fn whose(HeldWebhook { webhook, .. }: &HeldWebhook) -> (WebhookId, OrganizationId) {
    (webhook.id.clone(), webhook.organization)
}
