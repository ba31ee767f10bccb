//! Does what was requested, in the background.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use headcount_actors::SubjectKeys;
use headcount_common::home_of;
use headcount_control::RegistryError;

use super::privacy::Privacy;
use super::recovery::AtStart;
use super::request::{PrivacyRequest, PrivacyRequestKind, PrivacyStatus};

/// The pause between two looks at requests that are being done.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// The same while there is none.
const IDLE: Duration = Duration::from_secs(60);
/// The same after a failure.
const AFTER_FAILURE: Duration = Duration::from_secs(5);

impl Privacy {
    /// Goes on with the requests that are not done, and returns the pause until the next look.
    /// `is_first`: for the first time since the start.
    fn advance_privacy_requests(self: &Arc<Self>, is_first: bool) -> Duration {
        let (taken_up, failed) = match self.take_up_privacy_requests() {
            Ok(taken_up) => (taken_up, false),
            Err((taken_up, error)) => {
                tracing::warn!(%error, "privacy requests that another machine looked after can't be taken over yet");
                (taken_up, true)
            }
        };
        let mut open = self.requests.open_ones();
        open.retain(|request| self.requests.is_home(request.organization));
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
        let privacy = &self.requests;
        let mut taken_up = BTreeSet::new();
        let new = privacy.new_homes();
        // Before the erasures are read: another home may have recorded one that it could not make a
        // request of.
        let is_unsure = privacy.take_unsure(self.parts.registry().erasures_applied());
        if new.is_empty() && !is_unsure {
            return Ok(taken_up);
        }
        let removed = privacy.remove_strays().inspect_err(|_| privacy.note_unsure());
        let mut failure = removed.err().map(RegistryError::from);
        // Read after it was found out what is owned: whatever an organization has done before it is
        // known here, it has done with this home.
        let homes: BTreeSet<u16> = self.parts.registry().organizations().iter().map(|known| home_of(known.id)).collect();
        // Also those that are done: their requests may be missing. What was lifted is recorded
        // again.
        let mut erasures = self.parts.registry().erasures();
        erasures.retain(|erasure| !erasure.only_suppresses() && (!erasure.is_done || !erasure.is_lifted));
        let has_project = |project| self.parts.registry().policy(project).is_some();
        let now = self.parts.known_now();
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
        let (privacy, now) = (&self.requests, self.parts.clock().now());
        let keys = self.erased_keys(request);
        if request.status == PrivacyStatus::Pending || is_restart {
            self.withdraw_exports(request.organization, &keys)?;
        }
        privacy.change(&request.id, |request| request.begin(now, is_restart))?;
        let registry = self.parts.registry();
        let is_running = |number: &u64| registry.is_erasure_done(request.organization, *number) != Some(true);
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
    fn erased_keys(&self, request: &PrivacyRequest) -> SubjectKeys {
        let mut keys = request.keys.clone();
        for erasure in self.parts.registry().erasures_of(request.organization, |of| request.erasures.contains(&of.number)) {
            keys.add(SubjectKeys::of(&erasure));
        }
        keys
    }

    /// Does what was requested, until the engine closes.
    pub(crate) async fn work(self: Arc<Self>) {
        let mut is_first = true;
        while !self.parts.is_closing() {
            let privacy = Arc::clone(&self);
            let advance = move || privacy.advance_privacy_requests(is_first);
            let Ok(pause) = tokio::task::spawn_blocking(advance).await else { return };
            is_first = false;
            let _made_or_not = tokio::time::timeout(pause, self.requests.made.notified()).await;
        }
        // Exports that are being made end soon, and need the runtime until then.
        while !self.requests.jobs.is_idle() {
            self.requests.made.notified().await;
        }
    }
}
