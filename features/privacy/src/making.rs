//! Makes privacy requests, and shows them.

use std::collections::BTreeSet;
use std::sync::Arc;

use headcount_actors::engine::{ErasureError, ErasureSubject};
use headcount_actors::{BegunErasure, SubjectKeys};
use headcount_control::{Author, Erasure, MadeFor, PrivacyRequestId, RegistryError, check_room};
use headcount_domain::queries::SubjectFigures;
use headcount_domain::{OrganizationId, ProjectId, RecordKey};

use super::export_state::ExportState;
use super::privacy::Privacy;
use super::request::{
    ErasedProject, PrivacyAudit, PrivacyAuditEvent, PrivacyOutcome, PrivacyRequest, PrivacyRequestKind, PrivacyStatus,
    PrivacySubject,
};
use super::requests::{PrivacyPage, PrivacyQuery};

/// The most exports of an organization that are not done, or keep an artifact.
const MAX_EXPORTS: usize = 100;

/// What a request is when it is made.
struct Made {
    kind: PrivacyRequestKind,
    subject: PrivacySubject,
    /// The erasures to wait for.
    erasures: Vec<u64>,
    keys: SubjectKeys,
    outcome: PrivacyOutcome,
}

impl Privacy {
    /// Makes a privacy request. When this returns, it is durable; an
    /// [export](PrivacyRequestKind::Export) has every event that was acknowledged before; of an
    /// erased subject no event is recorded any more, and after an
    /// [opt-in](PrivacyRequestKind::OptIn) they are recorded again. The rest is done in the
    /// background.
    ///
    /// If the request can't be written after its erasure began, the erasure goes on without it. A
    /// further request completes.
    ///
    /// Waits for the disk, and reads the ids of all identities: in async code it belongs on a
    /// thread that may block.
    ///
    /// # Errors
    /// See [`ErasureError`]; [`RegistryError::Conflict`] `limit_reached` at
    /// [`MAX_PRIVACY_REQUESTS`](crate::MAX_PRIVACY_REQUESTS), and if there are too many
    /// exports that are not done, or keep an artifact.
    pub fn make(
        &self,
        organization: OrganizationId,
        kind: PrivacyRequestKind,
        subject: PrivacySubject,
        by: impl Into<Author>,
    ) -> Result<Arc<PrivacyRequest>, ErasureError> {
        let author = by.into();
        self.requests.check_home(organization)?;
        self.requests.check_room(organization)?;
        let id = PrivacyRequestId::random().map_err(RegistryError::from)?;
        let made_for = MadeFor { id: id.clone(), kind: kind.as_str(), author: author.clone() };
        let whom = ErasureSubject::from(&subject);
        let made = match kind {
            PrivacyRequestKind::Erasure => {
                let begun = self.subjects.erase((organization, &whom), &made_for)?;
                self.made_erasure(subject, begun)
            }
            PrivacyRequestKind::OptIn => made_opt_in(subject, &self.subjects.opt_in((organization, &whom), &made_for)?),
            PrivacyRequestKind::Export => {
                let exports = self.requests.exports(organization).len();
                check_room(exports, MAX_EXPORTS, "exports that are not done, or can be downloaded")?;
                let keys = self.subjects.known((organization, &whom))?;
                self.parts.registry().note_privacy_request(organization, &made_for)?;
                Made { kind, subject, erasures: Vec::new(), keys, outcome: PrivacyOutcome::default() }
            }
        };
        let Made { kind, subject, erasures, keys, outcome } = made;
        let created = PrivacyAuditEvent::Created { token_id: author.actor.token_id };
        let mut request = PrivacyRequest {
            id,
            organization,
            kind,
            status: PrivacyStatus::Pending,
            subject,
            created_at: author.at,
            completed_at: None,
            audit: vec![PrivacyAudit { at: author.at, event: created }],
            erasures,
            keys,
            outcome,
            export: ExportState::default(),
        };
        if kind != PrivacyRequestKind::Export && request.erasures.is_empty() {
            if kind == PrivacyRequestKind::Erasure {
                // An earlier home may have erased the subject, and left exports.
                self.withdraw_exports(organization, &request.keys)?;
            }
            request.begin(author.at, false);
            request.complete(author.at);
        }
        Ok(self.requests.add(request)?)
    }

    /// Whether this machine looks after the privacy requests of an organization. Another one does,
    /// or takes that over, if not.
    #[must_use]
    pub fn is_home(&self, organization: OrganizationId) -> bool {
        self.requests.is_home(organization)
    }

    /// A privacy request.
    ///
    /// # Errors
    /// [`RegistryError::NotFound`], also if it is another organization's;
    /// [`RegistryError::Storage`] if another machine looks after it.
    pub fn get(&self, organization: OrganizationId, id: &PrivacyRequestId) -> Result<Arc<PrivacyRequest>, RegistryError> {
        self.requests.check_home(organization)?;
        self.requests.get(organization, id).ok_or(RegistryError::NotFound { what: "privacy request" })
    }

    /// Returns privacy requests of an organization, newest first.
    ///
    /// # Errors
    /// [`RegistryError::Invalid`] `starting_after` for a request that is not there;
    /// [`RegistryError::Storage`] if another machine looks after them.
    pub fn page(&self, organization: OrganizationId, query: &PrivacyQuery) -> Result<PrivacyPage, RegistryError> {
        self.requests.check_home(organization)?;
        let (param, message) = ("starting_after".to_owned(), "must be the id of a privacy request".to_owned());
        self.requests.page(organization, query).ok_or(RegistryError::Invalid { param, message })
    }

    fn made_erasure(&self, subject: PrivacySubject, begun: BegunErasure) -> Made {
        let BegunErasure { unfinished, keys, figures, .. } = begun;
        let mut identities: BTreeSet<(Option<ProjectId>, RecordKey)> = BTreeSet::new();
        let (mut projects, mut events) = (Vec::new(), 0);
        for (project, SubjectFigures { all, theirs, known }) in figures {
            identities.extend(known.into_iter().map(|key| ((!key.is_user()).then_some(project), key)));
            events += theirs.events;
            if let Some(config) = self.parts.registry().policy(project) {
                let currency = config.policy.currency;
                projects.push(ErasedProject { project, currency, before: all, after: all.without(theirs) });
            }
        }
        Made {
            kind: PrivacyRequestKind::Erasure,
            subject: if unfinished.is_empty() { subject.erased() } else { subject },
            erasures: unfinished,
            keys,
            outcome: PrivacyOutcome { projects, identities: identities.len() as u64, events },
        }
    }
}

/// An opt-in is done when it is made.
fn made_opt_in(subject: PrivacySubject, erasures: &[Erasure]) -> Made {
    let (mut users, mut others, mut alone) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for erasure in erasures {
        users.extend(erasure.users.iter().copied());
        others.extend(erasure.others.iter().copied());
        // Beside a user, an anonymous id is mostly the user's.
        if erasure.users.is_empty() {
            alone.extend(erasure.others.iter().copied().filter(|(project, _)| erasure.end_in(*project).is_some()));
        }
    }
    let outcome = PrivacyOutcome { identities: (users.len() + alone.len()) as u64, ..PrivacyOutcome::default() };
    let keys = SubjectKeys { users: users.into_iter().collect(), others: others.into_iter().collect(), ..SubjectKeys::default() };
    let is_erased = erasures.iter().all(|erasure| erasure.is_done);
    // The end of an erasure that is under way takes the value, too.
    let subject = if is_erased { subject.erased() } else { subject };
    Made { kind: PrivacyRequestKind::OptIn, subject, erasures: Vec::new(), keys, outcome }
}
