//! The files of webhooks: `wh_….json` is the webhook with its secrets, `wh_….progress.json` how far it has come.

use std::io;
use std::path::{Path, PathBuf};

use headcount_storage::files::{
    PRIVATE_FILE, create_private_dir, list, read_if_there, remove_file, rename, sync_dir, write_atomically,
};
use serde::de::DeserializeOwned;

use super::delivery::DeliveryProgress;
use super::webhook::Webhook;
use crate::checked_json;
use crate::registry::WebhookId;

/// The directory of the webhooks in a data directory.
pub(crate) const WEBHOOKS_DIR: &str = "control/webhooks";
/// The version of the files.
const VERSION: u8 = 1;

/// See the module.
#[derive(Debug)]
pub(crate) struct WebhookFiles {
    dir: PathBuf,
}

impl WebhookFiles {
    /// Opens the directory, or creates it, and reads all webhooks. A damaged file is set aside: without a webhook's progress, it goes on from its creation.
    ///
    /// # Errors
    /// A file or the directory can't be read or written.
    pub(super) fn open(dir: &Path) -> io::Result<(Self, Vec<(Webhook, DeliveryProgress)>)> {
        create_private_dir(dir)?;
        let files = Self { dir: dir.to_owned() };
        let mut webhooks = Vec::new();
        for path in list(dir)? {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if name.ends_with(".tmp") {
                remove_file(&path)?;
            } else if let Some(id) = id_of(name, ".json")
                && let Some(webhook) = read::<Webhook>(&path)?.filter(|webhook| webhook.id == id)
            {
                let start = DeliveryProgress { done: webhook.created_after, ..DeliveryProgress::default() };
                let progress = read(&files.progress_path(&id))?.unwrap_or(start);
                webhooks.push((webhook, progress));
            }
        }
        Ok((files, webhooks))
    }

    fn path(&self, id: &WebhookId) -> PathBuf {
        self.dir.join(format!("{id}.json"))
    }

    fn progress_path(&self, id: &WebhookId) -> PathBuf {
        self.dir.join(format!("{id}.progress.json"))
    }

    /// Writes a webhook, durably.
    ///
    /// # Errors
    /// Any error of the operating system. The former or the new file is then there, complete.
    pub(super) fn write(&self, webhook: &Webhook) -> io::Result<()> {
        write_atomically(&self.path(&webhook.id), &checked_json::encode(VERSION, webhook)?, PRIVATE_FILE)
    }

    /// Writes how far a webhook has come, durably.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub(super) fn write_progress(&self, id: &WebhookId, progress: &DeliveryProgress) -> io::Result<()> {
        write_atomically(&self.progress_path(id), &checked_json::encode(VERSION, progress)?, PRIVATE_FILE)
    }

    /// Removes a webhook, durably.
    ///
    /// # Errors
    /// Any error of the operating system. The files may then be there or not.
    pub(super) fn remove(&self, id: &WebhookId) -> io::Result<()> {
        // The progress first: without its webhook, nobody would look for it.
        for path in [self.progress_path(id), self.path(id)] {
            match remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => sync_dir(&self.dir)?,
            }
        }
        Ok(())
    }

    /// Returns the names of the files in `dir` that a backup needs. Each is only ever replaced as a whole.
    pub(crate) fn names(dir: &Path) -> io::Result<Vec<String>> {
        let names = match list(dir) {
            Ok(paths) => paths.into_iter().filter_map(|path| path.file_name()?.to_str().map(str::to_owned)).collect(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error),
        };
        let is_needed = |name: &String| id_of(name, ".json").is_some() || id_of(name, ".progress.json").is_some();
        Ok(names.into_iter().filter(is_needed).collect())
    }
}

/// Reads a file, if there is one that is intact.
fn read<T: DeserializeOwned>(path: &Path) -> io::Result<Option<T>> {
    let Some(bytes) = read_if_there(path)? else { return Ok(None) };
    let content = checked_json::decode(VERSION, &bytes);
    if content.is_none() {
        tracing::error!(path = %path.display(), "a damaged file of a webhook was set aside");
        rename(path, &path.with_extension("json.damaged"))?;
    }
    Ok(content)
}

/// The id of the webhook in the file `name`.
fn id_of(name: &str, suffix: &str) -> Option<WebhookId> {
    name.strip_suffix(suffix)?.parse().ok()
}
