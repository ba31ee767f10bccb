//! The interface to read websites for builds of profiles.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use headcount_control::{BuildError, Website};

use super::profile::{ProfileFields, ProfileSource};

/// The facts that a website gives about its company.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SiteFindings {
    /// The facts.
    pub fields: ProfileFields,
    /// The fetched pages, the home page first.
    pub sources: Vec<ProfileSource>,
    /// The reason why the home page could not be read. There are no facts then.
    pub failure: Option<BuildError>,
}

/// Reads websites. The method blocks.
pub trait ReadWebsite: Send + Sync + 'static {
    /// Reads a website, in little more than [`ResearchSettings::timeout`].
    fn read(&self, website: &Website) -> SiteFindings;
}

/// The settings of builds.
#[derive(Clone)]
pub struct ResearchSettings {
    /// The reader of websites.
    pub reader: Arc<dyn ReadWebsite>,
    /// How long reading a website may take.
    pub timeout: Duration,
    /// Whether websites are read. Commands on a stopped data directory read none.
    pub builds: bool,
}

impl ResearchSettings {
    /// Creates settings with a limit of a minute for each build.
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
