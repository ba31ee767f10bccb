//! Reads websites for builds of company profiles, with `headcount-research` over the guarded client
//! of `headcount-outbound`.

use std::time::{SystemTime, UNIX_EPOCH};

use headcount_actors::profiles::{ProfileFields, ProfileSource, ReadWebsite, SiteFindings, Website};
use headcount_control::BuildError;
use headcount_domain::time::Instant;
use headcount_outbound::url::Url;
use headcount_outbound::{AllowList, Outbound};
use headcount_research::{Facts, FetchedPage, Outcome, Research};

/// The maximum number of bytes of a stored URL or message.
const MAX_TEXT_BYTES: usize = 2_048;

/// Reads websites at globally reachable addresses, and at addresses that the operator allows.
#[derive(Debug)]
pub(crate) struct GuardedReader(Outbound);

impl GuardedReader {
    pub(crate) fn new(allowed: AllowList) -> Self {
        Self(Outbound::new(concat!("headcount/", env!("CARGO_PKG_VERSION")), allowed))
    }
}

impl ReadWebsite for GuardedReader {
    fn read(&self, website: &Website) -> SiteFindings {
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
        let Outcome { facts, pages } = Research::new(self.0.clone()).read(&home);
        let failure = pages.first().and_then(|home| {
            let error = home.error.as_ref()?;
            failed(error.code(), error.to_string(), &home.url)
        });
        let Facts { name, description, industry, logo_url, social, emails, technologies } = facts;
        let fields = ProfileFields { name, description, industry, logo_url, social, emails, technologies };
        SiteFindings { fields, sources: pages.into_iter().map(source).collect(), failure }
    }
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
