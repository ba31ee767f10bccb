//! Reads websites for builds of profiles, and the settings of builds.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use headcount_control::{BuildError, Website};
use headcount_domain::time::Instant;
use headcount_outbound::url::Url;
use headcount_outbound::{AllowList, Outbound};

use crate::profile::ProfileSource;
use crate::research::{FetchedPage, Outcome, ProfileFields, Research};

/// The maximum number of bytes of a stored URL or message.
const MAX_TEXT_BYTES: usize = 2_048;

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
    #[must_use]
    pub fn new(read: ReadWebsite) -> Self {
        Self { read, timeout: Duration::from_secs(60), builds: true }
    }

    /// Settings with which websites at globally reachable addresses are read, and at addresses that
    /// the operator allows.
    #[must_use]
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
    let failed = |code: &str, message: String, url: &str| {
        Some(BuildError { code: code.to_owned(), message: short(&message), url: Some(short(url)) })
    };
    let home = match Url::parse(&website.to_string()) {
        Ok(home) => home,
        Err(error) => {
            let failure = failed("invalid_url", error.to_string(), &website.to_string());
            return SiteFindings { failure, ..SiteFindings::default() };
        }
    };
    let Outcome { facts, pages } = Research::new(client.clone()).read(&home);
    let failure = pages.first().and_then(|home| {
        let error = home.error.as_ref()?;
        failed(error.code(), error.to_string(), &home.url)
    });
    SiteFindings { fields: facts, sources: pages.into_iter().map(source).collect(), failure }
}

fn source(page: FetchedPage) -> ProfileSource {
    let FetchedPage { url, fetched_at, status, error } = page;
    let error = error.map(|error| error.code().to_owned());
    ProfileSource { url: short(&url), fetched_at: instant(fetched_at), status, error }
}

fn instant(time: SystemTime) -> Instant {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    Instant(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

fn short(text: &str) -> String {
    let end = (0..=text.len().min(MAX_TEXT_BYTES)).rev().find(|end| text.is_char_boundary(*end));
    text[..end.unwrap_or_default()].to_owned()
}
