//! The store of all webhooks.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use headcount_actors::{EngineParts, Feature as _, InstallFeature};
use headcount_common::{ControlError, DocumentSet, NOT_HERE, PARTITIONS, SharedValues, partition_of};
use headcount_control::{AuditAction, AuditTarget, Author, RegistryError, Result, Secret, TargetType, WebhookId, check_room};
use headcount_domain::{Instant, OrganizationId, Position, ProjectId};
use parking_lot::{Mutex, RwLock};
use tokio::sync::Notify;

use crate::held::{HeldWebhook, HeldWebhooks, Tries};
use crate::progress::{DeliveryPage, DeliveryProgress, DeliveryQuery};
use crate::request::WebhookSettings;
use crate::webhook::{
    BOTH_SIGN_MS, FormerSecret, KIND, NewWebhook, Webhook, WebhookEvent, WebhookPatch, WebhookStatus, check_events, check_url,
};

/// The maximum number of webhooks of an organization.
pub const MAX_WEBHOOKS: usize = 100;

const NOT_FOUND: RegistryError = RegistryError::NotFound { what: "webhook" };

/// The webhooks to list.
#[derive(Debug, Clone, Default)]
pub struct WebhookQuery {
    /// The maximum number of webhooks.
    pub limit: usize,
    /// Only webhooks older than this one.
    pub starting_after: Option<WebhookId>,
}

/// A part of the list of webhooks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookPage {
    /// The webhooks, newest first.
    pub webhooks: Vec<Webhook>,
    /// Whether older webhooks follow.
    pub truncated: bool,
}

/// A new secret of a webhook.
#[derive(Debug)]
pub struct Rotation {
    /// The secret.
    pub secret: Secret,
    /// The time until which the former secret signs, too.
    pub previous_valid_until: Instant,
}

/// The notifications to send again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WebhookReplay {
    /// The first position.
    pub from: Position,
    /// The last position known now.
    pub to: Position,
}

/// The webhooks of an engine.
#[derive(Debug)]
pub struct Webhooks {
    pub(crate) parts: EngineParts,
    pub(crate) settings: Arc<WebhookSettings>,
    pub(crate) items: DocumentSet<Webhook>,
    /// The progress of each webhook.
    pub(crate) progress: Arc<dyn SharedValues>,
    pub(crate) held: RwLock<HeldWebhooks>,
    /// Locked while a webhook changes.
    changes: Mutex<()>,
    /// Locked while progress is written, and while a file is removed. Taken after `changes`.
    pub(crate) saving: Mutex<()>,
    /// The projects with new notifications.
    pub(crate) woken: Mutex<BTreeSet<ProjectId>>,
    /// Notified when there is work.
    pub(crate) work: Notify,
    pub(crate) stopped: AtomicBool,
    pub(crate) tries: Tries,
}

/// Makes webhooks a feature of an engine.
pub fn install(settings: WebhookSettings) -> InstallFeature {
    let settings = Arc::new(settings);
    Arc::new(move |parts, _| Ok(Arc::new(Webhooks::open(parts.clone(), Arc::clone(&settings))?)))
}

impl Webhooks {
    /// Opens the webhooks of an engine. A node that owns no partition knows none before it follows
    /// them.
    fn open(parts: EngineParts, settings: Arc<WebhookSettings>) -> Result<Self, ControlError> {
        let failed = |error| ControlError::Documents(format!("the webhooks can't be opened: {error}"));
        let webhooks = Self {
            items: DocumentSet::new(parts.stores.documents(KIND).map_err(failed)?),
            progress: parts.stores.values(KIND).map_err(failed)?,
            held: RwLock::default(),
            changes: Mutex::default(),
            saving: Mutex::default(),
            woken: Mutex::default(),
            work: Notify::new(),
            stopped: AtomicBool::new(false),
            tries: Tries::default(),
            parts,
            settings,
        };
        if (0..PARTITIONS).any(|partition| webhooks.parts.owners().is_here(partition)) {
            webhooks.follow()?;
        }
        Ok(webhooks)
    }

    /// Creates a webhook. It sends notifications recorded from now on. The secret is returned only
    /// here.
    ///
    /// # Errors
    /// Returns [`RegistryError::NotFound`] if the organization has no such project;
    /// [`RegistryError::Invalid`] `url` and `events`; [`RegistryError::Conflict`] `limit_reached`
    /// at [`MAX_WEBHOOKS`]; [`RegistryError::Storage`].
    pub fn create(&self, organization: OrganizationId, new: NewWebhook, by: impl Into<Author>) -> Result<(Webhook, Secret)> {
        let config = self.parts.registry().policy(new.project);
        config.filter(|config| config.policy.organization == organization).ok_or(RegistryError::NotFound { what: "project" })?;
        let after = self.last_position_for(new.project)?;
        let made = self.create_after(organization, new, after, &by.into())?;
        // The project may have been deleted meanwhile.
        self.projects_deleted();
        Ok(made)
    }

    fn create_after(
        &self,
        organization: OrganizationId,
        new: NewWebhook,
        after: Position,
        author: &Author,
    ) -> Result<(Webhook, Secret)> {
        let _one = self.changes.lock();
        let url = check_url(&new.url, &*self.settings.check)?;
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
        self.make(author, || {
            let count = self.held.read().all().filter(|held| held.webhook.organization == organization).count();
            check_room(count, MAX_WEBHOOKS, "webhooks")?;
            Ok(Webhook::plan(AuditAction::WebhookCreated, None, Some(webhook.clone())))
        })?;
        self.notified(webhook.project);
        Ok((webhook, shown))
    }

    /// Returns a webhook of an organization.
    ///
    /// # Errors
    /// Returns [`RegistryError::NotFound`].
    pub fn get(&self, organization: OrganizationId, id: &WebhookId) -> Result<Webhook> {
        self.read_of(organization, id, |held| held.webhook.clone())
    }

    /// Returns webhooks of an organization, newest first.
    ///
    /// # Errors
    /// Returns [`RegistryError::Invalid`] `starting_after` if that webhook doesn't exist.
    pub fn page(&self, organization: OrganizationId, query: &WebhookQuery) -> Result<WebhookPage> {
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
    /// Returns [`RegistryError::NotFound`]; [`RegistryError::Invalid`] `url` and `events`;
    /// [`RegistryError::Storage`].
    pub fn change(
        &self,
        organization: OrganizationId,
        id: &WebhookId,
        patch: WebhookPatch,
        by: impl Into<Author>,
    ) -> Result<Webhook> {
        let _one = self.changes.lock();
        self.get(organization, id)?;
        let url = patch.url.map(|url| check_url(&url, &*self.settings.check)).transpose()?;
        let events = check_events(patch.events)?;
        let changed = self.make(&by.into(), || {
            let current = self.get(organization, id)?;
            let mut changed = current.clone();
            changed.url = url.clone().unwrap_or(changed.url);
            changed.events = events.clone().unwrap_or(changed.events);
            changed.status = patch.status.unwrap_or(changed.status);
            let is_changed = changed != current;
            let planned = Webhook::plan(AuditAction::WebhookUpdated, Some(&current), Some(changed));
            Ok(planned.filter(|_| is_changed))
        })?;
        let Some(changed) = changed else { return self.get(organization, id) };
        self.notified(changed.project);
        Ok(changed)
    }

    /// Gives a webhook a new secret, which is returned only here. For a day, the former one signs,
    /// too; an earlier one no longer does.
    ///
    /// # Errors
    /// Returns [`RegistryError::NotFound`], [`RegistryError::Storage`].
    pub fn rotate_secret(&self, organization: OrganizationId, id: &WebhookId, by: impl Into<Author>) -> Result<Rotation> {
        let (_one, author) = (self.changes.lock(), by.into());
        let (secret, shown) = self.new_secret()?;
        let valid_until = author.at.plus_ms(BOTH_SIGN_MS);
        self.make(&author, || {
            let current = self.get(organization, id)?;
            let mut changed = current.clone();
            changed.former = Some(FormerSecret { secret: std::mem::replace(&mut changed.secret, secret.clone()), valid_until });
            Ok(Webhook::plan(AuditAction::WebhookSecretRotated, Some(&current), Some(changed)))
        })?;
        Ok(Rotation { secret: shown, previous_valid_until: valid_until })
    }

    /// Removes a webhook.
    ///
    /// # Errors
    /// Returns [`RegistryError::NotFound`], [`RegistryError::Storage`].
    pub fn remove(&self, organization: OrganizationId, id: &WebhookId, by: impl Into<Author>) -> Result<()> {
        let _one = self.changes.lock();
        self.make(&by.into(), || Ok(Webhook::plan(AuditAction::WebhookDeleted, Some(&self.get(organization, id)?), None)))
            .map(drop)
    }

    /// Returns deliveries of a webhook, latest first.
    ///
    /// # Errors
    /// Returns [`RegistryError::NotFound`]; [`RegistryError::Invalid`] `starting_after` if that
    /// delivery doesn't exist.
    pub fn deliveries(&self, organization: OrganizationId, id: &WebhookId, query: &DeliveryQuery) -> Result<DeliveryPage> {
        self.check_is_here(self.get(organization, id)?.project)?;
        self.load(id).map_err(|error| failed("read", error))?;
        let page = self.read_of(organization, id, |held| held.progress.page(id, query))?;
        page.ok_or_else(|| RegistryError::invalid("starting_after", "must be the id of a delivery"))
    }

    /// Sends all notifications from the position `from` on again, with the same ids, except those
    /// from before the webhook was created.
    ///
    /// # Errors
    /// Returns [`RegistryError::NotFound`], [`RegistryError::Storage`].
    pub fn replay(
        &self,
        organization: OrganizationId,
        id: &WebhookId,
        from: Position,
        by: impl Into<Author>,
    ) -> Result<WebhookReplay> {
        let to = self.last_position_for(self.get(organization, id)?.project)?;
        let _one = self.changes.lock();
        let webhook = self.get(organization, id)?;
        let (target, action) = (AuditTarget { kind: TargetType::Webhook, id: id.to_string() }, AuditAction::WebhookReplayed);
        self.parts.registry().note_document_change(organization, target, action, BTreeMap::new(), &by.into())?;
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
        self.notified(webhook.project);
        Ok(WebhookReplay { from, to: to.max(from.saturating_sub(1)) })
    }

    /// The last position that a notification of a project can have now.
    fn last_position_for(&self, project: ProjectId) -> Result<Position> {
        self.check_is_here(project)?;
        Ok(self.parts.last_position(partition_of(project)))
    }

    /// Checks that this machine sends the notifications of a project.
    fn check_is_here(&self, project: ProjectId) -> Result<()> {
        if self.parts.owners().is_here(partition_of(project)) {
            return Ok(());
        }
        Err(ControlError::Documents(NOT_HERE.to_owned()).into())
    }

    fn read_of<R>(&self, organization: OrganizationId, id: &WebhookId, read: impl FnOnce(&HeldWebhook) -> R) -> Result<R> {
        let held = self.held.read();
        held.get(id).filter(|held| held.webhook.organization == organization).map(read).ok_or(NOT_FOUND)
    }
}

fn failed(doing: &'static str, source: io::Error) -> ControlError {
    ControlError::Io { doing, path: format!("control/{KIND}").into(), source }
}
