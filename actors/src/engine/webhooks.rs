//! The management of webhooks.

use headcount_common::{ControlError, NOT_HERE, partition_of};
use headcount_control::{Author, RegistryError, Secret, WebhookId};
use headcount_domain::ids::{OrganizationId, ProjectId};
use headcount_domain::intake::event::Position;

use super::handle::Engine;
use crate::webhooks::{
    DeliveryPage, DeliveryQuery, NewWebhook, Rotation, Webhook, WebhookPage, WebhookPatch, WebhookQuery, WebhookReplay,
};

impl Engine {
    /// Creates a webhook. It sends notifications recorded from now on. The secret is returned only
    /// here.
    ///
    /// # Errors
    /// Returns [`RegistryError::NotFound`] if the organization has no such project;
    /// [`RegistryError::Invalid`] `url` and `events`; [`RegistryError::Conflict`] `limit_reached`
    /// at [`MAX_WEBHOOKS`](crate::webhooks::MAX_WEBHOOKS); [`RegistryError::Storage`].
    pub fn create_webhook(
        &self,
        organization: OrganizationId,
        new: NewWebhook,
        by: impl Into<Author>,
    ) -> Result<(Webhook, Secret), RegistryError> {
        let config = self.registry().policy(new.project);
        config.filter(|config| config.policy.organization == organization).ok_or(RegistryError::NotFound { what: "project" })?;
        let after = self.last_position_for(new.project)?;
        let check = |url: &str| self.check_webhook_url(url);
        let made = self.inner.webhooks.create(self.registry(), organization, (new, after), check, &by.into())?;
        // The project may have been deleted meanwhile.
        self.remove_orphaned_webhooks();
        Ok(made)
    }

    /// Returns a webhook.
    ///
    /// # Errors
    /// Returns [`RegistryError::NotFound`] if the organization doesn't have the webhook.
    pub fn webhook(&self, organization: OrganizationId, id: &WebhookId) -> Result<Webhook, RegistryError> {
        self.inner.webhooks.get(organization, id)
    }

    /// Returns webhooks of an organization, newest first.
    ///
    /// # Errors
    /// Returns [`RegistryError::Invalid`] `starting_after` if that webhook doesn't exist.
    pub fn webhooks(&self, organization: OrganizationId, query: &WebhookQuery) -> Result<WebhookPage, RegistryError> {
        self.inner.webhooks.page(organization, query)
    }

    /// Changes a webhook: all fields of the patch, or none.
    ///
    /// # Errors
    /// Returns [`RegistryError::NotFound`]; [`RegistryError::Invalid`] `url` and `events`;
    /// [`RegistryError::Storage`].
    pub fn change_webhook(
        &self,
        organization: OrganizationId,
        id: &WebhookId,
        patch: WebhookPatch,
        by: impl Into<Author>,
    ) -> Result<Webhook, RegistryError> {
        let check = |url: &str| self.check_webhook_url(url);
        self.inner.webhooks.change(self.registry(), (organization, id), patch, check, &by.into())
    }

    /// Removes a webhook.
    ///
    /// # Errors
    /// Returns [`RegistryError::NotFound`], [`RegistryError::Storage`].
    pub fn remove_webhook(
        &self,
        organization: OrganizationId,
        id: &WebhookId,
        by: impl Into<Author>,
    ) -> Result<(), RegistryError> {
        self.inner.webhooks.remove(self.registry(), organization, id, &by.into())
    }

    /// Gives a webhook a new secret, which is returned only here. For a day the former secret
    /// signs, too.
    ///
    /// # Errors
    /// Returns [`RegistryError::NotFound`], [`RegistryError::Storage`].
    pub fn rotate_webhook_secret(
        &self,
        organization: OrganizationId,
        id: &WebhookId,
        by: impl Into<Author>,
    ) -> Result<Rotation, RegistryError> {
        self.inner.webhooks.rotate(self.registry(), organization, id, &by.into())
    }

    /// Returns deliveries of a webhook, latest first.
    ///
    /// # Errors
    /// Returns [`RegistryError::NotFound`]; [`RegistryError::Invalid`] `starting_after` if that
    /// delivery doesn't exist.
    pub fn webhook_deliveries(
        &self,
        organization: OrganizationId,
        id: &WebhookId,
        query: &DeliveryQuery,
    ) -> Result<DeliveryPage, RegistryError> {
        self.check_is_here(self.webhook(organization, id)?.project)?;
        self.inner.webhooks.deliveries(organization, id, query)
    }

    /// Makes a webhook send all notifications from a position on again, with the same ids.
    ///
    /// # Errors
    /// Returns [`RegistryError::NotFound`], [`RegistryError::Storage`].
    pub fn replay_webhook(
        &self,
        organization: OrganizationId,
        id: &WebhookId,
        from: Position,
        by: impl Into<Author>,
    ) -> Result<WebhookReplay, RegistryError> {
        let to = self.last_position_for(self.webhook(organization, id)?.project)?;
        self.inner.webhooks.replay(self.registry(), (organization, id), (from, to), &by.into())
    }

    /// The last position that a notification of a project can have now.
    fn last_position_for(&self, project: ProjectId) -> Result<Position, RegistryError> {
        self.check_is_here(project)?;
        Ok(self.inner.history.last_position(partition_of(project)))
    }

    /// Checks that this machine sends the notifications of a project.
    fn check_is_here(&self, project: ProjectId) -> Result<(), RegistryError> {
        if self.owners().is_here(partition_of(project)) {
            return Ok(());
        }
        Err(ControlError::Documents(NOT_HERE.to_owned()).into())
    }

    /// Returns the project of a webhook of any organization.
    #[must_use]
    pub fn project_of_webhook(&self, id: &WebhookId) -> Option<ProjectId> {
        self.inner.webhooks.project_of(id)
    }

    /// Removes the webhooks of deleted projects. Failures are retried at the next start.
    pub(super) fn remove_orphaned_webhooks(&self) {
        if let Err(error) = self.inner.webhooks.remove_orphans(self.registry(), &self.clock().now().into()) {
            tracing::warn!(%error, "the webhooks of a deleted project could not be removed; the next start tries again");
        }
    }

    fn check_webhook_url(&self, url: &str) -> Result<String, String> {
        match &self.inner.config.webhooks {
            Some(settings) => settings.transport.check(url),
            None => Err("can't be used: this engine sends no webhooks".to_owned()),
        }
    }
}
