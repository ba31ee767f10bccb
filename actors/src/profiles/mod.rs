//! Company profiles: what an organization knows of itself and of other companies.
//!
//! A profile is a file of its own, which is only ever replaced as a whole. In memory is what finds it: its website, its age.

mod build_queue;
mod builds;
mod files;
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
pub(crate) use files::{PROFILES_DIR, ProfileFiles};
pub(crate) use store::CompanyProfiles;
