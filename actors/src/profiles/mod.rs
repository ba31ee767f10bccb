//! Company profiles: what an organization knows of itself and of other companies.
//!
//! A profile is a file of its own, which is only ever replaced as a whole. In memory is what finds it: its website, its age.

mod files;
mod profile;
mod store;
mod website;

pub use profile::{
    CompanyProfile, MAX_PROFILE_ENTRIES, NewCompanyProfile, ProfileFields, ProfileKind, ProfilePatch, ProfileSource,
};
pub use store::{MAX_COMPANY_PROFILES, ProfilePage, ProfileQuery};
pub use website::Website;

pub(crate) use files::{PROFILES_DIR, ProfileFiles};
pub(crate) use store::CompanyProfiles;
