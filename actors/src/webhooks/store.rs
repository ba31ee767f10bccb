//! The store of all webhooks.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant as Stopwatch};

use headcount_common::secrets::Signer;
use headcount_common::{ControlError, DocumentSet, Documents, SharedValues};
use headcount_control::{AuditAction, Author, Registry, RegistryError, Secret, WebhookId};
use headcount_domain::ids::{OrganizationId, ProjectId};
use headcount_domain::intake::event::Position;
use headcount_domain::time::Instant;
use parking_lot::{Mutex, RwLock};
use tokio::sync::Notify;

use super::delivery::{DeliveryPage, DeliveryProgress, DeliveryQuery, DeliveryStatus};
use super::held::{HeldWebhook, HeldWebhooks};
use super::message::Notification;
use super::message::WebhookKey;
use super::outlook::{DeliveryAttempt, Outlook, Rotation, WebhookFigures, WebhookPage, WebhookQuery, WebhookReplay};
use super::transport::WebhookSettings;
use super::webhook::{
    BOTH_SIGN_MS, FormerSecret, NewWebhook, PlannedWebhook, Webhook, WebhookEvent, WebhookPatch, WebhookStatus, check_events,
    check_url,
};

/// The directory of the webhooks in a data directory: `wh_….json` is a webhook, and
/// `wh_….progress.json` its progress.
pub(crate) const WEBHOOKS_DIR: &str = "control/webhooks";
/// The maximum number of webhooks of an organization.
pub const MAX_WEBHOOKS: usize = 100;
/// How long progress may be only in memory. A stop in between repeats the notifications sent since.
const SAVE_EVERY_MS: i64 = 1_000;
/// How long other progress is still written after brokers did not answer about one webhook.
const SAVE_PATIENCE: Duration = Duration::from_secs(2);

const NOT_FOUND: RegistryError = RegistryError::NotFound { what: "webhook" };

/// The stores of webhooks, and of their progress.
pub(crate) type WebhookPlaces = (Arc<dyn Documents>, Arc<dyn SharedValues>);

/// The store of all webhooks.
#[derive(Debug)]
pub(crate) struct Webhooks {
    pub(super) items: DocumentSet<Webhook>,
    /// The progress of each webhook.
    pub(super) progress: Arc<dyn SharedValues>,
    pub(super) key: WebhookKey,
    pub(super) held: RwLock<HeldWebhooks>,
    /// Locked while a webhook changes.
    changes: Mutex<()>,
    /// Locked while progress is written, and while a file is removed. Taken after `changes`.
    pub(super) saving: Mutex<()>,
    /// The projects with new notifications.
    woken: Mutex<BTreeSet<ProjectId>>,
    /// Notified when there is work.
    pub(crate) work: Notify,
    stopped: AtomicBool,
    delivered: AtomicU64,
    failed: AtomicU64,
    dead: AtomicU64,
}

impl Webhooks {
    /// Uses the documents of webhooks and the values with their progress. No webhook is known
    /// before [`Self::follow`].
    pub(crate) fn new((documents, progress): WebhookPlaces, signer: Signer) -> Self {
        Self {
            items: DocumentSet::new(documents),
            progress,
            key: WebhookKey::new(signer),
            held: RwLock::default(),
            changes: Mutex::default(),
            saving: Mutex::default(),
            woken: Mutex::default(),
            work: Notify::new(),
            stopped: AtomicBool::new(false),
            delivered: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            dead: AtomicU64::new(0),
        }
    }

    /// Creates a webhook, for notifications after the position `after`.
    ///
    /// # Errors
    /// Returns [`RegistryError::Invalid`]; [`RegistryError::Conflict`] `limit_reached`;
    /// [`RegistryError::Storage`].
    pub(crate) fn create(
        &self,
        registry: &Registry,
        organization: OrganizationId,
        (new, after): (NewWebhook, Position),
        check: impl FnOnce(&str) -> Result<String, String>,
        author: &Author,
    ) -> Result<(Webhook, Secret), RegistryError> {
        let _one = self.changes.lock();
        let url = check_url(&new.url, check)?;
        let events = check_events(new.events)?.unwrap_or_else(|| vec![WebhookEvent::Notification]);
        let (secret, shown) = self.new_secret()?;
        let webhook = Webhook {
            id: WebhookId::random()?,
            organization,
            project: new.project,
            url,
            events,
            status: WebhookStatus::Active,
            created_at: author.at,
            created_after: after,
            secret,
            former: None,
        };
        self.make(registry, author, || {
            let count = self.held.read().all().filter(|held| held.webhook.organization == organization).count();
            if count >= MAX_WEBHOOKS {
                let message = format!("there are {MAX_WEBHOOKS} webhooks; there can be no more");
                return Err(RegistryError::Conflict { code: "limit_reached", message });
            }
            Ok(Some(PlannedWebhook::of(AuditAction::WebhookCreated, None, webhook.clone())))
        })?;
        self.wake(webhook.project);
        Ok((webhook, shown))
    }

    /// Returns a webhook of an organization.
    ///
    /// # Errors
    /// Returns [`RegistryError::NotFound`].
    pub(crate) fn get(&self, organization: OrganizationId, id: &WebhookId) -> Result<Webhook, RegistryError> {
        self.read_of(organization, id, |held| held.webhook.clone())
    }

    /// Returns webhooks of an organization, newest first.
    ///
    /// # Errors
    /// Returns [`RegistryError::Invalid`] `starting_after` if that webhook doesn't exist.
    pub(crate) fn page(&self, organization: OrganizationId, query: &WebhookQuery) -> Result<WebhookPage, RegistryError> {
        let held = self.held.read();
        let all = held.all().map(|held| &held.webhook).filter(|webhook| webhook.organization == organization);
        let mut all: Vec<_> = all.collect();
        all.sort_unstable_by(|a, b| (b.created_at, &b.id).cmp(&(a.created_at, &a.id)));
        let begin = match &query.starting_after {
            None => 0,
            Some(after) => {
                let unknown = || RegistryError::invalid("starting_after", "must be the id of a webhook");
                all.iter().position(|webhook| webhook.id == *after).ok_or_else(unknown)? + 1
            }
        };
        let rest = &all[begin..];
        let webhooks = rest.iter().take(query.limit).map(|webhook| Webhook::clone(webhook)).collect();
        Ok(WebhookPage { webhooks, truncated: rest.len() > query.limit })
    }

    /// Changes a webhook: all fields of the patch, or none.
    ///
    /// # Errors
    /// Returns [`RegistryError::NotFound`], [`RegistryError::Invalid`], [`RegistryError::Storage`].
    pub(crate) fn change(
        &self,
        registry: &Registry,
        (organization, id): (OrganizationId, &WebhookId),
        patch: WebhookPatch,
        check: impl FnOnce(&str) -> Result<String, String>,
        author: &Author,
    ) -> Result<Webhook, RegistryError> {
        let _one = self.changes.lock();
        self.get(organization, id)?;
        let url = patch.url.map(|url| check_url(&url, check)).transpose()?;
        let events = check_events(patch.events)?;
        let changed = self.make(registry, author, || {
            let current = self.get(organization, id)?;
            let mut changed = current.clone();
            changed.url = url.clone().unwrap_or(changed.url);
            changed.events = events.clone().unwrap_or(changed.events);
            changed.status = patch.status.unwrap_or(changed.status);
            let planned = (changed != current).then(|| PlannedWebhook::of(AuditAction::WebhookUpdated, Some(&current), changed));
            Ok(planned)
        })?;
        let Some(changed) = changed else { return self.get(organization, id) };
        self.wake(changed.project);
        Ok(changed)
    }

    /// Gives a webhook a new secret. For a day, the former one signs, too; an earlier one no longer
    /// does.
    ///
    /// # Errors
    /// Returns [`RegistryError::NotFound`], [`RegistryError::Storage`].
    pub(crate) fn rotate(
        &self,
        registry: &Registry,
        organization: OrganizationId,
        id: &WebhookId,
        author: &Author,
    ) -> Result<Rotation, RegistryError> {
        let _one = self.changes.lock();
        let (secret, shown) = self.new_secret()?;
        let valid_until = author.at.plus_ms(BOTH_SIGN_MS);
        self.make(registry, author, || {
            let current = self.get(organization, id)?;
            let mut changed = current.clone();
            changed.former = Some(FormerSecret { secret: std::mem::replace(&mut changed.secret, secret.clone()), valid_until });
            Ok(Some(PlannedWebhook::of(AuditAction::WebhookSecretRotated, Some(&current), changed)))
        })?;
        Ok(Rotation { secret: shown, previous_valid_until: valid_until })
    }

    /// Removes a webhook.
    ///
    /// # Errors
    /// Returns [`RegistryError::NotFound`], [`RegistryError::Storage`].
    pub(crate) fn remove(
        &self,
        registry: &Registry,
        organization: OrganizationId,
        id: &WebhookId,
        author: &Author,
    ) -> Result<(), RegistryError> {
        let _one = self.changes.lock();
        self.make(registry, author, || {
            let changes = Webhook::differences(Some(&self.get(organization, id)?), None);
            let (id, action) = (id.clone(), AuditAction::WebhookDeleted);
            Ok(Some(PlannedWebhook { id, organization, webhook: None, action, changes }))
        })
        .map(drop)
    }

    /// Removes the webhooks of deleted projects.
    ///
    /// # Errors
    /// Returns [`RegistryError::Storage`].
    pub(crate) fn remove_orphans(&self, registry: &Registry, author: &Author) -> Result<(), RegistryError> {
        let held = self.held.read();
        let orphans = held.all().map(|held| &held.webhook).filter(|webhook| registry.policy(webhook.project).is_none());
        let orphans: Vec<_> = orphans.map(|webhook| (webhook.organization, webhook.id.clone())).collect();
        drop(held);
        for (organization, id) in orphans {
            match self.remove(registry, organization, &id, author) {
                Ok(()) | Err(RegistryError::NotFound { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Returns deliveries of a webhook, latest first.
    ///
    /// # Errors
    /// Returns [`RegistryError::NotFound`]; [`RegistryError::Invalid`] `starting_after` if that
    /// delivery doesn't exist.
    pub(crate) fn deliveries(
        &self,
        organization: OrganizationId,
        id: &WebhookId,
        query: &DeliveryQuery,
    ) -> Result<DeliveryPage, RegistryError> {
        self.read_of(organization, id, |_| ())?;
        self.load(id).map_err(|error| failed("read", error))?;
        let page = self.read_of(organization, id, |held| held.progress.page(id, query))?;
        page.ok_or_else(|| RegistryError::invalid("starting_after", "must be the id of a delivery"))
    }

    /// Sends all notifications from the position `from` on again, except those from before the
    /// webhook was created.
    ///
    /// # Errors
    /// Returns [`RegistryError::NotFound`], [`RegistryError::Storage`].
    pub(crate) fn replay(
        &self,
        registry: &Registry,
        (organization, id): (OrganizationId, &WebhookId),
        (from, to): (Position, Position),
        author: &Author,
    ) -> Result<WebhookReplay, RegistryError> {
        let _one = self.changes.lock();
        let webhook = self.get(organization, id)?;
        registry.note_webhook_change(organization, id, AuditAction::WebhookReplayed, BTreeMap::new(), author)?;
        self.load(id).map_err(|error| failed("read", error))?;
        let _progress = self.saving.lock();
        let from = from.max(webhook.created_after.saturating_add(1));
        let replayed = self.read_of(organization, id, |held| {
            let done = held.progress.done.min(from.saturating_sub(1));
            DeliveryProgress { done, ..held.progress.clone() }
        })?;
        self.write_progress(id, &replayed).map_err(|error| failed("write", error))?;
        if let Some(held) = self.held.write().get_mut(id) {
            held.progress = replayed;
            held.generation += 1;
        }
        self.wake(webhook.project);
        Ok(WebhookReplay { from, to: to.max(from.saturating_sub(1)) })
    }

    /// Records that a project may have a new notification. Costs next to nothing if the project has
    /// no webhook.
    pub(crate) fn wake(&self, project: ProjectId) {
        if !self.held.read().has_of(project) {
            return;
        }
        self.woken.lock().insert(project);
        self.work.notify_one();
    }

    /// Returns the projects woken since the last call.
    pub(crate) fn take_woken(&self) -> BTreeSet<ProjectId> {
        std::mem::take(&mut *self.woken.lock())
    }

    /// Ends sending.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        self.work.notify_one();
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
        settings: &WebhookSettings,
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
            self.delivered.fetch_add(1, Ordering::Relaxed);
            DeliveryAttempt::Done
        } else if Duration::from_millis(tried_ms) >= settings.give_up_after {
            delivery.status = DeliveryStatus::Dead;
            self.failed.fetch_add(1, Ordering::Relaxed);
            self.dead.fetch_add(1, Ordering::Relaxed);
            DeliveryAttempt::Done
        } else {
            let wait = settings.wait_after(delivery.attempts);
            delivery.next_at = now.plus_ms(i64::try_from(wait.as_millis()).unwrap_or(i64::MAX));
            self.failed.fetch_add(1, Ordering::Relaxed);
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
    pub(crate) fn save(&self, now: Instant, all: bool) {
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

    /// Figures since the start.
    pub(crate) fn figures(&self, now: Instant) -> WebhookFigures {
        let held = self.held.read();
        let failing = held.all().filter_map(|held| held.progress.pending());
        let oldest = failing.clone().map(|delivery| delivery.created_at.0).min();
        let lag = oldest.map_or(0, |oldest| u64::try_from(now.0.saturating_sub(oldest)).unwrap_or_default());
        WebhookFigures {
            delivered: self.delivered.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
            dead: self.dead.load(Ordering::Relaxed),
            failing: failing.count(),
            lag: Duration::from_millis(lag),
        }
    }

    fn read_of<R>(
        &self,
        organization: OrganizationId,
        id: &WebhookId,
        read: impl FnOnce(&HeldWebhook) -> R,
    ) -> Result<R, RegistryError> {
        let held = self.held.read();
        held.get(id).filter(|held| held.webhook.organization == organization).map(read).ok_or(NOT_FOUND)
    }
}

fn whose(HeldWebhook { webhook, .. }: &HeldWebhook) -> (WebhookId, OrganizationId) {
    (webhook.id.clone(), webhook.organization)
}

pub(super) fn failed(doing: &'static str, source: io::Error) -> RegistryError {
    ControlError::Io { doing, path: WEBHOOKS_DIR.into(), source }.into()
}
