//! Company profiles: an organization's description of itself and of other companies.
//!
//! A profile is a document, which is only ever replaced as a whole. Memory holds the index to find
//! it: its website and its age. A build fills a profile with what its website tells (`research`).

#![forbid(unsafe_code)]

mod build_queue;
mod builder;
mod builds;
mod http;
mod profile;
mod reader;
mod research;
mod store;

#[cfg(feature = "cluster")]
use headcount_actors::{MovedKind, plain_documents};
use headcount_api::endpoints;
use headcount_api::endpoints::Endpoints;
#[cfg(feature = "cluster")]
use profile::KIND;

pub use builder::{Profiles, install};
pub use builds::{BuildRequest, ProfileBuild};
pub use headcount_control::Website;
pub use profile::{CompanyProfile, NewCompanyProfile, ProfileKind, ProfilePatch};
pub use reader::{BuildSettings, ReadWebsite};
pub use research::{ProfileFields, ProfileSource, Research, SiteFindings};
pub use store::{CompanyProfiles, MAX_COMPANY_PROFILES, ProfilePage, ProfileQuery};

/// The profiles of an installation that moves into a cluster.
#[cfg(feature = "cluster")]
pub const MOVED: MovedKind =
    MovedKind { kind: KIND, name: "company_profiles", read: |from| plain_documents::<CompanyProfile>(from, KIND) };

/// The endpoints.
pub const ENDPOINTS: Endpoints = endpoints! {
    http => build: Organization(CompaniesWrite, Admin);
    http => show_build: Organization(CompaniesRead, Admin);
    http => list: Organization(CompaniesRead, Admin);
    http => create: Organization(CompaniesWrite, Admin);
    http => show: Organization(CompaniesRead, Admin);
    http => change: Organization(CompaniesWrite, Admin);
    http => remove: Organization(CompaniesWrite, Admin);
};
