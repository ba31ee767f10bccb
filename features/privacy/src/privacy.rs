//! Privacy requests as a feature of an engine.

use std::fmt::Display;
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

use headcount_actors::{EXPORTS_DIR, EngineParts, InstallFeature, SubjectKeys, Subjects};
use headcount_common::ControlError;
use headcount_control::Erasure;
use headcount_domain::OrganizationId;

use super::erasure_turns::ErasureTurns;
use super::recovery::AtStart;
use super::request::KIND;
use super::requests::PrivacyRequests;

/// How exports are made and kept.
#[derive(Debug, Clone)]
pub struct PrivacySettings {
    /// How long the artifact of an export is kept. Default 7 days.
    pub export_retention: Duration,
    /// The pauses after failed attempts of an export. Tests of all attempts set it.
    pub export_pauses: [Duration; 4],
}

impl Default for PrivacySettings {
    fn default() -> Self {
        Self { export_retention: Duration::from_secs(7 * 24 * 60 * 60), export_pauses: [1, 5, 30, 120].map(Duration::from_secs) }
    }
}

/// The privacy requests of an engine, and the work on them.
#[derive(Debug)]
pub struct Privacy {
    pub(crate) parts: EngineParts,
    pub(crate) subjects: Arc<dyn Subjects>,
    pub(crate) settings: PrivacySettings,
    pub(crate) requests: Arc<PrivacyRequests>,
    pub(crate) turns: ErasureTurns,
    pub(crate) thread: OnceLock<JoinHandle<()>>,
}

/// Makes privacy requests a feature of an engine.
#[must_use]
pub fn install(settings: PrivacySettings) -> InstallFeature {
    Arc::new(move |parts, subjects| Ok(Arc::new(Privacy::open(parts.clone(), subjects, settings.clone())?)))
}

impl Privacy {
    /// Opens the requests whose homes are on this machine.
    fn open(parts: EngineParts, subjects: Arc<dyn Subjects>, settings: PrivacySettings) -> Result<Self, ControlError> {
        let documents = parts.stores.documents(KIND).map_err(unopened)?;
        let exports = parts.data_dir().join(EXPORTS_DIR);
        let requests = PrivacyRequests::open(documents, parts.shared_owners(), &exports).map_err(unopened)?;
        let registry = parts.registry();
        let erasures: Vec<_> = registry.erasures().into_iter().filter(|erasure| !erasure.is_done).collect();
        let has_project = |project| registry.policy(project).is_some();
        let is_of = |organization| requests.is_home(organization);
        let known = AtStart { now: parts.known_now(), erasures: &erasures, is_of: &is_of, has_project: &has_project };
        requests.recover(&known).map_err(unopened)?;
        let (requests, turns) = (Arc::new(requests), ErasureTurns::default());
        Ok(Self { parts, subjects, settings, requests, turns, thread: OnceLock::new() })
    }

    /// The erasures of an organization that have one of these ids or addresses, also those that
    /// were lifted.
    pub(crate) fn erasures_with(&self, organization: OrganizationId, keys: &SubjectKeys) -> Vec<Erasure> {
        self.parts.registry().erasures_of(organization, |erasure| keys.are_of(erasure))
    }
}

fn unopened(error: impl Display) -> ControlError {
    ControlError::Documents(format!("the privacy requests can't be opened: {error}"))
}
