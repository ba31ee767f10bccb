//! The features of the program, a line for each.

use headcount_actors::InstallFeature;
#[cfg(feature = "cluster")]
use headcount_actors::MovedKind;
use headcount_outbound::AllowList;
use headcount_profiles::BuildSettings;
use headcount_webhooks::WebhookSettings;

/// Installs the features in an engine. They may reach the `allowed` private addresses. `works` if
/// they work by themselves, as in a server.
pub(crate) fn install(allowed: &AllowList, works: bool) -> Vec<InstallFeature> {
    let allowed = || allowed.clone();
    vec![
        headcount_webhooks::install(WebhookSettings { sends: works, ..WebhookSettings::guarded(allowed()) }),
        headcount_profiles::install(BuildSettings { builds: works, ..BuildSettings::guarded(allowed()) }),
    ]
}

/// The documents that move into a cluster.
#[cfg(feature = "cluster")]
pub(crate) const MOVED: [MovedKind; 2] = [headcount_webhooks::MOVED, headcount_profiles::MOVED];
