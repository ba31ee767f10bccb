//! A run that builds a company profile, as it is stored.

use headcount_domain::{Instant, OrganizationId};
use serde::{Deserialize, Serialize};

use super::{Actor, Author, BuildRunId, CompanyProfileId};
use crate::Website;

/// The maximum number of kept runs of an organization, including runs in progress.
pub const MAX_BUILD_RUNS: usize = 10_000;
/// How often a run may be started. If the website itself stops the process, repeating the run after
/// each start would stop it forever.
pub(super) const MAX_BUILD_STARTS: u32 = 2;
/// How long a run is kept after its end.
const KEPT_MS: i64 = 30 * 24 * 60 * 60 * 1000;

/// A run that builds a company profile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BuildRun {
    /// Its id.
    pub id: BuildRunId,
    /// The organization.
    pub organization: OrganizationId,
    /// The website to read.
    pub website: Website,
    /// The profile to fill; `None` for the organization's own profile, which does not exist yet.
    pub profile: Option<CompanyProfileId>,
    /// The time of the request.
    pub at: Instant,
    /// The actor who requested it.
    pub actor: Actor,
    /// The id of the request.
    pub request_id: Option<String>,
    /// The price in Actions.
    pub price: u64,
    /// How often the run was about to read its website.
    #[serde(default)]
    pub starts: u32,
    /// The outcome of the run; `None` while it is in progress.
    pub outcome: Option<BuildOutcome>,
}

/// The outcome of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BuildOutcome {
    /// The time.
    pub at: Instant,
    /// The filled profile, or the error.
    pub result: Result<CompanyProfileId, BuildError>,
}

/// The error of a failed run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BuildError {
    /// A stable code, such as `dns_failed`.
    pub code: String,
    /// The reason in words.
    pub message: String,
    /// The URL that could not be read, if that is the error.
    pub url: Option<String>,
}

impl BuildRun {
    /// The number of Actions spent: none after a failure, since the price was refunded.
    pub fn spent(&self) -> u64 {
        if self.outcome.as_ref().is_some_and(|outcome| outcome.result.is_err()) { 0 } else { self.price }
    }

    /// Returns the actor who requested it, as the author of a change at `at`. The run continues
    /// even if the credential is revoked.
    pub fn author(&self, at: Instant) -> Author {
        Author { at, actor: self.actor.clone(), request_id: self.request_id.clone(), authority: None }
    }

    /// Whether it is in progress, or ended recently before `now`.
    pub(super) fn is_kept(&self, now: Instant) -> bool {
        self.outcome.as_ref().is_none_or(|outcome| now.0.saturating_sub(outcome.at.0) < KEPT_MS)
    }
}

/// A requested run.
#[derive(Debug, Clone)]
pub struct NewBuild {
    /// The organization.
    pub organization: OrganizationId,
    /// The website to read.
    pub website: Website,
    /// The profile to fill; `None` for the organization's own profile, which does not exist yet.
    pub profile: Option<CompanyProfileId>,
    /// The price in Actions.
    pub price: u64,
}
