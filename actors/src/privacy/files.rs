//! The files of privacy requests: one for each.

use headcount_common::checked_files::{CheckedFiles, Filed};
use headcount_control::PrivacyRequestId;

use super::request::PrivacyRequest;

/// The directory of the requests in a data directory.
pub(crate) const PRIVACY_DIR: &str = "control/privacy";

/// See the module. Without the file of an erasure, the erasure goes on.
pub(crate) type PrivacyFiles = CheckedFiles<PrivacyRequest>;

impl Filed for PrivacyRequest {
    type Id = PrivacyRequestId;
    const WHAT: &'static str = "privacy request";

    fn is_of(&self, id: &PrivacyRequestId) -> bool {
        self.id == *id
    }
}
