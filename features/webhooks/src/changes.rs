//! Changes of webhooks, and their progress. Every engine has all webhooks. The owner of a project
//! sends its notifications, and the next owner continues.

use std::collections::BTreeMap;
use std::io;

use headcount_common::{ControlError, DocumentItem as _, DocumentSet, DocumentsError, checked_json, follow_made, partition_of};
use headcount_control::{AuditAction, AuditTarget, Author, FieldChange, RegistryError, Secret, TargetType, WebhookId};
use headcount_domain::ids::{OrganizationId, ProjectId};
use headcount_domain::intake::event::Position;
use headcount_domain::time::Instant;

use crate::held::HeldWebhook;
use crate::progress::{DeliveryProgress, most_deliveries};
use crate::request::secret_of;
use crate::store::Webhooks;
use crate::webhook::{PlannedWebhook, SigningSecret, Webhook};

impl Webhooks {
    /// Applies the changes of other nodes up to now. Returns the number of the last change.
    ///
    /// # Errors
    /// Returns a [`ControlError`]: changes applied before the failure stay.
    pub(crate) fn follow_changes(&self) -> Result<u64, ControlError> {
        self.items.follow(|id, webhook| {
            self.hold(id, webhook);
            Ok(())
        })
    }

    fn hold(&self, id: &WebhookId, webhook: Option<Webhook>) {
        let mut held = self.held.write();
        let Some(webhook) = webhook else { return held.remove(id) };
        let project = webhook.project;
        match held.get_mut(id) {
            Some(held) => held.webhook = webhook,
            None => {
                held.insert(HeldWebhook::new(webhook));
            }
        }
        drop(held);
        self.wake(project);
    }

    /// Generates a secret: the number that is stored, and the secret for its owner.
    pub(crate) fn new_secret(&self) -> Result<(SigningSecret, Secret), RegistryError> {
        let number = SigningSecret::random()?;
        let shown = secret_of(self.parts.signer(), &number);
        Ok((number, shown))
    }

    /// The secrets that sign at `now`, the current one first.
    pub(crate) fn secrets_of(&self, webhook: &Webhook, now: Instant) -> Vec<SigningSecret> {
        let signer = self.parts.signer();
        webhook.secrets(now).iter().map(|number| SigningSecret::of(&secret_of(signer, number))).collect()
    }

    /// Makes the change that `plan` returns for the current webhooks; `None` means no change. If
    /// another node's change comes first, `plan` is called again.
    pub(crate) fn make(
        &self,
        author: &Author,
        plan: impl Fn() -> Result<Option<PlannedWebhook>, RegistryError>,
    ) -> Result<Option<Webhook>, RegistryError> {
        let mut noted = None;
        let attempt = |expected| {
            let Some(PlannedWebhook { id, organization, webhook, action, changes }) = plan()? else {
                // Another node may have made the change just now, and wait for other nodes.
                self.items.propagate(expected);
                return Ok(Some(None));
            };
            if noted.as_ref() != Some(&changes) {
                self.note(organization, &id, (action, changes.clone()), author)?;
                noted = Some(changes);
            }
            Ok(self.put(expected, &id, webhook.as_ref())?.then_some(webhook))
        };
        DocumentSet::<Webhook>::attempt(|| self.follow_changes(), attempt)
    }

    /// Records in the audit log, durably, that a webhook is about to change.
    pub(crate) fn note(
        &self,
        organization: OrganizationId,
        id: &WebhookId,
        (action, changes): (AuditAction, BTreeMap<String, FieldChange>),
        author: &Author,
    ) -> Result<(), RegistryError> {
        let target = AuditTarget { kind: TargetType::Webhook, id: id.to_string() };
        self.parts.registry().note_document_change(organization, target, action, changes, author)
    }

    /// Writes or removes a webhook. Returns `false` if another change came first.
    fn put(&self, expected: u64, id: &WebhookId, webhook: Option<&Webhook>) -> Result<bool, RegistryError> {
        // A removed webhook gets no more progress.
        let _no_progress = webhook.is_none().then(|| self.saving.lock());
        if !self.items.put(expected, id, webhook)? {
            return Ok(false);
        }
        self.items.propagate(follow_made(|| self.follow_changes())?);
        if webhook.is_none()
            && let Err(error) = self.progress.remove(&id.to_string())
        {
            tracing::warn!(webhook = %id, %error, "the progress of a webhook that is removed could not be removed");
        }
        Ok(true)
    }

    /// The project of a webhook.
    #[must_use]
    pub fn project_of(&self, id: &WebhookId) -> Option<ProjectId> {
        self.held.read().get(id).map(|held| held.webhook.project)
    }

    /// Whether [`Self::load`] has to be called before sending.
    pub(crate) fn is_to_load(&self, id: &WebhookId) -> bool {
        self.held.read().get(id).is_some_and(|held| held.cursor.is_none())
    }

    /// Continues from the progress of the project's former owner, unless that is done. Blocks.
    ///
    /// # Errors
    /// The progress can't be read.
    pub(crate) fn load(&self, id: &WebhookId) -> io::Result<()> {
        let generation = match self.held.read().get(id) {
            Some(HeldWebhook { cursor: None, generation, .. }) => *generation,
            _ => return Ok(()),
        };
        let found = self.progress.read(&id.to_string()).map_err(io::Error::other)?;
        let revision = found.as_ref().map_or(0, |(_, revision)| *revision);
        let decoded = found.map(|(bytes, _)| checked_json::decode::<DeliveryProgress>(DeliveryProgress::VERSION, &bytes));
        if matches!(decoded, Some(None)) {
            tracing::error!(webhook = %id, "the progress of a webhook can't be read; everything since it was made is sent again");
        }
        if let Some(held) = self.held.write().get_mut(id).filter(|held| held.generation == generation && held.cursor.is_none()) {
            held.progress = decoded.flatten().unwrap_or_else(|| DeliveryProgress::of(&held.webhook));
            held.cursor = Some(revision);
            if held.lost_after.is_some_and(|until| held.progress.cut_after(until)) {
                // Saved before another owner continues from it.
                held.unsaved_since = Some(Instant(0));
            }
        }
        Ok(())
    }

    /// Writes the progress of a webhook, durably.
    ///
    /// # Errors
    /// It may still have been written.
    pub(crate) fn write_progress(&self, id: &WebhookId, progress: &DeliveryProgress) -> io::Result<()> {
        let not_read = || io::Error::other("how far it has come is not read yet");
        let revision = self.held.read().get(id).and_then(|held| held.cursor).ok_or_else(not_read)?;
        let bytes =
            checked_json::encode(DeliveryProgress::VERSION, &progress.shortened(most_deliveries(self.progress.max_bytes())))?;
        let written = self.progress.write(&id.to_string(), &bytes, revision);
        if let Some(held) = self.held.write().get_mut(id).filter(|held| held.cursor == Some(revision)) {
            match &written {
                Ok(revision) => (held.cursor, held.lost_after) = (Some(*revision), None),
                // The progress is only in memory.
                Err(DocumentsError::Unavailable(_)) => {}
                // Another owner has continued, or the answer was lost. The stored progress is read
                // again.
                Err(_) => forget(held),
            }
        }
        written.map(drop).map_err(io::Error::other)
    }

    /// Saves the progress of a partition's webhooks, if that succeeds at once, and forgets it:
    /// another machine takes the partition over, or this one again. Blocks.
    pub(crate) fn give_up(&self, partition: u16) {
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

    /// Makes the webhooks of a partition begin at the progress of its former owner, but not after
    /// `until`, the current end of the log. Blocks.
    pub(crate) fn take_over(&self, partition: u16, until: Position) {
        self.give_up(partition);
        let mut held = self.held.write();
        let of_partition = held.all_mut().filter(|held| partition_of(held.webhook.project) == partition);
        of_partition.for_each(|held| held.lost_after = Some(until));
    }

    /// Resumes the webhooks of a partition that was taken over.
    pub(crate) fn wake_partition(&self, partition: u16) {
        let held = self.held.read();
        let projects: Vec<_> =
            held.all().map(|held| held.webhook.project).filter(|project| partition_of(*project) == partition).collect();
        drop(held);
        projects.into_iter().for_each(|project| self.wake(project));
    }
}

/// Forgets the progress of a webhook until it is read again.
fn forget(held: &mut HeldWebhook) {
    held.progress = DeliveryProgress::of(&held.webhook);
    held.cursor = None;
    held.unsaved_since = None;
    held.generation += 1;
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use headcount_actors::{Engine, EngineConfig};
    use headcount_storage::files::switch::{Plan, Switch};

    use crate::install;
    use crate::request::WebhookSettings;
    use crate::webhook::NewWebhook;

    use super::*;

    fn open(dir: &Path) -> (Engine, Arc<Webhooks>) {
        let settings = WebhookSettings::new(Arc::new(|url| Ok(url.to_owned())), Arc::new(|_| Ok(200)));
        let mut config = EngineConfig::new(dir);
        config.min_free_bytes = 0;
        config.features = vec![install(WebhookSettings { sends: false, ..settings })];
        let engine = Engine::open(config).unwrap();
        let webhooks = engine.feature().unwrap();
        (engine, webhooks)
    }

    #[test]
    fn progress_that_can_not_be_written_stays_in_memory_until_it_can() {
        let home = tempfile::tempdir().unwrap();
        let (engine, webhooks) = open(home.path());
        let now = Instant(1_700_000_000_000);
        let keys = engine.registry().initialize(now).unwrap();
        let new = NewWebhook { project: keys.project_id, url: "https://a.example/".to_owned(), events: None };
        let id = webhooks.create(keys.organization_id, new, now).unwrap().0.id;
        webhooks.load(&id).unwrap();
        let generation = webhooks.outlook(&id).unwrap().generation;
        webhooks.passed((&id, generation), 7, now);
        let switch = Switch::arm(&home.path().join("control/webhooks"), Plan { at: 1, failures: 1, ..Plan::default() });
        webhooks.write_unsaved(now, true);
        assert_eq!(switch.failed().len(), 1);
        drop(switch);
        let outlook = webhooks.outlook(&id).unwrap();
        assert_eq!((outlook.done, outlook.generation, webhooks.is_unsaved()), (7, generation, true));
        webhooks.write_unsaved(now, true);
        assert!(!webhooks.is_unsaved());
        drop((engine, webhooks));
        let (_engine, again) = open(home.path());
        again.load(&id).unwrap();
        assert_eq!(again.outlook(&id).unwrap().done, 7);
    }
}
