//! A run that builds a company profile, as stored.

use headcount_domain::ids::OrganizationId;
use headcount_domain::time::Instant;
use serde::{Deserialize, Serialize};

use super::{Actor, Author, BuildRunId, CompanyProfileId};
use crate::Website;

/// The most runs of an organization that are kept, those under way included.
pub const MAX_BUILD_RUNS: usize = 10_000;
/// How often a run is started. What stops the process may be the website itself, and a run that is repeated after each start would stop it for ever.
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
    /// The website that is read.
    /// The website to read.
    pub website: Website,
    /// The profile to fill; `None` for the organization's own, which is not there yet.
    pub profile: Option<CompanyProfileId>,
    /// When it was asked for.
    pub at: Instant,
    /// Who asked for it.
    pub actor: Actor,
    /// The id of the request.
    pub request_id: Option<String>,
    /// What it cost, in Actions.
    pub price: u64,
    /// How often its website was about to be read.
    #[serde(default)]
    pub starts: u32,
    /// How it ended; `None` while it is under way.
    pub outcome: Option<BuildOutcome>,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BuildOutcome {
    /// When.
    pub at: Instant,
    /// The profile that was filled, or why there is none.
    pub result: Result<CompanyProfileId, BuildError>,
}

/// Why a run failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BuildError {
    /// A stable code, such as `dns_failed`.
    pub code: String,
    /// The reason in words.
    pub message: String,
    /// The URL that could not be read, if that is the reason.
    pub url: Option<String>,
}

impl BuildRun {
    /// How many Actions it spent: none if it failed, since they were given back.
    #[must_use]
    pub fn spent(&self) -> u64 {
        if self.outcome.as_ref().is_some_and(|outcome| outcome.result.is_err()) { 0 } else { self.price }
    }

    /// Who asked for it, as the author of a change at `at`. The run goes on whatever becomes of the credential.
    pub fn author(&self, at: Instant) -> Author {
        Author { at, actor: self.actor.clone(), request_id: self.request_id.clone(), authority: None }
    }

    /// Whether it is under way, or ended not long before `now`.
    pub(super) fn is_kept(&self, now: Instant) -> bool {
        self.outcome.as_ref().is_none_or(|outcome| now.0.saturating_sub(outcome.at.0) < KEPT_MS)
    }
}

/// A run that is asked for.
#[derive(Debug, Clone)]
pub struct NewBuild {
    /// Who asks.
    pub organization: OrganizationId,
    /// The website to read.
    pub website: Website,
    /// The profile to fill; `None` for the organization's own, which is not there yet.
    pub profile: Option<CompanyProfileId>,
    /// The Actions that it costs.
    pub price: u64,
}
