//! The webhooks in memory, found by id and by project, and the tries to send.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::AtomicU64;

use headcount_control::WebhookId;
use headcount_domain::{Instant, Position, ProjectId};

use crate::progress::DeliveryProgress;
use crate::webhook::Webhook;

/// A webhook, and its progress.
#[derive(Debug)]
pub(crate) struct HeldWebhook {
    /// The webhook. Its id and its project never change.
    pub(crate) webhook: Webhook,
    pub(crate) progress: DeliveryProgress,
    /// The revision of the stored progress that this node continues from; `None` if it has not been
    /// read.
    pub(crate) cursor: Option<u64>,
    /// A number that changes with each replay, and with each owner.
    pub(crate) generation: u64,
    /// The end of the log when this node took the partition over. Progress written before may know
    /// lost events at later positions. `None` after this node has written its own progress.
    pub(crate) lost_after: Option<Position>,
    /// The time since when the progress is only in memory.
    pub(crate) unsaved_since: Option<Instant>,
}

impl HeldWebhook {
    /// Returns a new webhook.
    pub(crate) fn new(webhook: Webhook) -> Self {
        let progress = DeliveryProgress::of(&webhook);
        Self { webhook, progress, cursor: None, generation: 0, lost_after: None, unsaved_since: None }
    }
}

/// The webhooks in memory, found by id and by project.
#[derive(Debug, Default)]
pub(crate) struct HeldWebhooks {
    by_id: BTreeMap<WebhookId, HeldWebhook>,
    by_project: HashMap<ProjectId, BTreeSet<WebhookId>>,
}

impl HeldWebhooks {
    pub(crate) fn insert(&mut self, held: HeldWebhook) {
        let (id, project) = (held.webhook.id.clone(), held.webhook.project);
        self.by_project.entry(project).or_default().insert(id.clone());
        self.by_id.insert(id, held);
    }

    pub(crate) fn remove(&mut self, id: &WebhookId) {
        let Some(HeldWebhook { webhook, .. }) = self.by_id.remove(id) else { return };
        if let Some(of_project) = self.by_project.get_mut(&webhook.project) {
            of_project.remove(id);
            if of_project.is_empty() {
                self.by_project.remove(&webhook.project);
            }
        }
    }

    pub(crate) fn get(&self, id: &WebhookId) -> Option<&HeldWebhook> {
        self.by_id.get(id)
    }

    pub(crate) fn get_mut(&mut self, id: &WebhookId) -> Option<&mut HeldWebhook> {
        self.by_id.get_mut(id)
    }

    pub(crate) fn all_mut(&mut self) -> impl Iterator<Item = &mut HeldWebhook> {
        self.by_id.values_mut()
    }

    /// All webhooks, in the order of their ids.
    pub(crate) fn all(&self) -> impl Iterator<Item = &HeldWebhook> + Clone {
        self.by_id.values()
    }

    /// Whether a project has a webhook.
    pub(crate) fn has_of(&self, project: ProjectId) -> bool {
        self.by_project.contains_key(&project)
    }

    /// The webhooks of a project, in the order of their ids.
    pub(crate) fn of_project(&self, project: ProjectId) -> impl Iterator<Item = &HeldWebhook> {
        let ids = self.by_project.get(&project).into_iter().flatten();
        ids.filter_map(|id| self.by_id.get(id))
    }
}

/// The tries since the start.
#[derive(Debug, Default)]
pub(crate) struct Tries {
    /// The number of notifications that receivers accepted.
    pub(crate) delivered: AtomicU64,
    /// The number of failed tries.
    pub(crate) failed: AtomicU64,
    /// The number of notifications given up.
    pub(crate) dead: AtomicU64,
}

#[cfg(test)]
mod tests {
    use headcount_domain::OrganizationId;

    use super::*;
    use crate::webhook::{SigningSecret, WebhookStatus};

    fn of(project: u64) -> HeldWebhook {
        let webhook = Webhook {
            id: WebhookId::random().unwrap(),
            organization: OrganizationId(1),
            project: ProjectId(project),
            url: "https://a.example/".to_owned(),
            events: Vec::new(),
            status: WebhookStatus::Active,
            created_at: Instant(1),
            created_after: 0,
            secret: SigningSecret::random().unwrap(),
            former: None,
        };
        HeldWebhook::new(webhook)
    }

    #[test]
    fn a_project_has_its_webhooks_until_they_are_removed() {
        let mut held = HeldWebhooks::default();
        let made = [of(1), of(2), of(1)];
        let ids = made.each_ref().map(|held| held.webhook.id.clone());
        made.into_iter().for_each(|one| held.insert(one));
        let found = |held: &HeldWebhooks, project: u64| -> BTreeSet<WebhookId> {
            held.of_project(ProjectId(project)).map(|held| held.webhook.id.clone()).collect()
        };
        assert_eq!(found(&held, 1), BTreeSet::from([ids[0].clone(), ids[2].clone()]));
        held.remove(&ids[0]);
        held.remove(&ids[0]);
        assert_eq!((found(&held, 1), held.has_of(ProjectId(1))), (BTreeSet::from([ids[2].clone()]), true));
        held.remove(&ids[2]);
        assert_eq!((found(&held, 1), held.has_of(ProjectId(1))), (BTreeSet::new(), false));
        assert_eq!((held.all().count(), held.has_of(ProjectId(2)), held.has_of(ProjectId(3))), (1, true, false));
    }
}
