//! Opens the company profiles and the privacy requests of an engine.

use std::sync::Arc;

use headcount_common::{DocumentStores, PARTITIONS};
use headcount_control::Registry;
use headcount_domain::time::Instant;

use super::config::{EngineConfig, OpenError};
use crate::privacy::{AtStart, EXPORTS_DIR, PRIVACY_KIND, PrivacyRequests};
use crate::profiles::{CompanyProfiles, PROFILES_KIND};

/// The items that documents keep.
pub(crate) struct OpenedItems {
    pub(crate) profiles: CompanyProfiles,
    pub(crate) privacy: PrivacyRequests,
}

/// Opens the items of the partitions on this machine, which are all of them on a single machine.
pub(super) fn open_items(
    stores: &dyn DocumentStores,
    config: &EngineConfig,
    registry: &Registry,
    now: Instant,
) -> Result<OpenedItems, OpenError> {
    let privacy = open_privacy_requests(stores, (config, registry), now)?;
    let profiles = stores.copied_documents(PROFILES_KIND, &config.data_dir).map_err(failed("company profiles"))?;
    let profiles = CompanyProfiles::new(profiles);
    if (0..PARTITIONS).any(|partition| config.owners.is_here(partition)) {
        profiles.follow().map_err(|error| OpenError::Directory(format!("company profiles can't be read: {error}")))?;
    }
    Ok(OpenedItems { profiles, privacy })
}

fn open_privacy_requests(
    stores: &dyn DocumentStores,
    (config, registry): (&EngineConfig, &Registry),
    now: Instant,
) -> Result<PrivacyRequests, OpenError> {
    let documents = stores.documents(PRIVACY_KIND).map_err(failed("privacy requests"))?;
    let unopened = failed("privacy requests");
    let (owners, exports) = (Arc::clone(&config.owners), config.data_dir.join(EXPORTS_DIR));
    let requests = PrivacyRequests::open(documents, owners, &exports).map_err(&unopened)?;
    let erasures: Vec<_> = registry.erasures().into_iter().filter(|erasure| !erasure.is_done).collect();
    let has_project = |project| registry.policy(project).is_some();
    let is_of = |organization| requests.is_home(organization);
    let recovered = requests.recover(&AtStart { now, erasures: &erasures, is_of: &is_of, has_project: &has_project });
    recovered.map_err(failed("privacy requests"))?;
    Ok(requests)
}

fn failed<E: std::fmt::Display>(what: &'static str) -> impl Fn(E) -> OpenError {
    move |error| OpenError::Directory(format!("the {what} can't be opened: {error}"))
}
