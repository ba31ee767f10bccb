//! A privacy request, as stored and as shown.

use headcount_actors::SubjectKeys;
use headcount_actors::engine::ErasureSubject;
use headcount_common::DocumentItem;
use headcount_control::{PrivacyRequestId, TokenId};
use headcount_domain::queries::LifetimeFigures;
use headcount_domain::{Currency, Instant, OrganizationId, ProjectId, named_values};
use serde::{Deserialize, Serialize};

use super::export_state::{Artifact, ArtifactGone, ExportState, PrivacyFailure};

/// The kind of documents that requests are.
pub(crate) const KIND: &str = "privacy";

/// The most entries of a request's audit view. Of more, those after the first are left out.
const MAX_AUDIT: usize = 100;

named_values! {
    /// What is asked for.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum PrivacyRequestKind by as_str {
        /// A copy of what is recorded of a person.
        Export = "export",
        /// To remove what is recorded of a person, and to record nothing more.
        Erasure = "erasure",
        /// To record events of an erased person again.
        OptIn = "opt_in",
    }
}

named_values! {
    /// How far a request is.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum PrivacyStatus by as_str {
        /// It was made.
        Pending = "pending",
        /// It is being done.
        Processing = "processing",
        /// It is done.
        Completed = "completed",
        /// It can't be done.
        Failed = "failed",
    }
}

/// Whom a request is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PrivacySubject {
    /// All identities that ever had an e-mail address.
    Email(String),
    /// A user.
    UserId(String),
    /// An anonymous id, of one project or of all.
    AnonymousId {
        /// The id.
        anonymous_id: String,
        /// The only project, if it is one.
        project: Option<ProjectId>,
    },
}

impl From<&PrivacySubject> for ErasureSubject {
    fn from(subject: &PrivacySubject) -> Self {
        match subject.clone() {
            PrivacySubject::Email(email) => Self::Email(email),
            PrivacySubject::UserId(user) => Self::User(user),
            PrivacySubject::AnonymousId { anonymous_id, project: Some(project) } => Self::Anonymous(project, anonymous_id),
            PrivacySubject::AnonymousId { anonymous_id, project: None } => Self::AnonymousAnywhere(anonymous_id),
        }
    }
}

impl PrivacySubject {
    /// What stands for the value once the subject is erased.
    pub const ERASED: &'static str = "[erased]";

    /// Whether the value is no longer there.
    #[must_use]
    pub fn is_erased(&self) -> bool {
        let (Self::Email(value) | Self::UserId(value) | Self::AnonymousId { anonymous_id: value, .. }) = self;
        value == Self::ERASED
    }

    /// The same without the value.
    pub(crate) fn erased(&self) -> Self {
        let erased = Self::ERASED.to_owned();
        match self {
            Self::Email(_) => Self::Email(erased),
            Self::UserId(_) => Self::UserId(erased),
            Self::AnonymousId { project, .. } => Self::AnonymousId { anonymous_id: erased, project: *project },
        }
    }
}

/// What a project lost by an erasure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ErasedProject {
    /// The project.
    pub project: ProjectId,
    /// The currency of its revenue.
    pub currency: Currency,
    /// Its figures when the erasure began.
    pub before: LifetimeFigures,
    /// The same without the subject.
    pub after: LifetimeFigures,
}

/// What happened to a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PrivacyAuditEvent {
    /// It was made.
    Created {
        /// With this token.
        token_id: Option<TokenId>,
    },
    /// Work on it began.
    Started,
    /// Work on it went on after a restart.
    Resumed,
    /// How far an export is. There is one such entry, which changes.
    Progress {
        /// How many events are written.
        done: u64,
        /// How many there are.
        total: u64,
    },
    /// An attempt failed; there will be another one.
    Retried {
        /// Why.
        failure: PrivacyFailure,
    },
    /// It failed.
    Failed {
        /// Why.
        failure: PrivacyFailure,
    },
    /// A project has nothing more of the subject.
    Erased(Box<ErasedProject>),
    /// It is done.
    Completed {
        /// How many identities it was about.
        identities: u64,
        /// How many events they had.
        events: u64,
    },
    /// The artifact was downloaded, or a part of it.
    Downloaded {
        /// With this token.
        token_id: Option<TokenId>,
    },
    /// The artifact was removed, since its time was over.
    Expired,
    /// The artifact was removed, since it had somebody who was erased, or a project that was
    /// deleted.
    ArtifactErased,
}

impl PrivacyAuditEvent {
    /// The event's name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Created { .. } => "created",
            Self::Started => "started",
            Self::Resumed => "resumed",
            Self::Progress { .. } => "progress",
            Self::Retried { .. } => "retried",
            Self::Failed { .. } => "failed",
            Self::Erased(_) => "erased",
            Self::Completed { .. } => "completed",
            Self::Downloaded { .. } => "downloaded",
            Self::Expired => "expired",
            Self::ArtifactErased => "artifact_erased",
        }
    }
}

/// An entry of the audit view of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrivacyAudit {
    /// When.
    pub at: Instant,
    /// What.
    pub event: PrivacyAuditEvent,
}

/// A privacy request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrivacyRequest {
    /// Its id.
    pub id: PrivacyRequestId,
    /// The organization whose request it is.
    pub organization: OrganizationId,
    /// What is asked for.
    pub kind: PrivacyRequestKind,
    /// How far it is.
    pub status: PrivacyStatus,
    /// Whom it is about.
    pub subject: PrivacySubject,
    /// When it was made.
    pub created_at: Instant,
    /// When it was done.
    pub completed_at: Option<Instant>,
    /// What happened, oldest first.
    pub audit: Vec<PrivacyAudit>,
    /// The numbers of the erasures, in the organization, that it waits for: its own, and former
    /// ones of the same subject that were not done.
    pub(crate) erasures: Vec<u64>,
    /// The ids that it is about.
    pub(crate) keys: SubjectKeys,
    /// What its end will show: the figures of the projects, and the number of identities and of
    /// their events.
    pub(crate) outcome: PrivacyOutcome,
    /// How far an export is.
    #[serde(default)]
    pub(crate) export: ExportState,
}

/// What is known of an erasure from its beginning on, and is shown from its end on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PrivacyOutcome {
    /// What each project loses.
    pub(crate) projects: Vec<ErasedProject>,
    /// The number of identities.
    pub(crate) identities: u64,
    /// The number of their events.
    pub(crate) events: u64,
}

impl DocumentItem for PrivacyRequest {
    type Id = PrivacyRequestId;
    const WHAT: &'static str = "privacy request";

    fn is_of(&self, id: &PrivacyRequestId) -> bool {
        self.id == *id
    }
}

impl PrivacyRequest {
    /// Whether there is something to be done.
    #[must_use]
    pub fn is_open(&self) -> bool {
        matches!(self.status, PrivacyStatus::Pending | PrivacyStatus::Processing)
    }

    /// Until when its artifact is kept; `None` if it was not completed.
    #[must_use]
    pub fn expires_at(&self) -> Option<Instant> {
        self.export.expires_at.filter(|_| self.export.artifact.is_some())
    }

    /// Why it failed, if it did.
    #[must_use]
    pub fn failure(&self) -> Option<PrivacyFailure> {
        self.export.failure
    }

    /// Whether its artifact can be downloaded.
    #[must_use]
    pub fn has_artifact(&self, now: Instant) -> bool {
        self.keeps_artifact() && self.expires_at().is_some_and(|until| now < until)
    }

    /// Whether its artifact is a file still.
    pub(crate) fn keeps_artifact(&self) -> bool {
        self.export.artifact.is_some() && self.export.gone.is_none()
    }

    /// The projects with events in its artifact.
    pub(crate) fn artifact_projects(&self) -> &[ProjectId] {
        self.export.artifact.as_ref().map_or(&[], |artifact| &artifact.projects)
    }

    /// Whether it is about one of these identities, or its artifact has, or may have, one of their
    /// ids.
    pub(crate) fn names_any_of(&self, keys: &SubjectKeys) -> bool {
        self.keys.meets(keys) || self.export.artifact.as_ref().is_some_and(|artifact| artifact.has_any_of(&keys.others))
    }

    /// Adds an entry to the audit view.
    pub(crate) fn note(&mut self, at: Instant, event: PrivacyAuditEvent) {
        if self.audit.len() >= MAX_AUDIT {
            // What may happen any number of times gives way first.
            let often =
                |entry: &PrivacyAudit| matches!(entry.event, PrivacyAuditEvent::Downloaded { .. } | PrivacyAuditEvent::Resumed);
            self.audit.remove(self.audit.iter().position(often).unwrap_or(1));
        }
        self.audit.push(PrivacyAudit { at, event });
    }

    /// Begins to work on it, or goes on after a restart. Does nothing once it has ended.
    pub(crate) fn begin(&mut self, at: Instant, is_restart: bool) {
        match self.status {
            PrivacyStatus::Pending => {
                self.status = PrivacyStatus::Processing;
                self.note(at, PrivacyAuditEvent::Started);
            }
            PrivacyStatus::Processing if is_restart => self.note(at, PrivacyAuditEvent::Resumed),
            PrivacyStatus::Processing | PrivacyStatus::Completed | PrivacyStatus::Failed => {}
        }
    }

    /// Notes how far an export is.
    pub(crate) fn progress(&mut self, at: Instant, done: u64, total: u64) {
        let event = PrivacyAuditEvent::Progress { done, total };
        let is_progress = |entry: &&mut PrivacyAudit| matches!(entry.event, PrivacyAuditEvent::Progress { .. });
        match self.audit.iter_mut().find(is_progress) {
            Some(entry) => *entry = PrivacyAudit { at, event },
            None => self.note(at, event),
        }
    }

    /// Counts an attempt of an export that failed. It fails after the last one.
    pub(crate) fn count_failure(&mut self, at: Instant, failure: PrivacyFailure, max_tries: u32) {
        self.export.failed_tries += 1;
        if self.export.failed_tries >= max_tries {
            self.fail(at, failure);
        } else {
            self.note(at, PrivacyAuditEvent::Retried { failure });
        }
    }

    /// Ends it without success.
    pub(crate) fn fail(&mut self, at: Instant, failure: PrivacyFailure) {
        self.note(at, PrivacyAuditEvent::Failed { failure });
        (self.status, self.export.failure) = (PrivacyStatus::Failed, Some(failure));
    }

    /// Ends an export, whose artifact is a file now. One that was made before is kept for no
    /// longer.
    pub(crate) fn complete_export(&mut self, at: Instant, artifact: Artifact, expires_at: Instant) {
        let expires_at = self.export.expires_at.unwrap_or(expires_at);
        (self.export.artifact, self.export.expires_at) = (Some(artifact), Some(expires_at));
        self.complete(at);
    }

    /// Has an export made again, whose artifact is not there. The new one is kept until the same
    /// time.
    pub(crate) fn make_again(&mut self) {
        let export = ExportState { expires_at: self.export.expires_at, ..ExportState::default() };
        (self.status, self.completed_at, self.export) = (PrivacyStatus::Processing, None, export);
    }

    /// Whether the artifact is being made once more.
    #[must_use]
    pub fn is_made_again(&self) -> bool {
        self.is_open() && self.export.expires_at.is_some()
    }

    /// Notes that the artifact is gone.
    pub(crate) fn lose_artifact(&mut self, at: Instant, gone: ArtifactGone) {
        if self.export.gone.replace(gone).is_none() {
            let (expired, erased) = (PrivacyAuditEvent::Expired, PrivacyAuditEvent::ArtifactErased);
            self.note(at, if gone == ArtifactGone::Expired { expired } else { erased });
        }
    }

    /// Ends it.
    pub(crate) fn complete(&mut self, at: Instant) {
        let PrivacyOutcome { projects, identities, events } = std::mem::take(&mut self.outcome);
        for project in projects {
            self.note(at, PrivacyAuditEvent::Erased(Box::new(project)));
        }
        self.note(at, PrivacyAuditEvent::Completed { identities, events });
        (self.status, self.completed_at) = (PrivacyStatus::Completed, Some(at));
    }
}

#[cfg(test)]
pub(super) mod tests {
    use headcount_domain::RecordKey;

    use super::*;

    /// A new request of an organization.
    pub(in super::super) fn request(organization: u64, created_ms: i64, user: u128) -> PrivacyRequest {
        PrivacyRequest {
            id: PrivacyRequestId::random().unwrap(),
            organization: OrganizationId(organization),
            kind: PrivacyRequestKind::Erasure,
            status: PrivacyStatus::Pending,
            subject: PrivacySubject::UserId("ada".to_owned()),
            created_at: Instant(created_ms),
            completed_at: None,
            audit: vec![PrivacyAudit { at: Instant(created_ms), event: PrivacyAuditEvent::Created { token_id: None } }],
            erasures: vec![1],
            keys: SubjectKeys { users: vec![RecordKey(user)], ..SubjectKeys::default() },
            outcome: PrivacyOutcome { identities: 1, events: 7, ..PrivacyOutcome::default() },
            export: ExportState::default(),
        }
    }

    #[test]
    fn the_audit_view_is_bounded_and_keeps_its_beginning() {
        let mut request = request(1, 5, 7);
        request.begin(Instant(6), false);
        for at in 0..1_000 {
            request.begin(Instant(at), true);
        }
        request.complete(Instant(2_000));
        let names: Vec<&str> = request.audit.iter().map(|entry| entry.event.name()).collect();
        assert_eq!((names.len(), names[0], names[1], names[99]), (MAX_AUDIT, "created", "started", "completed"));
        assert_eq!((request.status, request.completed_at), (PrivacyStatus::Completed, Some(Instant(2_000))));
    }

    #[test]
    fn a_request_that_ended_does_not_begin_again() {
        let mut completed = request(1, 5, 7);
        completed.begin(Instant(6), false);
        let mut failed = completed.clone();
        failed.fail(Instant(7), PrivacyFailure::SubjectErased);
        completed.complete_export(Instant(7), Artifact::default(), Instant(9));
        completed.lose_artifact(Instant(9), ArtifactGone::Erased);
        for ended in [completed, failed] {
            let mut again = ended.clone();
            again.begin(Instant(10), true);
            assert_eq!(again, ended);
        }
    }

    #[test]
    fn a_request_reads_back_with_amounts_of_any_size() {
        let figures = LifetimeFigures { revenue: headcount_domain::money::Amount(i128::MAX), ..LifetimeFigures::default() };
        let currency = "USD".parse().unwrap();
        let project = ErasedProject { project: ProjectId(3), currency, before: figures, after: LifetimeFigures::default() };
        let mut request = request(1, 5, u128::MAX);
        request.outcome.projects.push(project);
        request.complete(Instant(9));
        let json = serde_json::to_string(&request).unwrap();
        assert_eq!(serde_json::from_str::<PrivacyRequest>(&json).unwrap(), request);
    }
}
