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
use crate::channel::{Channel, Sent};
use crate::message::Message;
use crate::settings::PushSettings;

/// The number of messages that are sent at the same time: each occupies a thread.
pub(crate) const MAX_SENDING: usize = 8;
/// The number for one organization, so that its slow chats leave room for others.
const MAX_SENDING_OF_ONE: usize = 2;

/// What sends, in an engine.
pub(crate) struct Pushed {
    pub(crate) parts: EngineParts,
    pub(crate) settings: PushSettings,
    pub(crate) states: AlertStates,
    pub(crate) counts: AlertCounts,
    /// Notified when the engine closes.
    pub(crate) work: Notify,
    stopped: AtomicBool,
    /// The organization of each message that is being sent.
    pub(crate) sending: Mutex<Vec<OrganizationId>>,
}

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
    organization: OrganizationId,
}

impl Pushed {
    /// Opens the alerts of an engine. A node that owns no partition knows none before it follows them.
    pub(crate) fn open(parts: EngineParts, settings: PushSettings) -> Result<Self, ControlError> {
        let states = AlertStates::open(&parts)?;
        if (0..PARTITIONS).any(|partition| parts.owners().is_here(partition)) {
            states.follow()?;
        }
        let (counts, work, stopped, sending) = Default::default();
        Ok(Self { parts, settings, states, counts, work, stopped, sending })
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

    /// Returns the right to send a message of an organization; `None` if too many are being sent.
    pub(crate) fn permit(self: &Arc<Self>, organization: OrganizationId) -> Option<SendPermit> {
        let mut sending = self.sending.lock();
        let own = sending.iter().filter(|other| **other == organization).count();
        if own >= MAX_SENDING_OF_ONE || sending.len() >= MAX_SENDING {
            return None;
        }
        sending.push(organization);
        Some(SendPermit { pushed: Arc::clone(self), organization })
    }
}

impl SendPermit {
    /// Sends a message once. Blocks for 10 s at most.
    pub(crate) fn send(self, channel: &Channel, message: &Message) -> Sent {
        channel.send(message, self.pushed.parts.signer(), &self.pushed.settings)
    }
}

impl Drop for SendPermit {
    fn drop(&mut self) {
        let mut sending = self.pushed.sending.lock();
        if let Some(place) = sending.iter().position(|organization| *organization == self.organization) {
            sending.swap_remove(place);
        }
    }
}
