//! What the control log holds: one change a record, as JSON, behind a version.
//!
//! A record holds the whole of what it puts in place, so that applying it asks nothing of the code that made it.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use headcount_domain::ids::{OrganizationId, ProjectId};

use super::error::ControlError;
use super::model::{ApiToken, Organization, Project, TokenId};
use super::secret::SecretHash;

/// The version that records are written in. Those of earlier versions are read too: 2 has limits of public keys.
pub(super) const RECORD_VERSION: u32 = 2;

/// One change of the control data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[expect(clippy::large_enum_variant, reason = "there is one record at a time, on its way to or from the disk")]
pub(super) enum ControlRecord {
    /// An organization with its first project and token, and at the first start a root token.
    OrganizationCreated {
        /// The organization.
        organization: Organization,
        /// Its project.
        project: Project,
        /// Its token.
        token: StoredToken,
        /// Hash of the root token, if one was made.
        root_token: Option<SecretHash>,
    },
    /// The organization as it is from now on.
    OrganizationChanged(Organization),
    /// A further project.
    ProjectCreated(Project),
    /// The project as it is from now on.
    ProjectChanged(Project),
    /// A further token.
    TokenCreated(StoredToken),
    /// A token is refused from now on.
    TokenRevoked {
        /// Whose it was.
        organization: OrganizationId,
        /// Which one.
        token_id: TokenId,
    },
    /// The project is about to record its first event.
    EventsRecorded {
        /// Whose project it is.
        organization: OrganizationId,
        /// Which one.
        project: ProjectId,
    },
}

/// A token and the hash that its secret is known by.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredToken {
    /// What the token may do.
    pub(super) token: ApiToken,
    /// What is kept of its secret.
    pub(super) hash: SecretHash,
}

#[derive(Serialize)]
struct RecordEnvelope<'a> {
    version: u32,
    record: &'a ControlRecord,
}

#[derive(Deserialize)]
struct RawRecordEnvelope<'a> {
    version: u32,
    #[serde(borrow)]
    record: &'a RawValue,
}

/// The bytes of a record.
pub(super) fn encode(record: &ControlRecord) -> Result<Vec<u8>, ControlError> {
    let envelope = RecordEnvelope { version: RECORD_VERSION, record };
    serde_json::to_vec(&envelope).map_err(ControlError::Unencodable)
}

/// Reads the record at `position` of the log.
pub(super) fn decode(bytes: &[u8], position: u64) -> Result<ControlRecord, ControlError> {
    let bad = |error: serde_json::Error| ControlError::BadRecord { position, message: error.to_string() };
    let RawRecordEnvelope { version, record } = serde_json::from_slice(bytes).map_err(bad)?;
    if !(1..=RECORD_VERSION).contains(&version) {
        return Err(ControlError::UnsupportedRecord { position, found: version, supported: RECORD_VERSION });
    }
    serde_json::from_str(record.get()).map_err(bad)
}
