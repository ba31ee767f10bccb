//! The files of privacy requests: one for each.

use super::request::PrivacyRequest;
use crate::checked_files::{CheckedFiles, Filed};
use crate::registry::PrivacyRequestId;

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
