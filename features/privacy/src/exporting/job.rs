//! Makes attempts to export, a few at a time.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use headcount_actors::engine::{AskError, ErasureError, ErasureSubject};
use headcount_actors::{SubjectEventsQuestion, SubjectIds};
use headcount_control::{Erasure, PrivacyRequestId, RegistryError};
use headcount_domain::intake::event::EVENT_VERSION;
use headcount_domain::{OrganizationId, Position, ProjectId};
use headcount_storage::codec;
use tokio::runtime::Handle;

use super::attempt::{AttemptError, Course};
use super::collector::SubjectCollector;
use super::identities::known_owners;
use super::writer::Making;
use crate::export_state::{Artifact, PrivacyFailure};
use crate::privacy::Privacy;
use crate::request::{PrivacyOutcome, PrivacyRequest};

/// How many attempts an export has.
const MAX_TRIES: u32 = 5;
/// Gives the place back, also after a panic.
struct Place {
    privacy: Arc<Privacy>,
    id: PrivacyRequestId,
}

impl Drop for Place {
    fn drop(&mut self) {
        let requests = &self.privacy.requests;
        requests.jobs.end(&self.id, requests.is_open(&self.id));
        requests.made.notify_one();
    }
}

impl Privacy {
    /// Passes the events of a subject in a project to `collector`, from whichever nodes have it
    /// meanwhile.
    fn collect_pages(
        &self,
        place: (OrganizationId, ProjectId),
        until: Position,
        ids: &SubjectIds,
        (collector, course): (&mut SubjectCollector, &Course),
    ) -> Result<(), AttemptError> {
        let (users, others) = (ids.users(), ids.others_of(place.1));
        let mut question = SubjectEventsQuestion { users, others, after: 0, until };
        while question.after < until {
            course.check()?;
            let page = self.subjects.events(place, &question, &|| course.is_over())?;
            if page.reached <= question.after {
                return Err(AskError::NoAnswer.into());
            }
            for (position, event) in page.events {
                collector.take(position, &codec::decode(EVENT_VERSION, &event)?)?;
            }
            question.after = page.reached;
        }
        Ok(())
    }

    /// Begins to make an export, if it is its turn. Call it on a thread of a runtime that may
    /// block.
    pub(crate) fn advance_export(self: &Arc<Self>, listed: &PrivacyRequest) -> Result<(), RegistryError> {
        let Some((is_over, is_first)) = self.requests.jobs.begin(listed) else { return Ok(()) };
        let place = Place { privacy: Arc::clone(self), id: listed.id.clone() };
        let now = self.parts.clock().now();
        let begun = self.requests.change(&listed.id, |request| request.begin(now, is_first));
        begun.inspect_err(|_| self.pause_export(listed, listed.export.failed_tries))?;
        // It may have ended since it was listed.
        let request = self.requests.get(listed.organization, &listed.id).filter(|request| request.is_open());
        let Some(request) = request else {
            // Perhaps an attempt completed it without an answer, and removed its file.
            self.requests.note_unsure();
            return Ok(());
        };
        Handle::current().spawn_blocking(move || {
            place.privacy.make_export(&request, &is_over);
        });
        Ok(())
    }

    fn make_export(self: &Arc<Self>, request: &PrivacyRequest, is_over: &Arc<AtomicBool>) {
        let course = Course::new(self, is_over);
        let (failure, message) = match self.attempt_export(request, &course) {
            Ok(()) | Err(AttemptError::Stopped) => return,
            Err(_) if course.is_over() => return,
            Err(AttemptError::Failed(PrivacyFailure::SubjectErased, message)) => (PrivacyFailure::SubjectErased, message),
            // A sort that failed does not say why.
            Err(AttemptError::Failed(_, message)) if !course.has_space() => (PrivacyFailure::DiskFull, message),
            Err(AttemptError::Failed(failure, message)) => (failure, message),
        };
        tracing::warn!(request = %request.id, code = failure.code(), %message, "an attempt to export failed");
        let is_final = matches!(failure, PrivacyFailure::SubjectErased | PrivacyFailure::TooManyIds);
        let (now, max_tries) = (self.parts.clock().now(), if is_final { 0 } else { MAX_TRIES });
        let mut failed_tries = request.export.failed_tries;
        let counted = self.requests.change(&request.id, |request| {
            failed_tries = request.export.failed_tries;
            if request.is_open() {
                request.count_failure(now, failure, max_tries);
            }
        });
        if let Err(error) = counted {
            tracing::warn!(request = %request.id, %error, "a failed export could not be noted");
        } else if !self.requests.is_open(&request.id) {
            // As above, and this is known now.
            self.requests.note_unsure();
        }
        self.pause_export(request, failed_tries);
    }

    /// Has the next attempt wait.
    fn pause_export(&self, request: &PrivacyRequest, failed_tries: u32) {
        let pauses = &self.settings.export_pauses;
        let pause = pauses[(failed_tries as usize).min(pauses.len() - 1)];
        self.requests.jobs.pause(&request.id, pause);
    }

    fn attempt_export(&self, request: &PrivacyRequest, course: &Course) -> Result<(), AttemptError> {
        course.check()?;
        let subject = ErasureSubject::from(&request.subject);
        let ids = match self.subjects.ids((request.organization, &subject), &|| course.is_over()) {
            // Who was known when the request was made is no longer, though nobody was erased: a
            // project is gone. So there is nothing to export.
            Err(ErasureError::Unknown) if self.erasures_with(request.organization, &request.keys).is_empty() => {
                SubjectIds::nobody()
            }
            ids => ids?,
        };
        let ids = Arc::new(ids);
        let keys = if ids.is_nobody() { request.keys.clone() } else { ids.keys() };
        // An erasure that begins later finds the export by them.
        self.requests.change(&request.id, |request| request.keys = keys.clone())?;
        let mut erasures = self.erasures_with(request.organization, &keys);
        erasures.retain(|erasure| !erasure.is_done);
        if erasures.iter().any(Erasure::only_suppresses) {
            let message = "an erasure of the subject begins, or is given up".to_owned();
            return Err(AttemptError::Failed(PrivacyFailure::Unavailable, message));
        }
        if !erasures.is_empty() {
            return Err(AttemptError::Failed(PrivacyFailure::SubjectErased, "the subject is being erased".to_owned()));
        }
        let owners = known_owners((self, request.organization), &ids, &ids.owners(), course)?;
        let mut collector = SubjectCollector::new(Arc::clone(&ids), self.parts.hasher(), &self.parts.scans);
        for (number, owner) in (0..).zip(&owners) {
            owner.emails.iter().try_for_each(|(email, at)| collector.add_email(number, email, *at))?;
        }
        for (project, until) in &ids.projects {
            course.check()?;
            self.collect_pages((request.organization, *project), *until, &ids, (&mut collector, course))?;
        }
        let collected = collector.finish()?;
        let (events, at) = (collected.found.count, self.parts.clock().now());
        let progress = |done, total| self.note_progress(&request.id, done, total);
        let making = Making { privacy: self, organization: request.organization, course, progress: &progress };
        let out = self.requests.artifacts.create(&request.id)?;
        let (artifact, identities) = making.write(&request.subject, collected, owners, at, out)?;
        let outcome = PrivacyOutcome { identities, events, ..PrivacyOutcome::default() };
        self.complete_export(request, &artifact, &outcome).inspect_err(|_| {
            // No request has it.
            if let Err(error) = self.requests.artifacts.remove(&request.id) {
                tracing::warn!(request = %request.id, %error, "an export that does not count could not be removed; the next start does it");
            }
        })
    }

    fn note_progress(&self, id: &PrivacyRequestId, done: u64, total: u64) {
        let now = self.parts.clock().now();
        if let Err(error) = self.requests.change(id, |request| request.progress(now, done, total)) {
            tracing::warn!(request = %id, %error, "the progress of an export could not be noted");
        }
    }

    /// Completes the request of an artifact that is a file.
    fn complete_export(
        &self,
        request: &PrivacyRequest,
        artifact: &Artifact,
        outcome: &PrivacyOutcome,
    ) -> Result<(), AttemptError> {
        let _alone = self.requests.jobs.alone();
        if !self.requests.is_home(request.organization) {
            return Err(AttemptError::Stopped);
        }
        let is_named = |erasure: &Erasure| !erasure.is_lifted && artifact.has_any_of(&erasure.others);
        if !self.parts.registry().erasures_of(request.organization, is_named).is_empty() {
            let message = "it has ids of somebody who was erased meanwhile".to_owned();
            return Err(AttemptError::Failed(PrivacyFailure::Unavailable, message));
        }
        if self.is_erased_meanwhile(request) {
            let message = "the subject was erased meanwhile".to_owned();
            return Err(AttemptError::Failed(PrivacyFailure::SubjectErased, message));
        }
        let (now, mut is_open) = (self.parts.clock().now(), false);
        let retention = i64::try_from(self.settings.export_retention.as_millis()).unwrap_or(i64::MAX);
        let expires_at = self.parts.known_now().plus_ms(retention);
        self.requests.change(&request.id, |request| {
            is_open = request.is_open();
            if is_open {
                request.outcome = outcome.clone();
                request.complete_export(now, artifact.clone(), expires_at);
            }
        })?;
        if is_open { Ok(()) } else { Err(AttemptError::Stopped) }
    }

    /// Whether an erasure is about the subject of an export. A former home may have recorded it
    /// without knowing of the export.
    fn is_erased_meanwhile(&self, request: &PrivacyRequest) -> bool {
        let current = self.requests.get(request.organization, &request.id);
        let keys = current.map(|request| request.keys.clone()).unwrap_or_default();
        !self.erasures_with(request.organization, &keys).iter().all(|erasure| erasure.is_lifted)
    }
}
