//! The files of webhooks: `wh_….json` is the webhook with its secrets, `wh_….progress.json` how far it has come.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use headcount_common::checked_files::{CheckedFiles, Filed};
use headcount_control::WebhookId;

use super::delivery::DeliveryProgress;
use super::webhook::Webhook;

/// The directory of the webhooks in a data directory.
pub(crate) const WEBHOOKS_DIR: &str = "control/webhooks";

impl Filed for Webhook {
    type Id = WebhookId;
    const WHAT: &'static str = "webhook";

    fn is_of(&self, id: &WebhookId) -> bool {
        self.id == *id
    }
}

impl Filed for DeliveryProgress {
    type Id = WebhookId;
    const WHAT: &'static str = "webhook's progress";
    const SUFFIX: &'static str = ".progress.json";

    fn is_of(&self, _: &WebhookId) -> bool {
        true
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct WebhookFiles {
    webhooks: CheckedFiles<Webhook>,
    progress: CheckedFiles<DeliveryProgress>,
}

impl WebhookFiles {
    /// Opens the directory, or creates it, and reads all webhooks. Without its progress, which may be damaged, a webhook goes on from its creation.
    ///
    /// # Errors
    /// A file or the directory can't be read or written.
    pub(super) fn open(dir: &Path) -> io::Result<(Self, Vec<(Webhook, DeliveryProgress)>)> {
        let (mut webhooks, mut progress) = (Vec::new(), BTreeMap::new());
        let files = Self {
            webhooks: CheckedFiles::open(dir, |_, webhook| webhooks.push(webhook))?,
            progress: CheckedFiles::open(dir, |id, of_one| drop(progress.insert(id, of_one)))?,
        };
        let with_progress = |webhook: Webhook| {
            let start = DeliveryProgress { done: webhook.created_after, ..DeliveryProgress::default() };
            let progress = progress.remove(&webhook.id).unwrap_or(start);
            (webhook, progress)
        };
        let webhooks = webhooks.into_iter().map(with_progress).collect();
        for id in progress.keys() {
            // Of a removal that was cut short. One who mends a damaged webhook needs it.
            if !files.webhooks.is_set_aside(id)? {
                files.progress.remove(id)?;
            }
        }
        Ok((files, webhooks))
    }

    /// Writes a webhook, durably.
    ///
    /// # Errors
    /// Any error of the operating system. The former or the new file is then there, complete.
    pub(super) fn write(&self, webhook: &Webhook) -> io::Result<()> {
        self.webhooks.write(&webhook.id, webhook)
    }

    /// Writes how far a webhook has come, durably.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub(super) fn write_progress(&self, id: &WebhookId, progress: &DeliveryProgress) -> io::Result<()> {
        self.progress.write(id, progress)
    }

    /// Removes a webhook, durably.
    ///
    /// # Errors
    /// Any error of the operating system. The files may then be there or not.
    pub(super) fn remove(&self, id: &WebhookId) -> io::Result<()> {
        // The webhook first: without its progress, it would send everything again.
        self.webhooks.remove(id)?;
        self.progress.remove(id)
    }

    /// Returns the names of the files in `dir` that a backup needs. Each is only ever replaced as a whole.
    ///
    /// # Errors
    /// The directory can't be read.
    pub(crate) fn names(dir: &Path) -> io::Result<Vec<String>> {
        let mut names = CheckedFiles::<Webhook>::names(dir)?;
        names.extend(CheckedFiles::<DeliveryProgress>::names(dir)?);
        Ok(names)
    }
}
