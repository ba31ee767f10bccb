//! The files of company profiles: one for each.

use headcount_common::checked_files::{CheckedFiles, Filed};
use headcount_control::CompanyProfileId;

use super::profile::CompanyProfile;

/// The directory of the profiles in a data directory.
pub(crate) const PROFILES_DIR: &str = "control/profiles";

/// See the module.
pub(crate) type ProfileFiles = CheckedFiles<CompanyProfile>;

impl Filed for CompanyProfile {
    type Id = CompanyProfileId;
    const WHAT: &'static str = "company profile";

    fn is_of(&self, id: &CompanyProfileId) -> bool {
        self.id == *id
    }
}
