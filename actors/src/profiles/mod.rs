//! Company profiles: an organization's description of itself and of other companies.
//!
//! A profile is a file, which is only ever replaced as a whole. Memory holds the index to find it:
//! its website and its age.

mod build_queue;
mod builds;
mod profile;
mod research;
mod store;

pub use build_queue::BuildFigures;
pub use builds::{BuildRequest, ProfileBuild};
pub use headcount_control::Website;
pub use profile::{
    CompanyProfile, MAX_PROFILE_ENTRIES, NewCompanyProfile, ProfileFields, ProfileKind, ProfilePatch, ProfileSource,
};
pub use research::{ReadWebsite, ResearchSettings, SiteFindings};
pub use store::{MAX_COMPANY_PROFILES, ProfilePage, ProfileQuery};

pub(crate) use build_queue::BuildQueue;
pub(crate) use store::CompanyProfiles;

/// The kind of documents that profiles are.
pub(crate) const PROFILES_KIND: &str = "profiles";
/// The directory of the profiles in a data directory: a file for each.
#[cfg(test)]
pub(crate) const PROFILES_DIR: &str = "control/profiles";
