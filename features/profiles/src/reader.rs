//! Reads websites for builds of profiles, and the settings of builds.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use headcount_control::{BuildError, Website};
use headcount_outbound::url::Url;
use headcount_outbound::{AllowList, Outbound};

use crate::research::{Research, SiteFindings, short};

/// Reads a website, in little more than [`BuildSettings::timeout`]. Blocks.
pub type ReadWebsite = Arc<dyn Fn(&Website) -> SiteFindings + Send + Sync>;

/// The settings of builds.
#[derive(Clone)]
pub struct BuildSettings {
    /// The reader of websites.
    pub read: ReadWebsite,
    /// How long reading a website may take.
    pub timeout: Duration,
    /// Whether websites are read. Commands on a stopped data directory read none.
    pub builds: bool,
}

impl BuildSettings {
    /// Creates settings with a limit of a minute for each build.
    pub fn new(read: ReadWebsite) -> Self {
        Self { read, timeout: Duration::from_secs(60), builds: true }
    }

    /// Settings with which websites at globally reachable addresses are read, and at addresses that
    /// the operator allows.
    pub fn guarded(allowed: AllowList) -> Self {
        let client = Outbound::new(concat!("headcount/", env!("CARGO_PKG_VERSION")), allowed);
        Self::new(Arc::new(move |website| read(&client, website)))
    }
}

impl fmt::Debug for BuildSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BuildSettings").field("timeout", &self.timeout).finish_non_exhaustive()
    }
}

fn read(client: &Outbound, website: &Website) -> SiteFindings {
    match Url::parse(&website.to_string()) {
        Ok(home) => Research::new(client.clone()).read(&home),
        Err(error) => {
            let (code, url) = ("invalid_url".to_owned(), Some(short(&website.to_string())));
            let failure = Some(BuildError { code, message: short(&error.to_string()), url });
            SiteFindings { failure, ..SiteFindings::default() }
        }
    }
}
