//! What sends: alerts and tests of channels.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use headcount_actors::EngineParts;
use headcount_common::{ControlError, PARTITIONS, partition_of};
use headcount_domain::{OrganizationId, ProjectId};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::task::{JoinError, spawn_blocking};

use crate::alert_state::AlertStates;
use crate::channel::{Channel, Post, Sent};
use crate::mail::Mailed;
use crate::recipients::DailyLimit;
use crate::settings::PushSettings;

/// The number of messages that are sent at the same time, to chats and by e-mail: each occupies a
/// thread.
pub(crate) const MAX_SENDING: usize = 8;
/// The number for one organization, so that its slow chats leave room for others.
const MAX_SENDING_OF_ONE: usize = 2;
/// How often addresses are asked in a day whether they want messages: in an organization, and one.
const MAX_ASKED: (usize, usize) = (200, 3);
/// How often addresses may confirm in a day: in an organization, and one.
const MAX_CONFIRMED: (usize, usize) = (1_000, 20);
/// How often an organization may test channels for e-mail in a day.
const MAX_MAIL_TESTS: usize = 20;

/// What sends, in an engine.
pub(crate) struct Pushed {
    pub(crate) parts: EngineParts,
    pub(crate) settings: PushSettings,
    pub(crate) states: AlertStates,
    pub(crate) counts: AlertCounts,
    /// Notified when the engine closes.
    pub(crate) work: Notify,
    stopped: AtomicBool,
    /// The messages that are being sent.
    pub(crate) sending: Mutex<Vec<Sending>>,
    /// The questions to addresses of e-mail.
    pub(crate) asked: DailyLimit,
    /// Their answers that they want messages.
    pub(crate) confirmed: DailyLimit,
    /// Tests of channels for e-mail.
    pub(crate) tested: DailyLimit,
}

/// The organization of a message, and whether it is e-mail: a slow mail server delays no chats.
pub(crate) type Sending = (OrganizationId, bool);

/// What happened to alerts since the start.
#[derive(Debug, Default)]
pub(crate) struct AlertCounts {
    pub(crate) evaluated: AtomicU64,
    pub(crate) fired: AtomicU64,
    pub(crate) delivered: AtomicU64,
    pub(crate) failed: AtomicU64,
}

impl AlertCounts {
    /// Counts a try of a message.
    pub(crate) fn count(&self, outcome: Sent) {
        let count = if outcome.is_ok_and(|status| (200..300).contains(&status)) { &self.delivered } else { &self.failed };
        count.fetch_add(1, Ordering::Relaxed);
    }
}

/// The right to send a message, until it is dropped.
pub(crate) struct SendPermit {
    pushed: Arc<Pushed>,
    sending: Sending,
}

impl Pushed {
    /// Opens the alerts of an engine. A node that owns no partition knows none before it follows them.
    pub(crate) fn open(parts: EngineParts, settings: PushSettings) -> Result<Self, ControlError> {
        let states = AlertStates::open(&parts)?;
        if (0..PARTITIONS).any(|partition| parts.owners().is_here(partition)) {
            states.follow()?;
        }
        let (counts, work, stopped, sending) = Default::default();
        let asked = DailyLimit::new(MAX_ASKED.0, MAX_ASKED.1);
        let confirmed = DailyLimit::new(MAX_CONFIRMED.0, MAX_CONFIRMED.1);
        let tested = DailyLimit::new(MAX_MAIL_TESTS, MAX_MAIL_TESTS);
        Ok(Self { parts, settings, states, counts, work, stopped, sending, asked, confirmed, tested })
    }

    /// Begins to stop: the engine closes.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        self.work.notify_one();
    }

    /// Whether the engine closes.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst) || self.parts.is_closing()
    }

    /// Whether this machine owns a project.
    pub(crate) fn is_here(&self, project: ProjectId) -> bool {
        self.parts.owners().is_here(partition_of(project))
    }

    /// Runs what blocks on a thread of its own.
    pub(crate) async fn blocking<R: Send + 'static>(
        self: &Arc<Self>,
        run: impl FnOnce(&Self) -> R + Send + 'static,
    ) -> Result<R, JoinError> {
        let pushed = Arc::clone(self);
        spawn_blocking(move || run(&pushed)).await
    }

    /// Returns the right to send a message; `None` if too many are being sent.
    pub(crate) fn permit(self: &Arc<Self>, of: Sending) -> Option<SendPermit> {
        let mut sending = self.sending.lock();
        let own = sending.iter().filter(|other| **other == of).count();
        let alike = sending.iter().filter(|other| other.1 == of.1).count();
        if own >= MAX_SENDING_OF_ONE || alike >= MAX_SENDING {
            return None;
        }
        sending.push(of);
        Some(SendPermit { pushed: Arc::clone(self), sending: of })
    }
}

impl SendPermit {
    /// Sends a message once. Blocks.
    pub(crate) fn send(self, channel: &Channel, post: Post<'_>) -> (Sent, Mailed) {
        channel.send(post, (&self.pushed.parts, &self.pushed.settings))
    }

    /// Asks unconfirmed addresses whether they want messages. Blocks.
    pub(crate) fn ask(&self, channel: &Channel) -> Result<(), &'static str> {
        channel.ask((&self.pushed.parts, &self.pushed.settings), &self.pushed.asked)
    }
}

impl Drop for SendPermit {
    fn drop(&mut self) {
        let mut sending = self.pushed.sending.lock();
        if let Some(place) = sending.iter().position(|sending| *sending == self.sending) {
            sending.swap_remove(place);
        }
    }
}
