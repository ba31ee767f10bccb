//! The records of the control log: one change per record, as JSON, with a version.
//!
//! A record holds the complete new value, so applying it does not depend on the code that wrote it.

use std::sync::Arc;

use headcount_common::{ControlError, latest_record_version};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use headcount_domain::{OrganizationId, ProjectId};

use super::secret::SecretHash;
use super::{
    ActionEntry, ApiToken, AuditEntry, BrowserSession, BuildRun, Definition, DefinitionId, Erasure, ErasureStage, Member,
    MemberId, Organization, Project, SessionId, Share, ShareId, TokenId,
};

/// One change of the control data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum ControlRecord {
    /// A new organization with its first project and token, and a root token at the first start.
    OrganizationCreated {
        /// The organization.
        organization: Organization,
        /// Its first project.
        project: Project,
        /// Its first token.
        token: StoredToken,
        /// The hash of the root token, if one was created.
        root_token: Option<SecretHash>,
    },
    /// The new value of an organization.
    OrganizationChanged(Organization),
    /// A new project.
    ProjectCreated(Project),
    /// The new value of a project.
    ProjectChanged(Project),
    /// A new token.
    TokenCreated(StoredToken),
    /// The new value of a token.
    TokenChanged(ApiToken),
    /// The revocation of a token.
    TokenRevoked {
        /// The organization that owned it.
        organization: OrganizationId,
        /// The id of the token.
        token_id: TokenId,
    },
    /// The mark that the project is about to record its first event.
    EventsRecorded {
        /// The organization that owns the project.
        organization: OrganizationId,
        /// The id of the project.
        project: ProjectId,
    },
    /// The deletion of a project with its keys and tokens. Its recorded data are removed later.
    ProjectDeleted {
        /// The organization that owned the project.
        organization: OrganizationId,
        /// The id of the project.
        project: ProjectId,
    },
    /// All recorded data of a deleted project are removed.
    DeletionFinished {
        /// The organization that owned the project.
        organization: OrganizationId,
        /// The id of the project.
        project: ProjectId,
    },
    /// A new member.
    MemberCreated(Member),
    /// The new value of a member.
    MemberChanged(Member),
    /// The removal of a member and its tokens.
    MemberRemoved {
        /// The organization.
        organization: OrganizationId,
        /// The id of the member.
        member: MemberId,
    },
    /// A new erasure, or its new value.
    IdentityErased(Erasure),
    /// The stage of some erasures in a project of a cluster.
    ErasureProgressed {
        /// The organization.
        organization: OrganizationId,
        /// The project.
        project: ProjectId,
        /// The numbers of the erasures.
        numbers: Vec<u64>,
        /// The stage.
        stage: ErasureStage,
    },
    /// The new value of an organization whose balance of Actions changed, and the entry of the
    /// ledger about it.
    ActionsChanged {
        /// The organization.
        organization: Organization,
        /// The entry.
        entry: ActionEntry,
    },
    /// A new run that builds a company profile, or its new value, with its change of the balance.
    BuildRunChanged {
        /// The run.
        run: BuildRun,
        /// The payment or the refund.
        payment: Option<ActionsPayment>,
    },
    /// An audit entry that a document is about to change, which is a file of its own.
    DocumentChanging {
        /// The organization that owns the document.
        organization: OrganizationId,
    },
    /// A new share.
    ShareCreated(StoredShare),
    /// The revocation of a share.
    ShareRevoked {
        /// The organization that owned it.
        organization: OrganizationId,
        /// The id of the share.
        share: ShareId,
    },
    /// A new definition of a project, or its new value.
    DefinitionPut(Definition),
    /// The removal of a definition.
    DefinitionRemoved {
        /// The organization.
        organization: OrganizationId,
        /// The id of the definition.
        definition: DefinitionId,
    },
    /// A browser signed in.
    SessionBegun(StoredSession),
    /// A browser signed out.
    SessionEnded {
        /// The organization.
        organization: OrganizationId,
        /// The id of the session.
        session: SessionId,
    },
}

/// The new value of an organization whose balance of Actions changed, and the entry of the ledger
/// about it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ActionsPayment {
    /// The organization.
    pub(super) organization: Organization,
    /// The entry.
    pub(super) entry: ActionEntry,
}

/// A token and the hash of its secret.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredToken {
    /// The token and its permissions.
    pub(super) token: ApiToken,
    /// The hash of its secret.
    pub(super) hash: SecretHash,
}

/// A share and the hash of its secret.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredShare {
    /// The share.
    pub(super) share: Share,
    /// The hash of its secret.
    pub(super) hash: SecretHash,
}

/// A session and the hash of its secret.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredSession {
    /// The session.
    pub(super) session: BrowserSession,
    /// The hash of its secret.
    pub(super) hash: SecretHash,
}

impl From<&(Arc<Share>, SecretHash)> for StoredShare {
    fn from((share, hash): &(Arc<Share>, SecretHash)) -> Self {
        Self { share: Share::clone(share), hash: *hash }
    }
}

impl From<&(Arc<BrowserSession>, SecretHash)> for StoredSession {
    fn from((session, hash): &(Arc<BrowserSession>, SecretHash)) -> Self {
        Self { session: BrowserSession::clone(session), hash: *hash }
    }
}

#[derive(Serialize)]
struct RecordEnvelope<'a> {
    version: u32,
    record: &'a ControlRecord,
    /// The audit entries of the record. Earlier programs ignore them.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    audit: &'a [AuditEntry],
}

#[derive(Deserialize)]
struct RawRecordEnvelope<'a> {
    version: u32,
    #[serde(borrow)]
    record: &'a RawValue,
}

#[derive(Deserialize)]
struct AuditEnvelope {
    record: ControlRecord,
    audit: Vec<AuditEntry>,
}

impl ControlRecord {
    /// The organization that the record is about.
    pub(super) fn organization(&self) -> OrganizationId {
        match self {
            Self::OrganizationCreated { organization, .. }
            | Self::OrganizationChanged(organization)
            | Self::ActionsChanged { organization, .. } => organization.id,
            Self::ProjectCreated(project) | Self::ProjectChanged(project) => project.organization,
            Self::BuildRunChanged { run, .. } => run.organization,
            Self::TokenCreated(stored) => stored.token.organization,
            Self::TokenChanged(token) => token.organization,
            Self::ShareCreated(stored) => stored.share.organization,
            Self::SessionBegun(stored) => stored.session.organization,
            Self::DefinitionPut(definition) => definition.organization,
            Self::IdentityErased(erasure) => erasure.organization,
            Self::MemberCreated(member) | Self::MemberChanged(member) => member.organization,
            Self::TokenRevoked { organization, .. }
            | Self::EventsRecorded { organization, .. }
            | Self::ProjectDeleted { organization, .. }
            | Self::DeletionFinished { organization, .. }
            | Self::ErasureProgressed { organization, .. }
            | Self::DocumentChanging { organization }
            | Self::ShareRevoked { organization, .. }
            | Self::DefinitionRemoved { organization, .. }
            | Self::SessionEnded { organization, .. }
            | Self::MemberRemoved { organization, .. } => *organization,
        }
    }
}

/// Encodes a record in a version, with the entries of the audit log about it.
pub(super) fn encode(version: u32, record: &ControlRecord, audit: &[AuditEntry]) -> Result<Vec<u8>, ControlError> {
    let envelope = RecordEnvelope { version, record, audit };
    serde_json::to_vec(&envelope).map_err(ControlError::Unencodable)
}

/// Decodes the record at `position` of the log.
pub(super) fn decode(bytes: &[u8], position: u64) -> Result<ControlRecord, ControlError> {
    let bad = |error: serde_json::Error| ControlError::BadRecord { position, message: error.to_string() };
    let RawRecordEnvelope { version, record } = serde_json::from_slice(bytes).map_err(bad)?;
    let supported = latest_record_version();
    if !(1..=supported).contains(&version) {
        return Err(ControlError::UnsupportedRecord { position, found: version, supported });
    }
    serde_json::from_str(record.get()).map_err(bad)
}

/// Decodes the audit entries of the record at `position`, and its organization; `None` if it has no
/// entries.
pub(super) fn decode_audit(bytes: &[u8], position: u64) -> Result<Option<(OrganizationId, Vec<AuditEntry>)>, ControlError> {
    /// The part that shows whether there are entries.
    #[derive(Deserialize)]
    struct Probe<'a> {
        #[serde(borrow)]
        audit: Option<&'a RawValue>,
    }
    let bad = |error: serde_json::Error| ControlError::BadRecord { position, message: error.to_string() };
    let Probe { audit } = serde_json::from_slice(bytes).map_err(bad)?;
    if audit.is_none() {
        return Ok(None);
    }
    let AuditEnvelope { record, audit } = serde_json::from_slice(bytes).map_err(bad)?;
    Ok(Some((record.organization(), audit)))
}
