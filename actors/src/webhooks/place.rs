//! Where webhooks and their progress are: in files, or where all members of a cluster see them.

use std::collections::BTreeMap;
use std::sync::Arc;

use headcount_common::secrets::Signer;
use headcount_common::{SharedCursors, SharedDocuments, SharedItems};
use headcount_control::{AuditAction, FieldChange, WebhookId};
use headcount_domain::ids::OrganizationId;

use super::files::WebhookFiles;
use super::key::WebhookKey;
use super::webhook::Webhook;

/// See the module.
#[derive(Debug)]
pub(super) enum WebhookPlace {
    Files(WebhookFiles),
    Shared(SharedWebhooks),
}

/// The webhooks that all members have, and how far the owners of their projects have come.
#[derive(Debug)]
pub(crate) struct SharedWebhooks {
    pub(super) items: SharedItems<Webhook>,
    pub(super) cursors: Arc<dyn SharedCursors>,
    pub(super) key: WebhookKey,
}

impl SharedWebhooks {
    pub(crate) fn new(documents: Arc<dyn SharedDocuments>, cursors: Arc<dyn SharedCursors>, signer: Signer) -> Self {
        Self { items: SharedItems::new(documents), cursors, key: WebhookKey::new(signer) }
    }
}

/// A change of a webhook.
pub(super) struct PlannedWebhook {
    pub(super) id: WebhookId,
    pub(super) organization: OrganizationId,
    /// What it is from then on; `None`: it is removed.
    pub(super) webhook: Option<Webhook>,
    pub(super) action: AuditAction,
    pub(super) changes: BTreeMap<String, FieldChange>,
}

impl PlannedWebhook {
    /// A webhook that is made, or changed from what it is.
    pub(super) fn of(action: AuditAction, current: Option<&Webhook>, webhook: Webhook) -> Self {
        let changes = Webhook::differences(current, Some(&webhook));
        let (id, organization) = (webhook.id.clone(), webhook.organization);
        Self { id, organization, webhook: Some(webhook), action, changes }
    }
}
