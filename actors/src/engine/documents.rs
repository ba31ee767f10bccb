//! Opens the privacy requests of an engine.

use std::fmt::Display;
use std::sync::Arc;

use headcount_common::{DocumentStores, Owners};
use headcount_control::Registry;
use headcount_domain::time::Instant;

use super::config::{EngineConfig, OpenError};
use crate::privacy::{AtStart, EXPORTS_DIR, PRIVACY_KIND, PrivacyRequests};

/// Opens the privacy requests of the partitions on this machine.
pub(super) fn open_privacy_requests(
    stores: &dyn DocumentStores,
    (config, owners, registry): (&EngineConfig, &Arc<Owners>, &Registry),
    now: Instant,
) -> Result<PrivacyRequests, OpenError> {
    let documents = stores.documents(PRIVACY_KIND).map_err(unopened)?;
    let requests = PrivacyRequests::open(documents, Arc::clone(owners), &config.data_dir.join(EXPORTS_DIR)).map_err(unopened)?;
    let erasures: Vec<_> = registry.erasures().into_iter().filter(|erasure| !erasure.is_done).collect();
    let has_project = |project| registry.policy(project).is_some();
    let is_of = |organization| requests.is_home(organization);
    requests.recover(&AtStart { now, erasures: &erasures, is_of: &is_of, has_project: &has_project }).map_err(unopened)?;
    Ok(requests)
}

fn unopened(error: impl Display) -> OpenError {
    OpenError::Directory(format!("the privacy requests can't be opened: {error}"))
}
