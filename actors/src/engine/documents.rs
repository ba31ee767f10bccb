//! Where an engine keeps its documents: company profiles, webhooks and privacy requests.

use std::io;
use std::path::Path;
use std::sync::Arc;

use headcount_common::local::{CopiedDocuments, LocalDocuments, LocalValues};
use headcount_common::{Documents, SharedValues};

use super::config::OpenError;
use crate::privacy::PRIVACY_DIR;
use crate::profiles::PROFILES_DIR;
use crate::webhooks::{PROGRESS_SUFFIX, WEBHOOKS_DIR};

/// The documents of an engine, by kind.
#[derive(Debug, Clone)]
pub struct EngineDocuments {
    /// The company profiles.
    pub profiles: Arc<dyn Documents>,
    /// The webhooks.
    pub webhooks: Arc<dyn Documents>,
    /// How far the deliveries of each webhook have come.
    pub deliveries: Arc<dyn SharedValues>,
    /// The privacy requests.
    pub privacy: Arc<dyn Documents>,
}

impl EngineDocuments {
    /// Opens those of one machine: files of its data directory.
    pub(super) fn local(dir: &Path) -> Result<Self, OpenError> {
        let open = |part: &'static str, what| LocalDocuments::open(&dir.join(part)).map(Arc::new).map_err(failed(what));
        let (profiles, webhooks) = (open(PROFILES_DIR, "company profiles")?, open(WEBHOOKS_DIR, "webhooks")?);
        // After the documents: a value without one is removed.
        let deliveries = LocalValues::open(&dir.join(WEBHOOKS_DIR), PROGRESS_SUFFIX).map_err(failed("webhooks"))?;
        Ok(Self { profiles, webhooks, deliveries: Arc::new(deliveries), privacy: open(PRIVACY_DIR, "privacy requests")? })
    }

    /// The same documents, with a copy of the company profiles in a data directory: the page reads them often.
    pub(super) fn copied_to(self, dir: &Path) -> Result<Self, OpenError> {
        let copy = CopiedDocuments::new(self.profiles, &dir.join(PROFILES_DIR)).map_err(failed("company profiles"))?;
        Ok(Self { profiles: Arc::new(copy), ..self })
    }
}

fn failed(what: &'static str) -> impl Fn(io::Error) -> OpenError {
    move |error| OpenError::Directory(format!("the {what} can't be opened: {error}"))
}
