//! Changes of webhooks, and their progress. Every engine has all webhooks. The owner of a project
//! sends its notifications, and the next owner continues.

use std::io;

use headcount_actors::Feature as _;
use headcount_common::{DocumentItem as _, DocumentsError, checked_json, follow_made};
use headcount_control::{Author, PlannedChange, Result, Secret, TargetType, WebhookId};
use headcount_domain::{Instant, ProjectId};

use crate::held::HeldWebhook;
use crate::progress::{DeliveryProgress, most_deliveries};
use crate::request::secret_of;
use crate::store::Webhooks;
use crate::webhook::{SigningSecret, Webhook};

impl Webhooks {
    pub(crate) fn hold(&self, id: &WebhookId, webhook: Option<Webhook>) {
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
        self.notified(project);
    }

    /// Generates a secret: the number that is stored, and the secret for its owner.
    pub(crate) fn new_secret(&self) -> Result<(SigningSecret, Secret)> {
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
        plan: impl Fn() -> Result<Option<PlannedChange<Webhook>>>,
    ) -> Result<Option<Webhook>> {
        let documents = (&self.items, TargetType::Webhook);
        let put = |expected, id: &WebhookId, webhook: Option<&Webhook>| self.put(expected, id, webhook);
        self.parts.registry().change_document(documents, author, || self.follow(), plan, put)
    }

    /// Writes or removes a webhook. Returns `false` if another change came first.
    fn put(&self, expected: u64, id: &WebhookId, webhook: Option<&Webhook>) -> Result<bool> {
        // A removed webhook gets no more progress.
        let _no_progress = webhook.is_none().then(|| self.saving.lock());
        if !self.items.put(expected, id, webhook)? {
            return Ok(false);
        }
        self.items.propagate(follow_made(|| self.follow())?);
        if webhook.is_none()
            && let Err(error) = self.progress.remove(&id.to_string())
        {
            tracing::warn!(webhook = %id, %error, "the progress of a webhook that is removed could not be removed");
        }
        Ok(true)
    }

    /// The project of a webhook.
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
}

/// Forgets the progress of a webhook until it is read again.
pub(crate) fn forget(held: &mut HeldWebhook) {
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
