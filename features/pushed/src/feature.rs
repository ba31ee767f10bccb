//! What sends, as a feature of an engine.

use std::sync::Arc;

use headcount_actors::{EngineParts, Feature, InstallFeature};
use headcount_domain::OrganizationId;
use parking_lot::Mutex;

use crate::channel::{Channel, Sent};
use crate::message::Message;
use crate::settings::PushSettings;

/// The number of messages that are sent at the same time: each occupies a thread.
const MAX_SENDING: usize = 8;
/// The number for one organization, so that its slow chats leave room for others.
const MAX_SENDING_OF_ONE: usize = 2;

/// What sends, in an engine.
pub(crate) struct Pushed {
    pub(crate) parts: EngineParts,
    pub(crate) settings: PushSettings,
    /// The organization of each message that is being sent.
    sending: Mutex<Vec<OrganizationId>>,
}

/// The right to send a message, until it is dropped.
pub(crate) struct SendPermit {
    pushed: Arc<Pushed>,
    organization: OrganizationId,
}

impl Pushed {
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

impl Feature for Pushed {
    fn kind(&self) -> &'static str {
        "pushed"
    }
}

/// Makes channels a feature of an engine.
pub fn install(settings: PushSettings) -> InstallFeature {
    Arc::new(move |parts, _| Ok(Arc::new(Pushed { parts: parts.clone(), settings: settings.clone(), sending: Mutex::default() })))
}

#[cfg(test)]
mod tests {
    use headcount_actors::{Engine, EngineConfig};
    use headcount_outbound::AllowList;

    use super::*;

    #[test]
    fn an_organization_leaves_room_for_others() {
        let dir = tempfile::tempdir().unwrap();
        let mut config = EngineConfig::new(dir.path());
        config.min_free_bytes = 0;
        config.features = vec![install(PushSettings::guarded(AllowList::default()))];
        let engine = Engine::open(config).unwrap();
        let pushed: Arc<Pushed> = engine.feature().unwrap();
        let permit = |organization| pushed.permit(OrganizationId(organization));
        let mut held: Vec<_> = (0..MAX_SENDING as u64).map(|number| permit(number / 2).unwrap()).collect();
        assert!(permit(0).is_none() && permit(9).is_none());
        held.remove(0);
        assert!(permit(1).is_none());
        let again = permit(0).unwrap();
        assert!(permit(9).is_none());
        drop((again, held));
        assert!(pushed.sending.lock().is_empty());
    }
}
