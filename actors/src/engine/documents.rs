//! Where an engine keeps its documents: company profiles, webhooks and privacy requests.

use std::io;
use std::path::Path;
use std::sync::Arc;

use headcount_common::local::{CopiedDocuments, LocalDocuments, LocalValues};
use headcount_common::secrets::Secrets;
use headcount_common::{Documents, Owners, SharedValues};
use headcount_control::{Registry, RegistryError};
use headcount_domain::time::Instant;

use super::config::{EngineConfig, OpenError};
use crate::privacy::{AtStart, EXPORTS_DIR, PRIVACY_DIR, PrivacyRequests};
use crate::profiles::{CompanyProfiles, PROFILES_DIR};
use crate::webhooks::{PROGRESS_SUFFIX, WEBHOOKS_DIR, Webhooks};

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
    /// Opens the stores of one machine: files of its data directory.
    pub(super) fn local(dir: &Path) -> Result<Self, OpenError> {
        let open = |part: &'static str, what| LocalDocuments::open(&dir.join(part)).map(Arc::new).map_err(failed(what));
        let (profiles, webhooks) = (open(PROFILES_DIR, "company profiles")?, open(WEBHOOKS_DIR, "webhooks")?);
        // After the documents: a value without one is removed.
        let deliveries = LocalValues::open(&dir.join(WEBHOOKS_DIR), PROGRESS_SUFFIX).map_err(failed("webhooks"))?;
        Ok(Self { profiles, webhooks, deliveries: Arc::new(deliveries), privacy: open(PRIVACY_DIR, "privacy requests")? })
    }

    /// Adds a copy of the company profiles in a data directory, because the page reads them often.
    ///
    /// # Errors
    /// The directory can't be emptied.
    pub fn copied_to(self, dir: &Path) -> Result<Self, OpenError> {
        let copy = CopiedDocuments::new(self.profiles, &dir.join(PROFILES_DIR)).map_err(failed("company profiles"))?;
        Ok(Self { profiles: Arc::new(copy), ..self })
    }
}

/// The items that documents keep.
pub(crate) struct OpenedItems {
    pub(crate) profiles: CompanyProfiles,
    pub(crate) webhooks: Webhooks,
    pub(crate) privacy: PrivacyRequests,
}

impl EngineDocuments {
    /// Opens the items of the partitions on this machine, which are all of them on a single
    /// machine.
    pub(super) fn open(
        self,
        config: &EngineConfig,
        owners: &Arc<Owners>,
        (registry, secrets): (&Registry, &Secrets),
        now: Instant,
    ) -> Result<OpenedItems, OpenError> {
        let privacy = open_privacy_requests(self.privacy, (config, owners, registry), now)?;
        let webhooks = Webhooks::new((self.webhooks, self.deliveries), secrets.signer().clone());
        let profiles = CompanyProfiles::new(self.profiles);
        if owners.here().next().is_some() {
            let unread = |error| OpenError::Directory(format!("webhooks or company profiles can't be read: {error}"));
            webhooks.follow().and_then(|_| profiles.follow()).map_err(unread)?;
        }
        Ok(OpenedItems { profiles, webhooks, privacy })
    }
}

fn open_privacy_requests(
    documents: Arc<dyn Documents>,
    (config, owners, registry): (&EngineConfig, &Arc<Owners>, &Registry),
    now: Instant,
) -> Result<PrivacyRequests, OpenError> {
    let unopened = |error: RegistryError| OpenError::Directory(format!("the privacy requests can't be opened: {error}"));
    let exports = config.data_dir.join(EXPORTS_DIR);
    let requests = PrivacyRequests::open(documents, Arc::clone(owners), &exports).map_err(|error| unopened(error.into()))?;
    let erasures: Vec<_> = registry.erasures().into_iter().filter(|erasure| !erasure.is_done).collect();
    let has_project = |project| registry.policy(project).is_some();
    let is_of = |organization| requests.is_home(organization);
    requests.recover(&AtStart { now, erasures: &erasures, is_of: &is_of, has_project: &has_project }).map_err(unopened)?;
    Ok(requests)
}

fn failed(what: &'static str) -> impl Fn(io::Error) -> OpenError {
    move |error| OpenError::Directory(format!("the {what} can't be opened: {error}"))
}
