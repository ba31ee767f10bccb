//! What reads websites for builds of profiles.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use headcount_control::{BuildError, Website};

use super::profile::{ProfileFields, ProfileSource};

/// What a website tells of its company.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SiteFindings {
    /// What was found.
    pub fields: ProfileFields,
    /// The pages that were asked for, the home page first.
    pub sources: Vec<ProfileSource>,
    /// Why the home page could not be read. Then nothing was found.
    pub failure: Option<BuildError>,
}

/// Reads websites. The method blocks.
pub trait ReadWebsite: Send + Sync + 'static {
    /// Reads a website, in about as long as [`ResearchSettings::timeout`] at most.
    fn read(&self, website: &Website) -> SiteFindings;
}

/// How profiles are built.
#[derive(Clone)]
pub struct ResearchSettings {
    /// What reads websites.
    pub reader: Arc<dyn ReadWebsite>,
    /// How long reading a website may take.
    pub timeout: Duration,
    /// Whether websites are read. Commands on a stopped data directory don't.
    pub builds: bool,
}

impl ResearchSettings {
    /// Builds that take up to a minute each.
    #[must_use]
    pub fn new(reader: Arc<dyn ReadWebsite>) -> Self {
        Self { reader, timeout: Duration::from_secs(60), builds: true }
    }
}

impl fmt::Debug for ResearchSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResearchSettings").field("timeout", &self.timeout).finish_non_exhaustive()
    }
}
