//! The features of the program, a line for each.

use std::sync::Arc;
use std::time::Duration;

use headcount_actors::InstallFeature;
#[cfg(feature = "cluster")]
use headcount_actors::MovedKind;
use headcount_outbound::AllowList;
use headcount_privacy::PrivacySettings;
use headcount_profiles::BuildSettings;
use headcount_pushed::{MailSettings, PushSettings};
use headcount_webhooks::WebhookSettings;

/// Installs the features in an engine. They may reach the `allowed` private addresses and the mail
/// server. `works` if they work by themselves, as in a server; privacy requests always do.
pub(crate) fn install(
    (allowed, mail, public_url): (&AllowList, &Option<Arc<MailSettings>>, &Option<String>),
    export_retention: Duration,
    works: bool,
) -> Vec<InstallFeature> {
    let allowed = || allowed.clone();
    vec![
        headcount_privacy::install(PrivacySettings { export_retention, ..PrivacySettings::default() }),
        headcount_webhooks::install(WebhookSettings { sends: works, ..WebhookSettings::guarded(allowed()) }),
        headcount_pushed::install(PushSettings::guarded(allowed(), works).with_mail(mail.clone(), public_url.clone())),
        headcount_profiles::install(BuildSettings { builds: works, ..BuildSettings::guarded(allowed()) }),
    ]
}

/// The documents that move into a cluster, for people.
#[cfg(feature = "cluster")]
pub(crate) const MOVED_NAMES: &str = "company profiles, privacy requests, webhooks and states of alerts";

/// The same.
#[cfg(feature = "cluster")]
pub(crate) const MOVED: [MovedKind; 4] =
    [headcount_webhooks::MOVED, headcount_profiles::MOVED, headcount_privacy::MOVED, headcount_pushed::MOVED];
