//! The features of the program, a line for each.

use headcount_actors::InstallFeature;
#[cfg(feature = "cluster")]
use headcount_actors::MovedKind;
use headcount_profiles::BuildSettings;
use headcount_webhooks::WebhookSettings;

use crate::config::Settings;

/// Installs the features in an engine. `works` if they work by themselves, as in a server.
pub(crate) fn install(settings: &Settings, works: bool) -> Vec<InstallFeature> {
    let allowed = || settings.outbound_allow.clone();
    vec![
        headcount_webhooks::install(WebhookSettings { sends: works, ..WebhookSettings::guarded(allowed()) }),
        headcount_profiles::install(BuildSettings { builds: works, ..BuildSettings::guarded(allowed()) }),
    ]
}

/// The documents that move into a cluster.
#[cfg(feature = "cluster")]
pub(crate) const MOVED: [MovedKind; 2] = [headcount_webhooks::MOVED, headcount_profiles::MOVED];
