//! Privacy requests: made by administrators, done in the background.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use headcount_common::home_of;
use headcount_control::{Author, Erasure, MadeFor, PrivacyRequestId, RegistryError};
use headcount_domain::ids::{OrganizationId, ProjectId, RecordKey};
use headcount_domain::queries::SubjectFigures;

use super::erasing::{BegunErasure, ErasureError, ErasureState, ErasureSubject};
use super::handle::Engine;
use crate::privacy::{
    AtStart, ErasedProject, ExportState, PrivacyAudit, PrivacyAuditEvent, PrivacyKeys, PrivacyOutcome, PrivacyPage, PrivacyQuery,
    PrivacyRequest, PrivacyRequestKind, PrivacyStatus, PrivacySubject,
};

/// The pause between two looks at requests that are being done.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// The same while there is none.
const IDLE: Duration = Duration::from_secs(60);
/// The same after a failure.
const AFTER_FAILURE: Duration = Duration::from_secs(5);

/// The most exports of an organization that are not done, or keep an artifact.
const MAX_EXPORTS: usize = 100;

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

/// What a request is when it is made.
struct Made {
    kind: PrivacyRequestKind,
    subject: PrivacySubject,
    /// The erasures to wait for.
    erasures: Vec<u64>,
    keys: PrivacyKeys,
    outcome: PrivacyOutcome,
}

impl Engine {
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
    /// [`MAX_PRIVACY_REQUESTS`](crate::privacy::MAX_PRIVACY_REQUESTS), and if there are too many
    /// exports that are not done, or keep an artifact.
    pub fn make_privacy_request(
        &self,
        organization: OrganizationId,
        kind: PrivacyRequestKind,
        subject: PrivacySubject,
        by: impl Into<Author>,
    ) -> Result<Arc<PrivacyRequest>, ErasureError> {
        let author = by.into();
        self.inner.privacy.check_home(organization)?;
        self.inner.privacy.check_room(organization)?;
        let id = PrivacyRequestId::random().map_err(RegistryError::from)?;
        let made_for = MadeFor { id: id.clone(), kind: kind.as_str(), author: author.clone() };
        let whom = ErasureSubject::from(&subject);
        let made = match kind {
            PrivacyRequestKind::Erasure => {
                let begun = self.erase_for(organization, &whom, Some(&made_for))?;
                self.made_erasure(subject, begun)
            }
            PrivacyRequestKind::OptIn => made_opt_in(subject, &self.opt_in_for(organization, &whom, Some(&made_for))?),
            PrivacyRequestKind::Export => {
                self.check_export_room(organization)?;
                let keys = self.known_subject(organization, &whom)?;
                self.registry().note_privacy_request(organization, &made_for)?;
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
        Ok(self.inner.privacy.add(request)?)
    }

    /// Whether this machine looks after the privacy requests of an organization. Another one does,
    /// or takes that over, if not.
    #[must_use]
    pub fn is_privacy_home(&self, organization: OrganizationId) -> bool {
        self.inner.privacy.is_home(organization)
    }

    /// A privacy request.
    ///
    /// # Errors
    /// [`RegistryError::NotFound`], also if it is another organization's;
    /// [`RegistryError::Storage`] if another machine looks after it.
    pub fn privacy_request(
        &self,
        organization: OrganizationId,
        id: &PrivacyRequestId,
    ) -> Result<Arc<PrivacyRequest>, RegistryError> {
        self.inner.privacy.check_home(organization)?;
        self.inner.privacy.get(organization, id).ok_or(RegistryError::NotFound { what: "privacy request" })
    }

    /// Returns privacy requests of an organization, newest first.
    ///
    /// # Errors
    /// [`RegistryError::Invalid`] `starting_after` for a request that is not there;
    /// [`RegistryError::Storage`] if another machine looks after them.
    pub fn privacy_requests(&self, organization: OrganizationId, query: &PrivacyQuery) -> Result<PrivacyPage, RegistryError> {
        self.inner.privacy.check_home(organization)?;
        let (param, message) = ("starting_after".to_owned(), "must be the id of a privacy request".to_owned());
        self.inner.privacy.page(organization, query).ok_or(RegistryError::Invalid { param, message })
    }

    /// Checks that an organization may have another export.
    fn check_export_room(&self, organization: OrganizationId) -> Result<(), RegistryError> {
        if self.inner.privacy.exports(organization).len() < MAX_EXPORTS {
            return Ok(());
        }
        let message = format!("there are {MAX_EXPORTS} exports that are not done, or can be downloaded; there can be no more");
        Err(RegistryError::Conflict { code: "limit_reached", message })
    }

    fn made_erasure(&self, subject: PrivacySubject, begun: BegunErasure) -> Made {
        let BegunErasure { unfinished, keys, figures, .. } = begun;
        let mut identities: BTreeSet<(Option<ProjectId>, RecordKey)> = BTreeSet::new();
        let (mut projects, mut events) = (Vec::new(), 0);
        for (project, SubjectFigures { all, theirs, known }) in figures {
            identities.extend(known.into_iter().map(|key| ((!key.is_user()).then_some(project), key)));
            events += theirs.events;
            if let Some(config) = self.registry().policy(project) {
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

    /// Goes on with the requests that are not done, and returns the pause until the next look.
    /// `is_first`: for the first time since the start.
    fn advance_privacy_requests(&self, is_first: bool) -> Duration {
        let (taken_up, failed) = match self.take_up_privacy_requests() {
            Ok(taken_up) => (taken_up, false),
            Err((taken_up, error)) => {
                tracing::warn!(%error, "privacy requests that another machine looked after can't be taken over yet");
                (taken_up, true)
            }
        };
        let mut open = self.inner.privacy.open_ones();
        open.retain(|request| self.inner.privacy.is_home(request.organization));
        let mut pause = match open.is_empty() {
            _ if failed => AFTER_FAILURE,
            true => IDLE,
            false => LOOK_EVERY,
        };
        for request in open {
            let is_restart = is_first || taken_up.contains(&home_of(request.organization));
            let advanced = match request.kind {
                PrivacyRequestKind::Export => self.advance_export(&request),
                PrivacyRequestKind::Erasure | PrivacyRequestKind::OptIn => self.advance_privacy_request(&request, is_restart),
            };
            if let Err(error) = advanced {
                tracing::warn!(request = %request.id, %error, "a privacy request could not be written; it is tried again");
                pause = AFTER_FAILURE;
            }
        }
        match self.expire_exports() {
            Ok(next) => next.map_or(pause, |next| pause.min(next.max(LOOK_EVERY))),
            Err(error) => {
                tracing::warn!(%error, "an export whose time is over could not be removed; it is tried again");
                pause.min(AFTER_FAILURE)
            }
        }
    }

    /// Begins to look after the requests of organizations whose home is this machine now, on one of
    /// several. Returns the partitions of those.
    fn take_up_privacy_requests(&self) -> Result<BTreeSet<u16>, (BTreeSet<u16>, RegistryError)> {
        let privacy = &self.inner.privacy;
        let mut taken_up = BTreeSet::new();
        let new = privacy.new_homes();
        // Before the erasures are read: another home may have recorded one that it could not make a
        // request of.
        let is_unsure = privacy.take_unsure(self.registry().erasures_applied());
        if new.is_empty() && !is_unsure {
            return Ok(taken_up);
        }
        let removed = privacy.remove_strays().inspect_err(|_| privacy.note_unsure());
        let mut failure = removed.err().map(RegistryError::from);
        // Read after it was found out what is owned: whatever an organization has done before it is
        // known here, it has done with this home.
        let homes: BTreeSet<u16> = self.registry().organizations().iter().map(|known| home_of(known.id)).collect();
        // Also those that are done: their requests may be missing. What was lifted is recorded
        // again.
        let mut erasures = self.registry().erasures();
        erasures.retain(|erasure| !erasure.only_suppresses() && (!erasure.is_done || !erasure.is_lifted));
        let has_project = |project| self.registry().policy(project).is_some();
        let now = self.known_now();
        for partition in new {
            let is_of = |organization| home_of(organization) == partition;
            let known = AtStart { now, erasures: &erasures, is_of: &is_of, has_project: &has_project };
            match privacy.take_up(partition, homes.contains(&partition).then_some(&known)) {
                Ok(true) => drop(taken_up.insert(partition)),
                Ok(false) => {}
                // Other organizations have other homes.
                Err(error) => failure = Some(error),
            }
        }
        if is_unsure {
            let is_of = |organization| privacy.is_home(organization);
            let known = AtStart { now, erasures: &erasures, is_of: &is_of, has_project: &has_project };
            if let Err(error) = privacy.recover(&known) {
                privacy.note_unsure();
                failure = Some(error);
            }
        }
        match failure {
            None => Ok(taken_up),
            Some(error) => Err((taken_up, error)),
        }
    }

    fn advance_privacy_request(&self, request: &PrivacyRequest, is_restart: bool) -> Result<(), RegistryError> {
        let (privacy, now) = (&self.inner.privacy, self.clock().now());
        let keys = self.erased_keys(request);
        if request.status == PrivacyStatus::Pending || is_restart {
            self.withdraw_exports(request.organization, &keys)?;
        }
        privacy.change(&request.id, |request| request.begin(now, is_restart))?;
        let is_running = |number: &u64| self.erasure(request.organization, *number) != Some(ErasureState::Done);
        if request.erasures.iter().any(is_running) {
            return Ok(());
        }
        // Before it is done, so that a restart repeats it.
        self.withdraw_exports(request.organization, &keys)?;
        for id in privacy.naming(request.organization, &keys) {
            privacy.change(&id, |naming| naming.subject = naming.subject.erased())?;
        }
        privacy.change(&request.id, |request| {
            if request.is_open() {
                request.complete(now);
            }
        })
    }

    /// The keys of those whom a request is about. The request itself may have only some of those
    /// that its erasures have.
    fn erased_keys(&self, request: &PrivacyRequest) -> PrivacyKeys {
        let mut keys = request.keys.clone();
        for erasure in self.registry().erasures_of(request.organization, |of| request.erasures.contains(&of.number)) {
            keys.users.extend(erasure.users);
            keys.others.extend(erasure.others);
        }
        keys
    }

    /// Begins to do what was requested, for as long as the engine is there.
    pub(super) fn start_privacy_requests(&self) {
        let (engine, made) = (Arc::downgrade(&self.inner), Arc::clone(&self.inner.privacy.made));
        let threads = self.inner.threads.lock();
        let Some(threads) = threads.as_ref() else { return };
        threads.arbiter().spawn(async move {
            let mut is_first = true;
            loop {
                let Some(inner) = engine.upgrade() else { return };
                if inner.parts.is_closing() {
                    return;
                }
                let advance = move || Self { inner }.advance_privacy_requests(is_first);
                let Ok(pause) = tokio::task::spawn_blocking(advance).await else { return };
                is_first = false;
                let _made_or_not = tokio::time::timeout(pause, made.notified()).await;
            }
        });
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
    let keys = PrivacyKeys { users: users.into_iter().collect(), others: others.into_iter().collect(), ..PrivacyKeys::default() };
    let is_erased = erasures.iter().all(|erasure| erasure.is_done);
    // The end of an erasure that is under way takes the value, too.
    let subject = if is_erased { subject.erased() } else { subject };
    Made { kind: PrivacyRequestKind::OptIn, subject, erasures: Vec::new(), keys, outcome }
}
